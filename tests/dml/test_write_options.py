"""Options of one write, and schemas that are merged with a write, in one commit."""

import threading
from typing import Any

import pyarrow as pa
import pytest

from icefield.errors import ConcurrentChange, InvalidInput, SchemaMismatch
from icefield.lake import Lake
from icefield.table.table import Table
from icefield.types.datatypes import LongType


def rows(**columns: Any) -> pa.Table:
    return pa.table(columns)


def read(table: Table) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().read_all().to_pylist(), key=lambda row: int(row["id"]))


def names(table: Table) -> list[str]:
    return [field.name for field in table.schema.fields]


@pytest.fixture
def table(memory_lake: Lake) -> Table:
    made = memory_lake.create_table("s.t", "id int not null, name string")
    made.append(rows(id=pa.array([1], pa.int32()), name=["a"]))
    return made


# Options.


@pytest.mark.parametrize("key", ["target-file-size-bytes", "write.target-file-size-bytes"])
def test_an_option_goes_before_the_property_for_one_write(memory_lake: Lake, key: str) -> None:
    table = memory_lake.create_table("s.t", "id long", properties={"write.target-file-size-bytes": "100000000"})
    many = rows(id=list(range(100_000)))
    assert table.append(many, options={key: "50000"}) is not None
    assert table.scan().files().num_rows == 3
    table.overwrite(many)
    assert table.scan().files().num_rows == 1
    table.overwrite(many, options={key: "50000"})
    assert table.scan().files().num_rows == 3
    assert table.properties["write.target-file-size-bytes"] == "100000000"


