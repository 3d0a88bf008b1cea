"""Evolve a schema, one step at a time, by the rules of the format. (spec: Schema Evolution)

A step is a pure function from schema to schema. Columns are identified by field ids: a new column gets an id that was
never used, a renamed or moved one keeps its id, so a value in an old file never appears in a column that it was not
written for. An invalid step raises InvalidInput with the rule that it breaks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput
from icefield.types.calendar import MICROS_PER_DAY, NANOS_PER_DAY
from icefield.types.datatypes import (
    EMPTY_STRUCT,
    DateType,
    DecimalType,
    Default,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
    TimestampNsType,
    TimestampType,
    Type,
    UnknownType,
    children,
    with_children,
)
from icefield.types.transforms import Day, Month, Transform, Void, Year

with deferred_imports(__name__):
    from icefield.types.schema import Schema, renumber
    from icefield.types.values.json import encode_json_value

Fields = tuple[NestedField, ...]


@dataclass(frozen=True)
class Position:
    """The position of a column among its siblings: first, or directly after or before another one."""

    after: str | None = None
    before: str | None = None

    def __post_init__(self) -> None:
        if self.after is not None and self.before is not None:
            raise InvalidInput("a column is placed after one column or before one, not both")

    def place(self, fields: Fields, moved: NestedField) -> Fields:
        """Put a field among its siblings."""
        others = tuple(f for f in fields if f.field_id != moved.field_id)
        anchor = self.after if self.after is not None else self.before
        if anchor is None:
            return (moved, *others)
        at = next((i for i, f in enumerate(others) if f.name == anchor), None)
        if at is None:
            raise InvalidInput(f"cannot place column {moved.name!r}: {anchor!r} is not in the same struct")
        at += self.after is not None
        return (*others[:at], moved, *others[at:])


FIRST = Position()


@dataclass(frozen=True)
class NewColumn:
    """A column to add; the field ids in its type are placeholders.

    default: the value in existing rows, and in new rows without the column.
    """

    name: str
    type: Type
    required: bool = False
    doc: str | None = None
    default: Default | None = None


def add_column(
    schema: Schema, path: str, column: NewColumn, draw_id: Callable[[], int], position: Position | None = None
) -> Schema:
    """Add a column to the struct at `path`; an empty path is the table itself."""
    if column.required and column.default is None:
        raise InvalidInput(
            f"cannot add required column {column.name!r}: existing rows have no value for it",
            hint="Add it as optional, or give it a default, which format version 3 allows",
        )
    _check_default(column.name, column.type, column.default)
    _check_struct_default(column.name, column.type, column.default, lambda f: f.initial_default)
    added = NestedField(0, column.name, column.type, column.required, column.doc, column.default, column.default)
    (numbered,) = renumber((added,), draw_id, {})

    def add(fields: Fields) -> Fields:
        if any(f.name == column.name for f in fields):
            raise InvalidInput(f"cannot add column {_joined(path, column.name)!r}: it already exists")
        return position.place(fields, numbered) if position else (*fields, numbered)

    return _change_siblings(schema, path, add)


def drop_column(schema: Schema, name: str) -> Schema:
    """Remove a column with all its nested fields."""
    field = schema.find_field(name)
    gone = {field.field_id, *(f.field_id for f in _below(field.type))}
    if identifiers := gone & set(schema.identifier_field_ids):
        shown = ", ".join(schema.name_of(i) for i in sorted(identifiers))
        raise InvalidInput(
            f"cannot drop column {name!r}: {shown} is an identifier field", hint="Set other identifier fields"
        )

    def drop(fields: Fields) -> Fields:
        kept = tuple(f for f in fields if f.field_id != field.field_id)
        if not kept:
            raise InvalidInput(f"cannot drop column {name!r}: no other column would be left")
        return kept

    return _change_siblings(schema, _parent(schema, field), drop)


def rename_column(schema: Schema, name: str, new_name: str) -> Schema:
    """Rename a column; it keeps its position and id."""
    field = schema.find_field(name)
    if not new_name:
        raise InvalidInput(f"cannot rename column {name!r} to an empty name")

    def rename(fields: Fields) -> Fields:
        if any(f.name == new_name and f.field_id != field.field_id for f in fields):
            raise InvalidInput(f"cannot rename column {name!r} to {new_name!r}: that name is taken")
        return tuple(replace(f, name=new_name) if f.field_id == field.field_id else f for f in fields)

    return _change_siblings(schema, _parent(schema, field), rename)


def move_column(schema: Schema, name: str, position: Position) -> Schema:
    """Move a column among its siblings; it cannot leave its struct."""
    field = schema.find_field(name)
    return _change_siblings(schema, _parent(schema, field), lambda fields: position.place(fields, field))


def update_column_type(
    schema: Schema, name: str, kind: Type, format_version: int = 2, draw_id: Callable[[], int] | None = None
) -> Schema:
    """Promote a column to a wider type, in which every value has the same meaning.

    If an `unknown` column gets a nested type, its fields get their ids from `draw_id`.
    """
    field = schema.find_field(name)
    if field.type != kind and not can_widen(field.type, kind, format_version):
        allowed = "Allowed: int to long, float to double, decimal to one of more digits and the same scale"
        newer = "; from format version 3 on, date to timestamp or timestamp_ns, and unknown to any type"
        raise InvalidInput(f"cannot change column {name!r} from {field.type} to {kind}", hint=allowed + newer)
    if children(kind) and draw_id is None:
        raise InvalidInput(f"cannot change column {name!r} to {kind}: there are no ids for the columns inside")
    wider = _renumbered(kind, draw_id) if draw_id else kind
    return _change_field(schema, field.field_id, lambda f: replace(_widened_defaults(f, wider), type=wider))


def make_optional(schema: Schema, name: str) -> Schema:
    """Make a column optional. The reverse is not possible: there may be nulls already."""
    field = schema.find_field(name)
    if field.field_id in schema.identifier_field_ids:
        raise InvalidInput(f"cannot make column {name!r} optional: it is an identifier field")
    if _is_map_key(schema, field):
        raise InvalidInput(f"cannot make {name!r} optional: keys of a map are always required")
    return _change_field(schema, field.field_id, lambda f: replace(f, required=False))


def set_doc(schema: Schema, name: str, doc: str | None) -> Schema:
    """Set the doc of a column."""
    field = schema.find_field(name)
    return _change_field(schema, field.field_id, lambda f: replace(f, doc=doc))


def set_default(schema: Schema, name: str, default: Default | None) -> Schema:
    """Change the write default of a column; existing rows do not change."""
    field = schema.find_field(name)
    _parent(schema, field)
    if field.required and default is None and field.write_default is not None:
        raise InvalidInput(f"cannot remove the default of column {name!r}: it is required")
    _check_default(name, field.type, default)
    _check_struct_default(name, field.type, default, lambda f: f.write_default)
    return _change_field(schema, field.field_id, lambda f: replace(f, write_default=default))


def set_identifier_fields(schema: Schema, names: Iterable[str]) -> Schema:
    """Set the columns that identify a row. (spec: Identifier Field IDs)"""
    return replace(schema, identifier_field_ids=tuple(sorted({schema.find_field(n).field_id for n in names})))


def drop_identifier_fields(schema: Schema, names: Iterable[str]) -> Schema:
    """Remove columns from those that identify a row."""
    gone = {schema.find_field(name).field_id: name for name in names}
    for field_id, name in gone.items():
        if field_id not in schema.identifier_field_ids:
            known = ", ".join(schema.name_of(i) for i in schema.identifier_field_ids) or "none"
            raise InvalidInput(f"{name!r} is not an identifier field (identifier fields: {known})")
    return replace(schema, identifier_field_ids=tuple(i for i in schema.identifier_field_ids if i not in gone))


def union_by_name(schema: Schema, other: Schema, draw_id: Callable[[], int], format_version: int = 2) -> Schema:
    """Add the columns that only another schema has, by name and at any depth; promote types and make columns optional.

    Columns that are not in the other schema stay; nothing is narrowed, dropped or moved.
    """
    return replace(schema, fields=_Union(draw_id, format_version).fields(schema.fields, other.fields, ""))


def can_widen(old: Type, new: Type, format_version: int = 2) -> bool:
    """Return whether a type can be promoted to another, by the rules of a format version.

    For a date that files are partitioned by, see also `check_widening_of_source`.
    """
    match old, new:
        case (IntegerType(), LongType()) | (FloatType(), DoubleType()):
            return True
        case DecimalType(), DecimalType():
            return old.scale == new.scale and old.precision <= new.precision
        # A date is not a single point in time if the timestamp has a time zone.
        case (DateType(), TimestampType() | TimestampNsType()) | (UnknownType(), _):
            return format_version >= 3
        case _:
            return False


def check_widening_of_source(old: Type, new: Type, transform: Transform, name: str) -> None:
    """Refuse to promote a partition field's source if its partition values would change. (spec: Schema Evolution)

    Years, months and days of a date are those of the timestamp at its midnight, and void is always null; the results of
    identity, bucket and unknown transforms would differ.
    """
    if isinstance(old, DateType) and new != old and not isinstance(transform, Year | Month | Day | Void):
        raise InvalidInput(
            f"cannot change column {name!r} from {old} to {new}: files are partitioned by {transform} of it, "
            "and their partition values would change"
        )


def _check_default(name: str, kind: Type, default: Default | None) -> None:
    if default is None:
        return
    try:
        encode_json_value(default, kind)
    except ValueError as error:
        raise InvalidInput(f"column {name!r} cannot have the default {default!r}: {error}") from error


def _check_struct_default(
    name: str, kind: Type, default: Default | None, default_of: Callable[[NestedField], Default | None]
) -> None:
    """Refuse a struct of its fields' defaults if a required field has none: it would be null."""
    if default != EMPTY_STRUCT or not isinstance(kind, StructType):
        return
    for field in kind.fields:
        if field.required and default_of(field) is None:
            raise InvalidInput(
                f"column {name!r} cannot have the default {{}}: {field.name!r} is required and has no default"
            )
        _check_struct_default(f"{name}.{field.name}", field.type, default_of(field), default_of)


