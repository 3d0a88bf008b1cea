"""Statistics that are computed: distinct values of columns, and counts of partitions."""

import datetime
import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield
from icefield.codec.puffin.puffin import decode_footer
from icefield.errors import CommitError, InvalidInput, NoSuchSnapshot, StorageError
from icefield.lake import Lake
from icefield.storage.memory import MemoryStore
from icefield.table.table import Table

FIRST, SECOND = datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


def make(lake: Lake, version: int = 2) -> Table:
    table = lake.create_table(
        "shop.orders",
        "id long, name string, day date, s struct<a: int>, tags list<string>",
        partition_by=["day"],
        format_version=version,
        properties={"write.delete.mode": "merge-on-read"},
    )
    for day, count in ((SECOND, 300), (None, 10), (FIRST, 20)):
        ids = range(count)
        table.append(
            pa.table(
                {
                    "id": pa.array(ids, pa.int64()),
                    "name": [f"n{at % 7}" for at in ids],
                    "day": pa.array([day] * count, pa.date32()),
                    "s": pa.array([{"a": at % 3} for at in ids], pa.struct([("a", pa.int32())])),
                    "tags": pa.array([["x"]] * count, pa.list_(pa.string())),
                }
            )
        )
    return table


def distinct(table: Table, **arguments: object) -> dict[str, str]:
    file = table.compute_statistics(**arguments)  # type: ignore[arg-type]
    schema = table.schema
    return {schema.name_of(blob.fields[0]): blob.properties["ndv"] for blob in file.blob_metadata}


def test_distinct_values_of_live_rows_are_counted_and_the_file_is_set(lake: Lake) -> None:
    table = make(lake)
    before = table.snapshots()[-1].snapshot_id
    table.delete("id >= 100")
    assert distinct(table) == {"id": "100", "name": "7", "day": "2"}
    assert distinct(table, columns=["s.a", "id"], snapshot_id=before) == {"s.a": "3", "id": "300"}
    files = {file.snapshot_id: file for file in table.statistics()}
    assert set(files) == {before, table.snapshots()[-1].snapshot_id}
    footer = decode_footer(lake.store.read(files[before].statistics_path), files[before].statistics_path)
    assert [blob.type for blob in footer.blobs] == ["apache-datasketches-theta-v1"] * 2
    assert lake.fsck().is_healthy


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.every_case
def test_partitions_are_counted_in_order_and_with_their_deletes(lake: Lake, version: int) -> None:
    table = make(lake, version)
    table.delete("id < 5 AND day = DATE '2026-01-02'")
    file = table.compute_partition_statistics()
    rows = pq.read_table(io.BytesIO(lake.store.read(file.statistics_path))).to_pylist()
    assert [row["partition"]["day"] for row in rows] == [None, FIRST, SECOND]
    assert [row["data_record_count"] for row in rows] == [10, 20, 300]
    assert [row["position_delete_record_count"] for row in rows] == [0, 0, 5]
    assert [row["total_record_count"] for row in rows] == [10, 20, 295 if version == 3 else None]
    assert [row["position_delete_file_count"] for row in rows] == [0, 0, 0 if version == 3 else 1]
    assert [row.get("dv_count") for row in rows] == ([0, 0, 1] if version == 3 else [None] * 3)
    assert lake.fsck().is_healthy


def test_what_cannot_be_measured_is_refused_before_anything_is_written(lake: Lake) -> None:
    empty = lake.create_table("shop.empty", "id long")
    with pytest.raises(NoSuchSnapshot, match="has no snapshots"):
        empty.compute_statistics()
    table = make(lake)
    files = len(list(lake.store.list(table.location)))
    for columns, message in (
        (["tags"], "no single values"),
        (["tags.element"], "no single values"),
        (["x"], "no column"),
    ):
        with pytest.raises(InvalidInput, match=message):
            table.compute_statistics(columns)
    empty.append(pa.table({"id": [1]}))
    with pytest.raises(InvalidInput, match="not partitioned"):
        empty.compute_partition_statistics()
    assert len(list(lake.store.list(table.location))) == files


def test_a_file_whose_commit_fails_is_removed(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(lake)
    files = {file.location for file in lake.store.list(table.location)}
    put = MemoryStore.put_new

    def refuse(store: MemoryStore, location: str, data: bytes) -> None:
        if location.endswith(".metadata.json"):
            raise StorageError("no more metadata")
        put(store, location, data)

    monkeypatch.setattr(MemoryStore, "put_new", refuse)
    with pytest.raises((StorageError, CommitError)):
        table.compute_statistics()
    assert {file.location for file in lake.store.list(table.location)} == files
