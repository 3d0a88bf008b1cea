"""Convert row values to values that JSON, CSV and a terminal can show.

Numbers stay numbers. Decimals, dates, times and UUIDs become strings, bytes become base64, NaN and infinities become
strings (JSON has none), maps become lists of {key, value}.
"""

import base64
import datetime
import json
import math
import uuid
from decimal import Decimal

MAX_CELL_CHARACTERS = 120


def plain(value: object) -> object:
    """Convert a value from Arrow to one that JSON can hold."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case uuid.UUID():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case dict():
            return {key: plain(inner) for key, inner in value.items()}
        case list() if value and all(isinstance(item, tuple) for item in value):
            return [{"key": plain(key), "value": plain(inner)} for key, inner in value]  # a map, in Arrow's form
        case list():
            return [plain(inner) for inner in value]
        case _:
            return str(value)


def csv_cell(value: object) -> str:
    """Format a value as the text of a CSV cell, nested values as JSON; null has none."""
    simple = plain(value)
    if simple is None:
        return ""
    if isinstance(simple, str):
        return simple
    return json.dumps(simple, ensure_ascii=False)


def grid_cell(value: object) -> str:
    """Format a value for a terminal, truncated if it is long."""
    text = "NULL" if value is None else csv_cell(value)
    return text if len(text) <= MAX_CELL_CHARACTERS else text[: MAX_CELL_CHARACTERS - 1] + "…"
