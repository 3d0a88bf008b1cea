"""Every literal assigned to a column of every type: what a model of Spark's store assignment says is stored."""

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")
TYPES = (
    *("boolean", "int", "long", "float", "double", "decimal(9,2)", "date", "time", "timestamp", "timestamptz"),
    *("timestamp_ns", "timestamptz_ns", "string", "uuid", "fixed[4]", "binary"),
)
# The Python value, and the SQL of a literal, if there is one.
LITERALS: dict[str, tuple[Any, str | None]] = {
    "boolean": (True, "TRUE"),
    "small": (7, "7"),
    "large": (1 << 40, "1099511627776"),
    "double": (1.5, "1.5D"),
    "decimal": (Decimal("3.25"), "3.25"),
    "text": ("abc", "'abc'"),
    "uuid text": (str(UUID), f"'{UUID}'"),
    "date": (dt.date(2026, 1, 31), "DATE '2026-01-31'"),
    "local": (dt.datetime(2026, 1, 31, 10, 30, 0, 5), "TIMESTAMP_NTZ '2026-01-31 10:30:00.000005'"),
    "old": (dt.datetime(1900, 1, 1, 0, 0, 0, 1), "TIMESTAMP_NTZ '1900-01-01 00:00:00.000001'"),
    "zoned": (
        dt.datetime(2026, 1, 31, 10, 30, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        "TIMESTAMP '2026-01-31 10:30:00+02:00'",
    ),
    "far": (dt.datetime(2600, 1, 1), "TIMESTAMP_NTZ '2600-01-01 00:00:00'"),
    "time": (dt.time(10, 30, 0, 7), None),
    "uuid": (UUID, None),
    "bytes": (b"abcd", "X'61626364'"),
    "null": (None, "NULL"),
}
REFUSED = object()
_NUMBERS = ("int", "long", "float", "double", "decimal(9,2)")
_WHOLE = {"small": 7, "double": 1, "decimal": 3}
_MOMENTS = ("date", "local", "old", "zoned", "far")


def stored(literal: str, kind: str) -> Any:
    """The value that a column then has (timestamps in nanoseconds as numbers), or REFUSED."""
    value, _ = LITERALS[literal]
    if value is None:
        return None
    if kind in _NUMBERS:
        return _number(literal, value, kind)
    if kind.startswith(("date", "timestamp")):
        return _moment(literal, value, kind)
    same = {"boolean": "boolean", "time": "time", "fixed[4]": "bytes", "binary": "bytes"}
    if kind in same:
        return value if literal == same[kind] else REFUSED
    if kind == "uuid":
        return UUID if literal in ("uuid", "uuid text") else REFUSED
    return _text(literal, value)


def _number(literal: str, value: Any, kind: str) -> Any:
    if literal not in ("small", "large", "double", "decimal"):
        return REFUSED
    if kind in ("int", "long"):
        return REFUSED if (literal, kind) == ("large", "int") else _WHOLE.get(literal, value)
    if kind == "decimal(9,2)":
        return REFUSED if literal == "large" else Decimal(str(value)).quantize(Decimal("0.01"))
    return float(value)


def _moment(literal: str, value: Any, kind: str) -> Any:
    if literal not in _MOMENTS:
        return REFUSED
    at = value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day)
    # The sessions of the tests are in UTC.
    at = at.astimezone(dt.UTC) if at.tzinfo else at.replace(tzinfo=dt.UTC)
    if kind == "date":
        return at.date()
    if kind.endswith("_ns"):
        nanos = (at - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1) * 1000
        return REFUSED if nanos >= 1 << 63 else nanos
    return at if kind == "timestamptz" else at.replace(tzinfo=None)


def _text(literal: str, value: Any) -> Any:
    spelled = {
        "boolean": "true",
        "bytes": "abcd",
        "local": "2026-01-31 10:30:00.000005",
        "old": "1900-01-01 00:00:00.000001",
        "zoned": "2026-01-31 08:30:00",
        "far": "2600-01-01 00:00:00",
        "time": REFUSED,
    }
    return spelled.get(literal, str(value))
