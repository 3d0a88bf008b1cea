"""Columns that ALTER TABLE names: by path, in any case. Raises InvalidInput."""

from collections.abc import Sequence
from dataclasses import replace

from icefield.errors import InvalidInput
from icefield.sql.schema.transforms import column_text
from icefield.sql.syntax.cursor import Name
from icefield.types.datatypes import ListType, MapType, NestedField, StructType, Type, children
from icefield.types.schema import Schema


def find_column(schema: Schema, parts: Sequence[str]) -> NestedField | None:
    """Find a column by its path, in any case; elements, keys and values are parts of it."""
    fields, found = schema.fields, None
    for part in parts:
        exact = [field for field in fields if field.name == part]
        alike = exact or [field for field in fields if field.name.lower() == part.lower()]
        if len(alike) != 1:
            return None
        found = alike[0]
        fields = children(found.type)
    return found


def existing_column(schema: Schema, name: Name) -> NestedField:
    """Find a column, or raise an error with names that are near."""
    found = find_column(schema, name.parts)
    return schema.find_field(column_text(name.parts)) if found is None else found


def parent_path(schema: Schema, name: Name) -> tuple[str, ...]:
    """Return the path of the struct that a new column goes to; empty for the table."""
    if len(name.parts) == 1:
        return ()
    found = existing_column(schema, replace(name, parts=name.parts[:-1]))
    return schema.paths[found.field_id]


def _siblings(schema: Schema, parent: Sequence[str]) -> Sequence[NestedField]:
    found = find_column(schema, parent)
    if found is None:
        return schema.fields if not parent else ()
    kind = found.type
    if isinstance(kind, ListType | MapType):
        kind = kind.element_type if isinstance(kind, ListType) else kind.value_type
    return kind.fields if isinstance(kind, StructType) else ()


def sibling_name(schema: Schema, parent: Sequence[str], name: Name) -> str:
    """Return the own name of a column of the same struct."""
    last = name.parts[-1]
    if len(name.parts) > 1 and tuple(part.lower() for part in name.parts[:-1]) != tuple(p.lower() for p in parent):
        raise name.place.error(f"{name} is not in the same struct", kind=InvalidInput)
    siblings = _siblings(schema, parent)
    alike = [field.name for field in siblings if field.name.lower() == last.lower()]
    if last in alike or len(alike) == 1:
        return last if last in alike else alike[0]
    known = ", ".join(field.name for field in siblings)
    raise name.place.error(f"no column {name} to come after (columns: {known})", kind=InvalidInput)


def refuse_taken(schema: Schema, name: Name, last: str, besides: int | None = None) -> None:
    """Refuse a name that a column beside the named one has, in any case. besides: the column that may have it."""
    parent = parent_path(schema, name)
    for field in _siblings(schema, parent):
        if field.name.lower() == last.lower() and field.field_id != besides:
            shown = ".".join((*parent, field.name))
            raise InvalidInput(f"there is a column {shown} already")


def is_same_type(one: Type, other: Type) -> bool:
    """Compare types without the ids, descriptions and defaults of their fields."""
    ours, theirs = children(one), children(other)
    if type(one) is not type(other) or len(ours) != len(theirs):
        return False
    if not ours:
        return one == other
    pairs = zip(ours, theirs, strict=True)
    return all(a.name == b.name and a.required == b.required and is_same_type(a.type, b.type) for a, b in pairs)
