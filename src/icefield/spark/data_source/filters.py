"""Convert filters that Spark pushes to a data source.

Filters with the same meaning in both are converted; the rest is left to Spark, which then filters the rows. Values of
types with a different logical type in Spark (such as uuids as strings) are not compared here, because Spark orders
them by that type.
"""

from collections.abc import Callable, Iterable
from typing import Any

from icefield.errors import InvalidFilter
from icefield.expr.bind.bind import bind
from icefield.expr.bind.bound import Bound, all_of, columns_of
from icefield.expr.parse import ast
from icefield.expr.parse.ast import Operator, Predicate
from icefield.spark.types import logical_field, physical_field
from icefield.types.datatypes import TimestampNsType, TimestamptzNsType, TimeType
from icefield.types.schema import Schema

ESCAPE = "\\"
SHOWN_AS_NUMBERS = TimeType | TimestampNsType | TimestamptzNsType


def split_filters(filters: Iterable[Any], schema: Schema) -> tuple[Bound, list[Any]]:
    """Return the converted filter, bound to a schema, and the filters left to Spark."""
    taken: list[Bound] = []
    left: list[Any] = []
    for given in filters:
        part = _bound(given, schema)
        if part is None:
            left.append(given)
        else:
            taken.append(part)
    return all_of(*taken), left


def _bound(given: Any, schema: Schema) -> Bound | None:
    predicate = _predicate(given)
    if predicate is None:
        return None
    try:
        part = bind(predicate, schema)
    except InvalidFilter:
        return None
    shown_alike = all(_is_shown_as_it_is(schema, field_id) for field_id in columns_of(part))
    return part if shown_alike else None


def _is_shown_as_it_is(schema: Schema, field_id: int) -> bool:
    field = schema.by_id[field_id]
    is_number = isinstance(field.type, SHOWN_AS_NUMBERS)
    return not is_number and logical_field(field).dataType == physical_field(field).dataType


def _predicate(given: Any) -> Predicate | None:
    if type(given).__name__ == "Not":
        inner = _predicate(given.child)
        return None if inner is None else ast.Not(inner)
    make = _PREDICATES.get(type(given).__name__)
    return None if make is None else make(given)


def _comparison(operator: Operator) -> Callable[[Any], Predicate]:
    return lambda given: ast.Comparison(ast.Column(given.attribute), operator, given.value)


def _like(before: str, after: str) -> Callable[[Any], Predicate]:
    def make(given: Any) -> Predicate:
        text = "".join(f"{ESCAPE}{c}" if c in (ESCAPE, "%", "_") else c for c in given.value)
        return ast.Like(ast.Column(given.attribute), f"{before}{text}{after}", ESCAPE)

    return make


# By name: pyspark 4.0 has no such classes, and pushes no filters.
_PREDICATES: dict[str, Callable[[Any], Predicate]] = {
    "EqualTo": _comparison(Operator.EQ),
    "GreaterThan": _comparison(Operator.GT),
    "GreaterThanOrEqual": _comparison(Operator.GE),
    "LessThan": _comparison(Operator.LT),
    "LessThanOrEqual": _comparison(Operator.LE),
    "EqualNullSafe": lambda given: ast.NullSafeEqual(ast.Column(given.attribute), given.value),
    "In": lambda given: ast.In(ast.Column(given.attribute), tuple(given.value)),
    "IsNull": lambda given: ast.IsNull(ast.Column(given.attribute)),
    "IsNotNull": lambda given: ast.Not(ast.IsNull(ast.Column(given.attribute))),
    "StringStartsWith": lambda given: ast.StartsWith(ast.Column(given.attribute), given.value),
    "StringEndsWith": _like("%", ""),
    "StringContains": _like("%", "%"),
}
