"""Local times of a session's time zone as moments, and the units that times are truncated to.

    Europe/Berlin   2026-03-01 00:00   ->   2026-02-28 23:00 UTC
                    2026-10-25 02:30   ->   00:30 or 01:30 UTC: clocks are set back, and that time is there twice

Spark is asked for the offsets of the zone, so that its own rules of time zones count. Within a day of a change of the
offset a local time is a range, from the earliest to the latest moment that it can be.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from icefield.types.calendar import MICROS_PER_DAY, MICROS_PER_SECOND, date_from_days, days_from_date

_FIXED = re.compile(r"(?:UTC|GMT|UT|Z|Etc/UTC|Etc/GMT)?(?:([+-])(\d{1,2}):?(\d{2})?)?")
_DAY_SECONDS = 86_400
# Outside of these years offsets are not whole minutes, or calendars are others.
_FIRST_YEAR, _LAST_YEAR = 1901, 9998
_UNITS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    "quarter": "quarter",
    **dict.fromkeys(("month", "mon", "mm"), "month"),
    "week": "week",
    **dict.fromkeys(("day", "dd"), "day"),
    "hour": "hour",
    "minute": "minute",
    "second": "second",
}
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_MICROS = {
    "day": MICROS_PER_DAY,
    "hour": 3_600 * MICROS_PER_SECOND,
    "minute": 60 * MICROS_PER_SECOND,
    "second": MICROS_PER_SECOND,
}
_MONDAY = 4  # 1970-01-05


@dataclass(frozen=True)
class Zone:
    """A time zone. offsets: its offsets from UTC at moments, both in seconds."""

    name: str
    offsets: Callable[[Sequence[int]], Sequence[int]]

    def moments(self, local_micros: int) -> tuple[int, int] | None:
        """Return the earliest and the latest moment of a local time, in microseconds; None if it is too far away."""
        year = date_from_days(local_micros // MICROS_PER_DAY)[0]
        if not _FIRST_YEAR <= year <= _LAST_YEAR:
            return None
        fixed = fixed_offset(self.name)
        if fixed is not None:
            moment = local_micros - fixed * MICROS_PER_SECOND
            return moment, moment
        seconds = local_micros // MICROS_PER_SECOND
        # No offset is a day long, so that one of these is before the moment, and the other one after it.
        found = self.offsets([seconds - _DAY_SECONDS, seconds + _DAY_SECONDS])
        return local_micros - max(found) * MICROS_PER_SECOND, local_micros - min(found) * MICROS_PER_SECOND

    def local(self, moment_micros: int) -> int:
        """Return the local time of a moment."""
        fixed = fixed_offset(self.name)
        offset = self.offsets([moment_micros // MICROS_PER_SECOND])[0] if fixed is None else fixed
        return moment_micros + offset * MICROS_PER_SECOND


def fixed_offset(name: str) -> int | None:
    """Return the offset in seconds of a zone that never changes it, by its name; None for any other."""
    found = _FIXED.fullmatch(name)
    # Zones such as Etc/GMT+5 have the opposite sign.
    if found is None or not name or (found[1] and name.startswith("Etc/")):
        return None
    return (-1 if found[1] == "-" else 1) * (int(found[2] or 0) * 3600 + int(found[3] or 0) * 60)


def find_unit(name: str) -> str | None:
    """Return the unit that Spark's date_trunc knows by a name."""
    return _UNITS.get(name.strip().lower())


def unit_of(local_micros: int, unit: str) -> tuple[int, int] | None:
    """Return where the unit around a local time begins and ends; None for times that are too far away."""
    days = local_micros // MICROS_PER_DAY
    year, month, _ = date_from_days(days)
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        return None
    if unit in _MONTHS:
        first = (year * 12 + month - 1) // _MONTHS[unit] * _MONTHS[unit]
        return _first_of(first), _first_of(first + _MONTHS[unit])
    if unit == "week":
        start = (days - _MONDAY) // 7 * 7 + _MONDAY
        return start * MICROS_PER_DAY, (start + 7) * MICROS_PER_DAY
    size = _MICROS[unit]
    start = local_micros // size * size
    return start, start + size


def _first_of(months: int) -> int:
    year, month = divmod(months, 12)
    return days_from_date(year, month + 1, 1) * MICROS_PER_DAY
