"""Compaction of real tables on the local engine: what is rewritten, what is kept, and what a caller sees of it."""

from collections.abc import Sequence
from contextlib import nullcontext
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.commit.racing import files_of, reachable

import icefield
from icefield.codec.manifest.rows import DataFiles
from icefield.commit.actions.rewrite import RewrittenGroup
from icefield.compaction.compact import CompactionProgress
from icefield.compaction.plan import Reason
from icefield.errors import CommitError, InvalidInput, StorageError
from icefield.lake import Lake
from icefield.model.snapshot import Operation
from icefield.storage.memory import MemoryStore
from icefield.table.table import Table
from icefield.types.arrow import arrow_schema

FILE_COLUMNS = ["file_path", "record_count", "file_size_in_bytes"]
MERGE_ON_READ = {"write.delete.mode": "merge-on-read"}
# Files of some kB count as more than the cost of a commit, so that levels decide.
NO_CHEAP_FILES = "icefield.compaction.plan.CHEAP_BYTES"


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


def rows(start: int, count: int = 100, partition: str = "a") -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + count), pa.int64()), "p": [partition] * count})


def make(lake: Lake, appends: int, version: int = 3, **properties: str) -> Table:
    table = lake.create_table(
        "t.t", "id long, p string", partition_by=["p"], format_version=version, properties=MERGE_ON_READ | properties
    )
    for number in range(appends):
        table.append(rows(number * 100))
    return table


def paths(table: Table) -> set[str]:
    return set(table.scan().files()["file_path"].to_pylist())


def ids(table: Table, *more: str) -> list[tuple[object, ...]]:
    found = table.scan(select=["id", *more]).to_arrow().read_all().to_pylist()
    return sorted(tuple(row.values()) for row in found)


def test_only_full_levels_are_rewritten_and_the_rest_is_not_read(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NO_CHEAP_FILES, 0)
    table = make(lake, 10)
    before = paths(table)
    read: list[str] = []
    opened = MemoryStore.open_input

    def note(store: MemoryStore, location: str) -> pa.NativeFile:
        read.append(location)
        return opened(store, location)

    monkeypatch.setattr(MemoryStore, "open_input", note)
    done = table.compact()
    kept = before & paths(table)
    assert (len(kept), len(paths(table)), done.files_removed, done.files_added) == (2, 3, 8, 1)
    assert not kept & set(read)
    assert done.plan.reasons == {Reason.LEVEL_FULL: 8}
    assert ids(table) == [(i,) for i in range(1000)]
    assert table.compact().snapshot is None


def test_a_dry_run_returns_the_same_object_and_changes_nothing(lake: Lake) -> None:
    table = make(lake, 5)
    before = files_of(lake)
    plan = table.compact(dry_run=True)
    assert (files_of(lake), plan.is_dry_run, plan.snapshots, plan.files_added) == (before, True, (), 0)
    done = table.compact()
    assert type(done) is type(plan)
    assert (done.plan.files, done.plan.files_to_rewrite, done.plan.bytes_to_rewrite) == (
        plan.plan.files,
        plan.plan.files_to_rewrite,
        plan.plan.bytes_to_rewrite,
    )
    assert done.plan.partitions == plan.plan.partitions
    assert [group.files.paths for group in done.plan.groups] == [group.files.paths for group in plan.plan.groups]
    assert plan.as_dict().keys() == done.as_dict().keys()
    assert "dry run" in str(plan)


def test_groups_are_committed_in_batches_with_progress(lake: Lake) -> None:
    table = make(lake, 0)
    for partition in "abcd":
        for number in range(3):
            table.append(rows(number * 100, partition=partition))
    seen: list[CompactionProgress] = []
    done = table.compact(options={"commit-size-bytes": "1"}, on_progress=seen.append)
    assert (len(done.snapshots), done.groups_done, len(paths(table))) == (4, 4, 4)
    assert all(snapshot.operation == Operation.REPLACE for snapshot in done.snapshots)
    assert [each.groups for each in seen] == [1, 2, 3, 4]
    assert (seen[-1].bytes, seen[-1].of_groups) == (seen[-1].of_bytes, 4)
    assert done.snapshot == done.snapshots[-1]


def test_files_of_many_partitions_of_an_old_spec_become_few(lake: Lake) -> None:
    table = make(lake, 0)
    table.append(pa.table({"id": range(300), "p": [f"p{at % 30}" for at in range(300)]}))
    table.delete("id = 7")
    before = ids(table, "p", "_row_id")
    with table.evolve() as change:
        change.drop_partition_field("p")
        change.add_partition_field("bucket(2, id)")
    done = table.compact()
    assert (done.files_removed, done.files_added, done.groups_done) == (30, 2, 1)
    assert ids(table, "p", "_row_id") == before
    assert table.compact().snapshot is None


