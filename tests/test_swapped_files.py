"""A file that was swapped for another one is refused by its size, whatever reads it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import icefield
from icefield.errors import CorruptFile, IcefieldError
from icefield.lake import Lake
from icefield.plan.manifest_list import load_manifests
from icefield.storage.location import local_path
from icefield.table.table import Table
from tests.equality_deletes import delete_keys

KINDS = ("data", "manifest", "vector", "positions", "keys")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "lake"


def make(lake: Lake, name: str, kind: str, rows: int) -> Table:
    """Make a table of some rows, the first of which is deleted in one way."""
    version = 3 if kind == "vector" else 2
    # Manifests differ in size, too.
    codec = "gzip" if rows < 100 else "uncompressed"
    properties = {"write.delete.mode": "merge-on-read", "write.avro.compression-codec": codec}
    table = lake.create_table(name, "id long, name string", format_version=version, properties=properties)
    table.append(pa.table({"id": range(rows), "name": [f"{name}-{i}" * (i + 1) for i in range(rows)]}))
    table.append(pa.table({"id": [rows], "name": ["last"]}))
    if kind in ("vector", "positions"):
        table.delete(f"id < {rows // 2}")
    elif kind == "keys":
        delete_keys(table, {"id": list(range(rows // 2))})
    return table


def path_of(lake: Lake, table: Table, kind: str) -> Path:
    if kind == "manifest":
        manifests = load_manifests(lake.backend.reading, table.metadata.current_snapshot)
        assert manifests is not None
        return Path(local_path(manifests["manifest_path"][0].as_py()))
    content = {"data": 0, "vector": 1, "positions": 1, "keys": 2}[kind]
    rows = table.inspect("files").to_arrow().read_all().to_pylist()
    found = max((row for row in rows if row["content"] == content), key=lambda row: row["file_size_in_bytes"])
    return Path(local_path(found["file_path"]))


READS: dict[str, Callable[[Table], object]] = {
    "scan": lambda table: table.scan().to_arrow().read_all(),
    "filter": lambda table: table.scan("id = 3").to_arrow().read_all(),
    "delete": lambda table: table.delete("name = 'x' OR id = 3"),
    "compact": lambda table: table.compact(),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("read", READS)
def test_a_swapped_file_is_refused(folder: Path, kind: str, read: str) -> None:
    with icefield.connect(folder, durable=False) as lake:
        mine, other = make(lake, "a.mine", kind, 8), make(lake, "a.other", kind, 1_000)
        place, stranger = path_of(lake, mine, kind), path_of(lake, other, kind)
        assert place.stat().st_size != stranger.stat().st_size
        shutil.copy(stranger, place)
    with icefield.connect(folder, durable=False) as lake:
        table = lake.table("a.mine")
        before = table.metadata_location
        with pytest.raises(CorruptFile, match="bytes, but metadata says") as error:
            READS[read](table)
        assert error.value.location.endswith(place.name)
        assert table.metadata_location == before


def test_a_file_of_the_same_size_with_other_rows_is_refused(folder: Path) -> None:
    with icefield.connect(folder, durable=False) as lake:
        mine = make(lake, "a.mine", "data", 8)
        place = path_of(lake, mine, "data")
        size = place.stat().st_size
        other = lake.create_table("a.other", "id long, name string")
        other.append(pa.table({"id": [1], "name": ["x"]}))
        data = path_of(lake, other, "data").read_bytes()
        assert len(data) < size
        # Bytes after the magic number are nobody's.
        place.write_bytes(data[:4] + bytes(size - len(data)) + data[4:])
        with pytest.raises(IcefieldError):
            mine.scan().to_arrow().read_all()


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["data", "vector"])
def test_spark_reads_no_other_file(spark: object, folder: Path, kind: str) -> None:
    with icefield.connect(folder, durable=False) as lake:
        mine, other = make(lake, "a.mine", kind, 8), make(lake, "a.other", kind, 1_000)
        shutil.copy(path_of(lake, other, kind), path_of(lake, mine, kind))
        table = icefield.connect(folder, durable=False).table("a.mine")
        with pytest.raises(CorruptFile, match="bytes, but metadata says"):
            table.scan().to_spark().collect()


LIST_READS: dict[str, Callable[[Table], object]] = {
    **READS,
    "append": lambda table: table.append(pa.table({"id": [9], "name": ["new"]})),
    "manifests": lambda table: table.inspect("manifests").to_arrow().read_all(),
}


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("read", LIST_READS)
def test_the_manifest_list_of_another_snapshot_is_refused(folder: Path, version: int, read: str) -> None:
    # A merge reads the list of its parent before the commit does.
    merging = {"commit.manifest.min-count-to-merge": "100" if version == 1 else "3"}
    with icefield.connect(folder, durable=False) as lake:
        places = []
        for name in ("mine", "other"):
            table = lake.create_table(f"a.{name}", "id long, name string", format_version=version, properties=merging)
            table.append(pa.table({"id": [1], "name": [name]}))
            table.append(pa.table({"id": [2], "name": [name]}))
            snapshot = table.metadata.current_snapshot
            assert snapshot is not None
            places.append(Path(local_path(snapshot.manifest_list)))
        shutil.copy(places[1], places[0])
    with icefield.connect(folder, durable=False) as lake:
        table = lake.table("a.mine")
        before = table.metadata.current_snapshot_id
        with pytest.raises(CorruptFile, match=r"it is the manifest list of snapshot \d+, and metadata") as error:
            LIST_READS[read](table)
        assert error.value.location.endswith(places[0].name)
        table.refresh()
        assert table.metadata.current_snapshot_id == before


def test_a_manifest_list_that_does_not_name_its_snapshot_is_read(folder: Path) -> None:
    with icefield.connect(folder, durable=False) as lake:
        table = make(lake, "a.t", "data", 8)
        snapshot = table.metadata.current_snapshot
        assert snapshot is not None
        place = Path(local_path(snapshot.manifest_list))
        data = place.read_bytes()
        assert b"\x16snapshot-id" in data
        place.write_bytes(data.replace(b"\x16snapshot-id", b"\x16snapshot_no"))
    with icefield.connect(folder, durable=False) as lake:
        lake.table("a.t").append(pa.table({"id": [100], "name": ["new"]}))
        assert lake.table("a.t").count() == 10
