"""Columns as CREATE TABLE and ALTER TABLE define them.

    id BIGINT NOT NULL COMMENT 'the key'     price DOUBLE DEFAULT 0.0 AFTER id     address.zip STRING FIRST

Raises InvalidInput and Unsupported, at the token.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from icefield.errors import InvalidInput, Unsupported
from icefield.sql.schema.defaults import DefaultText, parse_default
from icefield.sql.schema.types import parse_text, parse_type
from icefield.sql.session import Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place
from icefield.types.datatypes import NestedField, Type
from icefield.types.schema import Schema, numbered

_OF_CONSTRAINTS = ("primary", "unique", "check", "references", "constraint")
_OPTIONS = ("not", "comment", "default", "generated", *_OF_CONSTRAINTS)
_PLACES = ("first", "after")


@dataclass(frozen=True)
class ColumnPosition:
    """FIRST, or AFTER a column of the same struct."""

    after: Name | None = None


@dataclass(frozen=True)
class Column:
    """A column to create or to add."""

    name: Name
    type: Type
    type_place: Place
    required: bool = False
    comment: str | None = None
    default: DefaultText | None = None
    position: ColumnPosition | None = None
    is_key: bool = False

    def field(self, run: Run) -> NestedField:
        """Return the column as a field with a placeholder for its id."""
        value = None if self.default is None else self.default.typed(run, self.type)
        return NestedField(0, self.name.parts[-1], self.type, self.required, self.comment, value, value)


def parse_columns(cursor: Cursor) -> tuple[Column, ...]:
    """Read the columns of a new table in parentheses, possibly with a primary key."""
    columns: list[Column] = []
    keys: list[Name] = []
    cursor.expect("(")
    while not (columns or keys) or cursor.accept(","):
        if _is_constraint(cursor):
            keys += _primary_key(cursor)
            continue
        column = parse_column(cursor)
        if len(column.name.parts) > 1:
            raise column.name.place.error("the name of a new column has one part", kind=InvalidInput)
        columns.append(column)
    cursor.expect(")")
    refuse_twice(columns)
    return _with_keys(columns, keys)


def parse_column(cursor: Cursor, *, has_position: bool = False) -> Column:
    """Read a column: its name, its type, and what follows; FIRST and AFTER only where they are allowed."""
    name = cursor.name("the name of a column")
    start = cursor.position
    kind = parse_type(cursor)
    column = Column(name, kind, cursor.since(start))
    words = (*_OPTIONS, *_PLACES) if has_position else _OPTIONS
    seen: set[str] = set()
    while (word := cursor.peek()) in words:
        if word in seen or (word in _PLACES and seen & {*_PLACES}):
            raise cursor.error(f"{word.upper()} is there twice")
        seen.add(word)
        column = _with_option(column, cursor, word)
    return column


def _with_option(column: Column, cursor: Cursor, word: str) -> Column:
    place = cursor.place
    match word:
        case "not":
            cursor.expect("not", "null")
            return replace(column, required=True)
        case "comment":
            cursor.expect("comment")
            return replace(column, comment=parse_text(cursor, "a comment"))
        case "default":
            return replace(column, default=parse_default(cursor))
        case "first" | "after":
            return replace(column, position=parse_position(cursor))
        case "primary":
            _expect_key(cursor)
            return replace(column, is_key=True, required=True)
        case "generated":
            raise place.error(
                "Iceberg tables have no generated columns", hint="Compute it in the query", kind=Unsupported
            )
    raise _no_constraints(place)


def parse_position(cursor: Cursor) -> ColumnPosition:
    """Read FIRST, or AFTER and a column."""
    if cursor.accept("first"):
        return ColumnPosition()
    cursor.expect("after")
    return ColumnPosition(cursor.name("the name of a column"))


def refuse_twice(columns: Sequence[Column]) -> None:
    """Refuse columns of one name, in any case."""
    seen: set[tuple[str, ...]] = set()
    for column in columns:
        key = tuple(part.lower() for part in column.name.parts)
        if key in seen:
            raise column.name.place.error(f"the column {column.name} is there twice", kind=InvalidInput)
        seen.add(key)


def schema_of(run: Run, columns: Sequence[Column]) -> Schema:
    """Return the schema of a new table; its primary key becomes the identifier fields."""
    schema = numbered(column.field(run) for column in columns)
    keys = [field.field_id for field, column in zip(schema.fields, columns, strict=True) if column.is_key]
    return replace(schema, identifier_field_ids=tuple(keys))


def _is_constraint(cursor: Cursor) -> bool:
    """Return whether a constraint of the table follows; a column may have the same name."""
    starts = (("primary", "key", "("), ("unique", "("), ("check", "("), ("foreign", "key", "("))
    return any(cursor.is_at(*words) for words in starts) or (
        cursor.is_at("constraint") and cursor.peek(2) in ("primary", "unique", "check", "foreign")
    )


def _primary_key(cursor: Cursor) -> list[Name]:
    place = cursor.place
    if cursor.accept("constraint"):
        cursor.identifier("the name of a constraint")
    if not cursor.is_at("primary"):
        raise _no_constraints(place)
    cursor.expect("primary", "key", "(")
    names: list[Name] = []
    while not names or cursor.accept(","):
        names.append(cursor.name("the name of a column"))
    cursor.expect(")")
    _skip_characteristics(cursor)
    return names


def _expect_key(cursor: Cursor) -> None:
    cursor.expect("primary", "key")
    _skip_characteristics(cursor)


def _skip_characteristics(cursor: Cursor) -> None:
    if cursor.is_at("enforced"):
        raise cursor.error("no constraint is enforced", hint="Write NOT ENFORCED", kind=Unsupported)
    cursor.accept("not", "enforced")
    cursor.accept_any("rely", "norely")


def _with_keys(columns: Sequence[Column], keys: Sequence[Name]) -> tuple[Column, ...]:
    known = {column.name.parts[0].lower() for column in columns}
    for key in keys:
        if str(key).lower() not in known:
            raise key.place.error(f"no column {key} for the primary key", kind=InvalidInput)
    chosen = {str(key).lower() for key in keys}
    return tuple(
        replace(column, is_key=True, required=True) if column.name.parts[0].lower() in chosen else column
        for column in columns
    )


def _no_constraints(place: Place) -> Exception:
    return place.error(
        "Iceberg tables have no constraints besides NOT NULL and PRIMARY KEY, their identifier fields",
        kind=Unsupported,
    )
