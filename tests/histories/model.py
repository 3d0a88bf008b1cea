"""A table in plain Python: columns by field id, and every row with its values under the columns of the moment.

Nothing is stored in files, so nothing has to be found again: a column that is added is written into every row at once,
a wider type converts every value. That is what a table must look like, whatever its files hold.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tests.histories.values import normal_value
from tests.peers.normal import Row as NormalRow
from tests.peers.normal import sorted_rows

from icefield.types.calendar import MICROS_PER_DAY, NANOS_PER_DAY
from icefield.types.datatypes import (
    EMPTY_STRUCT,
    DateType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TimestampNsType,
    TimestampType,
    Type,
    children,
    walk,
    with_children,
)
from icefield.types.schema import Schema

KEY_ID = 1  # the first column: required, with another value in each row, never dropped
TABLE = 0  # stands for the table where a struct's field id is asked for

Fields = tuple[NestedField, ...]
Row = dict[int, Any]


@dataclass
class Model:
    """The columns and the rows of a table."""

    fields: Fields
    format_version: int
    last_id: int
    rows: list[Row] = field(default_factory=list)
    names: dict[tuple[int, str], int] | None = None  # the name mapping: which field a name below a field means

    @property
    def schema(self) -> Schema:
        return Schema(self.fields)

    @property
    def key(self) -> NestedField:
        """The column with another value in each row."""
        return self.field(KEY_ID)

    def field(self, field_id: int) -> NestedField:
        """Find a field at any depth."""
        return self.schema.by_id[field_id]

    def normal_rows(self, rows: Iterable[Row] | None = None) -> list[NormalRow]:
        """Return rows, or all of them, in the form in which they are compared."""
        chosen = self.rows if rows is None else rows
        return sorted_rows(tuple(normal_value(row[f.field_id], f.type) for f in self.fields) for row in chosen)

    def draw_id(self) -> int:
        """Return a field id that was never used."""
        self.last_id += 1
        return self.last_id

    def parents(self) -> dict[int, Fields]:
        """Return the fields of the table and of every struct inside it, by the struct's field id."""
        found = {TABLE: self.fields}
        for _, each in walk(StructType(self.fields)):
            if isinstance(each.type, StructType):
                found[each.field_id] = each.type.fields
        return found

    def add(self, parent: int, added: NestedField, at: int) -> None:
        """Add a field to a struct; rows that are there get its initial default."""
        self._change_fields(parent, lambda fields: (*fields[:at], added, *fields[at:]))
        for struct in self._structs(parent):
            struct[added.field_id] = initial_value(added)

    def drop(self, field_id: int) -> None:
        """Remove a field with all that is inside it."""
        parent = self.parent_of(field_id)
        self._change_fields(parent, lambda fields: tuple(f for f in fields if f.field_id != field_id))
        for struct in self._structs(parent):
            del struct[field_id]

    def move(self, field_id: int, at: int) -> None:
        """Move a field to a place among its siblings, counted without it."""

        def moved(fields: Fields) -> Fields:
            others = [f for f in fields if f.field_id != field_id]
            return (*others[:at], self.field(field_id), *others[at:])

        self._change_fields(self.parent_of(field_id), moved)

    def change(self, field_id: int, **changes: Any) -> None:
        """Change what is said of a field, but for its type."""
        self._change_fields(
            self.parent_of(field_id),
            lambda fields: tuple(replace(f, **changes) if f.field_id == field_id else f for f in fields),
        )

    def widen(self, field_id: int, kind: Type) -> None:
        """Give a struct's field a wider type."""
        old = self.field(field_id)
        convert = _conversion(old.type, kind)
        defaults = {"initial_default": convert(old.initial_default), "write_default": convert(old.write_default)}
        self.change(field_id, type=kind, **defaults)
        for struct in self._structs(self.parent_of(field_id)):
            struct[field_id] = convert(struct[field_id])

    def parent_of(self, field_id: int) -> int:
        """Return the struct that a field is in; of lists and maps the field that holds them."""
        for parent, fields in self.parents().items():
            if any(f.field_id == field_id for f in fields):
                return parent
        raise KeyError(field_id)

    def values_of(self, field_id: int) -> list[Any]:
        """Return all values of a struct's field."""
        return [struct[field_id] for struct in self._structs(self.parent_of(field_id))]

    def map_names(self) -> None:
        """Let the name mapping follow the columns; a name once mapped keeps its field."""
        if self.names is None:
            return
        for parent, each in _with_parents(self.fields, TABLE):
            self.names.setdefault((parent, each.name), each.field_id)

    def is_mapped(self, each: NestedField, parent: int = TABLE) -> bool:
        """Return whether the names of a field, and of all inside it, mean what they say in files without ids."""
        assert self.names is not None
        inside = (self.is_mapped(child, each.field_id) for child in children(each.type))
        return self.names.get((parent, each.name)) == each.field_id and all(inside)

    def _change_fields(self, parent: int, change: Callable[[Fields], Fields]) -> None:
        self.fields = _changed(self.fields, TABLE, parent, change)

    def _structs(self, field_id: int) -> Iterator[Row]:
        for row in self.rows:
            yield from _structs_in(row, StructType(self.fields), TABLE, field_id)


def initial_value(added: NestedField) -> Any:
    """Return what rows have in a field that came after them."""
    return _default(added, lambda f: f.initial_default)


def written_value(missing: NestedField) -> Any:
    """Return what new rows have in a field that they do not name."""
    return _default(missing, lambda f: f.write_default)


def _default(of: NestedField, choose: Callable[[NestedField], Any]) -> Any:
    chosen = choose(of)
    if chosen != EMPTY_STRUCT:
        return chosen
    assert isinstance(of.type, StructType)
    return {f.field_id: _default(f, choose) for f in of.type.fields}


def _changed(fields: Fields, here: int, parent: int, change: Callable[[Fields], Fields]) -> Fields:
    if here == parent:
        return change(fields)
    return tuple(
        replace(f, type=with_children(f.type, _changed(inner, f.field_id, parent, change)))
        if (inner := children(f.type))
        else f
        for f in fields
    )


def _structs_in(value: Any, kind: Type, here: int, wanted: int) -> Iterator[Row]:
    if value is None:
        return
    match kind:
        case StructType(fields):
            if here == wanted:
                yield value
                return
            for f in fields:
                if f.field_id in value:
                    yield from _structs_in(value[f.field_id], f.type, f.field_id, wanted)
        case ListType():
            for each in value:
                yield from _structs_in(each, kind.element_type, kind.element_id, wanted)
        case MapType():
            for _, each in value:
                yield from _structs_in(each, kind.value_type, kind.value_id, wanted)


def _with_parents(fields: Iterable[NestedField], parent: int) -> Iterator[tuple[int, NestedField]]:
    for each in fields:
        yield parent, each
        yield from _with_parents(children(each.type), each.field_id)


def _conversion(old: Type, new: Type) -> Callable[[Any], Any]:
    """Only dates change their numbers: from days to moments."""
    if isinstance(old, DateType) and isinstance(new, TimestampType | TimestampNsType):
        factor = NANOS_PER_DAY if isinstance(new, TimestampNsType) else MICROS_PER_DAY
        return lambda value: None if value is None else value * factor
    return lambda value: value
