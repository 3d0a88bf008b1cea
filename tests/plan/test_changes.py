"""What changed between two versions: the rows that appends brought, the files that came and went."""

import datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort

import icefield
from icefield.ambient import SeededAmbient
from icefield.errors import InvalidFilter, InvalidInput, NoSuchSnapshot
from icefield.lake import Lake
from icefield.model.snapshot import Snapshot
from icefield.table.table import Table

LATER = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)
MERGE_ON_READ = {"write.delete.mode": "merge-on-read"}


def ids(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64())})


def made(snapshot: Snapshot | None) -> int:
    assert snapshot is not None
    return snapshot.snapshot_id


def appended(table: Table, after: Any, until: Any = None, **options: Any) -> list[int]:
    scan = table.scan_appends(after, until, **options)
    found: list[int] = sorted(scan.to_arrow().read_all()["id"].to_pylist())
    assert scan.count() == len(found)
    return found


@pytest.fixture
def table(memory_lake: Lake) -> Table:
    return memory_lake.create_table("a.t", "id long", partition_by=["truncate(10, id)"])


def test_appended_rows_are_those_after_one_version_up_to_another(table: Table) -> None:
    first, second, third = (made(table.append(ids(n, n + 1))) for n in (1, 11, 21))
    assert appended(table, first) == [11, 12, 21, 22]
    assert appended(table, first, second) == [11, 12]
    assert appended(table, second, third) == [21, 22]
    assert appended(table, third) == []
    assert appended(table, None) == [1, 2, 11, 12, 21, 22]
    assert appended(table, None, first) == [1, 2]
    assert table.scan_appends(first, second).snapshot_id == second


def test_filters_and_columns_are_those_of_a_scan(table: Table) -> None:
    first = made(table.append(ids(1)))
    table.append(ids(2, 12, 13))
    assert appended(table, first, where="id > 11 AND id != 13") == [12]
    assert table.scan_appends(first, where="id >= 10").files()["partition"].to_pylist() == ["id_trunc=10"]
    scan = table.scan_appends(first, select=["_file"])
    assert [f.name for f in scan.schema.fields] == ["_file"]
    assert set(scan.to_arrow().read_all()["_file"].to_pylist()) == set(scan.files()["file_path"].to_pylist())
    with pytest.raises(InvalidFilter):
        table.scan_appends(first, where="nothing = 1")


def test_only_appends_are_read_whatever_came_between(table: Table) -> None:
    first = made(table.append(ids(1, 2)))
    table.append(ids(3, 4))
    table.overwrite(ids(5), where="id = 1", check_rows=False)
    table.delete("id = 3")
    table.append(ids(6))
    table.compact()
    table.rewrite_manifests()
    assert appended(table, first) == [3, 4, 6]
    assert sorted(table.scan().to_arrow().read_all()["id"].to_pylist()) == [2, 4, 5, 6]


def test_rows_deleted_by_position_since_are_read_all_the_same(memory_lake: Lake) -> None:
    table = memory_lake.create_table("a.t", "id long", properties=MERGE_ON_READ, format_version=3)
    first = made(table.append(ids(1)))
    table.append(ids(2, 3))
    table.delete("id = 2")
    assert appended(table, first) == [2, 3]


def test_versions_are_named_by_id_time_and_ref(table: Table) -> None:
    table.append(ids(1))
    table.create_tag("start")
    at = datetime.datetime.fromtimestamp(table.snapshots()[0].timestamp_ms / 1000, datetime.UTC)
    table.create_branch("side")
    table.at("side").append(ids(2))
    table.append(ids(3))
    assert appended(table, "start") == appended(table, at) == [3]
    assert appended(table, "start", "side") == appended(table.at("side"), "start") == [2]


