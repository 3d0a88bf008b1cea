"""Locations, statistics, overwrites by partition and by file."""

from pathlib import Path

import pyarrow as pa
import pytest

import icefield
from icefield.errors import InvalidInput, LocationRefused, NoSuchSnapshot, NotFound
from icefield.lake import Lake
from icefield.model.statistics import BlobMetadata, PartitionStatisticsFile, StatisticsFile
from icefield.table.table import Table


def rows(*pairs: tuple[int, str]) -> pa.Table:
    return pa.table({"id": pa.array([p[0] for p in pairs], pa.int64()), "p": [p[1] for p in pairs]})


def ids_of(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().read_all()["id"].to_pylist())


@pytest.fixture
def table(memory_lake: Lake) -> Table:
    made = memory_lake.create_table("t.t", "id long, p string", partition_by=["p"])
    made.append(rows((1, "a"), (2, "a"), (3, "b"), (4, "c")))
    return made


def test_partitions_that_rows_belong_to_are_replaced(table: Table) -> None:
    snapshot = table.overwrite_partitions(rows((10, "a"), (11, "d")))
    assert ids_of(table) == [3, 4, 10, 11]
    assert snapshot is not None
    assert (snapshot.summary["deleted-data-files"], snapshot.summary["changed-partition-count"]) == ("1", "2")


def test_no_row_replaces_no_partition(table: Table) -> None:
    assert table.overwrite_partitions(rows()) is None
    assert ids_of(table) == [1, 2, 3, 4]


def test_a_table_without_partitions_is_replaced_whole(memory_lake: Lake) -> None:
    table = memory_lake.create_table("t.flat", "id long, p string")
    table.append(rows((1, "a")))
    table.overwrite_partitions(rows((2, "b")))
    assert ids_of(table) == [2]


def test_partitions_of_an_older_spec_cannot_be_told(table: Table) -> None:
    with table.evolve() as change:
        change.add_partition_field("bucket(4, id)")
    with pytest.raises(InvalidInput, match="older partition specs"):
        table.overwrite_partitions(rows((10, "a")))
    assert ids_of(table) == [1, 2, 3, 4]


def test_files_are_removed_and_replaced_by_name(table: Table) -> None:
    (file,) = table.scan(where="p = 'a'").files()["file_path"].to_pylist()
    table.overwrite(rows((20, "z")), files=[file])
    assert ids_of(table) == [3, 4, 20]
    (other,) = table.scan(where="p = 'b'").files()["file_path"].to_pylist()
    table.delete_files([other])
    assert ids_of(table) == [4, 20]


def test_a_file_that_is_not_in_the_table_cannot_be_removed(table: Table) -> None:
    with pytest.raises(NotFound, match="not in the table, such as memory://lake/x"):
        table.delete_files(["memory://lake/x"])
    with pytest.raises(InvalidInput, match="not by both"):
        table.overwrite(rows((1, "a")), where="id = 1", files=["x"])
    assert ids_of(table) == [1, 2, 3, 4]


def test_new_files_go_to_the_new_location(tmp_path: Path) -> None:
    with icefield.connect(tmp_path / "lake") as lake:
        table = lake.create_table("t.t", "id long, p string")
        table.append(rows((1, "a")))
        place = f"{lake.warehouse}/elsewhere"
        table.set_location(place)
        table.append(rows((2, "a")))
        assert sorted(f.startswith(place) for f in table.scan().files()["file_path"].to_pylist()) == [
            False,
            True,
        ]
        assert (ids_of(table), table.location) == ([1, 2], place)
        assert table.metadata_location.startswith(place)
        with pytest.raises(LocationRefused):
            table.set_location(f"file://{tmp_path}/outside")
        assert table.location == place


def test_statistics_are_named_and_forgotten(table: Table) -> None:
    snapshot = table.metadata.current_snapshot
    assert snapshot is not None
    blob = BlobMetadata(
        "apache-datasketches-theta-v1", snapshot.snapshot_id, snapshot.sequence_number, (1,), {"ndv": "4"}
    )
    file = StatisticsFile(snapshot.snapshot_id, "memory://lake/s.puffin", 100, 50, (blob,))
    table.set_statistics(file)
    table.set_statistics(PartitionStatisticsFile(snapshot.snapshot_id, "memory://lake/p.parquet", 10))
    assert table.statistics() == [file]
    newer = StatisticsFile(snapshot.snapshot_id, "memory://lake/t.puffin", 100, 50)
    table.set_statistics(newer)
    assert table.statistics() == [newer]
    assert len(table.metadata.partition_statistics) == 1
    table.remove_statistics(snapshot.snapshot_id)
    assert not table.statistics()
    assert not table.metadata.partition_statistics


def test_statistics_go_with_their_snapshot(table: Table) -> None:
    old = table.snapshots()[0].snapshot_id
    table.set_statistics(StatisticsFile(old, "memory://lake/s.puffin", 100, 50))
    table.append(rows((9, "a")))
    table.remove_snapshots([old])
    assert table.statistics() == []


def test_a_snapshot_that_is_not_there_has_no_statistics(table: Table) -> None:
    with pytest.raises(NoSuchSnapshot):
        table.set_statistics(StatisticsFile(99, "memory://lake/s.puffin", 100, 50))
