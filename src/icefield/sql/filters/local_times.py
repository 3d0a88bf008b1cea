"""Filters of a statement, whose times without a zone are in the time zone of the session.

    ts >= '2026-01-02'        in Asia/Tokyo:  ts >= TIMESTAMP '2026-01-01 15:00:00Z'
    day > TIMESTAMP '2026-01-01 20:00:00Z'    day > TIMESTAMP_NTZ '2026-01-02 05:00:00'

Filters themselves take such times as UTC. A local time that clocks skip or repeat is the moment that Java makes of it:
the earlier one. Raises InvalidFilter.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo

from icefield.errors import InvalidFilter
from icefield.expr.bind.bind import find_field
from icefield.expr.parse import ast
from icefield.expr.parse.ast import Column, Date, Literal, Predicate, Timestamp
from icefield.expr.parse.datetimes import parse_timestamp
from icefield.expr.parse.sql import parse_filter
from icefield.types.calendar import MICROS_PER_DAY
from icefield.types.datatypes import DateType, TimestamptzNsType, TimestamptzType
from icefield.types.schema import Schema

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def with_local_times(where: str, schema: Schema, zone: tzinfo | None) -> Predicate | str:
    """Return a filter with the moments that times without a zone are in a zone. zone: None if it is not known."""
    kinds = TimestamptzType | TimestamptzNsType | DateType
    if zone == UTC or not any(isinstance(field.type, kinds) for field in schema.by_id.values()):
        return where
    return _changed(parse_filter(where), schema, zone)


def _changed(where: Predicate, schema: Schema, zone: tzinfo | None) -> Predicate:
    match where:
        case ast.And(parts) | ast.Or(parts):
            return replace(where, parts=tuple(_changed(part, schema, zone) for part in parts))
        case ast.Not(part):
            return ast.Not(_changed(part, schema, zone))
        case ast.Comparison(column, _, value) | ast.NullSafeEqual(column, value):
            return replace(where, value=_value(column, value, schema, zone))
        case ast.In(column, values):
            return ast.In(column, tuple(_value(column, value, schema, zone) for value in values))
    return where


def _value(column: Column, value: Literal, schema: Schema, zone: tzinfo | None) -> Literal:
    kind = find_field(column, schema).type
    if isinstance(kind, DateType):
        return _local(column, value, zone) if isinstance(value, Timestamp) and value.zoned else value
    if not isinstance(kind, TimestamptzType | TimestamptzNsType):
        return value
    found = value
    if isinstance(value, str):
        try:
            found = parse_timestamp(value)
        except ValueError:
            return value  # refused when the filter is bound
    if isinstance(found, Date):
        found = Timestamp(found.days * MICROS_PER_DAY, zoned=False)
    return found if not isinstance(found, Timestamp) or found.zoned else _moment(column, found, zone)


def _moment(column: Column, local: Timestamp, zone: tzinfo | None) -> Timestamp:
    """Return the moment of a local time."""
    moment = _datetime(column, local, zone).replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)
    return Timestamp((moment - _EPOCH) // _MICROSECOND, zoned=True, nanos=local.nanos)


def _local(column: Column, moment: Timestamp, zone: tzinfo | None) -> Timestamp:
    """Return the local time of a moment, with which dates are compared."""
    local = _datetime(column, moment, zone).replace(tzinfo=UTC).astimezone(zone)
    if local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset():
        raise InvalidFilter(
            f"cannot compare {str(column)!r}, a date, with a local time that clocks repeat", hint="Give a date"
        )
    return Timestamp((local.replace(tzinfo=None) - _EPOCH) // _MICROSECOND, zoned=False, nanos=moment.nanos)


def _datetime(column: Column, value: Timestamp, zone: tzinfo | None) -> datetime:
    """Return a time without its nanoseconds, as Python's type."""
    if zone is None:
        raise InvalidFilter(
            f"cannot tell which moment the time that {str(column)!r} is compared with is: the time zone of the session "
            "is not known here",
            hint="Write the time with its zone, or set spark.sql.session.timeZone to a region such as Europe/Berlin",
        )
    try:
        return _EPOCH + value.micros * _MICROSECOND
    except OverflowError as error:
        raise InvalidFilter(f"the time that {str(column)!r} is compared with is outside of years 1 to 9999") from error