@pytest.mark.parametrize("how", [{"strategy": "sort", "order_by": ["id"]}, {"cluster_by": ["p", "id"]}], ids=str)
def test_groups_of_several_specs_that_are_put_in_order_are_counted(lake: Lake, how: dict[str, Any]) -> None:
    table = make(lake, 2)
    with table.evolve() as change:
        change.add_partition_field("bucket(2, id)")
    table.append(rows(200))
    done = table.compact(**how)
    assert (done.groups_done, done.groups_left_out) == (len(done.plan.groups), 0)
    assert len(done.plan.groups) == 3


def test_after_a_crash_only_what_is_left_is_done(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(lake, 0)
    for partition in "abc":
        for number in range(3):
            table.append(rows(number * 100, partition=partition))

    def crash_after_two(progress: CompactionProgress) -> None:
        if progress.groups == 2:
            raise KeyboardInterrupt

    before = ids(table, "p")
    with pytest.raises(KeyboardInterrupt):
        table.compact(options={"commit-size-bytes": "1"}, on_progress=crash_after_two)
    assert files_of(lake) == reachable(table), "files of the second group are left"
    again = table.compact(dry_run=True)
    assert (again.plan.files_good, len(again.plan.groups)) == (1, 2)
    table.compact()
    assert (len(paths(table)), ids(table, "p")) == (3, before)


def test_a_failed_write_leaves_nothing(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(lake, 5)
    before = files_of(lake)

    def fail(*_: object) -> None:
        raise StorageError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(MemoryStore, "put_new", fail)
        with pytest.raises(StorageError):
            table.compact()
    assert files_of(lake) == before


@pytest.mark.parametrize("version", [1, 2, 3])
def test_thresholds_by_property_and_by_option(lake: Lake, monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    monkeypatch.setattr(NO_CHEAP_FILES, 0)
    table = make(lake, 4, version)
    assert table.compact(dry_run=True).plan.groups == ()
    by_option = table.compact(dry_run=True, options={"min-input-files": "4"})
    table.set_properties({"icefield.compaction.min-input-files": "4"})
    by_property = table.compact(dry_run=True)
    assert by_option.plan.files_to_rewrite == by_property.plan.files_to_rewrite == 4
    assert table.compact(dry_run=True, options={"icefield.compaction.min-input-files": "5"}).plan.groups == ()
    assert table.compact(dry_run=True, options={"min-file-size-bytes": "1"}).plan.groups == ()
    small = {"max-file-size-bytes": "100", "min-file-size-bytes": "50", "target-file-size-bytes": "99"}
    assert table.compact(dry_run=True, options=small).plan.reasons == {Reason.TOO_LARGE: 4}


def test_a_file_with_few_deletes_is_good_until_they_are_many(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NO_CHEAP_FILES, 0)
    table = make(lake, 1)
    table.delete("id < 20")
    assert table.compact(dry_run=True).plan.groups == ()
    table.delete("id < 40")
    done = table.compact()
    assert (done.plan.reasons, ids(table)) == ({Reason.DELETED_ROWS: 1}, [(i,) for i in range(40, 100)])
    assert table.inspect("delete_files").to_arrow().read_all().num_rows == 0
    table.delete("id = 50")
    assert table.compact(options={"delete-ratio": "0"}).files_removed == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"options": {"min-input-files": "1"}}, "at least 2"),
        ({"options": {"delete-ratio": "2"}}, "from 0 to 1"),
        ({"options": {"min-input-file": "3"}}, "unknown option 'min-input-file'.*Did you mean min-input-files"),
        ({"options": {"min-input-files": "3", "icefield.compaction.min-input-files": "4"}}, "given twice"),
        ({"options": {"min-file-size-bytes": "100", "target-file-size-bytes": "50"}}, "never end"),
        ({"strategy": "z-order"}, "unknown strategy 'z-order'"),
        ({"strategy": "cluster"}, "belong together"),
        ({"strategy": "sort"}, "no sort order"),
        ({"strategy": "sort", "cluster_by": ["id"]}, "belong together"),
        ({"cluster_by": ["id", "none"]}, "cannot cluster by 'none'"),
        ({"cluster_by": ["id", "id"]}, "a column twice"),
        ({"cluster_by": ["id"] * 5}, "cannot cluster by 5 columns"),
        ({"where": "none = 1"}, "none"),
    ],
)
def test_what_is_not_possible_is_refused_before_anything_is_read(
    lake: Lake, arguments: dict[str, object], message: str
) -> None:
    table = make(lake, 3)
    before = files_of(lake)
    for dry_run in (True, False):
        with pytest.raises(InvalidInput, match=message):
            table.compact(dry_run=dry_run, **arguments)  # type: ignore[arg-type]
    assert files_of(lake) == before


def test_a_branch_is_compacted_apart(lake: Lake) -> None:
    table = make(lake, 3)
    table.create_branch("b")
    table.at("b").compact()
    assert (len(paths(table)), len(paths(table.at("b")))) == (3, 1)


def test_compaction_in_a_transaction(lake: Lake) -> None:
    make(lake, 3)
    with lake.transaction() as tx:
        inside = tx.table("t.t")
        inside.append(rows(1000))
        assert inside.compact().files_removed == 4
        inside.delete("id = 5")
    table = lake.table("t.t")
    assert (len(paths(table)), table.count()) == (1, 399)


