"""Change a schema, one step at a time, by the rules of the format. (spec: Schema Evolution)

A step is a pure function from schema to schema. Field ids are what columns are known by: a new column gets an id that
was never used, a renamed or moved one keeps its own, so old files never show a value under a name that it was not
written for. Every illegal step raises InvalidInput naming the rule that it breaks.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from icefield.errors import InvalidInput
from icefield.types.datatypes import (
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
    Type,
    children,
    with_children,
)
from icefield.types.schema import Schema, renumber

Fields = tuple[NestedField, ...]


@dataclass(frozen=True)
class Position:
    """Where among its siblings a column stands: first, or just after or before another one."""

    after: str | None = None
    before: str | None = None

    def __post_init__(self) -> None:
        if self.after is not None and self.before is not None:
            raise InvalidInput("a column stands after one column or before one, not both")

    def place(self, fields: Fields, moved: NestedField) -> Fields:
        """Put a field among its siblings."""
        others = tuple(f for f in fields if f.field_id != moved.field_id)
        anchor = self.after if self.after is not None else self.before
        if anchor is None:
            return (moved, *others)
        at = next((i for i, f in enumerate(others) if f.name == anchor), None)
        if at is None:
            raise InvalidInput(f"cannot place column {moved.name!r}: {anchor!r} is not beside it")
        at += self.after is not None
        return (*others[:at], moved, *others[at:])


FIRST = Position()


@dataclass(frozen=True)
class NewColumn:
    """A column to be added; its type's field ids are placeholders."""

    name: str
    type: Type
    required: bool = False
    doc: str | None = None


def add_column(
    schema: Schema, path: str, column: NewColumn, draw_id: Callable[[], int], position: Position | None = None
) -> Schema:
    """Add a column below the struct that `path` names; an empty path is the table itself."""
    if column.required:
        raise InvalidInput(
            f"cannot add required column {column.name!r}: rows that are there already have no value for it",
            hint="Add it as optional",
        )
    (numbered,) = renumber((NestedField(0, column.name, column.type, column.required, column.doc),), draw_id, {})

    def add(fields: Fields) -> Fields:
        if any(f.name == column.name for f in fields):
            raise InvalidInput(f"cannot add column {_joined(path, column.name)!r}: it is there already")
        return position.place(fields, numbered) if position else (*fields, numbered)

    return _change_siblings(schema, path, add)


def drop_column(schema: Schema, name: str) -> Schema:
    """Remove a column with all that is inside it."""
    field = schema.find_field(name)
    gone = {field.field_id, *(f.field_id for f in _below(field.type))}
    if identifiers := gone & set(schema.identifier_field_ids):
        shown = ", ".join(schema.name_of(i) for i in sorted(identifiers))
        raise InvalidInput(f"cannot drop column {name!r}: {shown} identifies rows", hint="Set other identifier fields")

    def drop(fields: Fields) -> Fields:
        kept = tuple(f for f in fields if f.field_id != field.field_id)
        if not kept:
            raise InvalidInput(f"cannot drop column {name!r}: nothing would be left beside it")
        return kept

    return _change_siblings(schema, _parent(schema, field), drop)


def rename_column(schema: Schema, name: str, new_name: str) -> Schema:
    """Give a column another name; it stays where it is and keeps its id."""
    field = schema.find_field(name)
    if not new_name:
        raise InvalidInput(f"cannot rename column {name!r} to nothing")

    def rename(fields: Fields) -> Fields:
        if any(f.name == new_name and f.field_id != field.field_id for f in fields):
            raise InvalidInput(f"cannot rename column {name!r} to {new_name!r}: that name is taken")
        return tuple(replace(f, name=new_name) if f.field_id == field.field_id else f for f in fields)

    return _change_siblings(schema, _parent(schema, field), rename)


def move_column(schema: Schema, name: str, position: Position) -> Schema:
    """Move a column among its siblings; it cannot leave its struct."""
    field = schema.find_field(name)
    return _change_siblings(schema, _parent(schema, field), lambda fields: position.place(fields, field))


def widen_column(schema: Schema, name: str, kind: Type) -> Schema:
    """Give a column a wider type, in which every value it may hold has the same meaning."""
    field = schema.find_field(name)
    if field.type != kind and not can_widen(field.type, kind):
        raise InvalidInput(
            f"cannot change column {name!r} from {field.type} to {kind}",
            hint="Allowed: int to long, float to double, decimal to one of more digits and the same scale",
        )
    return _change_field(schema, field.field_id, lambda f: replace(f, type=kind))


