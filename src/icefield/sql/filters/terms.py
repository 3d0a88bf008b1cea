"""Comparisons of a column, or of the unit of time that its values are in, with a constant.

    CAST(ts AS DATE) = DATE '2026-03-01'          in Europe/Berlin: from 2026-02-28 23:00 up to 2026-03-01 23:00 UTC
    date_trunc('month', ts) < '2026-03-01'        before 2026-02-28 23:00 UTC
    year(day) = 2026                              from 2026-01-01 up to 2027-01-01

What Spark compares after a cast is compared without it, where the result is the same. A filter may hold for more rows
than the comparison: near a change of clocks its range is wider. Raises NotUnderstood, InvalidFilter and ValueError for
comparisons of which nothing is known.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal

from icefield.expr.bind.bound import FALSE, Bound, NotNull, Reference, all_of
from icefield.expr.bind.literals import compare
from icefield.expr.parse.ast import Date, Literal, Operator, Time, Timestamp
from icefield.expr.parse.datetimes import parse_date, parse_timestamp
from icefield.sql.filters.expression import Call, Cast, Column, Constant, Expression, Local, Value
from icefield.sql.filters.zone import Zone, find_unit, unit_of
from icefield.types.calendar import MICROS_PER_DAY, days_from_date
from icefield.types.datatypes import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

_WHOLE_FLOATS = 1 << 24
_LONG_UNITS = frozenset({"year", "quarter", "month", "week"})


class NotUnderstood(Exception):
    """Nothing is known about an expression."""


@dataclass(frozen=True)
class Term:
    """A column, or the unit of time that its values are in.

    is_year: the number of the year. is_double: numbers are compared as doubles.
    """

    reference: Reference
    unit: str | None = None
    is_year: bool = False
    is_double: bool = False


def term_of(written: Expression) -> Term:
    """Return the column that an expression depends on, and how."""
    match written:
        case Column(reference):
            return Term(reference)
        case Cast(value, kind):
            return _cast(term_of(value), kind)
        case Call("date_trunc", (Constant(str() as name), value)):
            return _truncated(term_of(value), find_unit(name))
        case Call("trunc", (value, Constant(str() as name))) if find_unit(name) in _LONG_UNITS:
            return Term(_as_date(term_of(value)).reference, find_unit(name))
        case Call("year", (value,)):
            return Term(_as_date(term_of(value)).reference, "year", is_year=True)
    raise NotUnderstood


def compare_term(term: Term, operator: Operator, constant: Constant, zone: Zone) -> Bound:
    """Return a filter that holds where the comparison of a term with a constant is true."""
    if constant.value is None:
        return FALSE
    if constant.grows:
        # Of a range that moves up, the lower end now is known.
        operator = Operator.GE if operator is Operator.EQ else operator
        if operator not in (Operator.GE, Operator.GT):
            return NotNull(term.reference)
    if term.unit is not None:
        return _compare_unit(term, operator, constant.value, zone)
    value = constant.value
    if term.is_double and isinstance(value, int | Decimal) and not isinstance(value, bool):
        value = float(value)
    return _compare_column(term.reference, operator, value, zone)


def _truncated(term: Term, unit: str | None) -> Term:
    is_date = isinstance(term.reference.type, DateType)
    if (
        unit is None
        or term.unit not in (None, "day")
        or not isinstance(term.reference.type, DateType | TimestamptzType)
    ):
        raise NotUnderstood
    # A date is truncated as the time at which it begins.
    if (is_date or term.unit == "day") and unit not in _LONG_UNITS:
        raise NotUnderstood
    return Term(term.reference, unit)


def _as_date(term: Term) -> Term:
    """Return a term whose values are dates."""
    if isinstance(term.reference.type, DateType) and term.unit is None:
        return Term(term.reference, "day")
    if term.unit != "day":
        raise NotUnderstood
    return term


def _cast(term: Term, kind: str) -> Term:
    """Return a term whose comparisons are those of the cast value, unless the cast fails or gives null."""
    given = term.reference.type
    if isinstance(given, TimestampType | TimestamptzType) and kind == "date" and term.unit is None:
        return Term(term.reference, "day")
    if term.unit is not None:
        if term.unit != "day" or kind not in ("date", "timestamp"):
            raise NotUnderstood
        return term
    keeps_values = {
        DateType: kind in ("date", "timestamp"),
        IntegerType: kind in ("int", "bigint", "double") or _scale(kind) >= 0,
        LongType: kind in ("bigint", "double") or _scale(kind) >= 0,
        DecimalType: kind == "double" or (isinstance(given, DecimalType) and _scale(kind) >= given.scale),
        FloatType: kind in ("float", "double"),
    }
    if not keeps_values.get(type(given), kind == _NAMES.get(type(given))):
        raise NotUnderstood
    return replace(term, is_double=kind == "double")


def _scale(kind: str) -> int:
    """Return the scale of a type `decimal(p,s)`; -1 for any other type."""
    return int(kind.removesuffix(")").partition(",")[2] or 0) if kind.startswith("decimal(") else -1


def _compare_unit(term: Term, operator: Operator, value: Value, zone: Zone) -> Bound:
    """Compare the unit that a time is in with the unit that a local time is in, by where that begins and ends."""
    if operator is Operator.NE:
        return NotNull(term.reference)
    local = _local(term, value)
    found = unit_of(local, str(term.unit))
    if found is None:
        raise NotUnderstood
    start, end = found

    def test(operator: Operator, micros: int) -> Bound:
        return _compare_local(term.reference, operator, micros, zone)

    match operator:
        case Operator.EQ:
            return all_of(test(Operator.GE, start), test(Operator.LT, end))
        case Operator.GE:
            return test(Operator.GE, start)
        case Operator.GT:
            return test(Operator.GE, end)
        case Operator.LT if start == local:
            return test(Operator.LT, start)
        case _:
            return test(Operator.LT, end)


def _local(term: Term, value: Value) -> int:
    """Return the local time that a unit of time is compared with."""
    if term.is_year:
        if isinstance(value, bool) or not isinstance(value, int):
            raise NotUnderstood
        return days_from_date(value, 1, 1) * MICROS_PER_DAY
    match value:
        case Date(days):
            return days * MICROS_PER_DAY
        case Local(micros):
            return micros
        case str():
            parsed = parse_timestamp(value)
            if not parsed.zoned:
                return parsed.micros
    raise NotUnderstood


def _compare_local(reference: Reference, operator: Operator, micros: int, zone: Zone) -> Bound:
    """Compare with a local time: that of the session for moments, that of the column itself for all others."""
    if isinstance(reference.type, TimestamptzType):
        return _compare_moment(reference, operator, Local(micros), zone)
    return compare(reference, operator, Timestamp(micros, zoned=False))


def _compare_column(reference: Reference, operator: Operator, value: Value, zone: Zone) -> Bound:
    match reference.type:
        case TimestamptzType():
            return _compare_moment(reference, operator, value, zone)
        case DateType():
            return _compare_date(reference, operator, value, zone)
        case TimestampType():
            return compare(reference, operator, _without_zone(value))
    if isinstance(value, Local | Date | Time | Timestamp):
        raise NotUnderstood
    convert = _AS_SHOWN.get(type(reference.type))
    if convert is not None:
        return compare(reference, operator, convert(value))
    # How Spark reads a number as text, and which of two types of numbers it compares, depends on settings.
    if isinstance(value, str) and not isinstance(reference.type, StringType):
        raise NotUnderstood
    if isinstance(value, int) and isinstance(reference.type, FloatType) and abs(value) > _WHOLE_FLOATS:
        raise NotUnderstood
    return compare(reference, operator, value)


def _compare_moment(reference: Reference, operator: Operator, value: Value, zone: Zone) -> Bound:
    match value:
        case str():
            parsed = parse_timestamp(value)
            value = parsed if parsed.zoned else Local(parsed.micros)
        case Date(days):
            value = Local(days * MICROS_PER_DAY)
    if isinstance(value, Timestamp) and value.zoned:
        return compare(reference, operator, value)
    moments = zone.moments(value.micros) if isinstance(value, Local) else None
    if moments is None:
        raise NotUnderstood
    earliest, latest = (Timestamp(micros, zoned=True) for micros in moments)
    if operator is Operator.EQ and earliest != latest:
        return all_of(compare(reference, Operator.GE, earliest), compare(reference, Operator.LE, latest))
    if operator is Operator.NE and earliest != latest:
        return NotNull(reference)
    return compare(reference, operator, latest if operator in (Operator.LT, Operator.LE) else earliest)


def _compare_date(reference: Reference, operator: Operator, value: Value, zone: Zone) -> Bound:
    """Compare a date; with a time, by the time at which it begins."""
    match value:
        case Date():
            return compare(reference, operator, value)
        case str():
            return compare(reference, operator, parse_date(value))
        case Local(micros):
            moments = zone.moments(micros)
            # Where clocks are changed, a day may begin at another time than midnight.
            if moments is not None and moments[0] == moments[1]:
                return compare(reference, operator, Timestamp(micros, zoned=False))
    raise NotUnderstood


def _without_zone(value: Value) -> Literal:
    """Return what is compared with a time that has no zone."""
    if isinstance(value, str):
        value = parse_timestamp(value)
    if isinstance(value, Date) or (isinstance(value, Timestamp) and not value.zoned):
        return value
    raise NotUnderstood


def _as_uuid(value: Literal) -> Literal:
    # In Spark it is a string, of which only the usual form can be equal.
    if not isinstance(value, str) or str(uuid.UUID(value)) != value:
        raise NotUnderstood
    return uuid.UUID(value)


def _as_time(value: Literal) -> Literal:
    return Time(_whole(value))


def _as_nanos(value: Literal, *, zoned: bool) -> Literal:
    micros, nanos = divmod(_whole(value), 1000)
    return Timestamp(micros, zoned=zoned, nanos=nanos)


def _whole(value: Literal) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise NotUnderstood
    return value


# Types that have another type in Spark.
_AS_SHOWN: dict[type[PrimitiveType], Callable[[Literal], Literal]] = {
    UUIDType: _as_uuid,
    TimeType: _as_time,
    TimestampNsType: lambda value: _as_nanos(value, zoned=False),
    TimestamptzNsType: lambda value: _as_nanos(value, zoned=True),
}
_NAMES: dict[type[PrimitiveType], str] = {
    BooleanType: "boolean",
    DoubleType: "double",
    StringType: "string",
    TimestampType: "timestamp_ntz",
    TimestamptzType: "timestamp",
}
