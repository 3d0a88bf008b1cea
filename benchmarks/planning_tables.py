"""Tables for planning: real metadata, manifest lists and manifests, without data files. The same in each run.

A few different manifests are written and linked under further names, because the cost of reading them is the same.
"""

import os
import struct
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import pyarrow as pa

import icefield
from benchmarks.decode_manifest import COLUMNS, entries
from icefield.ambient import SystemAmbient
from icefield.codec.json.metadata import encode_metadata
from icefield.codec.manifest.encode import encode_manifest
from icefield.codec.manifest.header import DATA_MANIFEST, DELETE_MANIFEST, ManifestHeader
from icefield.codec.manifest.list import ManifestListHeader, encode_manifest_list
from icefield.codec.manifest.list_schema import MANIFEST_LIST_ARROW_SCHEMA
from icefield.codec.manifest.rows import ManifestEntries, Manifests
from icefield.codec.manifest.schema import POSITION_DELETES
from icefield.lake import Lake
from icefield.model.apply import apply
from icefield.model.snapshot import MAIN, RefKind, Snapshot, SnapshotRef
from icefield.model.updates import AddSnapshot, SetSnapshotRef, Update
from icefield.storage.store import Store
from icefield.types.datatypes import DateType, NestedField

NAME = "bench.files"
WHERE = "c3 = 500500"  # one file in each manifest, by its statistics; the table is partitioned by another column
PARTITION = (NestedField(1000, "c2_day", DateType()),)
# As in the bounds of `entries`: every third column is a string.
KINDS = {1: "string", 2: "timestamp"}
SCHEMA = ", ".join(f"c{i} {KINDS.get(i) or ('long' if (i - 1) % 3 else 'string')}" for i in range(1, COLUMNS + 1))
SNAPSHOT_ID = 3051729675574597004
DISTINCT = 10
_HEADER = ManifestHeader(
    schema_json='{"type":"struct","schema-id":0,"fields":[{"id":2,"name":"c2","required":false,"type":"timestamp"}]}',
    partition_spec_json='[{"name":"c2_day","transform":"day","source-id":2,"field-id":1000}]',
    schema_id=0,
)


@dataclass(frozen=True)
class Shape:
    """How many manifests a table has, how many entries each, and whether each file has a deletion vector."""

    manifests: int
    entries: int
    with_vectors: bool = False

    @property
    def files(self) -> int:
        return self.manifests * self.entries


class Place(Protocol):
    """Where the files of a table are written."""

    @property
    def root(self) -> str:
        """The location of the directory."""
        ...

    def put(self, name: str, data: bytes, copies: Sequence[str] = ()) -> None:
        """Write a file, and the same under further names."""
        ...


@dataclass(frozen=True)
class Folder:
    """A local directory."""

    path: Path

    @property
    def root(self) -> str:
        return f"file://{self.path}"

    def put(self, name: str, data: bytes, copies: Sequence[str] = ()) -> None:
        (self.path / name).write_bytes(data)
        for copy in copies:
            os.link(self.path / name, self.path / copy)


@dataclass(frozen=True)
class Bucket:
    """A directory of an object store."""

    store: Store
    root: str

    def put(self, name: str, data: bytes, copies: Sequence[str] = ()) -> None:
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda name: self.store.put_new(f"{self.root}/{name}", data), [name, *copies]))


def make_table(folder: Path, shape: Shape) -> str:
    """Write a table into a lake in an empty folder; return the location of its metadata."""
    with icefield.connect(folder, durable=False) as lake:
        return make_table_in(lake, Folder(folder), shape)


def make_table_in(lake: Lake, place: Place, shape: Shape) -> str:
    """Write a table into a lake, its files to a place that is empty; return the location of its metadata."""
    version = 3 if shape.with_vectors else 2
    made = lake.create_table("bench.empty", SCHEMA, partition_by=["day(c2)"], format_version=version)
    snapshot = _write_list(place, _write_manifests(place, shape, version), version)
    updates: list[Update] = [AddSnapshot(snapshot), SetSnapshotRef(MAIN, SnapshotRef(SNAPSHOT_ID, RefKind.BRANCH))]
    metadata = apply(made.metadata, updates, snapshot.timestamp_ms)
    place.put("1.metadata.json", encode_metadata(metadata))
    location = f"{place.root}/1.metadata.json"
    lake.drop_table("bench.empty")  # a table is registered once, under one name
    lake.register_table(NAME, location)
    return location