@pytest.mark.parametrize("version", [2, 3])
def test_rows_keep_their_values_lineage_and_order(lake: Lake, version: int) -> None:
    table = make(lake, 5, version)
    table.delete("id in (3, 250, 499)")
    lineage = ("_row_id", "_last_updated_sequence_number") if version == 3 else ()
    before = ids(table, *lineage)
    table.compact()
    assert ids(table, *lineage) == before
    (batch,) = [table.scan(select=["id"]).to_arrow().read_all()]
    values: Sequence[int] = batch["id"].to_pylist()
    assert list(values) == sorted(values), "rows are in the order of their commits"


PARTITIONS = ("n", "s", "x", "d", "y", "bucket(3, n)", "truncate(1, s)", "day(t)")


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("how", [{"strategy": "sort"}, {"cluster_by": ["n", "s"]}, {}], ids=["sort", "cluster", "pack"])
def test_no_partition_loses_rows(lake: Lake, partition: str, how: dict[str, Any]) -> None:
    schema = "n long, s string, x double, d date, y binary, t timestamp"
    table = lake.create_table("t.t", schema, partition_by=[partition], order_by=["n desc"])
    start = datetime(1969, 12, 31, 12)
    for n in range(4):
        rows: list[dict[str, Any]] = [
            {"n": n, "s": "", "x": 0.0, "d": start.date(), "y": b"", "t": start},
            {"n": -n, "s": "a\0", "x": -0.0, "d": date(1970, 1, 1 + n), "y": b"\0\0", "t": start + timedelta(days=n)},
            {"n": None, "s": None, "x": float("nan"), "d": None, "y": None, "t": None},
        ]
        table.append(pa.Table.from_pylist(rows, arrow_schema(table.schema)))
    before = sorted(map(repr, table.scan().to_arrow().read_all().to_pylist()))
    done = table.compact(**how)
    assert done.files_removed == done.plan.files_to_rewrite > 0
    assert sorted(map(repr, table.scan().to_arrow().read_all().to_pylist())) == before


def test_rows_outside_the_partition_that_metadata_says_are_sorted_too(tmp_path: Path) -> None:
    lake = icefield.connect(tmp_path, durable=False)
    table = lake.create_table("t.t", "id long, p string", partition_by=["p"], order_by=["id"])
    (tmp_path / "added").mkdir()
    # Without statistics nobody can tell that the rows are elsewhere.
    pq.write_table(rows(0, 5, partition="b"), tmp_path / "added" / "file.parquet", write_statistics=False)
    table.add_files([str(tmp_path / "added" / "file.parquet")], partition={"p": "a"})
    table.append(rows(5, 5, partition="c"))
    before = table.scan().to_arrow().read_all().sort_by("id").to_pylist()
    assert table.compact(strategy="sort").files_removed == 2
    assert table.scan().to_arrow().read_all().sort_by("id").to_pylist() == before


def test_a_rewrite_that_would_change_the_number_of_rows_is_refused(lake: Lake) -> None:
    table = make(lake, 2)
    table.delete("id < 10")
    (batch,) = [table.compact(dry_run=True).plan.chosen]
    head = lake.table("t.t").inspect("files", where="content = 0").to_arrow().read_all().select(FILE_COLUMNS)
    for count, allowed in {189: False, 190: True, 200: True, 201: False}.items():
        new = DataFiles.trusted(head.slice(0, 1).set_column(1, "record_count", [[count]]))
        with nullcontext() if allowed else pytest.raises(CommitError, match="a rewrite must not change rows"):
            RewrittenGroup(batch, new, None)


def test_files_are_sorted_by_an_order_of_the_call_and_record_it_only_if_the_table_has_it(lake: Lake) -> None:
    table = make(lake, 3)
    done = table.compact(order_by=["id desc nulls last"])
    assert (done.files_removed, done.files_added, done.plan.reasons) == (3, 1, {Reason.ORDER: 3})
    assert table.scan().to_arrow().read_all()["id"].to_pylist() == list(range(299, -1, -1))
    assert table.inspect("files").to_arrow().read_all()["sort_order_id"].to_pylist() == [0]
    with table.evolve() as change:
        change.set_sort_order(["id"])
    table.compact(order_by=["id"])
    assert table.scan().to_arrow().read_all()["id"].to_pylist() == list(range(300))
    order_id = table.metadata.sort_order.order_id
    assert table.inspect("files").to_arrow().read_all()["sort_order_id"].to_pylist() == [order_id]
    with pytest.raises(InvalidInput, match="order_by is for strategy='sort'"):
        table.compact(order_by=["id"], strategy="bin-pack")


def test_all_files_are_rewritten_if_the_call_asks_for_it(lake: Lake) -> None:
    table = make(lake, 1)
    before = paths(table)
    assert table.compact().files_removed == 0
    done = table.compact(options={"rewrite-all": "true"})
    assert (done.plan.reasons, before & paths(table)) == ({Reason.ASKED: 1}, set())
    assert ids(table) == [(at,) for at in range(100)]
