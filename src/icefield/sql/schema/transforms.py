"""Partition fields and sort orders as Spark's SQL and Iceberg's extensions write them.

    bucket(16, id)     days(ts)     truncate(name, 4)     region     a.b.c
    WRITE LOCALLY ORDERED BY region, id DESC NULLS LAST     WRITE DISTRIBUTED BY PARTITION     WRITE UNORDERED

Raises InvalidInput, at the term.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from icefield.model.partition import find_source, parse_partition_by, parse_transform_call
from icefield.model.sort_order import parse_order_by
from icefield.properties.table import DISTRIBUTE_HASH, DISTRIBUTE_NONE, DISTRIBUTE_RANGE
from icefield.sql.syntax.cursor import Cursor
from icefield.sql.syntax.place import Place, pointing_at
from icefield.types.schema import Schema
from icefield.types.transforms import Bucket, Transform, Truncate

# Names that Iceberg takes in Spark for transforms of the format.
_ALIASES: Mapping[str, str] = {"date": "day", "date_hour": "hour"}
_PLAIN = re.compile(r"\w+")


@dataclass(frozen=True)
class Term:
    """A column, or a transform of one.

    text: as `parse_transform_call` reads it. parts: those of the name, if it is a column alone.
    """

    text: str
    place: Place
    transform: Transform
    column: str
    parts: tuple[str, ...] = ()

    def added_name(self, schema: Schema) -> str:
        """Return the name that ALTER TABLE gives to a partition field, which is not always that of CREATE TABLE."""
        source = find_source(schema, self.column, self.transform, self.place.text)
        name = schema.name_of(source.field_id)
        match self.transform:
            case Bucket():
                return f"{name}_bucket_{self.transform.count}"
            case Truncate():
                return f"{name}_trunc_{self.transform.width}"
        return self.transform.default_name(name)


@dataclass(frozen=True)
class OrderTerm:
    """One key of a sort order, as `parse_order_by` reads it."""

    text: str
    place: Place


@dataclass(frozen=True)
class WriteOrder:
    """How rows are written: the sort order, and the distribution mode if it is set."""

    order: tuple[OrderTerm, ...]
    distribution: str | None

    def order_by(self, schema: Schema) -> list[str]:
        """Return the terms of the sort order, which must fit a schema."""
        return checked_order(self.order, schema)


def parse_term(cursor: Cursor, what: str = "a column or a transform") -> Term:
    """Read a column or a transform."""
    start = cursor.position
    name = cursor.name(what)
    if not cursor.accept("(") or len(name.parts) > 1:
        text = column_text(name.parts)
        return Term(text, name.place, *parse_transform_call(text), name.parts)
    word = name.parts[0].lower()
    arguments: list[str] = []
    while not arguments or cursor.accept(","):
        arguments.append(_argument(cursor))
    cursor.expect(")")
    place = cursor.since(start)
    text = f"{_ALIASES.get(word, word)}({', '.join(arguments)})"
    with pointing_at(place):
        return Term(text, place, *parse_transform_call(text))


def parse_order(cursor: Cursor) -> tuple[OrderTerm, ...]:
    """Read the terms of a sort order, which may be in parentheses."""
    is_inside = cursor.accept("(")
    terms: list[OrderTerm] = []
    while not terms or cursor.accept(","):
        start, term = cursor.position, parse_term(cursor)
        direction = cursor.accept_any("asc", "desc") or "asc"
        nulls = f" nulls {cursor.expect_any('first', 'last')}" if cursor.accept("nulls") else ""
        terms.append(OrderTerm(f"{term.text} {direction}{nulls}", cursor.since(start)))
    if is_inside:
        cursor.expect(")")
    return tuple(terms)


def parse_write(cursor: Cursor) -> WriteOrder:
    """Read what follows WRITE: how rows are ordered and distributed."""
    order: tuple[OrderTerm, ...] = ()
    ordered = distributed = None
    start = cursor.place
    while (word := _write_clause(cursor)) is not None:
        if (distributed if word == "distributed" else ordered) is not None:
            raise cursor.error(f"WRITE says twice how rows are {'distributed' if distributed else 'ordered'}", start)
        if word == "distributed":
            distributed = DISTRIBUTE_HASH
        else:
            ordered = word
            order = () if word == "unordered" else parse_order(cursor)
        start = cursor.place
    if distributed is None and ordered is None:
        raise cursor.expected("ORDERED BY, LOCALLY ORDERED BY, DISTRIBUTED BY PARTITION or UNORDERED")
    modes = {"unordered": DISTRIBUTE_NONE, "locally": None, "ordered": DISTRIBUTE_RANGE}
    return WriteOrder(order, distributed or modes[ordered or "locally"])


def _write_clause(cursor: Cursor) -> str | None:
    if cursor.accept("distributed"):
        cursor.expect("by", "partition")
        return "distributed"
    if cursor.accept("unordered"):
        return "unordered"
    if cursor.accept("locally"):
        cursor.expect("ordered", "by")
        return "locally"
    if cursor.accept("ordered"):
        cursor.expect("by")
        return "ordered"
    return None


def checked_partition(terms: Sequence[Term], schema: Schema) -> list[str]:
    """Return the terms of a partition spec, which must fit a schema; an error points at its term."""
    for at, term in enumerate(terms):
        with pointing_at(term.place):
            parse_partition_by([each.text for each in terms[: at + 1]], schema)
    return [term.text for term in terms]


def checked_order(terms: Sequence[OrderTerm], schema: Schema) -> list[str]:
    """Return the terms of a sort order, which must fit a schema; an error points at its term."""
    for term in terms:
        with pointing_at(term.place):
            parse_order_by([term.text], schema)
    return [term.text for term in terms]


def column_text(parts: Sequence[str]) -> str:
    """Return the name of a column as handles take it: in backticks if a part of it is not a word."""
    if all(_PLAIN.fullmatch(part) for part in parts):
        return ".".join(parts)
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def _argument(cursor: Cursor) -> str:
    if cursor.is_at_parameter:
        place, value = cursor.place, cursor.parameter()
        if type(value) is not int:
            raise cursor.error(f"the argument of a transform is a whole number, not {value!r}", place)
        return str(value)
    token = cursor.token()
    if token is not None and token.is_name:
        return column_text(cursor.name().parts)
    return str(cursor.integer("a column or a number"))