def test_snapshots_in_one_millisecond_are_told_apart_by_their_order() -> None:
    with icefield.connect("memory:", ambient=SeededAmbient(7, tick_ms=0)) as lake:
        table = lake.create_table("a.t", "id long")
        first, second = made(table.append(ids(1))), made(table.append(ids(2)))
        (moment,) = {s.timestamp_ms for s in table.snapshots()}
        at = datetime.datetime.fromtimestamp(moment / 1000, datetime.UTC)
        assert appended(table, at) == []
        assert appended(table, None, at) == [1, 2]
        assert appended(table, first) == [2]
        (partition,) = table.inspect("partitions").to_arrow().read_all().to_pylist()
        assert partition["last_updated_snapshot_id"] == second


def test_a_start_that_is_no_ancestor_is_refused(table: Table) -> None:
    first = made(table.append(ids(1)))
    table.create_branch("side")
    other = made(table.at("side").append(ids(2)))
    second = made(table.append(ids(3)))
    with pytest.raises(InvalidInput, match=f"{other} is not an ancestor of snapshot {second}"):
        table.scan_appends(other)
    with pytest.raises(InvalidInput, match="not an ancestor"):
        table.scan_appends(second, first)
    with pytest.raises(NoSuchSnapshot):
        table.scan_appends(first, 7)
    with pytest.raises(InvalidInput, match="not True"):
        table.scan_appends(True)


def test_a_start_that_has_expired_still_counts_if_its_successor_is_there(table: Table) -> None:
    first, second, third = (made(table.append(ids(n))) for n in (1, 2, 3))
    table.remove_snapshots([first])
    assert appended(table, first) == [2, 3]
    table.remove_snapshots([second])
    assert appended(table, second) == [3]
    with pytest.raises(InvalidInput, match=f"from snapshot {first} to snapshot {third}: snapshot {second} .* expired"):
        table.scan_appends(first)


def test_nothing_is_appended_to_an_empty_table(table: Table) -> None:
    assert appended(table, None) == []
    assert table.changed_files(None).num_rows == 0


def test_changed_files_are_told_with_who_changed_them(memory_lake: Lake) -> None:
    table = memory_lake.create_table("a.t", "id long", partition_by=["truncate(10, id)"], format_version=1)
    first = made(table.append(ids(1, 11, 21)))
    second = made(table.append(ids(31)))
    gone = made(table.delete("id = 11").snapshot)
    made(table.append(ids(41)))
    made(table.delete("id = 41").snapshot)
    output = table.changed_files(first).sort_by("change").to_pylist()
    assert [(r["change"], r["snapshot_id"], r["partition"]["id_trunc"]) for r in output] == [
        ("added", second, 30),
        ("removed", gone, 10),
    ]
    assert {(r["record_count"], r["content"], r["spec_id"]) for r in output} == {(1, 0, 0)}


def test_changes_are_told_between_branches_and_backwards_too(table: Table) -> None:
    first = made(table.append(ids(1)))
    table.create_branch("side")
    side = made(table.at("side").append(ids(11)))
    main = made(table.append(ids(21)))

    def changes(after: Any, until: Any) -> list[tuple[str, int, int | None]]:
        rows = table.changed_files(after, until).to_pylist()
        return sorted((r["change"], r["partition"]["id_trunc"], r["snapshot_id"]) for r in rows)

    assert changes("side", "main") == [("added", 20, main), ("removed", 10, None)]
    assert changes(main, first) == [("removed", 20, None)]
    assert changes(None, "side") == [("added", 0, first), ("added", 10, side)]
    assert changes("side", "side") == []


def test_deletion_vectors_of_one_file_are_told_apart(memory_lake: Lake) -> None:
    table = memory_lake.create_table(
        "a.t", "id long", partition_by=["truncate(10, id)"], properties=MERGE_ON_READ, format_version=3
    )
    table.append(ids(1, 2, 3, 11, 12, 13))
    start = made(table.delete("id = 1 OR id = 11").snapshot)
    end = made(table.delete("id = 2").snapshot)
    output = table.changed_files(start).to_pylist()
    assert sorted((r["change"], r["content"], r["record_count"], r["snapshot_id"]) for r in output) == [
        ("added", 1, 2, end),
        ("removed", 1, 1, end),
    ]
    assert {r["partition"]["id_trunc"] for r in output} == {0}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 39)),
        st.tuples(st.just("delete"), st.integers(0, 39)),
        st.tuples(st.sampled_from(["compact", "rewrite_manifests"]), st.just(0)),
    ),
    min_size=1,
    max_size=8,
)


