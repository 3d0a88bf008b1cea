"""Numbers in SQL text, read as Spark reads them."""

import re
from decimal import Decimal

from icefield.expr.parse.ast import Literal

_WHOLE_NUMBER = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?|nan", re.ASCII | re.IGNORECASE)


def whole_number(text: str) -> int:
    """Parse a string as an integer, as Spark does; raises ValueError."""
    if not _WHOLE_NUMBER.fullmatch(text.strip()):
        raise ValueError("the string is not an integer")
    return int(text)


def double_of(value: Literal) -> float:
    """Convert a number or a string to a double, -0.0 to 0.0; raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise ValueError("expected a number")
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        raise ValueError("the string is not a number")
    try:
        # Adding 0.0 turns -0.0 into 0.0.
        return float(value) + 0.0
    except OverflowError as error:
        raise ValueError("the number is too large for a double") from error
