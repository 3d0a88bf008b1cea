"""Conditions over metrics of a version, which must be true: bounds on counts, shares of nulls, extremes and ages.

    count(*) BETWEEN 1000 AND 2000 AND null_share(email) <= 0.01
    min(amount) >= 0 AND max(amount) < 100000
    age_hours(ts) < 24

A condition is a filter over one row that has a column for each metric. A metric of no values is null, which is neither
above nor below a bound. Raises InvalidFilter, InvalidInput.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from icefield.errors import InvalidFilter
from icefield.expr.bind.bind import bind
from icefield.expr.parse.ast import Predicate
from icefield.expr.parse.builder import col
from icefield.expr.query.lexer import Lexeme, lex
from icefield.expr.query.tokens import quoted
from icefield.expr.render.arrow import arrow_filter
from icefield.types.arrow import arrow_schema
from icefield.types.datatypes import (
    DateType,
    DoubleType,
    LongType,
    NestedField,
    PrimitiveType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    Type,
)
from icefield.types.schema import Schema

_HOUR_MS = 3_600_000
_MOMENTS = (DateType, TimestampType, TimestamptzType, TimestampNsType, TimestamptzNsType)


class MeasuredRows(Protocol):
    """The rows of one version."""

    @property
    def schema(self) -> Schema:
        """Their columns."""
        ...

    @property
    def now_ms(self) -> int:
        """The time, in milliseconds since the epoch."""
        ...

    def count(self, where: Predicate | str | None) -> int:
        """Count those that match a filter."""
        ...

    def extreme(self, column: str, *, least: bool) -> pa.Scalar:
        """Return the least or the greatest value of a column; null if there is none."""
        ...


@dataclass(frozen=True)
class Metric:
    """A number or value of a version. column: None for all rows; term: the column as it was written."""

    text: str
    function: str
    column: str | None
    term: str


@dataclass(frozen=True)
class MetricCondition:
    """A condition over metrics, in which each metric is a column that is called as the metric is written."""

    where: str
    metrics: Sequence[Metric]

    def check(self, schema: Schema) -> None:
        """Raise an error for a condition that does not fit the columns of a table."""
        bind(self.where, self._schema(schema))

    def measure(self, rows: MeasuredRows) -> Mapping[str, pa.Scalar]:
        """Return the metrics of a version, as they are written."""
        return {each.text: _FUNCTIONS[each.function].value(rows, each) for each in self.metrics}

    def holds(self, schema: Schema, measured: Mapping[str, pa.Scalar]) -> bool:
        """Return whether the condition is true for these metrics; unknown is not true."""
        columns = self._schema(schema)
        target = arrow_schema(columns)
        arrays = [pa.repeat(measured[field.name], 1).cast(field.type) for field in target]
        row = pa.Table.from_arrays(arrays, schema=target)
        return bool(row.filter(arrow_filter(bind(self.where, columns))).num_rows)

    def _schema(self, schema: Schema) -> Schema:
        distinct = {each.text: each for each in self.metrics}.values()
        return Schema(
            tuple(
                NestedField(number, each.text, _FUNCTIONS[each.function].type_of(schema, each), required=False)
                for number, each in enumerate(distinct, start=1)
            )
        )


def parse_metrics(text: str) -> MetricCondition | None:
    """Parse a condition over metrics; return None if the text names none."""
    tokens = list(lex(text))
    found: list[tuple[int, int, Metric]] = []
    for at, token in enumerate(tokens[:-1]):
        if token.word in _FUNCTIONS and tokens[at + 1].text == "(":
            end = next((place for place in range(at, len(tokens)) if tokens[place].text == ")"), None)
            if end is None:
                raise InvalidFilter(f"the check {text!r} has a parenthesis that is not closed")
            found.append((token.start, tokens[end].end, _metric(token.word, tokens[at + 2 : end])))
    if not found:
        return None
    pieces, done = [], 0
    for start, end, metric in found:
        pieces += [text[done:start], quoted(metric.text)]
        done = end
    return MetricCondition("".join([*pieces, text[done:]]), [metric for _, _, metric in found])


def sample_filter(metric: Metric, value: pa.Scalar) -> Predicate | str | None:
    """Return a filter for the rows that a metric is about; None if it is about all of them."""
    if metric.function in ("nulls", "null_share"):
        return f"{metric.term} IS NULL"
    has_nanos = pa.types.is_timestamp(value.type) and value.type.unit == "ns"  # Python's times have no such digits
    if metric.function not in ("min", "max") or metric.column is None or not value.is_valid or has_nanos:
        return None
    found: Predicate = col(metric.column) == value.as_py()
    return found


def _metric(function: str, inside: Sequence[Lexeme]) -> Metric:
    written = "".join(token.text for token in inside)
    if function == "count" and written == "*":
        return Metric("count(*)", function, None, written)
    names, dots = inside[::2], inside[1::2]
    if not names or not all(each.is_name for each in names) or any(each.text != "." for each in dots):
        raise InvalidFilter(
            f"{function}({written}) does not name a column", hint=f"Write {function}(column); only count takes *"
        )
    column = ".".join(each.name for each in names)
    return Metric(f"{function}({column})", function, column, written)


@dataclass(frozen=True)
class _Function:
    type_of: Callable[[Schema, Metric], Type]
    value: Callable[[MeasuredRows, Metric], pa.Scalar]


def _column_type(schema: Schema, metric: Metric) -> Type:
    return schema.find_field(_column(metric)).type


def _column(metric: Metric) -> str:
    assert metric.column is not None
    return metric.column


def _ordered_type(schema: Schema, metric: Metric) -> Type:
    kind = _column_type(schema, metric)
    if not isinstance(kind, PrimitiveType):
        raise InvalidFilter(f"{metric.text}: a column of type {kind} has no minimum or maximum")
    return kind


def _counted(kind: Type) -> Callable[[Schema, Metric], Type]:
    def type_of(schema: Schema, metric: Metric) -> Type:
        if metric.column is not None:
            bind(f"{metric.term} IS NULL", schema)  # raises an error if there is none, or if it is a struct
        return kind

    return type_of


def _age_type(schema: Schema, metric: Metric) -> Type:
    if not isinstance(kind := _column_type(schema, metric), _MOMENTS):
        raise InvalidFilter(f"{metric.text} needs a column of dates or timestamps, not of type {kind}")
    return DoubleType()


def _count(rows: MeasuredRows, metric: Metric) -> pa.Scalar:
    return pa.scalar(rows.count(None if metric.column is None else f"{metric.term} IS NOT NULL"), pa.int64())


def _nulls(rows: MeasuredRows, metric: Metric) -> pa.Scalar:
    return pa.scalar(rows.count(f"{metric.term} IS NULL"), pa.int64())


def _null_share(rows: MeasuredRows, metric: Metric) -> pa.Scalar:
    whole = rows.count(None)
    return pa.scalar(_nulls(rows, metric).as_py() / whole if whole else None, pa.float64())


def _age(rows: MeasuredRows, metric: Metric) -> pa.Scalar:
    """Return how many hours ago the greatest value was; one without a time zone is in UTC."""
    newest = rows.extreme(_column(metric), least=False)
    if not newest.is_valid:
        return pa.scalar(None, pa.float64())
    zone = newest.type.tz if pa.types.is_timestamp(newest.type) else None
    moment_ms = newest.cast(pa.timestamp("ms", zone), safe=False).value
    return pa.scalar((rows.now_ms - moment_ms) / _HOUR_MS, pa.float64())


_FUNCTIONS: Mapping[str, _Function] = {
    "count": _Function(_counted(LongType()), _count),
    "nulls": _Function(_counted(LongType()), _nulls),
    "null_share": _Function(_counted(DoubleType()), _null_share),
    "min": _Function(_ordered_type, lambda rows, metric: rows.extreme(_column(metric), least=True)),
    "max": _Function(_ordered_type, lambda rows, metric: rows.extreme(_column(metric), least=False)),
    "age_hours": _Function(_age_type, _age),
}
