"""A dry run changes nothing, and predicts the change: its rows, and the files that it reads, rewrites and drops."""

import pyarrow as pa
import pytest

from icefield.dml.result import ChangeResult
from icefield.errors import InvalidInput
from icefield.lake import Lake
from icefield.table.table import Table

MODES = ("copy-on-write", "merge-on-read", "auto")
VERBS = ("delete", "update", "upsert", "merge")
# A dry run writes no data file, so that it cannot know these.
NOT_PREDICTED = {"snapshot-id", "is-dry-run", "files-added", "bytes-added", "seconds"}


def _make(lake: Lake, version: int, granularity: str, deletes: str) -> Table:
    table = lake.create_table(
        "t.t",
        "id long, day long, n long",
        partition_by=["day"],
        format_version=version,
        properties={"write.delete.granularity": granularity} if version == 2 else {},
    )
    for start in (0, 8, 16):
        ids = list(range(start, start + 8))
        table.append(pa.table({"id": ids, "day": [i // 4 % 2 for i in ids], "n": ids}))
    if "position" in deletes:
        table.delete("id IN (1, 9, 17)", mode="merge-on-read")
    if "equality" in deletes:
        rows = pa.table({"id": [2, 10], "day": [0, 0], "n": [200, 1000]})
        table.upsert(rows, on=["id"], mode="equality")
    return table


def _change(table: Table, verb: str, mode: str, *, dry_run: bool) -> ChangeResult:
    if verb == "delete":
        return table.delete("id IN (0, 3, 8, 12, 13, 14, 15)", mode=mode, dry_run=dry_run)
    if verb == "update":
        return table.update({"n": "n + 1", "day": 5}, "id % 4 = 3", mode=mode, dry_run=dry_run)
    rows = pa.table({"id": [0, 3, 10, 16, 50], "day": [0, 7, 0, 1, 1], "n": [1, 2, 3, 4, 5]})
    if verb == "upsert":
        return table.upsert(rows, on=["id"], mode=mode, dry_run=dry_run)
    merge = table.merge(rows, on=["id"], mode=mode).when_matched("source.day = 0").delete().when_matched().update_all()
    merge = merge.when_not_matched().insert_all().when_not_matched_by_source("target.id = 20").delete()
    return merge.execute(dry_run=dry_run)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("deletes", ["", "position", "equality", "position, equality"])
@pytest.mark.parametrize(("version", "granularity"), [(2, "file"), (2, "partition"), (3, "file")])
def test_a_dry_run_predicts_the_change(
    memory_lake: Lake, version: int, granularity: str, deletes: str, mode: str, verb: str
) -> None:
    table = _make(memory_lake, version, granularity, deletes)
    before = table.scan().snapshot_id
    planned = _change(table, verb, mode, dry_run=True)
    assert table.scan().snapshot_id == before
    assert (planned.snapshot, planned.files_added, planned.bytes_added) == (None, 0, 0)
    done = _change(table, verb, mode, dry_run=False).as_dict()
    predicted = planned.as_dict()
    assert done["files-rewritten"] or done["delete-files-added"]
    assert predicted.keys() == done.keys()
    assert {key: predicted[key] for key in done.keys() - NOT_PREDICTED} == {
        key: done[key] for key in done.keys() - NOT_PREDICTED
    }


@pytest.mark.parametrize("dry_run", [True, False])
def test_delete_without_a_filter_is_refused(memory_lake: Lake, dry_run: bool) -> None:
    table = _make(memory_lake, 2, "file", "")
    with pytest.raises(InvalidInput, match="delete needs a filter.*'TRUE'"):
        table.delete(None, dry_run=dry_run)
    assert table.count() == 24
    assert table.delete("TRUE").rows_deleted == 24
