"""Expressions of sqlglot's syntax trees, as far as their meaning is known without types of Spark.

A constant may be computed: `date_sub(current_date(), 7)`, `now() - INTERVAL 1 DAY`. The current time is a lower limit
of what it is when the query is run.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from icefield.expr.parse.ast import Date
from icefield.expr.parse.datetimes import parse_date, parse_timestamp
from icefield.expr.query.functions import words
from icefield.sql.filters.expression import UNKNOWN, Call, Cast, Column, Constant, Expression, Local
from icefield.sql.filters.zone import Zone
from icefield.types.calendar import MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_SECOND

# Before the names of functions that are known here, so that the parser takes them as they are.
CALL = "icefield_call_"
UNKNOWN_CALL = f"{CALL}unknown ( )"
KNOWN_CALLS = words(
    """
    date_trunc trunc year month date_sub date_add to_date date now current_date current_timestamp curdate startswith
    isnull isnotnull
    """
)

# What nodes may have besides their operands; anything else changes their meaning.
_PARTS: Mapping[type[exp.Expression], Sequence[str]] = {
    exp.Column: ("table", "db", "catalog"),
    exp.Literal: ("is_string",),
    exp.Cast: ("to",),
    exp.TryCast: ("to", "safe"),
    exp.Between: ("low", "high"),
    exp.Like: ("negate",),
    exp.Interval: ("unit",),
}

FindColumn = Callable[[exp.Expression], Column | None]

_OPERATORS: Mapping[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.And: "and",
    exp.Or: "or",
}
_TYPES = {
    exp.DataType.Type.DATE: "date",
    exp.DataType.Type.TIMESTAMPTZ: "timestamp",
    exp.DataType.Type.TIMESTAMPLTZ: "timestamp",
    exp.DataType.Type.INT: "int",
    exp.DataType.Type.BIGINT: "bigint",
    exp.DataType.Type.DOUBLE: "double",
    exp.DataType.Type.TEXT: "string",
}
# Of units without a fixed length, the shortest and the longest.
_DAYS = {"day": (1, 1), "week": (7, 7), "month": (28, 31), "quarter": (90, 92), "year": (365, 366)}
_MICROS = {"hour": MICROS_PER_HOUR, "minute": 60 * MICROS_PER_SECOND, "second": MICROS_PER_SECOND}


@dataclass(frozen=True)
class Moment:
    """When a query is read, in microseconds since 1970, and the time zone of its session."""

    micros: int
    zone: Zone

    @property
    def local(self) -> int:
        """The local time, an hour early: clocks of machines differ, and intervals are an hour longer on some days."""
        return self.zone.local(self.micros) - MICROS_PER_HOUR


def has_only(written: exp.Expression, *parts: str) -> bool:
    """Return whether a node has no other parts than these."""
    return not any(value and name not in parts for name, value in written.args.items())


def read_expression(written: exp.Expression, find_column: FindColumn, moment: Moment) -> Expression:
    """Read an expression over the columns of one table; parts that are not known are UNKNOWN."""
    return _Reader(find_column, moment).read(written)


@dataclass(frozen=True)
class _Reader:
    """Reads expressions."""

    find_column: FindColumn
    moment: Moment

    def read(self, written: exp.Expression) -> Expression:
        if not has_only(written, "this", "expression", "expressions", *_PARTS.get(type(written), ())):
            return UNKNOWN
        try:
            return self._read(written)
        except (ValueError, ArithmeticError):
            return UNKNOWN

    def _read(self, written: exp.Expression) -> Expression:
        match written:
            case exp.Paren():
                return self.read(written.this)
            case exp.Column():
                return self.find_column(written) or UNKNOWN
            case exp.Null():
                return Constant(None)
            case exp.Boolean():
                return Constant(bool(written.this))
            case exp.Literal() | exp.Neg():
                return _number_or_text(written)
            case exp.Cast():
                return self._cast(written)
            case exp.CurrentDate() | exp.CurrentTimestamp():
                return self._now(is_date=isinstance(written, exp.CurrentDate))
            case exp.Add() | exp.Sub():
                return self._sum(written)
            case exp.Anonymous():
                return self._call(written)
        return self._test(written)

    def _test(self, written: exp.Expression) -> Expression:
        if type(written) in _OPERATORS:
            return Call(_OPERATORS[type(written)], (self.read(written.this), self.read(written.expression)))
        match written:
            case exp.Not():
                return Call("not", (self.read(written.this),))
            case exp.Extract() if written.name.lower() in ("year", "month"):
                return Call(written.name.lower(), (_as_date(self.read(written.expression)),))
            case exp.Between() if not written.args.get("symmetric"):
                value = self.read(written.this)
                low, high = self.read(written.args["low"]), self.read(written.args["high"])
                return Call("and", (Call(">=", (value, low)), Call("<=", (value, high))))
            case exp.In() if written.expressions and not written.args.get("query"):
                return Call("in", tuple(map(self.read, (written.this, *written.expressions))))
            case exp.Is() if isinstance(written.expression, exp.Null):
                return Call("isnull", (self.read(written.this),))
            case exp.Like():
                return self._like(written)
            case exp.Escape() if isinstance(written.this, exp.Like):
                return self._like(written.this, self.read(written.expression))
        return UNKNOWN

    def _like(self, written: exp.Like, *escape: Expression) -> Expression:
        test = Call("like", (self.read(written.this), self.read(written.expression), *escape))
        return Call("not", (test,)) if written.args.get("negate") else test

    def _cast(self, written: exp.Cast) -> Expression:
        value, kind = self.read(written.this), written.to.this
        if kind == exp.DataType.Type.DECIMAL:
            sizes = [parameter.name for parameter in written.to.expressions]
            return Cast(value, f"decimal({','.join(sizes)})") if len(sizes) == 2 else UNKNOWN
        name = _TYPES.get(kind)
        if name is None or written.to.expressions:
            return UNKNOWN
        match value, name:
            case Constant(str() as text), "date":
                return Constant(parse_date(text))
            case Constant(str() as text), "timestamp":
                parsed = parse_timestamp(text)
                return Constant(parsed if parsed.zoned else Local(parsed.micros))
            case Constant(Date(days), grows), "timestamp":
                return Constant(Local(days * MICROS_PER_DAY), grows)
            case Constant(Local(micros), grows), "date":
                return Constant(Date(micros // MICROS_PER_DAY), grows)
            case Constant(int()), "bigint":
                return value
            case Constant(), _:
                return UNKNOWN
        return Cast(value, name)

    def _call(self, written: exp.Anonymous) -> Expression:
        name = str(written.this).removeprefix(CALL).lower()
        arguments = tuple(map(self.read, written.expressions))
        match name, arguments:
            case "now" | "current_timestamp", ():
                return self._now(is_date=False)
            case "current_date" | "curdate", ():
                return self._now(is_date=True)
            case "to_date" | "date", (Constant(str() as text),):
                return Constant(parse_date(text))
            case "to_date" | "date", (value,) if not isinstance(value, Constant):
                return Cast(value, "date")
            case "date_sub" | "date_add", (value, Constant(int() as days, False)):
                return _moved(value, days if name == "date_add" else -days)
            case "year" | "month", (value,):
                return Call(name, (_as_date(value),))
            case (("date_trunc" | "trunc" | "startswith" | "isnull" | "isnotnull"), _):
                return Call(name, arguments)
        return UNKNOWN

    def _now(self, *, is_date: bool) -> Expression:
        local = self.moment.local
        return Constant(Date(local // MICROS_PER_DAY) if is_date else Local(local), grows=True)

    def _sum(self, written: exp.Add | exp.Sub) -> Expression:
        """Add days or an interval to a constant."""
        value = self.read(written.this)
        sign = 1 if isinstance(written, exp.Add) else -1
        if isinstance(written.expression, exp.Interval):
            return _moved_by(value, written.expression, sign)
        days = self.read(written.expression)
        match value, days:
            case Constant(Date()), Constant(int() as number, False):
                return _moved(value, sign * number)
        return UNKNOWN


def _number_or_text(written: exp.Expression) -> Expression:
    if isinstance(written, exp.Neg):
        inner = _number_or_text(written.this) if isinstance(written.this, exp.Literal) else UNKNOWN
        match inner:
            case Constant(int() | Decimal() as number):
                return Constant(-number)
        return UNKNOWN
    if written.is_string:
        return Constant(str(written.this))
    text = str(written.this)
    if text.isdigit():
        return Constant(int(text))
    # A number with an exponent is a double.
    return Constant(Decimal(text)) if text.replace(".", "", 1).isdigit() else UNKNOWN


def _as_date(value: Expression) -> Expression:
    return Cast(value, "date") if isinstance(value, Column) else value


def _moved(value: Expression, days: int) -> Expression:
    match value:
        case Constant(Date(first), grows):
            return Constant(Date(first + days), grows)
        case Constant(Local(micros), grows):
            return Constant(Date(micros // MICROS_PER_DAY + days), grows)
        case Constant(str() as text, False):
            return Constant(Date(parse_date(text).days + days))
    return UNKNOWN


def _moved_by(value: Expression, interval: exp.Interval, sign: int) -> Expression:
    """Add an interval to a constant. A growing one is a lower limit, and may become too small."""
    unit = str(interval.args["unit"].name if interval.args.get("unit") else "").lower().removesuffix("s")
    text = interval.this.name if isinstance(interval.this, exp.Literal) else ""
    if not text.isdigit() or not isinstance(value, Constant) or unit not in (*_DAYS, *_MICROS):
        return UNKNOWN
    number = sign * int(text)
    shortest, longest = _DAYS.get(unit, (0, 0))
    days = number * (longest if number < 0 else shortest)
    match value:
        case Constant(Date(first), grows) if unit in _DAYS and (grows or shortest == longest):
            return Constant(Date(first + days), grows)
        case Constant(Local(micros), True):
            return Constant(Local(micros + days * MICROS_PER_DAY + number * _MICROS.get(unit, 0)), grows=True)
    return UNKNOWN


def known_values(values: Iterable[tuple[str, object]]) -> dict[str, str]:
    """Return the literals of values that have a plain form, by name."""
    found = {}
    for name, value in values:
        if isinstance(value, int) and not isinstance(value, bool):
            found[name] = f"({value})"
        elif isinstance(value, str) and not set(value) & {"'", "\\"}:
            found[name] = f"'{value}'"
    return found
