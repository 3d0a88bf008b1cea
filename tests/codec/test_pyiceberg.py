"""PyIceberg reads what we write, and we read what PyIceberg writes (one entry per block, its own schema)."""

from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import DateType, DecimalType, LongType, NestedField, StringType, TimestamptzType, UUIDType
from tests.codec.cases import VALUES, header, make_manifest, manifest_row

from icefield.codec.manifest.columns import ALL
from icefield.codec.manifest.decode import decode_manifest
from icefield.codec.manifest.encode import encode_manifest
from icefield.codec.manifest.header import decode_manifest_header
from icefield.codec.manifest.inherit import inherit
from icefield.codec.manifest.list import (
    ManifestListHeader,
    decode_manifest_list,
    encode_manifest_list,
    splice_manifest_list,
)
from icefield.codec.manifest.list_schema import MANIFEST_LIST_ARROW_SCHEMA
from icefield.codec.manifest.rows import ManifestEntries, Manifests
from icefield.types import datatypes as ours

# PyIceberg's partition tuples: a type, and values as it has them beside the values that are stored.
TUPLE: list[tuple[Any, Any, Any]] = [
    (LongType(), -5, -5),
    (StringType(), "ä", "ä"),
    (DateType(), 19_000, 19_000),
    (TimestamptzType(), 1_700_000_000_000_001, 1_700_000_000_000_001),
    (DecimalType(9, 2), Decimal("-1.23"), Decimal("-1.23")),
    (UUIDType(), UUID(int=7), UUID(int=7).bytes),
]
# PyIceberg 0.12 reads doubles as if they were floats.
NAMED = {
    "boolean", "int", "long", "float", "date", "time", "timestamp", "timestamptz", "string", "fixed[5]",
    "decimal(9, 2)", "decimal(38, 0)",
}  # fmt: skip


def listed(location: str, size: int, **changes: Any) -> ManifestFile:
    """A row of a manifest list as PyIceberg has it."""
    values = {
        "manifest_path": location,
        "manifest_length": size,
        "partition_spec_id": 0,
        "content": 0,
        "sequence_number": 7,
        "min_sequence_number": 7,
        "added_snapshot_id": 70,
    }
    return ManifestFile.from_args(_table_format_version=2, **values | changes)


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard"])
@pytest.mark.parametrize("seed", range(6))
def test_pyiceberg_reads_our_manifests(tmp_path: Path, seed: int, codec: str) -> None:
    fields = [
        (ours.NestedField(1000 + i, f"p.{i}", kind), draw)
        for i, (kind, draw) in enumerate(v for v in VALUES if str(v[0]) in NAMED)
    ]
    made = make_manifest(seed, 2, fields, rows=5)
    path = tmp_path / "m.avro"
    path.write_bytes(
        encode_manifest(
            ManifestEntries.trusted(made.table), header(2, partition=made.partition), made.partition, str(path), codec
        )
    )
    entries = listed(str(path), path.stat().st_size).fetch_manifest_entry(PyArrowFileIO(), discard_deleted=False)
    assert [entry.status.value for entry in entries] == [row["status"] for row in made.rows]
    for entry, row in zip(entries, made.rows, strict=True):
        file: Any = entry.data_file
        assert entry.snapshot_id == (70 if row["snapshot_id"] is None else row["snapshot_id"])
        assert (file.file_path, file.record_count) == (row["file_path"], row["record_count"])
        assert (file.file_format.value, file.content.value) == (row["file_format"], row["content"])
        assert list(file.partition) == [row[f"partition.{f.field_id}"] for f in made.partition]
        for name in ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds"):
            assert getattr(file, name) == (None if row[name] is None else dict(row[name]))
        for name in ("split_offsets", "equality_ids", "sort_order_id", "key_metadata"):
            assert getattr(file, name) == row[name]


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard"])
def test_we_read_pyicebergs_manifests(tmp_path: Path, codec: Any) -> None:
    schema = Schema(*(NestedField(i + 1, f"c{i}", kind) for i, (kind, _, _) in enumerate(TUPLE)))
    spec = PartitionSpec(*(PartitionField(i + 1, 1000 + i, IdentityTransform(), f"c{i}") for i in range(len(TUPLE))))
    io, location = PyArrowFileIO(), str(tmp_path / "m.avro")
    with write_manifest(2, spec, schema, io.new_output(location), 70, codec) as writer:
        for number in range(4):
            file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"f{number}",
                file_format=FileFormat.PARQUET,
                partition=Record(*(value if number else None for _, value, _ in TUPLE)),
                record_count=number,
                file_size_in_bytes=10,
                value_counts={1: number, 2: 5},
                lower_bounds={1: b"\x01"},
                split_offsets=[4],
                sort_order_id=0,
            )
            writer.add_entry(ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=70, data_file=file))
    data = Path(location).read_bytes()
    rows = inherit(decode_manifest(data, location, ALL), Manifests.trusted(our_row(location)))
    assert rows["file_path"].to_pylist() == ["f0", "f1", "f2", "f3"]
    assert rows["record_count"].to_pylist() == [0, 1, 2, 3]
    assert rows["value_counts"].to_pylist() == [[(1, i), (2, 5)] for i in range(4)]
    assert rows["lower_bounds"].to_pylist() == [[(1, b"\x01")]] * 4
    assert rows["split_offsets"].to_pylist() == [[4]] * 4
    assert rows["sequence_number"].to_pylist() == [7] * 4
    for position, (_, _, stored) in enumerate(TUPLE):
        column = rows[f"partition.{1000 + position}"].combine_chunks()
        if pa.types.is_date32(column.type):
            column = column.view(pa.int32())
        if pa.types.is_timestamp(column.type):
            column = column.view(pa.int64())
        assert column.to_pylist() == [None, stored, stored, stored]
    found = decode_manifest_header(data, location)
    assert (found.partition_spec_id, found.format_version, found.content) == (0, 2, 0)