def test_overwriting_partitions_takes_options(memory_lake: Lake) -> None:
    table = memory_lake.create_table("s.p", "id long, p long", partition_by=["p"])
    table.overwrite_partitions(
        rows(id=list(range(100_000)), p=[1] * 100_000), options={"target-file-size-bytes": "50000"}
    )
    assert table.scan().files().num_rows == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"target-file-size": "5"}, "Did you mean target-file-size-bytes"),
        ({"fanout-enabled": "true"}, "unknown write option 'fanout-enabled'"),
        ({"write.delete.mode": "merge-on-read"}, "unknown write option"),
        ({"distribution-mode": "sideways"}, "must be one of none, hash, range"),
        ({"compression-codec": "zip"}, "write.parquet.compression-codec"),
        ({"compression-codec": "zstd", "write.parquet.compression-codec": "gzip"}, "Give it once"),
        ({"write.parquet.bloom-filter-enabled.column.nmae": "true"}, "nmae"),
        ({"target-file-size-bytes": 5}, "strings"),
    ],
)
def test_an_option_that_no_write_has_is_refused(table: Table, options: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        table.append(rows(id=pa.array([2], pa.int32())), options=options)
    assert table.count() == 1


def test_an_option_of_a_column_is_taken(table: Table) -> None:
    table.append(rows(id=pa.array([2], pa.int32()), name=["b"]), options={"write.metadata.metrics.column.name": "none"})
    files = table.inspect("files").to_arrow().read_all().to_pylist()
    assert sorted(len(file["value_counts"]) for file in files) == [1, 2]


# Merging schemas.


def test_new_columns_are_added_with_the_rows_in_one_commit(table: Table) -> None:
    before = len(table.snapshots()), table.metadata_location
    snapshot = table.append(rows(id=pa.array([2], pa.int32()), note=["new"], deep=[{"x": 1}]), merge_schema=True)
    assert read(table) == [
        {"id": 1, "name": "a", "note": None, "deep": None},
        {"id": 2, "name": None, "note": "new", "deep": {"x": 1}},
    ]
    assert snapshot is not None
    assert snapshot.schema_id == table.schema.schema_id
    assert len(table.snapshots()) == before[0] + 1
    assert [entry.metadata_file for entry in table.metadata.metadata_log][-1] == before[1]


def test_without_asking_for_it_nothing_is_merged(table: Table) -> None:
    with pytest.raises(SchemaMismatch, match="column 'note' is not in the table"):
        table.append(rows(id=pa.array([2], pa.int32()), note=["new"]))


def test_columns_are_widened_and_stay_required(table: Table) -> None:
    table.append(rows(id=pa.array([1 << 40], pa.int64())), merge_schema=True)
    field = table.schema.find_field("id")
    assert (field.type, field.required) == (LongType(), True)
    assert [row["id"] for row in read(table)] == [1, 1 << 40]
    with pytest.raises(SchemaMismatch, match="required column 'id' holds 1 null"):
        table.append(rows(id=pa.array([None], pa.int64()), more=[1]), merge_schema=True)
    assert "more" not in names(table)


def test_columns_inside_structs_and_lists_are_added(memory_lake: Lake) -> None:
    table = memory_lake.create_table("s.t", "id long, deep struct<a: int>, items list<struct<a: int>>")
    new = rows(id=[1], deep=[{"a": 1, "b": "x"}], items=[[{"a": 2, "b": "y"}]])
    table.append(new, merge_schema=True)
    assert read(table) == new.to_pylist()


def test_rows_that_fit_change_no_schema(table: Table) -> None:
    before = table.schema
    table.append(rows(id=pa.array([3], pa.int16())), merge_schema=True)
    table.append(rows(id=pa.array([4], pa.int32()), name=pa.nulls(1)), merge_schema=True)
    assert table.schema == before
    assert table.count() == 3


def test_types_that_do_not_go_together_are_refused(table: Table) -> None:
    with pytest.raises(SchemaMismatch, match="name"):
        table.append(rows(id=pa.array([2], pa.int32()), name=[5], note=["x"]), merge_schema=True)
    assert "note" not in names(table)


def test_a_missing_required_column_is_refused(table: Table) -> None:
    with pytest.raises(SchemaMismatch, match="required column 'id' is missing"):
        table.append(rows(note=["x"]), merge_schema=True)
    assert "note" not in names(table)


def test_an_overwrite_merges_too(table: Table) -> None:
    table.overwrite(
        rows(id=pa.array([2], pa.int32()), note=["new"]), where="id = 7", merge_schema=True, check_rows=False
    )
    assert [row["note"] for row in read(table)] == [None, "new"]


def test_a_stream_is_read_once(table: Table) -> None:
    source = rows(id=pa.array([2, 3], pa.int32()), note=["x", "y"])
    table.append(pa.RecordBatchReader.from_batches(source.schema, iter(source.to_batches())), merge_schema=True)
    assert table.count() == 3


def test_a_transaction_merges_and_others_see_it_at_its_end(memory_lake: Lake, table: Table) -> None:
    with memory_lake.transaction() as tx:
        tx.table("s.t").append(rows(id=pa.array([2], pa.int32()), note=["x"]), merge_schema=True)
        tx.table("s.t").append(rows(id=pa.array([3], pa.int32()), note=["y"]))
        assert "note" not in names(table)
    assert [row["note"] for row in read(table)] == [None, "x", "y"]


class _Slow:
    """Arrow rows that let something happen when they are read."""

    def __init__(self, given: pa.Table, first: Any) -> None:
        self.given, self.first = given, first

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        def batches() -> Any:
            self.first()
            yield from self.given.to_batches()

        return pa.RecordBatchReader.from_batches(self.given.schema, batches()).__arrow_c_stream__(requested_schema)


def test_a_column_that_another_writer_added_concurrently_does_not_take_the_values(table: Table) -> None:
    def other() -> None:
        table.append(rows(id=pa.array([5], pa.int32()), other=["theirs"]), merge_schema=True)

    with pytest.raises(ConcurrentChange, match="columns of the table were changed concurrently"):
        table.append(_Slow(rows(id=pa.array([2], pa.int32()), note=["mine"]), other), merge_schema=True)
    assert read(table) == [{"id": 1, "name": "a", "other": None}, {"id": 5, "name": None, "other": "theirs"}]


def test_the_same_column_added_by_two_writers_is_one(table: Table) -> None:
    def other() -> None:
        table.append(rows(id=pa.array([5], pa.int32()), note=["theirs"]), merge_schema=True)

    table.append(_Slow(rows(id=pa.array([2], pa.int32()), note=["mine"]), other), merge_schema=True)
    assert [row["note"] for row in read(table)] == [None, "mine", "theirs"]
    assert names(table).count("note") == 1


def test_an_append_that_came_concurrently_stays(table: Table) -> None:
    def other() -> None:
        table.append(rows(id=pa.array([5], pa.int32())))

    table.append(_Slow(rows(id=pa.array([2], pa.int32()), note=["mine"]), other), merge_schema=True)
    assert [row["note"] for row in read(table)] == [None, "mine", None]


def test_a_merge_under_an_idempotency_key_is_made_once(table: Table) -> None:
    new = rows(id=pa.array([2], pa.int32()), note=["x"])
    first = table.append(new, merge_schema=True, idempotency_key="job-1")
    assert first is not None
    assert table.append(new, merge_schema=True, idempotency_key="job-1") == first
    assert table.count() == 2


def test_threads_that_merge_different_columns_lose_no_row(memory_lake: Lake) -> None:
    table = memory_lake.create_table("s.many", "id int")

    def add(number: int) -> None:
        new = rows(id=pa.array([number], pa.int32()), **{f"c{number}": [number]})
        while True:
            try:
                memory_lake.table("s.many").append(new, merge_schema=True)
            except ConcurrentChange:
                continue
            return

    threads = [threading.Thread(target=add, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [{k: v for k, v in row.items() if v is not None} for row in read(table)] == [
        {"id": n, f"c{n}": n} for n in range(6)
    ]
