"""Constants in statements: literals, markers, typed literals, arrays and maps of them, and casts of one.

    VERSION AS OF 12        TIMESTAMP AS OF current_timestamp() - INTERVAL 1 DAY        older_than => DATE '2026-01-01'

A constant is read as far as Spark's grammar of a value goes. What is more than a literal is left to Spark, if there may
be a session. A time without a zone is in the zone of the session, or UTC without one; in a zone that only Spark knows,
such as CST, it is left to Spark, too. Raises InvalidInput, NeedsSpark.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal, InvalidOperation
from zoneinfo import ZoneInfo

from icefield.engine.choose import LOCAL
from icefield.engine.queries.sql import RefusedBySpark, SparkText
from icefield.engine.rows import has_session, load_spark_engine
from icefield.errors import InvalidInput, NeedsSpark, Unsupported
from icefield.expr.query.lexer import LexemeKind, lex
from icefield.sql.filters.zone import fixed_offset
from icefield.sql.session import Run
from icefield.sql.syntax.cursor import Cursor
from icefield.sql.syntax.place import Place
from icefield.sql.syntax.strings import string_value

STRINGS = frozenset({LexemeKind.STRING, LexemeKind.RAW, LexemeKind.DOLLAR})
_BINARY = frozenset({"+", "-", "*", "/", "%", "||", "&", "|", "^", "div"})
_UNITS = frozenset(
    unit + plural
    for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
    for plural in ("", "s")
)
_WORDS: Mapping[str, object] = {"true": True, "false": False, "null": None}
TYPED = frozenset({"date", "timestamp", "timestamp_ntz", "timestamp_ltz"})
_WHOLE = frozenset({"tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?")


class _NotPlain(Exception):
    """The value is more than a literal."""


def constant_value(run: Run, cursor: Cursor) -> object:
    """Read a constant and return its value: that of a literal without Spark, of anything else by asking Spark."""
    place = read_value(cursor)
    inside = cursor.inside(place)
    try:
        value = _plain(run, inside)
        if inside.is_at_end:
            return value
    except _NotPlain:
        pass
    return evaluate(run, place)


def read_value(cursor: Cursor, what: str = "a value") -> Place:
    """Read a value as far as it goes, with its operators, and return its place."""
    start = cursor.position
    _skip_operand(cursor, what)
    while (token := cursor.token()) is not None and (token.text in _BINARY or token.word in _BINARY):
        cursor.take()
        _skip_operand(cursor, what)
    return cursor.since(start)


def evaluate(run: Run, place: Place, cast: str | None = None) -> object:
    """Let Spark compute a constant expression, possibly cast to a type. It knows no tables of the lake."""
    if any(token.word == "select" for token in lex(place.text)):
        raise place.error(
            "a query is not a constant", hint="Run it first, and give its result as a parameter", kind=Unsupported
        )
    if run.engine == LOCAL:
        raise place.error(repr(place.text), kind=NeedsSpark)
    text = place.text if cast is None else f"CAST({place.text} AS {cast})"
    try:
        return load_spark_engine().sql(run.lake.spark).evaluate(SparkText(f"SELECT {text}", named=run.parameters.named))
    except RefusedBySpark as refused:
        raise place.error(f"Spark cannot compute it: {refused.message}", kind=InvalidInput) from refused


def time_value(run: Run, cursor: Cursor) -> datetime:
    """Read a constant that is a moment: a time, a text, a date, or seconds since 1970."""
    place = read_value(cursor, "a time")
    inside = cursor.inside(place)
    try:
        value = _plain(run, inside)
        value = as_moment(value, session_zone(run)) if inside.is_at_end else None
    except _NotPlain:
        value = None
    if value is None:
        value = evaluate(run, place, "TIMESTAMP")
    if not isinstance(value, datetime):
        raise place.error("the time is null, or no time", kind=InvalidInput)
    return value


def as_moment(value: object, zone: tzinfo | None) -> datetime | None:
    """Return a value as a moment, as Spark casts it to TIMESTAMP; None if only Spark knows.

    zone: that of times without one; None if it is not known.
    """
    match value:
        case bool():
            return None
        case int() | float() | Decimal():
            return _of_seconds(value)
        case datetime():
            return _in_zone(value, zone)
        case date():
            return _in_zone(datetime(value.year, value.month, value.day), zone)
        case str():
            return _time_of(value, zone)
    return None


def session_zone(run: Run) -> tzinfo | None:
    """Return the zone of times without one: that of the session, UTC without a session; None if only Spark knows it."""
    session = run.lake.source.sessions.session
    if run.engine == LOCAL or not has_session(session):
        return UTC
    name = load_spark_engine().time_zone(session)
    offset = fixed_offset(name)
    if offset is not None:
        return timezone(timedelta(seconds=offset))
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        return None  # such as CST


def _plain(run: Run, cursor: Cursor) -> object:
    """Read a literal, a marker, an array or map of them, or a cast of one."""
    token = cursor.token()
    if token is None:
        raise _NotPlain
    if cursor.is_at_parameter:
        return cursor.parameter()
    if token.kind in STRINGS:
        return _joined_strings(cursor)
    if token.kind is LexemeKind.NUMBER:
        return cursor.number()
    if token.kind is LexemeKind.BINARY:
        return bytes.fromhex(cursor.take().text[2:-1])
    if cursor.accept("-"):
        value = _plain(run, cursor)
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise _NotPlain
        return -value
    if cursor.accept("("):
        value = _plain(run, cursor)
        _accept_plain(cursor, ")")
        return value
    return _of_word(run, cursor)


def _accept_plain(cursor: Cursor, text: str) -> None:
    """Take what ends a literal; where an operator follows instead, the value is more than a literal."""
    if not cursor.accept(text):
        raise _NotPlain


def _of_word(run: Run, cursor: Cursor) -> object:
    word, after = cursor.peek(), cursor.token(1)
    if word in _WORDS:
        cursor.take()
        return _WORDS[word]
    if word in TYPED and after is not None and after.kind in STRINGS:
        cursor.take()
        return _converted(_joined_strings(cursor), word, session_zone(run))
    if word in ("array", "map") and cursor.is_at(word, "("):
        start = cursor.position
        values = _list(run, cursor)
        if word == "map" and len(values) % 2:
            raise cursor.since(start).error(
                f"a map has a value for each key, but there are {len(values)} of both", kind=InvalidInput
            )
        return values if word == "array" else dict(zip(values[::2], values[1::2], strict=True))
    if word in ("current_timestamp", "now") and cursor.is_at(word, "(", ")"):
        cursor.accept(word, "(", ")")
        return datetime.fromtimestamp(run.lake.ambient.now_ms() / 1000, UTC)
    if cursor.accept("cast", "("):
        value = _plain(run, cursor)
        _accept_plain(cursor, "as")
        kind = cursor.identifier("a type").lower()
        _accept_plain(cursor, ")")
        return _converted(value, kind, session_zone(run))
    raise _NotPlain


def _list(run: Run, cursor: Cursor) -> list[object]:
    cursor.take()
    cursor.expect("(")
    values: list[object] = []
    while not cursor.accept(")"):
        values.append(_plain(run, cursor))
        if not cursor.is_at(")"):
            _accept_plain(cursor, ",")
    return values


def _joined_strings(cursor: Cursor) -> str:
    """Read string literals; several in a row are one."""
    found = [string_value(cursor.take())]
    while (token := cursor.token()) is not None and token.kind in STRINGS:
        found.append(string_value(cursor.take()))
    return "".join(found)


def _converted(value: object, kind: str, zone: tzinfo | None) -> object:
    """Cast a value; raise _NotPlain for what only Spark knows."""
    if value is None:
        return None
    try:
        if kind in _CASTS:
            return _CASTS[kind](value)
        if kind in _WHOLE and isinstance(value, int | str) and not isinstance(value, bool):
            return int(value)
        if kind in ("timestamp", "timestamp_ltz"):
            moment = as_moment(value, zone)
            if moment is not None:
                return moment
    except (ValueError, TypeError, InvalidOperation):
        pass
    raise _NotPlain


def _to_date(value: object) -> date:
    if isinstance(value, datetime):
        return value.date()
    return value if isinstance(value, date) else date.fromisoformat(_as_text(value))


def _to_local_time(value: object) -> datetime:
    found = value if isinstance(value, datetime) else datetime.fromisoformat(_as_text(value))
    if found.tzinfo is not None:
        raise ValueError(found)
    return found


def _to_float(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise TypeError(value)
    return float(value)


def _as_text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise TypeError(value)
    return str(value)


_CASTS: Mapping[str, Callable[[object], object]] = {
    "string": _as_text,
    "date": _to_date,
    "timestamp_ntz": _to_local_time,
    "double": _to_float,
}


def _of_seconds(value: float | Decimal) -> datetime | None:
    """Return a number of seconds since 1970 as a moment; None for a number that is none in Python."""
    try:
        return _EPOCH + timedelta(microseconds=int(Decimal(value) * 1_000_000))
    except (ValueError, ArithmeticError):
        return None


def _in_zone(time: datetime, zone: tzinfo | None) -> datetime | None:
    if time.tzinfo is not None:
        return time
    return None if zone is None else time.replace(tzinfo=zone)


def _time_of(text: str, zone: tzinfo | None) -> datetime | None:
    """Read a time as Spark casts a text; None for a form that only Spark knows."""
    written = text.strip()
    if not _TIME.fullmatch(written):
        return None
    try:
        found = datetime.fromisoformat(written)
    except ValueError:
        return None
    return _in_zone(found, zone)


def _skip_operand(cursor: Cursor, what: str) -> None:
    """Read one operand of a value: a literal, a name, a call, something in parentheses."""
    while cursor.accept_any("-", "+", "~") is not None:
        continue
    token = cursor.token()
    if token is None:
        raise cursor.expected(what)
    if cursor.is_at_parameter:
        if not cursor.accept("?"):
            cursor.take()
            cursor.take()
    elif cursor.is_at("("):
        cursor.parenthesized()
    elif token.word == "interval":
        _skip_interval(cursor)
    elif token.word == "case":
        _skip_case(cursor)
    elif token.kind in STRINGS:
        _joined_strings(cursor)
    elif token.kind in (LexemeKind.NUMBER, LexemeKind.BINARY):
        cursor.take()
    elif token.is_name:
        _skip_name(cursor)
    else:
        raise cursor.expected(what)
    _skip_endings(cursor)


def _skip_name(cursor: Cursor) -> None:
    """Read a name, a call, or a typed literal."""
    cursor.name()
    token = cursor.token()
    if token is not None and token.kind in STRINGS:
        _joined_strings(cursor)
    elif cursor.is_at("("):
        cursor.parenthesized()


def _skip_endings(cursor: Cursor) -> None:
    """Read what may follow an operand: `.field`, `[index]`, `::type`."""
    while True:
        after = cursor.token(1)
        if cursor.is_at(".") and after is not None and after.is_name:
            cursor.take()
            cursor.take()
        elif cursor.accept("::"):
            cursor.name("a type")
            if cursor.is_at("("):
                cursor.parenthesized()
        elif cursor.is_at("["):
            cursor.take()
            cursor.until("]")
            cursor.expect("]")
        else:
            return


def _skip_interval(cursor: Cursor) -> None:
    """Read an interval: INTERVAL 1 DAY 2 HOURS, INTERVAL '1-2' YEAR TO MONTH, INTERVAL '1 day'."""
    cursor.take()
    token = cursor.token()
    if token is not None and token.kind in STRINGS and cursor.peek(1) not in _UNITS:
        _joined_strings(cursor)
        return
    while (token := cursor.token()) is not None and (cursor.is_at("-") or token.kind in STRINGS | {LexemeKind.NUMBER}):
        cursor.accept("-")
        cursor.take()
        if cursor.peek() not in _UNITS:
            raise cursor.expected("a unit of time")
        cursor.take()
        if cursor.accept("to"):
            cursor.take()


def _skip_case(cursor: Cursor) -> None:
    depth = 0
    while not cursor.is_at_end:
        word = cursor.take().word
        depth += (word == "case") - (word == "end")
        if depth == 0:
            return
    raise cursor.expected("END")
