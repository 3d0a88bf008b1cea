"""Dates and times between text and numbers, as Spark's SQL reads and writes them, for any year.

Parsing raises ValueError with one sentence.
"""

import datetime
import re
import zoneinfo

from icefield.expr.ast import Date, Time, Timestamp
from icefield.types.transforms import MICROS_PER_DAY

_DATE = r"(?P<year>[+-]?\d{4,7})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2}))?)?"
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d{1,6}))?)?"
_ZONE = r"\s*(?P<zone>Z|UTC|GMT|(?P<sign>[+-])(?P<off_hour>\d{1,2})(?::(?P<off_minute>\d{2}))?|[A-Za-z]+(?:/[\w+-]+)+)"
_DATE_TEXT = re.compile(_DATE, re.ASCII)
_TIME_TEXT = re.compile(_CLOCK, re.ASCII)
_TIMESTAMP_TEXT = re.compile(f"{_DATE}(?:[ T]{_CLOCK}(?:{_ZONE})?)?", re.ASCII)


def parse_date(text: str) -> Date:
    """Parse `2026-01-31` (also `2026-1` and `2026`, as Spark does)."""
    return Date(_days(_match(_DATE_TEXT, text, "date", "2026-01-31")))


def parse_time(text: str) -> Time:
    """Parse `10:30:00.5`."""
    return Time(_clock_micros(_match(_TIME_TEXT, text, "time", "10:30:00")))


def parse_timestamp(text: str) -> Timestamp:
    """Parse `2026-01-31 10:30:00.5+01:00`; the zone may be missing, an offset, `Z`, `UTC` or a region's name."""
    found = _match(_TIMESTAMP_TEXT, text, "timestamp", "2026-01-31 10:30:00+00:00")
    micros = _days(found) * MICROS_PER_DAY
    if found["hour"] is None:
        return Timestamp(micros, zoned=False)
    micros += _clock_micros(found)
    if found["zone"] is None:
        return Timestamp(micros, zoned=False)
    return Timestamp(micros - _offset_micros(found, micros), zoned=True)


def from_python(value: datetime.date | datetime.time) -> Date | Timestamp | Time:
    """Convert Python's own dates, datetimes and times."""
    if isinstance(value, datetime.datetime):
        days, clock = value.toordinal() - _EPOCH_ORDINAL, _python_clock(value.timetz())
        offset = value.utcoffset()
        if offset is None:
            return Timestamp(days * MICROS_PER_DAY + clock, zoned=False)
        return Timestamp(days * MICROS_PER_DAY + clock - offset // _ONE_MICRO, zoned=True)
    if isinstance(value, datetime.date):
        return Date(value.toordinal() - _EPOCH_ORDINAL)
    if value.tzinfo is not None:
        raise ValueError("a time of day with a time zone means nothing without a date")
    return Time(_python_clock(value))


def date_text(days: int) -> str:
    """Write days since the epoch as `2026-01-31`; years beyond four digits get a sign."""
    year, month, day = _civil(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def timestamp_text(micros: int) -> str:
    """Write microseconds since the epoch as `2026-01-31 10:30:00.5`, without a zone."""
    days, clock = divmod(micros, MICROS_PER_DAY)
    return f"{date_text(days)} {time_text(clock)}"


def time_text(micros: int) -> str:
    """Write a time of day as `10:30:00.5`."""
    seconds, fraction = divmod(micros, 1_000_000)
    digits = f".{fraction:06d}".rstrip("0") if fraction else ""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{digits}"


_EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()
_ONE_MICRO = datetime.timedelta(microseconds=1)


def _match(pattern: re.Pattern[str], text: str, what: str, example: str) -> re.Match[str]:
    found = pattern.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no {what} such as {example!r}")
    return found


def _days(found: re.Match[str]) -> int:
    year, month, day = int(found["year"]), int(found["month"] or 1), int(found["day"] or 1)
    days = _days_from_civil(year, month, day)
    if _civil(days) != (year, month, day):
        raise ValueError(f"there is no day {found[0][:20]!r} in the calendar")
    return days


def _days_from_civil(year: int, month: int, day: int) -> int:
    """Count days by the proleptic Gregorian calendar, years beginning in March so that leap days come last."""
    months = year * 12 + month - 3
    year, month = divmod(months, 12)
    era, year_of_era = divmod(year, 400)
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + (153 * month + 2) // 5 + day - 1
    return era * 146_097 + day_of_era - 719_468


def _civil(days: int) -> tuple[int, int, int]:
    era, day_of_era = divmod(days + 719_468, 146_097)
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    return era * 400 + year + (month >= 10), month + 3 if month < 10 else month - 9, day


def _clock_micros(found: re.Match[str]) -> int:
    hour, minute, second = int(found["hour"]), int(found["minute"]), int(found["second"] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"there is no time {found[0]!r} in a day")
    return (hour * 3600 + minute * 60 + second) * 1_000_000 + int((found["fraction"] or "").ljust(6, "0"))


def _python_clock(value: datetime.time) -> int:
    return (value.hour * 3600 + value.minute * 60 + value.second) * 1_000_000 + value.microsecond


def _offset_micros(found: re.Match[str], local_micros: int) -> int:
    if found["sign"]:
        hour, minute = int(found["off_hour"]), int(found["off_minute"] or 0)
        if hour > 18 or minute > 59:
            raise ValueError(f"there is no time zone {found['zone']!r}")
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
