"""Filters on a model's columns, drawn at random, and the rows that match them by the plain meaning of `expr.rows`."""

from collections.abc import Sequence
from random import Random
from typing import Any

from tests.histories.model import Model, Row
from tests.histories.values import pool

from icefield.expr.bind.bind import bind
from icefield.expr.parse.ast import Date, Literal, Predicate, Time, Timestamp
from icefield.expr.parse.builder import col
from icefield.expr.render.rows import matches, values_by_id
from icefield.types.datatypes import (
    BooleanType,
    DateType,
    DoubleType,
    FloatType,
    NestedField,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    UnknownType,
)
from icefield.types.schema import Leaf


def draw_filter(random: Random, model: Model) -> Predicate:
    """Draw one to three conditions, joined by AND or OR, negated now and then."""
    leaves = [leaf for leaf in model.schema.leaves if not leaf.repeated]
    drawn = _condition(random, random.choice(leaves), model)
    for _ in range(random.choice((0, 0, 1, 2))):
        other = _condition(random, random.choice(leaves), model)
        drawn = drawn & other if random.random() < 0.5 else drawn | other
    return ~drawn if random.random() < 0.15 else drawn


def split(model: Model, where: Predicate) -> tuple[list[Row], list[Row]]:
    """Return the rows that match, and the others."""
    bound = bind(where, model.schema)
    found: tuple[list[Row], list[Row]] = ([], [])
    for row in model.rows:
        by_id = values_by_id(model.schema, _by_name(row, model.fields))
        found[0 if matches(bound, by_id) else 1].append(row)
    return found


def _condition(random: Random, leaf: Leaf, model: Model) -> Predicate:
    column = col(leaf.dotted)
    if isinstance(leaf.type, UnknownType) or random.random() < 0.15:
        return column.is_null() if random.random() < 0.5 else column.is_not_null()
    if isinstance(leaf.type, FloatType | DoubleType) and random.random() < 0.15:
        return column.is_nan()
    value = _literal(random, leaf, model)
    if isinstance(leaf.type, StringType) and random.random() < 0.3:
        return column.starts_with(str(value)[:2])
    if isinstance(leaf.type, BooleanType):
        return column == value
    match random.randrange(7):
        case 0:
            return column < value
        case 1:
            return column <= value
        case 2:
            return column > value
        case 3:
            return column >= value
        case 4:
            return column != value
        case 5:
            return column.isin([value, _literal(random, leaf, model)])
        case _:
            return column == value


def _literal(random: Random, leaf: Leaf, model: Model) -> Literal:
    """Draw a value of the column, mostly one that is there."""
    there = [value for row in model.rows if (value := _inside(row, leaf)) is not None]
    value = random.choice(there if there and random.random() < 0.7 else pool(leaf.type))
    match leaf.type:
        case DateType():
            return Date(value)
        case TimeType():
            return Time(value)
        case TimestampType() | TimestamptzType():
            return Timestamp(value, zoned=isinstance(leaf.type, TimestamptzType))
        case TimestampNsType() | TimestamptzNsType():
            return Timestamp(value // 1000, isinstance(leaf.type, TimestamptzNsType), value % 1000)
        case _:
            return value  # type: ignore[no-any-return]


def _inside(row: Row, leaf: Leaf) -> Any:
    value: Any = row
    for field in (*leaf.parents, leaf.field):
        value = None if value is None else value[field.field_id]
    return value


def _by_name(row: Row, fields: Sequence[NestedField]) -> dict[str, Any]:
    """Return a row with its structs by name; what is inside lists and maps is of no use to a filter."""
    named: dict[str, Any] = {}
    for field in fields:
        value = row[field.field_id]
        is_struct = isinstance(field.type, StructType) and value is not None
        named[field.name] = _by_name(value, field.type.fields) if is_struct else value  # type: ignore[union-attr]
    return named