def our_row(location: str) -> pa.Table:
    row = {"manifest_path": location, "sequence_number": 7, "added_snapshot_id": 70, "content": 0}
    return pa.Table.from_pylist([row], MANIFEST_LIST_ARROW_SCHEMA)


def test_pyiceberg_reads_our_manifest_lists_spliced_or_not(tmp_path: Path) -> None:
    rows = pa.Table.from_pylist([manifest_row(Random(i)) for i in range(4)], MANIFEST_LIST_ARROW_SCHEMA)
    rows = rows.set_column(rows.column_names.index("first_row_id"), "first_row_id", pa.nulls(4, pa.int64()))
    written = encode_manifest_list(Manifests.trusted(rows.slice(1)), ManifestListHeader(1, None, 1), "l1")
    spliced = splice_manifest_list(
        written, "l1", Manifests.trusted(rows.slice(0, 1)), ManifestListHeader(2, 1, 2), "l2"
    )
    path = tmp_path / "list.avro"
    path.write_bytes(spliced)
    read = list(read_manifest_list(PyArrowFileIO().new_input(str(path))))
    for manifest, row in zip(read, rows.to_pylist(), strict=True):
        for name in ("manifest_path", "manifest_length", "sequence_number", "added_snapshot_id", "added_rows_count"):
            assert getattr(manifest, name) == row[name]
        summaries = None if row["partitions"] is None else [tuple(s.values()) for s in row["partitions"]]
        found = manifest.partitions
        assert summaries == (
            None if found is None else [(s.contains_null, s.contains_nan, s.lower_bound, s.upper_bound) for s in found]
        )


def test_we_read_pyicebergs_manifest_lists(tmp_path: Path) -> None:
    io, location = PyArrowFileIO(), str(tmp_path / "list.avro")
    counts = {f"{kind}_files_count": i for i, kind in enumerate(("added", "existing", "deleted"))}
    counts |= {f"{kind}_rows_count": 10 + i for i, kind in enumerate(("added", "existing", "deleted"))}
    with write_manifest_list(2, io.new_output(location), 70, None, 7, "deflate") as writer:
        writer.add_manifests([listed(f"m{i}", 100 + i, **counts) for i in range(3)])
    rows = decode_manifest_list(Path(location).read_bytes(), location)
    assert rows["manifest_path"].to_pylist() == ["m0", "m1", "m2"]
    assert rows["manifest_length"].to_pylist() == [100, 101, 102]
    assert rows["deleted_rows_count"].to_pylist() == [12, 12, 12]
    assert rows["partitions"].to_pylist() == [None] * 3
    spliced = splice_manifest_list(
        Path(location).read_bytes(), location, rows.slice(0, 1), ManifestListHeader(9, 70, 8), "l"
    )
    assert decode_manifest_list(spliced, "l")["manifest_path"].to_pylist() == ["m0", "m0", "m1", "m2"]