def make_optional(schema: Schema, name: str) -> Schema:
    """Allow nulls in a column. The reverse is refused: there may be nulls already."""
    field = schema.find_field(name)
    if field.field_id in schema.identifier_field_ids:
        raise InvalidInput(f"cannot make column {name!r} optional: it identifies rows")
    if _is_map_key(schema, field):
        raise InvalidInput(f"cannot make {name!r} optional: keys of a map are always required")
    return _change_field(schema, field.field_id, lambda f: replace(f, required=False))


def set_doc(schema: Schema, name: str, doc: str | None) -> Schema:
    """Describe a column."""
    field = schema.find_field(name)
    return _change_field(schema, field.field_id, lambda f: replace(f, doc=doc))


def set_identifier_fields(schema: Schema, names: Iterable[str]) -> Schema:
    """Say which columns identify a row. (spec: Identifier Field IDs)"""
    return replace(schema, identifier_field_ids=tuple(sorted({schema.find_field(n).field_id for n in names})))


def union_by_name(schema: Schema, other: Schema, draw_id: Callable[[], int]) -> Schema:
    """Add what another schema has more, at any depth, by name; widen and make optional where it asks for that.

    Columns that the other schema lacks stay; nothing is narrowed, dropped or moved.
    """
    return replace(schema, fields=_union(schema.fields, other.fields, draw_id, ""))


def can_widen(old: Type, new: Type) -> bool:
    """Say whether every value of a type means the same in another."""
    match old, new:
        case (IntegerType(), LongType()) | (FloatType(), DoubleType()):
            return True
        case DecimalType(), DecimalType():
            return old.scale == new.scale and old.precision <= new.precision
        case _:
            return False


def _union(ours: Fields, theirs: Fields, draw_id: Callable[[], int], path: str) -> Fields:
    known = {f.name: f for f in ours}
    merged: dict[str, NestedField] = dict(known)
    for field in theirs:
        name = _joined(path, field.name)
        if field.name in known:
            merged[field.name] = _union_field(known[field.name], field, draw_id, name)
        else:
            (numbered,) = renumber((replace(field, required=False),), draw_id, {})
            merged[field.name] = numbered
    return tuple(merged.values())


def _union_field(ours: NestedField, theirs: NestedField, draw_id: Callable[[], int], path: str) -> NestedField:
    required = ours.required and theirs.required
    match ours.type, theirs.type:
        case StructType(), StructType():
            return replace(
                ours, type=StructType(_union(ours.type.fields, theirs.type.fields, draw_id, path)), required=required
            )
        case (ListType(), ListType()) | (MapType(), MapType()):
            pairs = zip(children(ours.type), children(theirs.type), strict=True)
            inner = tuple(_union_field(a, b, draw_id, _joined(path, a.name)) for a, b in pairs)
            return replace(ours, type=with_children(ours.type, inner), required=required)
    if can_widen(ours.type, theirs.type):
        return replace(ours, type=theirs.type, required=required)
    if ours.type == theirs.type or can_widen(theirs.type, ours.type):
        return replace(ours, required=required)
    raise InvalidInput(f"cannot unite column {path!r}: the table has {ours.type}, the other schema {theirs.type}")


def _change_siblings(schema: Schema, path: str, change: Callable[[Fields], Fields]) -> Schema:
    """Change the fields of the struct that a path names; lists and maps stand for the struct inside them."""
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
    changed = StructType(change(parent.type.fields))
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
    parent = ".".join(path[:-1])
    if parent and not isinstance(schema.find_field(parent).type, StructType):
        raise InvalidInput(f"cannot change {'.'.join(path)!r}: the inside of a list or map has no name of its own")
    return parent


def _is_map_key(schema: Schema, field: NestedField) -> bool:
    path = schema.paths[field.field_id]
    above = ".".join(path[:-1])
    return bool(above) and path[-1] == "key" and isinstance(schema.find_field(above).type, MapType)


def _below(kind: Type) -> Iterable[NestedField]:
    for field in children(kind):
        yield field
        yield from _below(field.type)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
