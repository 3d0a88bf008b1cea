"""Equality deletes are converted to position deletes: the rows stay the same, and other writers do not notice."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from tests.commit.racing import files_of, race, reachable
from tests.dml.test_equality_upsert import note_reads
from tests.equality_deletes import delete_keys

import icefield
from icefield.errors import ConcurrentChange
from icefield.lake import Lake
from icefield.table.table import Table

Row = tuple[int, str, int]
ON_READ = {"write.delete.mode": "merge-on-read", "write.merge.mode": "merge-on-read"}
EQUALITY_DELETES = 2


def rows(*given: Row) -> pa.Table:
    return pa.table({name: [r[at] for r in given] for at, name in enumerate(("id", "p", "n"))})


def rows_of(table: Table, **scan: Any) -> list[Row]:
    read = table.scan(**scan).to_arrow().read_all()
    return sorted((row["id"], row["p"], row["n"]) for row in read.to_pylist())


def delete_files_of(table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.inspect("delete_files").to_arrow().read_all().to_pylist()
    return found


def contents_of(table: Table) -> list[tuple[int, str | None]]:
    return sorted((f["content"], f["file_format"]) for f in delete_files_of(table))


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


@pytest.fixture(params=[2, 3])
def table(lake: Lake, request: pytest.FixtureRequest) -> Table:
    """Two partitions with two files each; keys 2 (in a) and 12 (in b) were upserted into the other partition."""
    made = lake.create_table(
        "t.t", "id long, p string, n long", partition_by=["p"], properties=ON_READ, format_version=request.param
    )
    made.append(rows((1, "a", 0), (2, "a", 0), (3, "a", 0)))
    made.append(rows((4, "a", 0), (5, "a", 0), (11, "b", 0)))
    made.append(rows((12, "b", 0), (13, "b", 0)))
    made.upsert(rows((2, "b", 7), (12, "a", 7)), on=["id"], mode="equality")
    return made


EXPECTED = [
    (1, "a", 0),
    (2, "b", 7),
    (3, "a", 0),
    (4, "a", 0),
    (5, "a", 0),
    (11, "b", 0),
    (12, "a", 7),
    (13, "b", 0),
]


def test_rows_stay_and_equality_deletes_go(lake: Lake, table: Table) -> None:
    data = table.scan().files()["file_path"].to_pylist()
    snapshot = table.convert_equality_deletes()
    assert snapshot is not None
    assert rows_of(table) == EXPECTED
    kind = "PUFFIN" if table.metadata.format_version == 3 else "PARQUET"
    assert contents_of(table) == [(1, kind), (1, kind)]
    assert sorted(table.scan().files()["file_path"].to_pylist()) == sorted(data)
    summary = snapshot.summary
    assert (summary["operation"], summary["removed-equality-delete-files"]) == ("replace", "1")
    assert (summary["added-position-deletes"], summary["total-equality-deletes"]) == ("2", "0")
    assert (summary["total-delete-files"], summary["total-position-deletes"]) == ("2", "2")
    assert rows_of(table, as_of=snapshot.parent_snapshot_id) == EXPECTED
    assert table.convert_equality_deletes() is None
    assert files_of(lake) >= reachable(table)


def test_a_dry_run_returns_the_same_snapshot_and_stores_nothing(lake: Lake, table: Table) -> None:
    table.delete("id = 1")
    before = (files_of(lake), table.metadata_location)
    planned = table.convert_equality_deletes(dry_run=True)
    assert (files_of(lake), lake.table("t.t").metadata_location) == before
    done = table.convert_equality_deletes()
    assert planned is not None
    assert done is not None
    # Sizes may differ by a few bytes, with the names of files.
    vary = {key for key in done.summary if "size" in key}
    assert {k: v for k, v in planned.summary.items() if k not in vary} == {
        k: v for k, v in done.summary.items() if k not in vary
    }
    assert table.convert_equality_deletes(dry_run=True) is None


def test_a_table_without_them_is_left_alone(lake: Lake) -> None:
    table = lake.create_table("t.u", "id long")
    assert table.convert_equality_deletes() is None
    table.append(pa.table({"id": [1]}))
    before = (files_of(lake), table.metadata_location)
    assert table.convert_equality_deletes() is None
    assert (files_of(lake), table.metadata_location) == before


def test_earlier_position_deletes_are_kept(lake: Lake, table: Table) -> None:
    table.delete("id = 1")
    table.convert_equality_deletes()
    assert rows_of(table) == EXPECTED[1:]
    files = delete_files_of(table)
    if table.metadata.format_version == 3:
        targets = [f["referenced_data_file"] for f in files]
        assert len(targets) == len(set(targets)), "one vector for each data file"
        assert sorted(f["record_count"] for f in files) == [1, 2]
    else:
        assert sorted(f["record_count"] for f in files) == [1, 1, 1]


def test_only_files_that_they_apply_to_are_read(lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.append(rows((30, "c", 0)))
    newest = table.scan(where="id = 30").files()["file_path"].to_pylist()
    opened = note_reads(monkeypatch, "open_input")
    table.convert_equality_deletes()
    assert opened
    assert not set(newest) & set(opened)


def test_deletes_that_apply_to_no_file_are_dropped(lake: Lake, table: Table) -> None:
    table.delete("id = 1")  # position deletes
    table.delete("p in ('a', 'b')")  # every file, by metadata
    assert any(content == EQUALITY_DELETES for content, _ in contents_of(table))
    snapshot = table.convert_equality_deletes()
    assert snapshot is not None
    assert delete_files_of(table) == []
    assert rows_of(table) == []
    assert {snapshot.summary[f"total-{kind}"] for kind in ("delete-files", "position-deletes")} == {"0"}


def test_a_filter_converts_some_files_and_keeps_what_others_need(lake: Lake, table: Table) -> None:
    table.convert_equality_deletes("p = 'a'")
    assert rows_of(table) == EXPECTED
    assert [content for content, _ in contents_of(table)] == [1, EQUALITY_DELETES]
    table.convert_equality_deletes("p = 'b'")
    assert rows_of(table) == EXPECTED
    assert EQUALITY_DELETES in [content for content, _ in contents_of(table)], "files of a need it, by metadata"
    table.convert_equality_deletes()
    assert rows_of(table) == EXPECTED
    assert [content for content, _ in contents_of(table)] == [1, 1]


def test_keys_of_every_kind_are_converted(lake: Lake, table: Table) -> None:
    """Deletes of another writer, in partitions and with several columns, nulls among them."""
    table.append(rows((20, "c", 0)).set_column(2, "n", pa.nulls(1, pa.int64())))
    delete_keys(table, {"id": [1, 3], "n": [0, 5]}, {"p": "a"})
    delete_keys(table, {"n": [None]}, {"p": "c"})
    expected = [row for row in EXPECTED if row[0] != 1]
    assert rows_of(table) == expected
    table.convert_equality_deletes()
    assert rows_of(table) == expected
    assert EQUALITY_DELETES not in [content for content, _ in contents_of(table)]


def test_a_dropped_key_column_still_deletes(lake: Lake, table: Table) -> None:
    with table.evolve() as change:
        change.drop_column("id")
    expected = sorted(row[2] for row in EXPECTED)
    table.convert_equality_deletes()
    assert sorted(r["n"] for r in table.scan().to_arrow().read_all().to_pylist()) == expected
    assert EQUALITY_DELETES not in [content for content, _ in contents_of(table)]


def test_row_ids_stay(lake: Lake, table: Table) -> None:
    if table.metadata.format_version < 3:
        return
    select = ["id", "_row_id", "_last_updated_sequence_number"]
    before = table.scan(select=select).to_arrow().read_all().sort_by("id")
    table.convert_equality_deletes()
    assert table.scan(select=select).to_arrow().read_all().sort_by("id").equals(before)


def test_a_table_that_was_upgraded_gets_vectors_with_the_old_positions(lake: Lake) -> None:
    table = lake.create_table("t.u", "id long, p string, n long", properties=ON_READ, format_version=2)
    table.append(rows((1, "a", 0), (2, "a", 0), (3, "a", 0)))
    table.delete("id = 1")
    table.upsert(rows((2, "a", 7)), on=["id"], mode="equality")
    table.upgrade_format_version(3)
    table.convert_equality_deletes()
    assert rows_of(table) == [(2, "a", 7), (3, "a", 0)]
    assert [(f["file_format"], f["record_count"]) for f in delete_files_of(table)] == [("PUFFIN", 2)]


Other = Callable[[Table], object]
# What another writer commits while the conversion does, and the rows afterwards.
RIVALS: dict[str, tuple[Other, list[Row]]] = {
    "append": (lambda t: t.append(rows((40, "a", 1))), [*EXPECTED, (40, "a", 1)]),
    "delete a row of a converted file": (lambda t: t.delete("id = 3"), [r for r in EXPECTED if r[0] != 3]),
    "delete a whole file": (lambda t: t.delete("p = 'a'"), [r for r in EXPECTED if r[1] != "a"]),
    "upsert": (
        lambda t: t.upsert(rows((3, "a", 8)), on=["id"]),
        [r for r in EXPECTED if r[0] != 3] + [(3, "a", 8)],
    ),
    "equality upsert": (
        lambda t: t.upsert(rows((3, "a", 8), (2, "a", 8)), on=["id"], mode="equality"),
        [r for r in EXPECTED if r[0] not in (2, 3)] + [(3, "a", 8), (2, "a", 8)],
    ),
    "compact": (lambda t: t.compact(), EXPECTED),
    "compact a partition": (lambda t: t.compact("p = 'a'"), EXPECTED),
    "rewrite manifests": (lambda t: t.rewrite_manifests(), EXPECTED),
    "convert": (lambda t: t.convert_equality_deletes(), EXPECTED),
    "upgrade": (lambda t: t.upgrade_format_version(3), EXPECTED),
    "overwrite": (
        lambda t: t.overwrite(rows((1, "a", 9)), where="p = 'a'"),
        [r for r in EXPECTED if r[1] != "a"] + [(1, "a", 9)],
    ),
}


@pytest.mark.parametrize("granularity", ["file", "partition"])
@pytest.mark.parametrize("rival", RIVALS)
def test_it_does_not_conflict_with_what_others_commit_first(
    lake: Lake, table: Table, rival: str, granularity: str
) -> None:
    if granularity == "partition" and table.metadata.format_version == 3:
        return
    table.set_properties({"write.delete.granularity": granularity})
    change, expected = RIVALS[rival]
    race(lake, lambda: change(lake.table("t.t")), table.convert_equality_deletes)
    assert rows_of(table) == sorted(expected)
    vectors = [f["referenced_data_file"] for f in delete_files_of(table) if f["file_format"] == "PUFFIN"]
    assert len(vectors) == len(set(vectors))
    if table.metadata.format_version == 3:
        assert set(vectors) <= set(table.scan().files()["file_path"].to_pylist()), "no vector without its data file"
    table.convert_equality_deletes()
    assert rows_of(table) == sorted(expected)
    assert EQUALITY_DELETES not in [content for content, _ in contents_of(table)]
    assert files_of(lake) >= reachable(table)


def test_of_two_conversions_one_does_it_and_the_other_leaves_nothing(lake: Lake, table: Table) -> None:
    made: list[object] = []
    race(
        lake,
        lambda: made.append(lake.table("t.t").convert_equality_deletes()),
        lambda: made.append(table.convert_equality_deletes()),
    )
    assert [snapshot is None for snapshot in made] == [False, True]
    assert (rows_of(table), len(delete_files_of(table)), len(table.snapshots())) == (EXPECTED, 2, 5)
    data = {location for location in files_of(lake) if "/data/" in location}
    assert data <= reachable(table)


# What a writer that planned before the conversion does after it; None: it fails.
PLANNED: dict[str, tuple[dict[str, str], Other, list[Row]]] = {
    "delete": ({}, lambda t: t.delete("id = 3"), [r for r in EXPECTED if r[0] != 3]),
    "copy-on-write delete": (
        {"write.delete.mode": "copy-on-write"},
        lambda t: t.delete("id = 3"),
        [r for r in EXPECTED if r[0] != 3],
    ),
    "upsert": (
        {},
        lambda t: t.upsert(rows((3, "a", 8)), on=["id"]),
        [r for r in EXPECTED if r[0] != 3] + [(3, "a", 8)],
    ),
    "copy-on-write upsert": (
        {"write.merge.mode": "copy-on-write"},
        lambda t: t.upsert(rows((3, "a", 8)), on=["id"]),
        [r for r in EXPECTED if r[0] != 3] + [(3, "a", 8)],
    ),
    "equality upsert": (
        {},
        lambda t: t.upsert(rows((3, "a", 8)), on=["id"], mode="equality"),
        [r for r in EXPECTED if r[0] != 3] + [(3, "a", 8)],
    ),
    "append": ({}, lambda t: t.append(rows((40, "a", 1))), [*EXPECTED, (40, "a", 1)]),
    "overwrite": (
        {},
        lambda t: t.overwrite(rows((3, "a", 8)), where="id = 3"),
        [r for r in EXPECTED if r[0] != 3] + [(3, "a", 8)],
    ),
    "rewrite manifests": ({}, lambda t: t.rewrite_manifests(), EXPECTED),
    "compact": ({}, lambda t: t.compact(), EXPECTED),
}


@pytest.mark.parametrize("verb", PLANNED)
def test_a_change_that_was_planned_before_lands_after_it(lake: Lake, table: Table, verb: str) -> None:
    properties, change, expected = PLANNED[verb]
    table.set_properties(properties)
    race(lake, lambda: lake.table("t.t").convert_equality_deletes(), lambda: change(table))
    assert rows_of(table) == sorted(expected)
    assert files_of(lake) >= reachable(table)


def test_a_row_that_was_deleted_concurrently_does_not_return_with_a_rewritten_file(lake: Lake, table: Table) -> None:
    """A delete between the plan of a rewrite and a conversion is not hidden by the conversion."""
    table.set_properties({"write.delete.mode": "copy-on-write"})

    def others() -> None:
        other = lake.table("t.t")
        other.upsert(rows((1, "a", 9)), on=["id"], mode="equality")
        other.convert_equality_deletes()

    with pytest.raises(ConcurrentChange, match="concurrently deleted rows of files that it rewrites"):
        race(lake, others, lambda: table.delete("id = 3"))
    assert rows_of(table) == sorted([(1, "a", 9), *EXPECTED[1:]])


def test_a_version_that_is_no_longer_in_the_history_is_a_conflict(lake: Lake, table: Table) -> None:
    """The equality deletes were undone: their rows must not be deleted by position."""
    parent = table.snapshots()[-1].parent_snapshot_id
    assert parent is not None
    with pytest.raises(ConcurrentChange, match="no longer in the history"):
        race(lake, lambda: lake.table("t.t").rollback(parent), table.convert_equality_deletes)
    assert (2, "a", 0) in rows_of(table)


def test_what_the_check_of_needed_deletes_prevents(lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, equality deletes that other files need are removed, and rows return."""
    monkeypatch.setattr("icefield.commit.actions.rewrite_deletes._deletes", lambda task: frozenset())
    table.convert_equality_deletes("p = 'a'")
    assert rows_of(table) != EXPECTED


def test_what_the_merging_of_vectors_prevents(lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    if table.metadata.format_version == 2:
        return
    monkeypatch.setattr("icefield.commit.actions.rewrite_deletes._position_deletes", lambda task: frozenset[object]())
    race(lake, lambda: lake.table("t.t").delete("id = 3"), table.convert_equality_deletes)
    assert (3, "a", 0) in rows_of(table), "the row that another writer deleted is back"
