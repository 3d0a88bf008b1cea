"""Parquet files as other writers make them with Arrow: any of its types that hold the values, any of its options.

A column has its field id or none, under any name. What `add_files` refuses (INT96, say) other engines commit all the
same, and so does `commit_file`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tests.histories.model import Row
from tests.histories.values import arrow_values

from icefield.commit.action import CommitTarget
from icefield.commit.actions.append import AppendFiles
from icefield.parquet.metrics import FileMetrics
from icefield.parquet.write.data_files import DataFile, as_columns
from icefield.storage.location import location_of_path
from icefield.table.table import Table
from icefield.types.datatypes import ListType, MapType, NestedField, StructType, Type

FIELD_ID = b"PARQUET:field_id"
Names = Mapping[int, str]  # other names than the table's, by field id


@dataclass(frozen=True)
class ForeignFile:
    """What a file holds: columns as they are in the file, with rows by field id."""

    fields: Sequence[NestedField]
    rows: Sequence[Row]
    names: Names
    has_ids: bool = True


def write_by_arrow(random: Random, path: Path, file: ForeignFile) -> str:
    """Write a file with drawn options of Arrow's writer; return what was chosen."""
    arrays = [arrow_values([row[f.field_id] for row in file.rows], f.type) for f in file.fields]
    arrays = [_stored_otherwise(random, array) for array in arrays]
    schema = pa.schema([_named(f, a.type, file) for f, a in zip(file.fields, arrays, strict=True)])
    options: dict[str, Any] = {
        "row_group_size": random.choice([2, 3, 1000]),
        "use_dictionary": random.random() < 0.5,
        "store_decimal_as_integer": random.random() < 0.6,
        "write_page_index": random.random() < 0.5,
        "use_compliant_nested_type": random.random() < 0.7,
        "data_page_version": random.choice(["1.0", "2.0"]),
        "store_schema": random.random() < 0.5,
        "write_statistics": random.random() < 0.9,
    }
    if not options["use_dictionary"] and random.random() < 0.3:
        options["bloom_filter_options"] = {f.name: {} for f in schema if pa.types.is_integer(f.type)}
    if any(_holds_view(array.type) for array in arrays):
        options["row_group_size"] = 1000  # Arrow's writer cannot cut views into row groups
    stored = [_retyped(a, f.type) for a, f in zip(arrays, schema, strict=True)]
    pq.write_table(pa.Table.from_arrays(stored, schema=schema), path, **options)
    kinds = [str(a.type) for a in arrays]
    return f"arrow {kinds} { ({k: v for k, v in options.items() if k != 'bloom_filter_options'}) }"


def commit_file(table: Table, path: Path, rows: int, key: tuple[Any, ...] = ()) -> None:
    """Commit a file as another engine would, without statistics and without a check of its types."""
    base = table.refresh()
    described = DataFile(location_of_path(str(path)), key, rows, path.stat().st_size, FileMetrics())
    columns = as_columns([described], base.spec, base.schema)
    table._head.commit([AppendFiles(columns, base.spec, base.schema, CommitTarget())])


def _stored_otherwise(random: Random, array: pa.Array) -> pa.Array:
    """Cast a column, or what is inside a struct or list, to another Arrow type that holds the same values."""
    kind = array.type
    if pa.types.is_struct(kind):
        parts = [_stored_otherwise(random, array.field(i)) for i in range(kind.num_fields)]
        fields = [pa.field(kind.field(i).name, part.type) for i, part in enumerate(parts)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=array.is_null())
    for other in random.sample(_OTHERS.get(kind, []), len(_OTHERS.get(kind, []))):
        if random.random() < 0.6 and _holds(array, other):
            return array.cast(other) if not pa.types.is_dictionary(other) else array.dictionary_encode()
    return array


def _holds(array: pa.Array, other: pa.DataType) -> bool:
    try:
        return bool(pc.all(pc.equal(array.cast(other).cast(array.type), array)).as_py() is not False)
    except pa.ArrowException:
        return False


def _holds_view(kind: pa.DataType) -> bool:
    return kind == pa.string_view() or any(_holds_view(kind.field(at).type) for at in range(kind.num_fields))


def _retyped(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return an array with other names inside; a cast would look for the same names."""
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        parts = [_retyped(array.field(i), f.type) for i, f in enumerate(fields)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=array.is_null())
    return array


_TEXT = pa.dictionary(pa.int32(), pa.string())
_OTHERS: dict[pa.DataType, list[pa.DataType]] = {
    pa.int32(): [pa.int8(), pa.int16(), pa.uint8(), pa.uint16()],
    pa.int64(): [pa.int32(), pa.uint8(), pa.uint32()],
    pa.timestamp("us"): [pa.timestamp("ms"), pa.timestamp("s")],
    pa.timestamp("us", "UTC"): [pa.timestamp("ms", "UTC"), pa.timestamp("ms", "UTC")],
    pa.time64("us"): [pa.time32("ms")],
    pa.string(): [pa.large_string(), pa.string_view(), _TEXT],
    pa.binary(): [pa.large_binary()],
    pa.float64(): [pa.float32()],
}


def _named(field: NestedField, kind: pa.DataType, file: ForeignFile) -> pa.Field:
    """Return a field under its name in the file, with its id if the file has ids, at any depth."""
    metadata = {FIELD_ID: str(field.field_id).encode()} if file.has_ids else None
    inner = _with_names(field.type, kind, file)
    return pa.field(file.names.get(field.field_id, field.name), inner, not field.required, metadata)


def _with_names(kind: Type, arrow: pa.DataType, file: ForeignFile) -> pa.DataType:
    match kind:
        case StructType(fields):
            return pa.struct([_named(f, arrow.field(i).type, file) for i, f in enumerate(fields)])
        case ListType():
            return pa.list_(_named(kind.element, arrow.value_type, file))
        case MapType():
            return pa.map_(_named(kind.key, arrow.key_type, file), _named(kind.value, arrow.item_type, file))
        case _:
            return arrow