def _widened_defaults(field: NestedField, kind: Type) -> NestedField:
    """Convert a default to the wider type; only dates change, from days to the unit of the timestamp."""
    if not isinstance(field.type, DateType) or field.type == kind:
        return field
    factor = NANOS_PER_DAY if isinstance(kind, TimestampNsType) else MICROS_PER_DAY
    defaults = (field.initial_default, field.write_default)
    initial, write = (None if d is None else int(d) * factor for d in defaults)  # type: ignore[arg-type]
    for default in (initial, write):
        _check_default(field.name, kind, default)
    return replace(field, initial_default=initial, write_default=write)


def _renumbered(kind: Type, draw_id: Callable[[], int]) -> Type:
    return with_children(kind, renumber(children(kind), draw_id, {}))


@dataclass(frozen=True)
class _Union:
    """Merges fields by name; new ones and their nested fields get fresh ids."""

    draw_id: Callable[[], int]
    format_version: int

    def fields(self, ours: Fields, theirs: Fields, path: str) -> Fields:
        merged = {f.name: f for f in ours}
        for field in theirs:
            known = merged.get(field.name)
            name = _joined(path, field.name)
            merged[field.name] = self._added(field) if known is None else self._field(known, field, name)
        return tuple(merged.values())

    def _added(self, field: NestedField) -> NestedField:
        (numbered,) = renumber((replace(field, required=False),), self.draw_id, {})
        return numbered

    def _field(self, ours: NestedField, theirs: NestedField, path: str) -> NestedField:
        required = ours.required and theirs.required
        match ours.type, theirs.type:
            case StructType(), StructType():
                inner = self.fields(ours.type.fields, theirs.type.fields, path)
                return replace(ours, type=with_children(ours.type, inner), required=required)
            case (ListType(), ListType()) | (MapType(), MapType()):
                pairs = zip(children(ours.type), children(theirs.type), strict=True)
                inner = tuple(self._field(a, b, _joined(path, a.name)) for a, b in pairs)
                return replace(ours, type=with_children(ours.type, inner), required=required)
        if ours.type == theirs.type or can_widen(theirs.type, ours.type, self.format_version):
            return replace(ours, required=required)
        if can_widen(ours.type, theirs.type, self.format_version):
            kind = _renumbered(theirs.type, self.draw_id)
            return replace(_widened_defaults(ours, kind), type=kind, required=required)
        raise InvalidInput(
            f"cannot merge column {path!r}: the table has {ours.type}, the other schema has {theirs.type}"
        )


