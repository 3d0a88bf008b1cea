"""Merge-on-read deletes and upserts: what they write, their conflicts, and histories that other engines got wrong."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from tests.commit.racing import files_of, race, reachable

import icefield
from icefield.commit.validate.read_set import ReadSet
from icefield.errors import ConcurrentChange, InvalidInput, Unsupported
from icefield.expr.bind.bound import TRUE
from icefield.lake import Lake
from icefield.plan.plan import plan_added_files
from icefield.table.table import Table

IN_PLACE = {"write.delete.mode": "merge-on-read", "write.merge.mode": "merge-on-read"}


def rows(*triples: tuple[int, str, int]) -> pa.Table:
    return pa.table({name: [t[at] for t in triples] for at, name in enumerate(("id", "p", "n"))})


def rows_of(table: Table) -> list[tuple[int, int]]:
    return sorted((r["id"], r["n"]) for r in table.scan().to_arrow().read_all().to_pylist())


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


@pytest.fixture(params=[2, 3])
def table(lake: Lake, request: pytest.FixtureRequest) -> Table:
    made = lake.create_table(
        "t.t", "id long, p string, n long", partition_by=["p"], properties=IN_PLACE, format_version=request.param
    )
    made.append(rows((1, "a", 0), (2, "a", 0), (3, "a", 0), (4, "a", 0)))
    made.append(rows((11, "b", 0), (12, "b", 0)))
    return made


def test_a_delete_in_place_writes_no_data_file(lake: Lake, table: Table) -> None:
    before = set(table.scan().files()["file_path"].to_pylist())
    snapshot = table.delete("id = 2").snapshot
    assert snapshot is not None
    assert set(table.scan().files()["file_path"].to_pylist()) == before
    assert (snapshot.summary["added-delete-files"], snapshot.summary["total-position-deletes"]) == ("1", "1")
    assert rows_of(table) == [(1, 0), (3, 0), (4, 0), (11, 0), (12, 0)]
    assert table.scan(as_of=snapshot.parent_snapshot_id).count() == 6


def test_a_second_delete_adds_to_the_first(lake: Lake, table: Table) -> None:
    table.delete("id = 2")
    second = table.delete("id = 4").snapshot
    assert second is not None
    assert rows_of(table) == [(1, 0), (3, 0), (11, 0), (12, 0)]
    # One vector for a data file, which holds all; position delete files accumulate.
    assert second.summary["total-delete-files"] == ("1" if table.metadata.format_version == 3 else "2")
    assert second.summary["total-position-deletes"] == "2"


def test_whole_files_go_by_metadata_and_rows_by_their_places(lake: Lake, table: Table) -> None:
    snapshot = table.delete("p = 'b' or id = 1").snapshot
    assert snapshot is not None
    assert (snapshot.summary["deleted-data-files"], snapshot.summary["added-position-deletes"]) == ("1", "1")
    assert rows_of(table) == [(2, 0), (3, 0), (4, 0)]


def test_a_delete_that_matches_nothing_commits_nothing(lake: Lake, table: Table) -> None:
    before = files_of(lake)
    assert table.delete("id = 99").snapshot is None
    assert files_of(lake) == before


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_an_upsert_replaces_and_adds(lake: Lake, table: Table, mode: str) -> None:
    table.set_properties({"write.merge.mode": mode})
    table.upsert(rows((2, "a", 7), (12, "c", 7), (30, "c", 7)), on=["id"])
    assert rows_of(table) == [(1, 0), (2, 7), (3, 0), (4, 0), (11, 0), (12, 7), (30, 7)]
    assert files_of(lake) >= reachable(table)


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_an_upsert_by_several_columns_takes_whole_keys(lake: Lake, table: Table, mode: str) -> None:
    table.set_properties({"write.merge.mode": mode})
    table.upsert(rows((1, "b", 7), (11, "b", 7)), on=["id", "p"])
    assert rows_of(table) == [(1, 0), (1, 7), (2, 0), (3, 0), (4, 0), (11, 7), (12, 0)]


def test_an_upsert_of_very_many_keys_goes_by_their_range(lake: Lake, table: Table) -> None:
    table.upsert(pa.table({"id": range(0, 2000, 2), "p": ["a"] * 1000, "n": [7] * 1000}), on=["id"])
    assert table.count() == 3 + 1000
    assert [r for r in rows_of(table) if r[1] == 0] == [(1, 0), (3, 0), (11, 0)]


def test_an_upsert_by_identifier_fields_needs_no_key(lake: Lake) -> None:
    table = lake.create_table("t.u", "id long not null, n long")
    with table.evolve() as change:
        change.set_identifier_fields(["id"])
    table.upsert(pa.table({"id": [1, 2], "n": [0, 0]}))
    table.upsert(pa.table({"id": [2, 3], "n": [7, 7]}))
    assert rows_of(table) == [(1, 0), (2, 7), (3, 7)]


BAD_UPSERTS: dict[str, tuple[pa.Table, object, str]] = {
    "no key": (rows((1, "a", 1)), None, "needs key columns"),
    "a text": (rows((1, "a", 1)), "id", "on takes a list of strings"),
    "no such column": (rows((1, "a", 1)), ["x"], "no column 'x'"),
    "a key twice": (rows((1, "a", 1), (1, "b", 2)), ["id"], r"two rows to upsert have the key \{'id': 1\}"),
    "a null key": (pa.table({"id": pa.array([None], pa.int64()), "p": ["a"], "n": [1]}), ["id"], "no value in the key"),
}


@pytest.mark.parametrize(("given", "on", "why"), BAD_UPSERTS.values(), ids=BAD_UPSERTS)
def test_a_bad_upsert_is_refused_and_changes_nothing(
    lake: Lake, table: Table, given: pa.Table, on: list[str], why: str
) -> None:
    before = files_of(lake)
    with pytest.raises(InvalidInput, match=why):
        table.upsert(given, on=on)
    assert files_of(lake) == before


def test_version_1_has_no_deletes_in_place(lake: Lake) -> None:
    table = lake.create_table("t.v1", "id long, p string, n long", properties=IN_PLACE, format_version=1)
    table.append(rows((1, "a", 0), (2, "a", 0)))
    before = files_of(lake)
    with pytest.raises(Unsupported, match="Upgrade the table"):
        table.delete("id = 1")
    assert (table.count(), files_of(lake)) == (2, before)


Racer = Callable[[Table], object]


def test_deletes_of_different_rows_of_one_file_both_hold(lake: Lake, table: Table) -> None:
    race(lake, lambda: lake.table("t.t").delete("id = 2"), lambda: table.delete("id = 3"))
    assert rows_of(table) == [(1, 0), (4, 0), (11, 0), (12, 0)]
    # A vector that nobody got to see is gone.
    assert files_of(lake) >= reachable(table)


@pytest.mark.parametrize("first", ["delete", "upsert"])
def test_r01_an_update_and_a_delete_of_one_row_do_not_both_land(lake: Lake, table: Table, first: str) -> None:
    update: Racer = lambda t: t.upsert(rows((2, "a", 7)), on=["id"])  # noqa: E731
    delete: Racer = lambda t: t.delete("id = 2")  # noqa: E731
    mine, other = (delete, update) if first == "delete" else (update, delete)
    with pytest.raises(ConcurrentChange):
        race(lake, lambda: other(lake.table("t.t")), lambda: mine(table))
    assert ((2, 7) in rows_of(table)) is (first == "delete")


def test_r01_goes_red_without_the_guard(lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "intersect1d", lambda *_: np.zeros(0))
    race(lake, lambda: lake.table("t.t").delete("id = 2"), lambda: table.upsert(rows((2, "a", 7)), on=["id"]))
    assert (2, 7) in rows_of(table), "a row that was deleted survives as its update"


def test_r03_places_in_a_file_that_compaction_removed_are_found_in_the_new_one(lake: Lake, table: Table) -> None:
    table.append(rows((5, "a", 0)))
    before = rows_of(table)
    race(lake, lambda: lake.table("t.t").compact(), lambda: table.delete("id = 2"))
    assert rows_of(table) == [row for row in before if row[0] != 2]


def test_r03_goes_red_without_the_guard(lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.append(rows((5, "a", 0)))
    monkeypatch.setattr(ReadSet, "is_disturbed", lambda *_: False)
    race(lake, lambda: lake.table("t.t").compact(), lambda: table.delete("id = 2"))
    assert (2, 0) in rows_of(table), "the delete landed and took nothing"


def test_r20_rows_that_come_with_deletes_are_not_deleted_by_them(lake: Lake, table: Table) -> None:
    snapshot = table.upsert(rows((1, "a", 7), (11, "b", 7)), on=["id"]).snapshot
    assert snapshot is not None
    assert int(snapshot.summary["added-position-deletes"]) == 2
    assert {(1, 7), (11, 7)} <= set(rows_of(table))


def test_r21_an_append_to_another_partition_is_no_conflict(lake: Lake, table: Table) -> None:
    race(lake, lambda: lake.table("t.t").append(rows((40, "b", 0))), lambda: table.delete("p = 'a' and n = 0"))
    assert rows_of(table) == [(11, 0), (12, 0), (40, 0)]


def test_r21_goes_red_without_the_guard(lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "icefield.commit.validate.read_set.plan_added_files",
        lambda store, base, snapshot, plan: plan_added_files(store, base, snapshot, replace(plan, where=TRUE)),
    )
    with pytest.raises(ConcurrentChange, match="concurrently added rows"):
        race(lake, lambda: lake.table("t.t").append(rows((40, "b", 0))), lambda: table.delete("p = 'a' and n = 0"))


def test_two_upserts_of_one_new_key_do_not_both_land(lake: Lake, table: Table) -> None:
    table.set_properties({"write.merge.isolation-level": "snapshot"})
    with pytest.raises(ConcurrentChange, match="concurrently added rows"):
        race(
            lake,
            lambda: lake.table("t.t").upsert(rows((50, "a", 1)), on=["id"]),
            lambda: table.upsert(rows((50, "a", 2)), on=["id"]),
        )
    assert [r for r in rows_of(table) if r[0] == 50] == [(50, 1)]


def test_upserts_of_keys_that_lie_between_each_other_both_land(lake: Lake, table: Table) -> None:
    race(
        lake,
        lambda: lake.table("t.t").upsert(rows((50, "a", 1), (52, "a", 1)), on=["id"]),
        lambda: table.upsert(rows((49, "a", 2), (51, "a", 2), (53, "a", 2)), on=["id"]),
    )
    assert [r[0] for r in rows_of(table) if r[0] > 12] == [49, 50, 51, 52, 53]


def test_files_too_large_to_look_into_are_taken_to_hold_read_rows(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icefield.commit.validate.read_set.MAX_BYTES_TO_LOOK_INTO", 0)
    with pytest.raises(ConcurrentChange, match="concurrently added rows"):
        race(
            lake,
            lambda: lake.table("t.t").upsert(rows((50, "a", 1), (52, "a", 1)), on=["id"]),
            lambda: table.upsert(rows((51, "a", 2)), on=["id"]),
        )


def test_a_table_that_is_upgraded_concurrently_gets_vectors(lake: Lake) -> None:
    table = lake.create_table("t.up", "id long, p string, n long", properties=IN_PLACE)
    table.append(rows((1, "a", 0), (2, "a", 0), (3, "a", 0)))
    table.delete("id = 3")
    race(lake, lambda: lake.table("t.up").upgrade_format_version(3), lambda: table.delete("id = 1"))
    assert rows_of(table) == [(2, 0)]
    head = table.metadata.current_snapshot
    assert head is not None
    assert head.summary["added-dvs"] == "1"
    assert files_of(lake) >= reachable(table)


def test_a_delete_that_fails_leaves_no_file(lake: Lake, table: Table) -> None:
    before = files_of(lake)
    with pytest.raises(ConcurrentChange):
        race(lake, lambda: lake.table("t.t").delete("id = 2"), lambda: table.delete("id = 2"))
    assert reachable(table) <= files_of(lake)
    new = {f for f in files_of(lake) - before if "/data/" in f}
    assert new == {f for f in new if f in reachable(table)}


def test_deltas_of_one_transaction_build_on_each_other(lake: Lake, table: Table) -> None:
    table.delete("id = 1")
    with lake.transaction() as tx:
        tx.table("t.t").delete("id = 2")
        tx.table("t.t").upsert(rows((3, "a", 9)), on=["id"])
    assert rows_of(table) == [(3, 9), (4, 0), (11, 0), (12, 0)]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_row_that_is_replaced_stays_the_same_row(lake: Lake, mode: str) -> None:
    table = lake.create_table(
        "t.v3", "id long, p string, n long", properties={"write.merge.mode": mode}, format_version=3
    )
    table.append(rows((1, "a", 0), (2, "a", 0), (3, "a", 0)))
    table.upsert(rows((9, "a", 7), (3, "a", 7), (1, "a", 7)), on=["id"])
    found = table.scan(select=["id", "_row_id", "_last_updated_sequence_number"]).to_arrow().read_all().to_pylist()
    ids = {row["id"]: (row["_row_id"], row["_last_updated_sequence_number"]) for row in found}
    assert {key: ids[key] for key in (1, 2, 3)} == {1: (0, 2), 2: (1, 1), 3: (2, 2)}
    assert ids[9][0] > 2


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_table_may_have_columns_that_are_called_like_places(lake: Lake, mode: str) -> None:
    properties = {"write.merge.mode": mode, "write.delete.mode": mode}
    table = lake.create_table("t.own", "id long, _pos long, n long", properties=properties)
    table.append(pa.table({"id": [1, 2, 3], "_pos": [7, 7, 7], "n": [0, 0, 0]}))
    table.delete("id = 2 and _pos = 7")
    table.upsert(pa.table({"id": [3], "_pos": [8], "n": [5]}), on=["id"])
    assert rows_of(table) == [(1, 0), (3, 5)]


@pytest.mark.parametrize("isolation", ["snapshot", "serializable"])
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_a_plan_that_was_rolled_back_is_a_conflict_under_every_isolation(
    lake: Lake, table: Table, mode: str, isolation: str
) -> None:
    table.set_properties({"write.delete.mode": mode, "write.delete.isolation-level": isolation})
    first = table.snapshots()[0].snapshot_id
    table.delete("id = 11")
    with pytest.raises(ConcurrentChange, match="no longer in the history"):
        race(lake, lambda: lake.table("t.t").rollback(first), lambda: table.delete("id = 2"))
    assert rows_of(table) == [(1, 0), (2, 0), (3, 0), (4, 0)]