@effort(30)
@given(STEPS, st.data())
def test_changed_files_lead_from_one_version_to_the_other(steps: list[tuple[str, int]], data: st.DataObject) -> None:
    with icefield.connect("memory:", ambient=SeededAmbient(7)) as lake:
        table = lake.create_table("a.t", "id long", partition_by=["truncate(10, id)"])
        for verb, number in steps:
            match verb:
                case "append":
                    table.append(ids(number))
                case "delete":
                    table.delete(f"id = {number}")
                case _:
                    getattr(table, verb)()
        points = [None, *(s.snapshot_id for s in table.snapshots())]
        before, after = data.draw(st.sampled_from(points)), data.draw(st.sampled_from(points))
        changes = table.changed_files(before, after).to_pylist()
        added = {r["file_path"] for r in changes if r["change"] == "added"}
        removed = {r["file_path"] for r in changes if r["change"] == "removed"}
        assert len(added) + len(removed) == len(changes)
        # Without an end the newest version is meant.
        was = files_at(table, before) if before is not None else set()
        assert (added, removed) == (files_at(table, after) - was, was - files_at(table, after))


def files_at(table: Table, snapshot_id: int | None) -> set[str]:
    return set(table.inspect("files", as_of=snapshot_id).to_arrow().read_all()["file_path"].to_pylist())


def test_appends_that_can_no_longer_be_told_are_refused(table: Table) -> None:
    for number in range(5):
        table.append(ids(number))
    assert table.scan_appends(None).count() == 5
    table.compact()
    table.expire_snapshots(LATER)
    (kept,) = table.snapshots()
    with pytest.raises(InvalidInput, match=f"from the beginning.*has expired.*scan_appends\\({kept.snapshot_id}\\)"):
        table.scan_appends(None)
    table.append(ids(9))
    assert table.scan(as_of=kept.snapshot_id).count() + table.scan_appends(kept.snapshot_id).count() == 6


def test_an_expired_start_is_told_from_one_that_was_rolled_back(table: Table) -> None:
    known = [made(table.append(ids(number))) for number in range(4)]
    table.remove_snapshots([known[1]])
    assert table.scan_appends(known[1]).count() == 2  # what came right after it is still there
    for start in (known[0], None):
        with pytest.raises(InvalidInput, match=f"snapshot {known[1]} in between has expired"):
            table.scan_appends(start)
    table.rollback(known[2])
    with pytest.raises(InvalidInput, match=f"snapshot {known[3]} is not an ancestor .* was rolled back"):
        table.scan_appends(known[3])


def test_an_empty_table_has_no_appends(table: Table) -> None:
    assert table.scan_appends(None).count() == 0


@pytest.mark.parametrize("version", [2, 3])
def test_older_files_are_not_read_for_rows_that_were_updated_later(memory_lake: Lake, version: int) -> None:
    properties = {"write.merge.mode": "merge-on-read"}
    table = memory_lake.create_table("t.lineage", "id long", format_version=version, properties=properties)
    for number in range(4):
        table.append(ids(number))
    if version == 3:
        table.upsert(ids(0), on=["id"])
    for number in range(7):
        scan = table.scan(f"_last_updated_sequence_number > {number}", select=["id", "_last_updated_sequence_number"])
        read = table.scan(select=["id", "_last_updated_sequence_number"]).to_arrow().read_all().to_pylist()
        expected = [r for r in read if (r["_last_updated_sequence_number"] or 0) > number]
        found = scan.to_arrow().read_all().to_pylist()
        assert sorted(row["id"] for row in found) == sorted(row["id"] for row in expected)
        newer = [n for n in table.scan().files()["sequence_number"].to_pylist() if n > number]
        assert scan.files().num_rows <= len(newer)
