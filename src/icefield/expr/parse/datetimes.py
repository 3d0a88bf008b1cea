"""Parse and format dates and times as Spark SQL does, for any year.

Parsing raises ValueError.
"""

import datetime
import re
import zoneinfo

from icefield.expr.parse.ast import Date, Time, Timestamp
from icefield.types.calendar import (
    MICROS_PER_DAY,
    NANOS_PER_DAY,
    NANOS_PER_MICRO,
    clock_micros,
    date_text,
    days_from_date,
)

_DATE = r"(?P<year>[+-]?\d{4,7})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?)?"
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d{1,9}))?)?"
_ZONE = r"\s*(?P<zone>Z|UTC|GMT|(?P<sign>[+-])(?P<off_hour>\d{1,2})(?::(?P<off_minute>\d{2}))?|[A-Za-z]+(?:/[\w+-]+)+)"
_DATE_TEXT = re.compile(_DATE, re.ASCII)
_TIME_TEXT = re.compile(_CLOCK, re.ASCII)
_TIMESTAMP_TEXT = re.compile(f"{_DATE}(?:[ T]{_CLOCK}(?:{_ZONE})?)?", re.ASCII)


def parse_date(text: str) -> Date:
    """Parse `2026-01-31` (also `2026-1` and `2026`, as Spark does)."""
    return Date(_days(_match(_DATE_TEXT, text, "date", "2026-01-31")))


def parse_time(text: str) -> Time:
    """Parse `10:30:00.5`, with up to microsecond precision."""
    micros, nanos = _clock(_match(_TIME_TEXT, text, "time", "10:30:00"))
    if nanos:
        raise ValueError(f"{text!r} has more than microsecond precision")
    return Time(micros)


def parse_timestamp(text: str) -> Timestamp:
    """Parse `2026-01-31 10:30:00.5+01:00`; the zone may be missing, an offset, `Z`, `UTC` or a region's name.

    Up to nine fractional digits are read; Spark, which has no nanoseconds, ignores the last three.
    """
    found = _match(_TIMESTAMP_TEXT, text, "timestamp", "2026-01-31 10:30:00+00:00")
    micros = _days(found) * MICROS_PER_DAY
    if found["hour"] is None:
        return Timestamp(micros, zoned=False)
    clock, nanos = _clock(found)
    micros += clock
    if found["zone"] is None:
        return Timestamp(micros, zoned=False, nanos=nanos)
    return Timestamp(micros - _offset_micros(found, micros), zoned=True, nanos=nanos)


def from_python(value: datetime.date | datetime.time) -> Date | Timestamp | Time:
    """Convert Python dates, datetimes and times."""
    if isinstance(value, datetime.datetime):
        days, clock = value.toordinal() - _EPOCH_ORDINAL, _python_clock(value.timetz())
        offset = value.utcoffset()
        # A pandas timestamp is a datetime with nanoseconds.
        nanos = int(getattr(value, "nanosecond", 0))
        if offset is None:
            return Timestamp(days * MICROS_PER_DAY + clock, zoned=False, nanos=nanos)
        return Timestamp(days * MICROS_PER_DAY + clock - offset // _ONE_MICRO, zoned=True, nanos=nanos)
    if isinstance(value, datetime.date):
        return Date(value.toordinal() - _EPOCH_ORDINAL)
    if value.tzinfo is not None:
        raise ValueError("a time of day cannot have a time zone without a date")
    return Time(_python_clock(value))


def timestamp_text(micros: int) -> str:
    """Write microseconds since the epoch as `2026-01-31 10:30:00.5`, without a zone."""
    days, clock = divmod(micros, MICROS_PER_DAY)
    return f"{date_text(days)} {time_text(clock)}"


def nano_timestamp_text(nanos: int) -> str:
    """Write nanoseconds since the epoch as `2026-01-31 10:30:00.5`, without a zone."""
    days, clock = divmod(nanos, NANOS_PER_DAY)
    return f"{date_text(days)} {_clock_text(clock, digits=9)}"


def time_text(micros: int) -> str:
    """Write a time of day as `10:30:00.5`."""
    return _clock_text(micros, digits=6)


_EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()
_ONE_MICRO = datetime.timedelta(microseconds=1)


def _match(pattern: re.Pattern[str], text: str, what: str, example: str) -> re.Match[str]:
    found = pattern.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a valid {what}, such as {example!r}")
    return found


def _days(found: re.Match[str]) -> int:
    return days_from_date(int(found["year"]), int(found["month"] or 1), int(found["day"] or 1))


def _clock(found: re.Match[str]) -> tuple[int, int]:
    """Return the time of day in microseconds, and the remaining nanoseconds."""
    whole = clock_micros(int(found["hour"]), int(found["minute"]), int(found["second"] or 0))
    micros, nanos = divmod(int((found["fraction"] or "").ljust(9, "0")), NANOS_PER_MICRO)
    return whole + micros, nanos


def _clock_text(clock: int, digits: int) -> str:
    seconds, fraction = divmod(clock, 10**digits)
    shown = f".{fraction:0{digits}d}".rstrip("0") if fraction else ""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{shown}"


def _python_clock(value: datetime.time) -> int:
    return clock_micros(value.hour, value.minute, value.second) + value.microsecond


def _offset_micros(found: re.Match[str], local_micros: int) -> int:
    if found["sign"]:
        hour, minute = int(found["off_hour"]), int(found["off_minute"] or 0)
        if hour > 18 or minute > 59:
            raise ValueError(f"unknown time zone {found['zone']!r}")
        return (-1 if found["sign"] == "-" else 1) * (hour * 60 + minute) * 60_000_000
    if found["zone"] in ("Z", "UTC", "GMT"):
        return 0
    return _region_offset_micros(found["zone"], local_micros)


def _region_offset_micros(zone: str, local_micros: int) -> int:
    try:
        region = zoneinfo.ZoneInfo(zone)
        local = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=local_micros)
        offset = local.replace(tzinfo=region).utcoffset()
    except (zoneinfo.ZoneInfoNotFoundError, OverflowError, ValueError) as error:
        raise ValueError(f"the time zone {zone!r} is not known for that time") from error
    return 0 if offset is None else offset // _ONE_MICRO