def _change_siblings(schema: Schema, path: str, change: Callable[[Fields], Fields]) -> Schema:
    """Change the fields of the struct at a path; a list or map means the struct inside it."""
    if not path:
        return replace(schema, fields=change(schema.fields))
    parent = schema.find_field(path)
    if isinstance(parent.type, ListType):
        return _change_siblings(schema, f"{path}.element", change)
    if isinstance(parent.type, MapType):
        return _change_siblings(schema, f"{path}.value", change)
    if not isinstance(parent.type, StructType):
        raise InvalidInput(f"column {path!r} is {parent.type}: only structs have columns inside")
    if _is_map_key(schema, parent):
        raise InvalidInput(f"cannot change {path!r}: keys of a map cannot be evolved")
    changed = with_children(parent.type, change(parent.type.fields))
    return _change_field(schema, parent.field_id, lambda f: replace(f, type=changed))


def _change_field(schema: Schema, field_id: int, change: Callable[[NestedField], NestedField]) -> Schema:
    def visit(field: NestedField) -> NestedField:
        if field.field_id == field_id:
            return change(field)
        inner = children(field.type)
        return replace(field, type=with_children(field.type, tuple(map(visit, inner)))) if inner else field

    return replace(schema, fields=tuple(map(visit, schema.fields)))


def _parent(schema: Schema, field: NestedField) -> str:
    path = schema.paths[field.field_id]
    if len(path) == 1:
        return ""
    parent = schema.ids_by_path[path[:-1]]
    if not isinstance(schema.by_id[parent].type, StructType):
        raise InvalidInput(f"cannot change {'.'.join(path)!r}: elements of a list or map have no name of their own")
    return schema.name_of(parent)


def _is_map_key(schema: Schema, field: NestedField) -> bool:
    path = schema.paths[field.field_id]
    above = schema.ids_by_path.get(path[:-1])
    return above is not None and path[-1] == "key" and isinstance(schema.by_id[above].type, MapType)


def _below(kind: Type) -> Iterable[NestedField]:
    for field in children(kind):
        yield field
        yield from _below(field.type)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
