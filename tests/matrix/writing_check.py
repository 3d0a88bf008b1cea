"""What must be true of a table after a write, and the model that says which rows it has."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from tests.matrix.writing_cases import FIRST_NEW, Case, Row
from tests.matrix.writing_model import precedes, transformed
from tests.matrix.writing_order import column_of, rows_by_file

from icefield.model.sort_order import Direction, NullOrder, SortField
from icefield.table.table import Table
from icefield.types.arrow import arrow_array, arrow_field, arrow_type, python_values
from icefield.types.datatypes import (
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
)
from icefield.types.transforms import Identity
from icefield.types.values.binary import decode_value

COUNTS = ("value_counts", "null_value_counts", "nan_value_counts")
ENTRY = ("file_path", "record_count", *COUNTS, "lower_bounds", "upper_bounds")
ASCENDING = SortField(0, Identity(), Direction.ASC, NullOrder.FIRST)


def expected_rows(case: Case) -> list[Row]:
    """Return the rows that the table has after the write."""
    new = [_filled(row, case.given, case.schema.fields) for row in case.rows]
    match case.verb:
        case "append" | "source_append":
            return [*case.before, *new]
        case "overwrite":
            return [*(row for row in case.before if row["id"] < FIRST_NEW), *new]
        case _:
            replaced = {repr(partition_of(row, case)) for row in new}
            return [*(row for row in case.before if repr(partition_of(row, case)) not in replaced), *new]


def partition_of(row: Row, case: Case) -> tuple[Any, ...]:
    """Return a row's partition."""
    found = []
    for transform, source in case.partition_by:
        value, kind = _at(row, source, case)
        found.append(transformed(value, kind, transform))
    return tuple(found)


def normal(value: Any, kind: Type) -> Any:
    """Return a value in a form that compares as text: NaN is itself, and zero has its sign."""
    if value is None:
        return None
    match kind:
        case StructType(fields):
            return {f.name: normal(value[f.name], f.type) for f in fields}
        case ListType():
            return [normal(v, kind.element_type) for v in value]
        case MapType():
            return [(k, normal(v, kind.value_type)) for k, v in value]
        case _:
            return value


def read_rows(table: Table) -> list[Row]:
    """Read a table's rows with Arrow, as the model has them."""
    rows = table.scan().to_arrow().read_all()
    columns = [_values(rows.column(at).combine_chunks(), f.type) for at, f in enumerate(table.schema.fields)]
    return [dict(zip(rows.column_names, values, strict=True)) for values in zip(*columns, strict=True)]


def arrow_rows(rows: list[Row], fields: Iterable[NestedField]) -> pa.Table:
    """Return rows of the model as Arrow data."""
    columns = list(fields)
    arrays = [_array([row[f.name] for row in rows], f.type) for f in columns]
    return pa.Table.from_arrays(arrays, names=[f.name for f in columns])


def same_rows(found: list[Row], expected: list[Row], fields: tuple[NestedField, ...]) -> str:
    """Return an empty text if two tables have the same rows, however often each; else what differs."""
    kind = StructType(fields)
    ours, theirs = (Counter(repr(normal(row, kind)) for row in rows) for rows in (found, expected))
    gone, more = sorted((theirs - ours).elements())[:3], sorted((ours - theirs).elements())[:3]
    return f"missing {gone}, unexpected {more}" if gone or more else ""


def faults_of_files(table: Table) -> Iterator[str]:
    """Yield what is false in the manifest entries of a table's files."""
    files = table.inspect("files").to_arrow().read_all()
    entries = {entry["file_path"]: entry for entry in files.select(ENTRY).to_pylist()}
    partitions = dict(zip(entries, _partitions(files, table), strict=True))
    for path, rows in rows_by_file(table):
        entry = entries[path]
        if entry["record_count"] != rows.num_rows:
            yield f"{path} says {entry['record_count']} rows, has {rows.num_rows}"
        yield from _partition_faults(table, path, partitions[path], rows)
        yield from _metrics_faults(table, path, entry, rows)


def _partition_faults(table: Table, path: str, said: tuple[Any, ...], rows: pa.Table) -> Iterator[str]:
    for part, value in zip(table.spec.fields, said, strict=True):
        kind = table.spec.source_type(part, table.schema)
        made = {repr(transformed(v, kind, part.transform)) for v in column_of(rows, table.schema, part.source_id)}
        if made != {repr(value)}:
            yield f"{path} says {part.name} = {value!r}, and its rows have {sorted(made)}"


