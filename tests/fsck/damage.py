"""Tables to be damaged, and the tools to do it: files of a memory store are replaced in their place."""

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import icefield
from icefield.ambient import SeededAmbient
from icefield.codec.manifest.columns import ALL
from icefield.codec.manifest.decode import decode_manifest
from icefield.codec.manifest.encode import encode_manifest
from icefield.codec.manifest.header import decode_manifest_header
from icefield.codec.manifest.list import ManifestListHeader, decode_manifest_list, encode_manifest_list
from icefield.codec.manifest.rows import ManifestEntries, Manifests
from icefield.lake import Lake
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot
from icefield.model.statistics import StatisticsFile
from icefield.storage.memory import MemoryStore
from icefield.table.table import Table
from icefield.types.datatypes import NestedField

Change = Callable[[dict[str, Any]], None]
RowChange = Callable[[list[dict[str, Any]]], None]


def open_lake(seed: int = 16) -> Lake:
    """Open a lake in memory whose files have the times of its clock."""
    ambient = SeededAmbient(seed)
    lake = icefield.connect("memory:", ambient=ambient)
    lake.backend = lake.backend.on(MemoryStore(ambient))
    return lake


def make_table(lake: Lake, version: int, name: str = "a.t", *, partitioned: bool = False) -> Table:
    """Make a table with a few appends, deletes, a tag and a statistics file."""
    modes = {} if version == 1 else {f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")}
    table = lake.create_table(
        name,
        "id long, p string, text string",
        partition_by=["p"] if partitioned else [],
        format_version=version,
        properties=modes,
    )
    for number in range(3):
        ids = [10 * number + each for each in range(4)]
        table.append(pa.table({"id": ids, "p": ["x", "x", "y", "y"], "text": [f"text {each}" * 20 for each in ids]}))
    table.create_tag("then")
    table.delete("id = 1 or id = 11")
    snapshot = table.metadata.current_snapshot
    assert snapshot is not None
    location = f"{table.location}/metadata/a.stats"
    lake.store.put_new(location, b"statistics")
    table.set_statistics(StatisticsFile(snapshot.snapshot_id, location, 10, 4))
    return table


def replace_file(lake: Lake, location: str, data: bytes) -> None:
    """Put other bytes in the place of a file."""
    lake.store.delete(location)
    lake.store.put_new(location, data)


def edit_metadata(lake: Lake, table: Table, change: Change) -> None:
    """Change the current metadata file in its place."""
    location = table.metadata_location
    document = json.loads(lake.store.read(location))
    change(document)
    replace_file(lake, location, json.dumps(document).encode())


def head(table: Table) -> Snapshot:
    snapshot = table.metadata.current_snapshot
    assert snapshot is not None
    return snapshot


def edit_list(lake: Lake, table: Table, change: RowChange, snapshot: Snapshot | None = None) -> None:
    """Change the rows of a manifest list, by default that of the current snapshot, in its place."""
    metadata, snapshot = table.metadata, snapshot or head(table)
    rows = decode_manifest_list(lake.store.read(snapshot.manifest_list), snapshot.manifest_list)
    values = rows.to_pylist()
    change(values)
    header = ManifestListHeader(
        snapshot.snapshot_id,
        snapshot.parent_snapshot_id,
        snapshot.sequence_number,
        metadata.format_version,
        snapshot.first_row_id,
    )
    changed = Manifests(pa.Table.from_pylist(values, schema=rows.table.schema))
    replace_file(lake, snapshot.manifest_list, encode_manifest_list(changed, header, snapshot.manifest_list))


def edit_all_lists(lake: Lake, table: Table, path: str, changes: Mapping[str, object]) -> None:
    """Change what all manifest lists say of one manifest."""

    def change(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if row["manifest_path"] == path:
                row.update(changes)

    for snapshot in table.snapshots():
        edit_list(lake, table, change, snapshot)


def edit_manifest(
    lake: Lake,
    table: Table,
    path: str,
    change: RowChange,
    listed: Mapping[str, object] | None = None,
) -> None:
    """Change the entries of a manifest in its place, and what lists say of it, its length included."""
    data = lake.store.read(path)
    header = decode_manifest_header(data, path)
    entries = decode_manifest(data, path, ALL)
    values = entries.to_pylist()
    change(values)
    changed = ManifestEntries(pa.Table.from_pylist(values, schema=entries.table.schema))
    encoded = encode_manifest(changed, header, partition_fields(table.metadata, header.partition_spec_id), path)
    replace_file(lake, path, encoded)
    edit_all_lists(lake, table, path, {"manifest_length": len(encoded), **(listed or {})})


def partition_fields(metadata: TableMetadata, spec_id: int) -> tuple[NestedField, ...]:
    spec = metadata.spec_by_id(spec_id)
    schema = metadata.schema_of_spec(spec)
    return tuple(
        NestedField(f.field_id, f.name, f.transform.result_type(schema.by_id[f.source_id].type))  # type: ignore[arg-type]
        for f in spec.fields
    )


def manifests(lake: Lake, table: Table, content: int) -> list[str]:
    """Return the manifests of the current snapshot, of data (0) or of deletes (1), newest first."""
    location = head(table).manifest_list
    rows = decode_manifest_list(lake.store.read(location), location).to_pylist()
    return [row["manifest_path"] for row in rows if row["content"] == content]


def entries(lake: Lake, path: str) -> list[dict[str, Any]]:
    return decode_manifest(lake.store.read(path), path, ALL).to_pylist()


def data_files(table: Table) -> list[str]:
    return sorted(table.inspect("data_files", select=["file_path"]).to_arrow().read_all()["file_path"].to_pylist())


def delete_files(table: Table) -> list[str]:
    return sorted(table.inspect("delete_files", select=["file_path"]).to_arrow().read_all()["file_path"].to_pylist())


def parquet_of_size(size: int) -> bytes:
    """Return a Parquet file of 7 rows that has exactly so many bytes."""

    def padded(padding: int, key: str) -> bytes:
        sink = io.BytesIO()
        fields = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])
        rows = pa.table({"id": range(7)}, schema=fields)
        with pq.ParquetWriter(sink, rows.schema, store_schema=False) as writer:
            writer.write_table(rows)
            writer.add_key_value_metadata({key: "x" * padding})
        return sink.getvalue()

    missing = size - len(padded(0, "k"))
    made = (padded(padding, key) for padding in range(missing - 9, missing + 1) for key in ("k", "kk"))
    return next(data for data in made if len(data) == size)
