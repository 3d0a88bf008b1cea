"""Project a file's columns to a table's schema: matched by field id at every depth, renamed, reordered, promoted.

A column that is missing from the file has, in this order: the value of its identity partition, its initial default,
null.
(spec: Column Projection)
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from icefield.types.arrow import arrow_field, arrow_schema, arrow_type, field_id_of, repeated_value
from icefield.types.arrow_nested import list_around, map_around, struct_around, without_unused
from icefield.types.datatypes import ListType, MapType, NestedField, PrimitiveType, StructType, Type, UnknownType, Value
from icefield.types.schema import Schema


@dataclass(frozen=True)
class Projection:
    """Maps the columns of one file to a schema.

    physical: the file's columns by their ids. constants: values by field id for columns that are missing from the file.
    """

    wanted: Schema
    physical: Mapping[int, pa.Field]
    constants: Mapping[int, Value | None] = field(default_factory=dict)

    @property
    def stored_names(self) -> list[str]:
        """The file's columns that are needed."""
        return [self.physical[f.field_id].name for f in self.wanted.fields if f.field_id in self.physical]

    def project(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows with the wanted columns. Raises ValueError if the file lacks a required one."""
        if not self.wanted.fields:
            # Without columns, only the batch itself has the number of rows.
            return batch.select([]).replace_schema_metadata()
        arrays = [self._column(batch, f, to) for f, to in zip(self.wanted.fields, self._types, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=self._target)

    @cached_property
    def _target(self) -> pa.Schema:
        return arrow_schema(self.wanted)

    @cached_property
    def _types(self) -> list[pa.DataType]:
        return self._target.types  # type: ignore[no-any-return]

    def _column(self, batch: pa.RecordBatch, wanted: NestedField, target: pa.DataType) -> pa.Array:
        stored = self.physical.get(wanted.field_id)
        if stored is None:
            return self._missing(wanted, batch.num_rows)
        array = batch.column(stored.name)
        is_done = array.type == target and isinstance(wanted.type, PrimitiveType)
        return array if is_done else self._project(array, stored, wanted)

    def _missing(self, wanted: NestedField, rows: int) -> pa.Array:
        if wanted.field_id in self.constants:
            return repeated_value(self.constants[wanted.field_id], wanted.type, rows)
        if wanted.initial_default is not None and isinstance(wanted.type, StructType):
            # The default of a struct is only that it is not null; its contents are the defaults of its fields.
            columns = [self._missing(f, rows) for f in wanted.type.fields]
            return pa.StructArray.from_arrays(columns, fields=[arrow_field(f) for f in wanted.type.fields])
        if wanted.initial_default is not None:
            return repeated_value(wanted.initial_default, wanted.type, rows)
        if wanted.required:
            raise ValueError(f"the required column {wanted.name!r} is missing and has no default")
        return pa.nulls(rows, arrow_type(wanted.type))

    def _project(self, array: pa.Array, stored: pa.Field, wanted: NestedField) -> pa.Array:
        if not _SHAPES.get(type(wanted.type), _any_shape)(array.type):
            raise ValueError(f"its column {stored.name!r} is {array.type}, expected {wanted.type}")
        match wanted.type:
            case StructType(fields):
                return self._project_struct(array, stored, fields)
            case ListType():
                return self._project_list(array, stored, wanted.type)
            case MapType():
                return self._project_map(array, stored, wanted.type)
            case UnknownType():  # ignore what the file has for it (spec: Appendix A, Parquet)
                return pa.nulls(len(array))
            case _:
                target = arrow_type(wanted.type)
                return array if array.type == target else array.cast(target)

    def _project_list(self, array: pa.Array, stored: pa.Field, kind: ListType) -> pa.Array:
        if not pa.types.is_list(array.type):  # some writers use lists with wider offsets
            array = array.cast(pa.list_(array.type.value_field))
        array = without_unused(array)
        return list_around(array, kind, self._project(array.values, stored.type.value_field, kind.element))

    def _project_struct(self, array: pa.Array, stored: pa.Field, fields: tuple[NestedField, ...]) -> pa.Array:
        positions = {field_id_of(stored.type.field(i)): i for i in range(stored.type.num_fields)}
        inner = array.flatten()
        columns = [
            self._project(inner[at], stored.type.field(at), f)
            if (at := positions.get(f.field_id)) is not None
            else self._missing(f, len(array))
            for f in fields
        ]
        return struct_around(array, fields, columns)

    def _project_map(self, array: pa.Array, stored: pa.Field, kind: MapType) -> pa.Array:
        array = without_unused(array)
        keys = self._project(array.keys, stored.type.key_field, kind.key)
        items = self._project(array.items, stored.type.item_field, kind.value)
        return map_around(array, kind, keys, items)


def fields_by_id(physical: Iterable[pa.Field]) -> dict[int, pa.Field]:
    """Return the columns of a file or of an Arrow schema by their ids, without those that have none."""
    return {field_id: f for f in physical if (field_id := field_id_of(f)) is not None}


def _is_any_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _any_shape(kind: pa.DataType) -> bool:
    # For primitive values the cast decides whether they fit.
    return True


_SHAPES: dict[type[Type], Callable[[pa.DataType], bool]] = {
    StructType: pa.types.is_struct,
    ListType: _is_any_list,
    MapType: pa.types.is_map,
}
