"""Read Parquet data files as Arrow batches with a table's schema, by field id. (spec: Column Projection)

A column is found in a file by its id, whatever its name was when the file was written; a column that the file does
not have is null; a narrower type is widened. Row groups whose statistics rule the filter out are not read.
Memory is bounded by the batches on their way, not by the file.

Raises MissingFile, CorruptFile (with the file's location), Unsupported for files without field ids.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from icefield.errors import CorruptFile, Unsupported
from icefield.expr.arrow import arrow_filter, row_group_filter
from icefield.expr.bound import TRUE, Bound, all_of, columns_of, complement, conjuncts
from icefield.storage.store import Store
from icefield.types.arrow import arrow_field, arrow_schema, arrow_type, field_id_of
from icefield.types.arrow_nested import list_around, map_around, struct_around, without_unused
from icefield.types.datatypes import ListType, MapType, NestedField, StructType
from icefield.types.schema import Schema

BATCH_ROWS = 65_536
BATCHES_AHEAD = 4


def read_batches(
    store: Store, location: str, schema: Schema, select: Sequence[str], where: Bound
) -> Iterator[pa.RecordBatch]:
    """Yield the file's rows that match, with the selected columns of the schema."""
    wanted = schema.select([*select, *(schema.name_of(i) for i in columns_of(where))])
    output = schema.select(select)
    narrowed = {f.field_id: arrow_field(f) for f in wanted.fields}
    for batch in _matching(store, location, wanted, where):
        yield batch if output == wanted else _project(batch, output, narrowed)


def read_rest(store: Store, location: str, schema: Schema, where: Bound) -> Iterator[pa.RecordBatch]:
    """Yield the file's rows that do not match, with all columns: those for which the filter is false or null."""
    return _matching(store, location, schema, complement(where))


def _matching(store: Store, location: str, wanted: Schema, where: Bound) -> Iterator[pa.RecordBatch]:
    batches = _scan(store, location, wanted, where)
    if where == TRUE:
        return batches
    keep = arrow_filter(where, lambda reference: wanted.paths[reference.field_id])
    return (batch.filter(keep) for batch in batches)


def _scan(store: Store, location: str, wanted: Schema, where: Bound) -> Iterator[pa.RecordBatch]:
    """Yield rows of the row groups that may hold matching ones, whether they match or not."""
    try:
        fragment = ds.ParquetFileFormat().make_fragment(store.open_input(location))
        physical = fragment.physical_schema
        found = _fields_by_id(physical, location)
        pushed = _pushed_filter(where, wanted, physical)
        if pushed is not None:
            fragment = fragment.subset(pushed)
        names = [found[f.field_id].name for f in wanted.fields if f.field_id in found]
        batches = fragment.to_batches(
            columns=names, batch_size=BATCH_ROWS, batch_readahead=BATCHES_AHEAD, use_threads=True
        )
        for batch in batches:
            yield _project(batch, wanted, found)
    except (pa.ArrowException, OSError) as error:
        raise CorruptFile(location, f"its Parquet data does not decode: {error}") from error


def _fields_by_id(physical: pa.Schema, location: str) -> dict[int, pa.Field]:
    if not all(_has_ids(f) for f in physical):
        raise Unsupported(f"{location} has columns without field ids", hint="Files need a name mapping to be read so")
    return {field_id: f for f in physical if (field_id := field_id_of(f)) is not None}


def _has_ids(field: pa.Field) -> bool:
    """Say whether a column and all fields of structs in it can be found by id; lists and maps have no other insides."""
    if pa.types.is_struct(field.type):
        return field_id_of(field) is not None and all(_has_ids(inner) for inner in field.type)
    return field_id_of(field) is not None


def _pushed_filter(where: Bound, wanted: Schema, physical: pa.Schema) -> pc.Expression | None:
    """Build the part of the filter that the file's own statistics can judge.

    Only conjuncts whose columns the file has with the very type of the table: the rest is decided on projected rows.
    """
    paths = dict(_paths_with_same_type(wanted.fields, list(physical), ()))
    judged = all_of(*(part for part in conjuncts(where) if columns_of(part) <= paths.keys()))
    return None if judged == TRUE else row_group_filter(judged, lambda reference: paths[reference.field_id])


def _paths_with_same_type(
    fields: Sequence[NestedField], physical: Sequence[pa.Field], path: tuple[str, ...]
) -> Iterator[tuple[int, tuple[str, ...]]]:
    found = {field_id_of(f): f for f in physical}
    for field in fields:
        stored = found.get(field.field_id)
        if stored is None:
            continue
        inner = (*path, stored.name)
        if isinstance(field.type, StructType):
            children = [stored.type.field(i) for i in range(stored.type.num_fields)]
            yield from _paths_with_same_type(field.type.fields, children, inner)
        elif not isinstance(field.type, ListType | MapType) and stored.type == arrow_type(field.type):
            yield field.field_id, inner


def _project(batch: pa.RecordBatch, wanted: Schema, found: dict[int, pa.Field]) -> pa.RecordBatch:
    if not wanted.fields:
        # Without columns only the batch itself still knows how many rows it has.
        return batch.select([]).replace_schema_metadata()
    arrays = [
        _project_array(batch.column(found[f.field_id].name), found[f.field_id], f)
        if f.field_id in found
        else _missing(f, batch.num_rows)
        for f in wanted.fields
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(wanted))


def _project_array(array: pa.Array, stored: pa.Field, field: NestedField) -> pa.Array:
    match field.type:
        case StructType(fields):
            return _project_struct(array, stored, fields)
        case ListType():
            return _project_list(array, stored, field.type)
        case MapType():
            return _project_map(array, stored, field.type)
        case _:
            target = arrow_type(field.type)
            return array if array.type == target else array.cast(target)


def _project_list(array: pa.Array, stored: pa.Field, kind: ListType) -> pa.Array:
    if not pa.types.is_list(array.type):  # some writers ask for lists with wider offsets
        array = array.cast(pa.list_(array.type.value_field))
    array = without_unused(array)
    return list_around(array, kind, _project_array(array.values, stored.type.value_field, kind.element))


def _project_struct(array: pa.Array, stored: pa.Field, fields: tuple[NestedField, ...]) -> pa.Array:
    positions = {field_id_of(stored.type.field(i)): i for i in range(stored.type.num_fields)}
    inner = array.flatten()
    columns = [
        _project_array(inner[at], stored.type.field(at), f)
        if (at := positions.get(f.field_id)) is not None
        else _missing(f, len(array))
        for f in fields
    ]
    return struct_around(array, fields, columns)


def _project_map(array: pa.Array, stored: pa.Field, kind: MapType) -> pa.Array:
    array = without_unused(array)
    keys = _project_array(array.keys, stored.type.key_field, kind.key)
    items = _project_array(array.items, stored.type.item_field, kind.value)
    return map_around(array, kind, keys, items)


def _missing(field: NestedField, rows: int) -> pa.Array:
    return pa.nulls(rows, arrow_type(field.type))
