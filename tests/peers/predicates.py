"""One predicate on one column, said to each engine in its own words, and judged on plain Python values."""

import datetime as dt
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyiceberg import expressions as pyiceberg

OPERATORS: dict[str, Callable[[Any, Sequence[Any]], bool]] = {
    "=": lambda v, given: v == given[0],
    "!=": lambda v, given: v != given[0],
    "<": lambda v, given: v < given[0],
    "<=": lambda v, given: v <= given[0],
    ">": lambda v, given: v > given[0],
    ">=": lambda v, given: v >= given[0],
    "in": lambda v, given: v in given,
    "not in": lambda v, given: v not in given,
    "starts with": lambda v, given: v.startswith(given[0]),
}
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
# Any, because PyIceberg's types do not know of the arguments that its expressions take.
_PYICEBERG: dict[str, Any] = {
    "=": pyiceberg.EqualTo,
    "!=": pyiceberg.NotEqualTo,
    "<": pyiceberg.LessThan,
    "<=": pyiceberg.LessThanOrEqual,
    ">": pyiceberg.GreaterThan,
    ">=": pyiceberg.GreaterThanOrEqual,
    "starts with": pyiceberg.StartsWith,
    "is null": pyiceberg.IsNull,
    "is not null": pyiceberg.NotNull,
    "in": pyiceberg.In,
    "not in": pyiceberg.NotIn,
}


@dataclass(frozen=True)
class Predicate:
    """`column operator values`, as SQL understands it: a null matches nothing but `is null`."""

    column: str
    operator: str
    values: tuple[Any, ...] = ()

    def matches(self, rows: pa.Table) -> list[bool]:
        """Judge each row."""
        return [self._matches(value) for value in _values(rows, self.column.split("."))]

    def is_nan(self, rows: pa.Table) -> list[bool]:
        """Say of each row whether its value is NaN."""
        return [value != value for value in _values(rows, self.column.split("."))]

    def pyiceberg(self) -> pyiceberg.BooleanExpression:
        given = (self.values,) if self.operator in ("in", "not in") else self.values
        expression: pyiceberg.BooleanExpression = _PYICEBERG[self.operator](self.column, *given)
        return expression

    def duckdb(self) -> str:
        return self._sql('"', _duckdb_literal)

    def icefield(self) -> str:
        return self._sql("`", _spark_literal)

    spark = icefield

    def _sql(self, quote: str, literal: Callable[[Any], str]) -> str:
        name = ".".join(f"{quote}{part.replace(quote, quote * 2)}{quote}" for part in self.column.split("."))
        if not self.values:
            return f"{name} {self.operator}"
        if self.operator == "starts with":
            return f"{name} LIKE {literal(self.values[0] + '%')}"
        given = ", ".join(literal(value) for value in self.values)
        return f"{name} {self.operator} ({given})" if "in" in self.operator else f"{name} {self.operator} {given}"

    def _matches(self, value: Any) -> bool:
        if self.operator == "is null":
            return value is None
        if value is None:
            return False
        return self.operator == "is not null" or OPERATORS[self.operator](value, self.values)

    def __str__(self) -> str:
        values = ", ".join(str(v) if len(str(v)) < 40 else f"{str(v)[:37]}..." for v in self.values)
        return f"{self.column} {self.operator} {values}".rstrip()


def every_predicate(column: str, values: Sequence[Any]) -> Iterator[Predicate]:
    """Yield all that a column of these values, which ascend, is to be asked."""
    known = [value for value in values if value == value]  # all but NaN
    for value in _ends_and_middle(known):
        yield from (Predicate(column, operator, (value,)) for operator in COMPARISONS)
    yield from _about_sets(column, known)


def some_predicates(column: str, values: Sequence[Any]) -> Iterator[Predicate]:
    """Yield a choice of them."""
    known = [value for value in values if value == value]  # all but NaN
    for value in _telling(known):
        yield from (Predicate(column, operator, (value,)) for operator in ("=", "<", ">="))
    yield from _about_sets(column, known)


def _telling(values: Sequence[Any]) -> list[Any]:
    """Choose the ends and the middle; of moments all, for each is a trap of its own to some transform."""
    return list(values) if isinstance(values[0], dt.date) else _ends_and_middle(values)


def _ends_and_middle(values: Sequence[Any]) -> list[Any]:
    return list(dict.fromkeys([values[0], values[len(values) // 2], values[-1]]))


def _about_sets(column: str, values: Sequence[Any]) -> Iterator[Predicate]:
    yield Predicate(column, "in", (values[0], values[-1]))
    yield Predicate(column, "not in", (values[0], values[-1]))
    yield Predicate(column, "is null")
    yield Predicate(column, "is not null")
    if isinstance(values[0], str):
        yield from (Predicate(column, "starts with", (text[:12],)) for text in _ends_and_middle(values))


def _values(rows: pa.Table, path: Sequence[str]) -> list[Any]:
    values: list[Any] = rows.column(path[0]).to_pylist()
    for name in path[1:]:
        values = [None if value is None else value[name] for value in values]
    return values


def _duckdb_literal(value: Any) -> str:
    match value:
        case bytes():
            return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
        case float():
            return f"'{value}'::DOUBLE"
        case uuid.UUID():
            return f"'{value}'::UUID"
        case dt.datetime() if value.tzinfo:
            return f"TIMESTAMPTZ '{_moment(value)}+00'"
        case dt.datetime():
            return f"TIMESTAMP '{_moment(value)}'"
        case dt.time():
            return f"TIME '{value.isoformat()}'"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case Decimal() | bool() | int():
            return str(value)
        case dt.date():
            return f"DATE '{value.isoformat()}'"
    raise TypeError(f"no literal for {value!r}")


def _spark_literal(value: Any) -> str:
    match value:
        case bytes():
            return f"X'{value.hex()}'"
        case float():
            return f"CAST('{value}' AS DOUBLE)"
        case uuid.UUID():
            return f"'{value}'"
        case dt.datetime() if value.tzinfo:
            return f"TIMESTAMP '{_moment(value)}+00:00'"
        case dt.datetime():
            return f"TIMESTAMP_NTZ '{_moment(value)}'"
        case dt.time():
            return f"TIME '{value.isoformat()}'"
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case Decimal():
            return f"{value:f}"
        case bool() | int():
            return str(value)
        case dt.date():
            return f"DATE '{value.isoformat()}'"
    raise TypeError(f"no literal for {value!r}")


def _moment(value: dt.datetime) -> str:
    return value.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
