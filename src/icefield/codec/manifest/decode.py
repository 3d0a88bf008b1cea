"""Decode manifests to Arrow tables, one row per entry. (spec: Manifests)

The values are as stored: inherited values stay null until `manifest.inherit.inherit`, because other manifest lists may
name the same manifest. decode_manifests() decodes many small files at once, at half the cost per file.
Raises CorruptFile for bytes that are not a manifest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.avro.arrow import arrow_type, list_array, map_array, value_array
from icefield.codec.avro.container import DEFAULT_LIMITS, SYNC_BYTES, Header, Limits, parse_header, raw_blocks
from icefield.codec.avro.decode import Decoded, decode, pack_rows
from icefield.codec.avro.program import Column, Path, Program
from icefield.codec.avro.schema import ROOT_ID, Value
from icefield.codec.manifest.columns import DATA_FILE_COLUMN, PLAN, ManifestColumns, manifest_program
from icefield.codec.manifest.rows import ManifestEntries
from icefield.codec.manifest.schema import DATA_FILE_ID, KINDS, PARTITION_ID, PATHS, partition_column
from icefield.codec.rows import with_types_of_values
from icefield.errors import CorruptFile, InvalidInput
from icefield.types.arrays import Longs

MANIFEST_COLUMN = "manifest"
STRINGS = ("file_path", "file_format")

_NEVER_NULL = ("status", "file_path", "file_format", "record_count", "file_size_in_bytes")
_HIGHEST = {"status": 2, "content": 2}


def decode_manifest(
    data: bytes, location: str, want: ManifestColumns = PLAN, limits: Limits = DEFAULT_LIMITS
) -> ManifestEntries:
    """Decode the wanted columns of a manifest, as stored; columns that are missing from the file are null."""
    return decode_manifests([(location, data)], want, limits).without([MANIFEST_COLUMN])


def decode_manifests(
    files: Sequence[tuple[str, bytes]], want: ManifestColumns = PLAN, limits: Limits = DEFAULT_LIMITS
) -> ManifestEntries:
    """Decode many manifests (location, bytes) of one partition spec; the column `manifest` counts them from 0."""
    return ManifestEntries(_in_order([group.table(want) for group in _decode_groups(files, want, limits)]))


def decode_manifests_in_turn(
    files: Sequence[tuple[str, bytes]], want: ManifestColumns, limits: Limits = DEFAULT_LIMITS
) -> tuple[ManifestEntries, Callable[[Longs], ManifestEntries]]:
    """Decode all but STRINGS as `decode_manifests` does: (columns, a function that decodes the strings of some rows).

    Strings are most of the bytes to copy and validate, and after a filter only those of few rows are needed.
    """
    groups = _decode_groups(files, want, limits)
    strings = replace(ManifestColumns(tuple(f for f in want.fields if f in STRINGS)), partition=False)
    if len(groups) == 1:
        columns = ManifestEntries(groups[0].table(want.without(STRINGS)))
        return columns, lambda rows: ManifestEntries(groups[0].table(strings, rows))
    table = _in_order([group.table(want) for group in groups])
    return ManifestEntries(table.drop_columns(list(strings.fields))), ManifestEntries(table.select(strings.fields)).take


@dataclass(frozen=True)
class _File:
    ordinal: int
    location: str
    data: bytes
    header: Header

    @property
    def partition_spec(self) -> bytes:
        return self.header.metadata.get("partition-spec", b"")


@dataclass(frozen=True)
class _Group:
    """Files that share a schema, decoded together."""

    files: Sequence[_File]
    want: ManifestColumns
    limits: Limits
    program: Program
    decoded: Decoded

    def table(self, want: ManifestColumns, rows: Longs | None = None) -> pa.Table:
        """Build all or some of the wanted columns, for all or some rows."""
        try:
            decoded = self.decoded if rows is None else self.decoded.choose(rows)
            ordinals = np.array([f.ordinal for f in self.files], np.int32)[decoded.owner]
            manifest = pa.Array.from_buffers(pa.int32(), len(ordinals), [None, pa.py_buffer(ordinals)])
            return pa.table({MANIFEST_COLUMN: manifest} | _columns(decoded, self.program, want))
        except ValueError as error:
            # One of them is corrupt; decoded one by one, the error names the right file.
            for file in self.files if len(self.files) > 1 else ():
                _decode_group([file], self.want, self.limits).table(self.want)
            raise CorruptFile(self.files[0].location, str(error)) from error


def _in_order(tables: list[pa.Table]) -> pa.Table:
    if len(tables) == 1:
        return tables[0]
    try:
        table = pa.concat_tables(with_types_of_values(tables), promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InvalidInput(f"cannot decode manifests of different partition specs together: {error}") from error
    return table.take(pc.sort_indices(table[MANIFEST_COLUMN]))


def _decode_groups(files: Sequence[tuple[str, bytes]], want: ManifestColumns, limits: Limits) -> list[_Group]:
    if not files:
        raise InvalidInput("no manifests to decode")
    groups: dict[tuple[bytes, bytes], list[_File]] = {}
    front, known = b"", None
    for ordinal, (location, data) in enumerate(files):
        # Manifests of one table mostly begin with the same bytes; only the sync marker after them differs.
        if known is None or len(data) < known.end or not data.startswith(front):
            known = parse_header(data, location)
            front = data[: known.end - SYNC_BYTES]
        file = _File(ordinal, location, data, Header(known.metadata, data[len(front) : known.end], known.end))
        groups.setdefault((file.header.schema, file.partition_spec), []).append(file)
    return [_decode_group(group, want, limits) for group in groups.values()]


def _decode_group(files: Sequence[_File], want: ManifestColumns, limits: Limits) -> _Group:
    try:
        program = manifest_program(files[0].header.schema, files[0].partition_spec, want)
        raw = pack_rows(((f.location, raw_blocks(f.data, f.header, f.location, limits)) for f in files), limits)
        return _Group(files, want, limits, program, decode(raw, program, limits))
    except ValueError as error:
        raise CorruptFile(files[0].location, str(error)) from error


def _columns(decoded: Decoded, program: Program, want: ManifestColumns) -> dict[str, pa.Array]:
    found = {(column.path, column.key): column for column in program.columns}
    columns = {name: _field_array(decoded, found, name) for name in want.fields}
    for name, highest in _HIGHEST.items():
        if name in columns:
            _check_range(columns[name], name, highest)
    for (path, key), column in found.items():
        if want.partition and path[0] == PARTITION_ID and key is None:
            columns[partition_column(path[1])] = _partition_array(decoded, column)
    for prefix, name, ids in want.statistics():
        for field_id in ids:
            columns[f"{prefix}.{field_id}"] = _array(decoded, found.get((PATHS[name], field_id)), KINDS[name].item_type)
    if want.data_file:
        span = found.get(((ROOT_ID, DATA_FILE_ID), None))
        columns[DATA_FILE_COLUMN] = _array(decoded, span, pa.binary())
    return columns


def _field_array(decoded: Decoded, found: dict[tuple[Path, int | None], Column], name: str) -> pa.Array:
    column, kind = found.get((PATHS[name], None)), KINDS[name]
    if column is not None and pa.types.is_map(kind):
        return map_array(decoded, column, kind)
    if column is not None and pa.types.is_list(kind):
        return list_array(decoded, column, kind)
    array = _array(decoded, column, kind)
    if array.null_count and name in _NEVER_NULL:
        raise ValueError(f"an entry has no {name}")
    return array


def _partition_array(decoded: Decoded, column: Column) -> pa.Array:
    kind = arrow_type(column.node) if isinstance(column.node, Value) else pa.null()
    return value_array(decoded, column, kind)


def _array(decoded: Decoded, column: Column | None, kind: pa.DataType) -> pa.Array:
    return pa.nulls(decoded.count, kind) if column is None else value_array(decoded, column, kind)


def _check_range(column: pa.Array, name: str, highest: int) -> None:
    bounds = pc.min_max(column)
    if bounds["min"].is_valid and not 0 <= bounds["min"].as_py() <= bounds["max"].as_py() <= highest:
        raise ValueError(f"an entry has the {name} {bounds['min'].as_py()} or {bounds['max'].as_py()}")