def _metrics_faults(table: Table, path: str, entry: dict[str, Any], rows: pa.Table) -> Iterator[str]:
    counts, nulls, nans, lower, upper = (dict(entry[name]) for name in ENTRY[2:])
    for leaf in table.schema.leaves:
        if leaf.repeated:
            continue
        field_id = leaf.field.field_id
        values = column_of(rows, table.schema, field_id)
        real = [v for v in values if v is not None and not _is_nan(v)]
        said = (counts.get(field_id), nulls.get(field_id), nans.get(field_id, 0))
        true = (len(values), values.count(None), sum(map(_is_nan, values)))
        if said != true:
            yield f"{path}: {leaf.dotted} has (values, nulls, NaNs) {true}, and says {said}"
        for bounds, is_lower in ((lower, True), (upper, False)):
            if field_id in bounds:
                bound = decode_value(bounds[field_id], leaf.type)
                for value in real:
                    one, other = (value, bound) if is_lower else (bound, value)
                    if precedes(one, other, leaf.type, ASCENDING):
                        yield f"{path}: {leaf.dotted} has {value!r} beyond its bound {bound!r}"


def _partitions(files: pa.Table, table: Table) -> list[tuple[Any, ...]]:
    if not table.spec.fields:
        return [()] * files.num_rows
    column = files["partition"].combine_chunks()
    kinds = [f.type for f in table.spec.columns(table.schema)]
    values = [
        python_values(pc.struct_field(column, [part.name]), kind)  # type: ignore[arg-type]
        for part, kind in zip(table.spec.fields, kinds, strict=True)
    ]
    return list(zip(*values, strict=True))


def _filled(row: Row, given: tuple[NestedField, ...], fields: tuple[NestedField, ...]) -> Row:
    """Return a row as the table has it: what was not named gets its default, what was narrower is widened."""
    kinds = {f.name: f.type for f in given}
    return {
        f.name: _widened(row[f.name], kinds[f.name], f.type) if f.name in kinds else f.write_default for f in fields
    }


def _widened(value: Any, kind: Type, wanted: Type) -> Any:
    if value is None:
        return None
    match kind, wanted:
        case StructType(given), StructType(fields):
            return _filled(value, given, fields)
        case _:
            return value


def _at(row: Row, source: str, case: Case) -> tuple[Any, PrimitiveType]:
    value: Any = row
    kind: Type = case.schema.struct
    for name in source.strip("`").split("`.`"):
        assert isinstance(kind, StructType)
        value = None if value is None else value[name]
        kind = next(f.type for f in kind.fields if f.name == name)
    assert isinstance(kind, PrimitiveType)
    return value, kind


def _array(values: list[Any], kind: Type) -> pa.Array:
    match kind:
        case StructType(fields):
            columns = [_array([None if v is None else v[f.name] for v in values], f.type) for f in fields]
            mask = pa.array([v is None for v in values])
            return pa.StructArray.from_arrays(columns, fields=[arrow_field(f) for f in fields], mask=mask)
        case ListType():
            inner = _array([item for v in values for item in v or ()], kind.element_type)
            return pa.ListArray.from_arrays(_offsets(values), inner).cast(arrow_type(kind))
        case MapType():
            pairs = [pair for v in values for pair in v or ()]
            keys, items = _array([k for k, _ in pairs], kind.key_type), _array([v for _, v in pairs], kind.value_type)
            return pa.MapArray.from_arrays(_offsets(values), keys, items).cast(arrow_type(kind))
        case _:
            assert isinstance(kind, PrimitiveType)
            return arrow_array(values, kind)


def _offsets(values: list[Any]) -> pa.Array:
    """Return where each list begins; a null one is marked by a null before its end."""
    ends, at = [], 0
    for value in values:
        ends.append(None if value is None else at)
        at += len(value or ())
    return pa.array([*ends, at], pa.int32())


def _values(array: pa.Array, kind: Type) -> list[Any]:
    if array.null_count == len(array):
        return [None] * len(array)  # Arrow cannot make an empty array of some types, which it would flatten this to
    match kind:
        case StructType(fields):
            columns = [_values(inner, f.type) for inner, f in zip(array.flatten(), fields, strict=True)]
            names = [f.name for f in fields]
            rows = [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
            return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]
        case ListType():
            return _cut(array, _values(array.flatten(), kind.element_type))
        case MapType():
            entries = _entries(array)
            keys, items = entries.flatten().flatten()
            pairs = zip(_values(keys, kind.key_type), _values(items, kind.value_type), strict=True)
            return _cut(entries, list(pairs))
        case _:
            assert isinstance(kind, PrimitiveType)
            return python_values(array, kind)


def _entries(array: pa.MapArray) -> pa.ListArray:
    return array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))


def _cut(array: pa.Array, flat: list[Any]) -> list[Any]:
    found, at = [], 0
    for length in pc.list_value_length(array).to_pylist():
        found.append(None if length is None else flat[at : at + length])
        at += length or 0
    return found


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
