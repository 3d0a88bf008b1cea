"""Defaults of columns: literals, which are converted to the type of the column as an assignment does.

DEFAULT 5     DEFAULT DATE '2026-01-01'     DEFAULT :x     DEFAULT CAST('7' AS INT)

A literal with a time and no zone is in the zone of the session. Raises InvalidInput and Unsupported, at the literal.
"""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from icefield.errors import InvalidInput, Unsupported
from icefield.expr.query.lexer import Lexeme, LexemeKind
from icefield.sql.session import Run
from icefield.sql.syntax.cursor import Cursor
from icefield.sql.syntax.place import Place
from icefield.sql.text.constants import as_moment, constant_value, read_value, session_zone
from icefield.types.datatypes import (
    BooleanType,
    DateType,
    DecimalType,
    Default,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    Type,
)
from icefield.types.values.python import python_default

_NUMBERS = (IntegerType, LongType, FloatType, DoubleType, DecimalType)
_ZONED, _LOCAL = (TimestamptzType, TimestamptzNsType), (TimestampType, TimestampNsType)
_CASTS = frozenset({"cast", "decimal", "dec", "numeric", "char", "varchar"})


@dataclass(frozen=True)
class DefaultText:
    """A default as it is written; its parameters are those of the statement."""

    cursor: Cursor
    place: Place

    def value(self, run: Run, kind: Type) -> object:
        """Return the value, as handles take it for a column of a type."""
        inside = self.cursor.inside(self.place)
        tokens: list[Lexeme] = []
        while not inside.is_at_end:
            tokens.append(inside.take())
        if not _is_literal(tokens):
            raise self.place.error(
                "a default is a literal: Iceberg tables have no other expressions as defaults",
                hint="Write the value itself, or let the query that writes the rows compute it",
                kind=Unsupported,
            )
        found = constant_value(run, self.cursor.inside(self.place))
        if not _can_be(found, kind):
            raise self.place.error(f"{self.place.text} is not a value of type {kind}", kind=InvalidInput)
        try:
            return _converted(run, found, kind)
        except ValueError as error:
            raise self.place.error(
                f"{self.place.text} is not a value of type {kind}",
                hint="Write a time with its zone, such as TIMESTAMP '2026-01-31 10:00:00Z'",
                kind=InvalidInput,
            ) from error

    def typed(self, run: Run, kind: Type) -> Default | None:
        """Return the value as the default of a column of a type."""
        given = self.value(run, kind)
        try:
            return python_default(given, kind)
        except ValueError as error:
            message = f"{self.place.text} cannot be the default of a column of type {kind}: {error}"
            raise self.place.error(message, kind=InvalidInput) from error


def parse_default(cursor: Cursor) -> DefaultText:
    """Read DEFAULT and a literal."""
    cursor.expect("default")
    return DefaultText(cursor, read_value(cursor, "a default"))


def _is_literal(tokens: list[Lexeme]) -> bool:
    """Return whether there are no names of columns and no calls, besides casts."""
    for at, token in enumerate(tokens):
        before, after = tokens[at - 1].text if at else "", tokens[at + 1].text if at + 1 < len(tokens) else ""
        if token.kind is LexemeKind.OPERATOR and not _is_sign_or_bracket(token.text, before):
            return False
        if not token.is_name or before == ":":
            continue
        is_typed = tokens[at + 1].kind is LexemeKind.STRING if at + 1 < len(tokens) else False
        is_word = token.word in ("true", "false", "null", "as") or before.lower() == "as" or is_typed
        if not is_word and not (token.word in _CASTS and after == "("):
            return False
    return True


def _is_sign_or_bracket(operator: str, before: str) -> bool:
    return operator in ("(", ")", ",", ":", "?") or (operator == "-" and before in ("", "("))


def _can_be(value: object, kind: Type) -> bool:
    """Return whether a literal may be assigned to a column of a type; its size is checked later."""
    match value:
        case bool():
            return isinstance(kind, BooleanType | StringType)
        case int() | float() | Decimal():
            return isinstance(kind, (*_NUMBERS, StringType))
        case datetime() | date():
            return isinstance(kind, (DateType, StringType, *_ZONED, *_LOCAL))
    return True


def _converted(run: Run, value: object, kind: Type) -> object:
    if value is None:
        return None
    if isinstance(kind, StringType):
        return str(value).lower() if isinstance(value, bool) else str(value)
    if isinstance(value, int | float | Decimal):
        return _number(value, kind)
    if isinstance(kind, _LOCAL) and isinstance(value, datetime) and value.tzinfo is None:
        return value
    if isinstance(kind, (*_ZONED, *_LOCAL)):
        zone = session_zone(run)
        moment = as_moment(value, zone)
        if moment is None:
            raise ValueError(value)
        return moment.astimezone(zone).replace(tzinfo=None) if isinstance(kind, _LOCAL) else moment
    return value


def _number(value: float | Decimal, kind: Type) -> object:
    if isinstance(kind, FloatType | DoubleType):
        return float(value)
    return Decimal(value) if isinstance(kind, DecimalType) and not isinstance(value, float) else value