def _write_manifests(place: Place, shape: Shape, version: int) -> list[dict[str, object]]:
    rows = entries(shape.entries)
    rows = rows.append_column("first_row_id", pa.nulls(shape.entries, pa.int64()))
    listed: list[dict[str, object]] = []
    for number in range(min(shape.manifests, DISTINCT)):
        data = _numbered(rows, number)
        header = replace(_HEADER, format_version=version)
        listed += _write_copies(place, f"m{number}", (data, header), shape.manifests // min(shape.manifests, DISTINCT))
        if shape.with_vectors:
            header = replace(header, content=DELETE_MANIFEST)
            listed += _write_copies(place, f"d{number}", (_vectors(data, number), header), 1)
    return listed


def _numbered(rows: pa.Table, number: int) -> pa.Table:
    at = rows.column_names.index("file_path")
    paths = [path.replace("/data/", f"/data/{number}/") for path in rows["file_path"].to_pylist()]
    return rows.set_column(at, "file_path", pa.array(paths))


def _vectors(data: pa.Table, number: int) -> pa.Table:
    count = data.num_rows
    return pa.table(
        {
            "status": data["status"],
            "snapshot_id": data["snapshot_id"],
            "content": pa.repeat(pa.scalar(POSITION_DELETES, pa.int32()), count),
            "file_path": pa.repeat(f"s3://bucket/warehouse/shop.db/orders/data/deletes-{number}.puffin", count),
            "file_format": pa.repeat("PUFFIN", count),
            "partition.1000": data["partition.1000"],
            "record_count": pa.repeat(pa.scalar(7), count),
            "file_size_in_bytes": pa.repeat(pa.scalar(50 * count), count),
            "referenced_data_file": data["file_path"],
            "content_offset": pa.array([4 + 50 * i for i in range(count)]),
            "content_size_in_bytes": pa.repeat(pa.scalar(50), count),
        }
    )


def _write_copies(
    place: Place, name: str, content: tuple[pa.Table, ManifestHeader], copies: int
) -> list[dict[str, object]]:
    rows, header = content
    data = encode_manifest(ManifestEntries.trusted(rows), header, PARTITION, name)
    first, *others = [f"{name}-{copy}.avro" for copy in range(copies)]
    place.put(first, data, others)
    summary = {"contains_null": False, "lower_bound": struct.pack("<i", 19000), "upper_bound": struct.pack("<i", 19029)}
    common = {
        "manifest_length": len(data),
        "partition_spec_id": 0,
        "content": header.content,
        "sequence_number": 1,
        "min_sequence_number": 1,
        "added_snapshot_id": SNAPSHOT_ID,
        "added_files_count": rows.num_rows,
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "added_rows_count": 1,
        "existing_rows_count": 0,
        "deleted_rows_count": 0,
        "partitions": [summary],
        "first_row_id": 0 if header.format_version > 2 and header.content == DATA_MANIFEST else None,
    }
    return [common | {"manifest_path": f"{place.root}/{each}"} for each in (first, *others)]


def _write_list(place: Place, listed: list[dict[str, object]], version: int) -> Snapshot:
    location = f"{place.root}/list.avro"
    now_ms = SystemAmbient().now_ms()
    row_id = 0 if version > 2 else None
    header = ManifestListHeader(SNAPSHOT_ID, None, 1, version, row_id)
    rows = pa.Table.from_pylist(listed, MANIFEST_LIST_ARROW_SCHEMA)
    place.put("list.avro", encode_manifest_list(Manifests.trusted(rows), header, location))
    rows_added = len(listed) if version > 2 else None
    summary = {"operation": "append"}
    return Snapshot(SNAPSHOT_ID, 1, now_ms, location, None, 0, summary, row_id, rows_added)
