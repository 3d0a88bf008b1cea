r"""The values of string literals, as Spark reads them, and values written as literals.

    'it''s'       it's                  \n is a line break, \\ a backslash, \u00e9 and \351 are é
    r'a\b'        a\b                   \% and \_ stay as they are, for LIKE
    $$it's$$      it's

>>> literal_of("it's")
"'it\\'s'"
"""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

from icefield.errors import InvalidInput
from icefield.expr.query.lexer import Lexeme, LexemeKind

_ESCAPE = re.compile(r"\\(U[0-9A-Fa-f]{8}|u[0-9A-Fa-f]{4}|[0-3][0-7]{2}|.)|''|\"\"", re.DOTALL)
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_SPECIAL = re.compile(r"['\\\x00-\x1f\x7f]|\$(?=\{)")
# The escapes that filters and expressions know without Spark.
_PLAIN_ESCAPES = {"'": "\\'", "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def string_value(token: Lexeme) -> str:
    """Return the value of a string literal."""
    if token.kind is LexemeKind.DOLLAR:
        width = token.text.index("$", 1) + 1
        return token.text[width:-width]
    if token.kind is LexemeKind.RAW:
        return token.text[2:-1]
    quote = token.text[0]
    return _ESCAPE.sub(lambda found: _unescaped(found, quote), token.text[1:-1])


def literal_of(value: object) -> str:
    """Write a Python value as an SQL literal. Raises InvalidInput for a value of another type."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return _integer(value)
        case float():
            return f"{value!r}D" if math.isfinite(value) else f"CAST('{_NOT_FINITE[repr(value)]}' AS DOUBLE)"
        case Decimal():
            return f"{value:f}BD"
        case str():
            return f"'{_SPECIAL.sub(lambda found: _escaped(found.group()), value)}'"
        case bytes():
            return f"X'{value.hex()}'"
        case datetime():
            return _timestamp(value)
        case date():
            return f"DATE '{value.isoformat()}'"
        case Mapping():
            inside = ", ".join(f"{literal_of(k)}, {literal_of(v)}" for k, v in value.items())
            return f"map({inside})"
        case Sequence():
            return f"array({', '.join(literal_of(each) for each in value)})"
    raise InvalidInput(
        f"a parameter cannot be a {type(value).__name__}",
        hint="Give a string, number, truth value, date, datetime, bytes, None, or a list or dict of them",
    )


def _integer(value: int) -> str:
    if -(2**31) <= value < 2**31:
        return str(value)
    return f"{value}L" if -(2**63) < value < 2**63 else f"{value}BD"


def _timestamp(value: datetime) -> str:
    if value.tzinfo is None:
        return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"
    moment = value.astimezone(timezone(timedelta(0))).replace(tzinfo=None)
    return f"TIMESTAMP '{moment.isoformat(sep=' ')}Z'"


def _escaped(character: str) -> str:
    return _PLAIN_ESCAPES.get(character) or f"\\u{ord(character):04x}"


def _unescaped(found: re.Match[str], quote: str) -> str:
    code = found[1]
    if code is None:
        return quote if found.group() == quote * 2 else found.group()
    if code[0] in "uU" and len(code) > 1:
        return chr(int(code[1:], 16))
    if len(code) == 3:
        return chr(int(code, 8))
    return _ESCAPES.get(code, code)
