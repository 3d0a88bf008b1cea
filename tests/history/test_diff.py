"""Two versions compared: exactly the rows that only one of them has."""

import random

import pyarrow as pa
import pytest
from tests.history.two_branches import Rows, build

import icefield
from icefield.table.table import Table

SEEDS = range(20)


def ids(batches: pa.RecordBatchReader) -> list[int]:
    return sorted(batches.read_all().column("id").to_pylist())


def as_pairs(batches: pa.RecordBatchReader) -> list[tuple[int, str]]:
    return sorted((row["id"], row["value"]) for row in batches.read_all().to_pylist())


def missing_from(rows: Rows, others: Rows) -> list[tuple[int, str]]:
    return sorted(pair for pair in rows.items() if others.get(pair[0]) != pair[1])


@pytest.fixture
def table() -> Table:
    table = icefield.connect("memory:").create_table("t.t", "id long, value string", properties={"owner": "a"})
    table.append(pa.table({"id": pa.array(range(6), pa.int64()), "value": ["x"] * 6}))
    return table


@pytest.mark.parametrize(("kept", "known"), [(9, True), (4, True), (3, False), (2, False), (1, False)])
def test_properties_of_a_version_whose_metadata_left_the_log_are_not_known(kept: int, *, known: bool) -> None:
    table = icefield.connect("memory:").create_table(
        "t.t", "id long", properties={"owner": "a", "write.metadata.previous-versions-max": str(kept)}
    )
    first = table.append(pa.table({"id": [1]}))
    assert first is not None
    table.set_properties({"owner": "b"})
    for number in (2, 3, 4):
        table.append(pa.table({"id": [number]}))
    diff = table.diff(first.snapshot_id)
    assert diff.rows_added == 3
    changed = {"added": [], "removed": [], "changed": ["owner = a -> owner = b"]}
    assert diff.properties() == (changed if known else None)
    assert diff.as_dict()["data-files"] == {"added": 3, "removed": 0}


def test_a_diff_has_rows_files_columns_and_properties(table: Table) -> None:
    table.create_tag("before")
    table.update({"value": "'y'"}, where="id = 2")
    table.set_properties({"owner": "b"})
    with table.evolve() as change:
        change.add_column("more", "int")
    table.append(pa.table({"id": pa.array([9], pa.int64()), "value": ["z"], "more": pa.array([1], pa.int32())}))
    diff = table.diff("before")
    assert ids(diff.added()) == [2, 9]
    assert ids(diff.removed()) == [2]
    found = diff.as_dict()
    assert found["rows"] == {"added": 2, "removed": 1}
    assert found["data-files"] == {"added": 3, "removed": 1}
    assert found["columns"] == {"added": ["more int"], "removed": [], "changed": []}
    properties = found["properties"]
    assert isinstance(properties, dict)
    assert properties["changed"] == ["owner = a -> owner = b"]
    assert found["partition-spec"] is None
    assert diff.files().num_rows == 4


def test_a_diff_from_the_empty_table_has_all_rows(table: Table) -> None:
    diff = table.diff(None)
    assert diff.rows_added == 6
    assert diff.rows_removed == 0
    assert diff.properties() is None


def test_compaction_makes_no_difference(table: Table) -> None:
    table.append(pa.table({"id": pa.array([7], pa.int64()), "value": ["x"]}))
    before = table.metadata.current_snapshot_id
    table.compact(order_by=["id"])
    assert table.metadata.current_snapshot_id != before
    diff = table.diff(before)
    assert (diff.rows_added, diff.rows_removed) == (0, 0)
    assert diff.files().num_rows == 3


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_diff_has_the_rows_of_each_partition(table: Table, mode: str) -> None:
    assert table.diff(None).partitions() == {}
    with table.evolve() as change:
        change.add_partition_field("value")
    table.append(pa.table({"id": pa.array([10, 11, 12], pa.int64()), "value": ["a", "b", "c"]}))
    before = table.metadata.current_snapshot_id
    table.update({"value": "'b'"}, where="id = 10", mode=mode)
    table.delete(where="id = 12", mode=mode)
    changed = {"added": 0, "removed": 1}
    expected = {"value=a": changed, "value=b": {"added": 1, "removed": 0}, "value=c": changed}
    assert table.diff(before).partitions() == table.diff(before).as_dict()["partitions"] == expected
    table.compact(options={"min-input-files": "2"})
    assert table.diff(before).partitions() == expected
    back = {name: {"added": each["removed"], "removed": each["added"]} for name, each in expected.items()}
    assert table.diff("main", before).partitions() == back


@pytest.mark.parametrize("seed", SEEDS)
def test_a_diff_of_any_two_versions_is_that_of_the_model(seed: int) -> None:
    history = build(seed)
    for _ in range(8):
        history.change(history.random.choice(["main", "b"]))
    chosen = random.Random(seed)
    for _ in range(8):
        before, after = (chosen.choice(sorted(history.known)) for _ in range(2))
        diff = history.table.diff(before, after)
        assert as_pairs(diff.added()) == missing_from(history.known[after], history.known[before])
        assert as_pairs(diff.removed()) == missing_from(history.known[before], history.known[after])
        if history.table.spec.fields:
            counts = diff.partitions().values()
            assert sum(each["added"] for each in counts) == diff.rows_added
            assert sum(each["removed"] for each in counts) == diff.rows_removed
