"""The calendar: days since the epoch to and from year, month and day, for any year, and the units of time.

The calendar is the proleptic Gregorian one, as in ISO 8601.
"""

import datetime

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROS_PER_SECOND = 1_000_000
NANOS_PER_MICRO = 1_000
MICROS_PER_HOUR = 3_600 * MICROS_PER_SECOND
MICROS_PER_DAY = 24 * MICROS_PER_HOUR
NANOS_PER_DAY = MICROS_PER_DAY * NANOS_PER_MICRO


def days_from_date(year: int, month: int, day: int) -> int:
    """Return the days since the epoch. Raises ValueError for an invalid date."""
    days = _count_days(year, month, day)
    if date_from_days(days) != (year, month, day):
        raise ValueError(f"there is no day {year:04d}-{month:02d}-{day:02d} in the calendar")
    return days


def date_from_days(days: int) -> tuple[int, int, int]:
    """Return year, month and day for a number of days since the epoch."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    return era * 400 + year + (month >= 10), month + 3 if month < 10 else month - 9, day


def date_text(days: int) -> str:
    """Format days since the epoch as `2026-01-31`; years beyond four digits have a sign."""
    year, month, day = date_from_days(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}-{month:02d}-{day:02d}"


def clock_micros(hour: int, minute: int, second: int) -> int:
    """Return a time of day in microseconds. Raises ValueError for an invalid time."""
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"there is no time {hour:02d}:{minute:02d}:{second:02d} in a day")
    return (hour * 3600 + minute * 60 + second) * MICROS_PER_SECOND


def _count_days(year: int, month: int, day: int) -> int:
    """Count days in years that begin in March, so that leap days come last."""
    months = year * 12 + month - 3
    year, month = divmod(months, 12)
    era, year_of_era = divmod(year, 400)
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + (153 * month + 2) // 5 + day - 1
    return era * 146_097 + day_of_era - 719_468
