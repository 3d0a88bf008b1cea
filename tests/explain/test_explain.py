"""Explain: every level of the metrics adds up, deletes are counted, and what is left to filter by is named."""

import pyarrow as pa
import pytest

from icefield.lake import Lake
from icefield.table.table import Table


@pytest.fixture
def table(memory_lake: Lake) -> Table:
    """Four files in three manifests: partitions 1 and 2 together, 3, and 9."""
    made = memory_lake.create_table("a.t", "p long, v long", partition_by=["p"], format_version=3)
    made.append(pa.table({"p": [1, 1, 2, 2], "v": [10, 20, 30, 40]}))
    made.append(pa.table({"p": [3, 3, 3], "v": [10, 50, 60]}))
    made.append(pa.table({"p": [9], "v": [10]}))
    return made


WHERE = "p < 4 AND p != 1 AND v < 20"


def test_every_level_of_the_funnel_adds_up(table: Table) -> None:
    value = table.scan(WHERE).explain().as_dict()
    assert (value["manifests"], value["manifests-pruned"]) == (3, 1)
    for level, counts in (("files", (4, 1, 1, 1, 1)), ("rows", (8, 1, 2, 2, 3))):
        keys = (level, f"{level}-in-pruned-manifests", f"{level}-pruned-by-partition", f"{level}-pruned-by-statistics")
        assert tuple(value[key] for key in (*keys, f"{level}-read")) == counts
    sizes = [value[f"bytes-{key}"] for key in ("pruned-by-partition", "pruned-by-statistics", "read")]
    assert value["bytes-listed"] == sum(map(int, map(str, sizes)))
    assert all(sizes)


def test_what_is_left_to_filter_by_is_named(table: Table) -> None:
    explanation = table.scan(WHERE).explain()
    assert explanation.residuals == [("v < 20", 1)]
    assert "  filter by  v < 20 (files: 1)" in str(explanation).splitlines()
    whole = table.scan("p = 1").explain()
    assert whole.residuals == [("TRUE", 1)]
    assert "filter by" not in str(whole)


def test_residuals_that_read_the_same_are_counted_together(table: Table) -> None:
    # In one file the first condition is proven by the partition, in the other the second.
    assert table.scan("p = 1 OR v > 20").explain().residuals == [("TRUE", 2), ("v > 20", 1)]


def test_deletes_that_apply_are_counted(table: Table) -> None:
    assert "deletes" not in str(table.scan().explain())
    table.set_properties({"write.delete.mode": "merge-on-read"})
    table.delete("v = 10 AND p < 4")
    explanation = table.scan().explain()
    assert (explanation.delete_files, explanation.files_with_deletes) == (2, 2)
    assert "  deletes    2 that apply, to 2 of the files to read" in str(explanation).splitlines()
    assert table.scan("p = 2").explain().delete_files == 0
    assert table.scan("p = 3").explain().as_dict()["delete-files"] == 1


def test_position_deletes_of_a_partition_count_once(memory_lake: Lake) -> None:
    made = memory_lake.create_table("a.d", "v long", properties={"write.delete.mode": "merge-on-read"})
    made.append(pa.table({"v": [1, 2, 3]}))
    made.append(pa.table({"v": [1, 5]}))
    made.delete("v = 1")
    explanation = made.scan().explain()
    assert explanation.files_with_deletes == 2
    assert explanation.delete_files == len(set(explanation_deletes(made)))


def explanation_deletes(table: Table) -> list[str]:
    plan = table.scan().explain().plan
    return [d.location for task in plan.tasks(plan.files) for d in task.deletes]


def test_the_outline_says_what_the_text_says(table: Table) -> None:
    lines = str(table.scan(WHERE).explain().outline()).splitlines()
    assert lines[0].startswith("scan of a.t at snapshot ")
    assert lines[3:6] == ["  3 manifests", "    1 pruned", "    2 read"]
    files = lines.index("  4 files")
    assert lines[files + 1 : files + 5] == [
        "    1 pruned with their manifests",
        "    1 pruned by partition",
        "    1 pruned by statistics",
        "    1 to read",
    ]
    assert lines[-2:] == ["  rows are filtered by", "    v < 20 (files: 1)"]


def test_many_residuals_are_cut_short(memory_lake: Lake) -> None:
    made = memory_lake.create_table("a.m", "a long, b long, c long, d long")
    for n in range(1, 8):
        proven = [10 if n >> bit & 1 else 1 for bit in range(3)]
        made.append(pa.table({"a": [10, proven[0]], "b": [10, proven[1]], "c": [10, proven[2]], "d": [10, 1]}))
    lines = str(made.scan("a > 5 AND b > 5 AND c > 5 AND d > 5").explain()).splitlines()
    assert lines[-1] == "             … and 2 more"


def test_a_table_without_snapshots_is_explained(memory_lake: Lake) -> None:
    explanation = memory_lake.create_table("a.e", "id long").scan("id > 3").explain()
    assert str(explanation).startswith("scan of a.e at empty table")
    assert explanation.as_dict()["files"] == 0
