"""What the makers of the golden tables read in them: `expected/<name>.json`, one file per table.

Rows are lists in the order of the columns, sorted, of values in a form that JSON can hold:

boolean, int, long, string         as they are
float, double                      the shortest text that reads back as the double; NaN is "nan", infinity "inf"
decimal                            text, with all places of its scale
date                               days since 1970-01-01
time, timestamp, timestamptz       microseconds since midnight, since 1970 in UTC
timestamp_ns, timestamptz_ns       nanoseconds
uuid                               text
fixed, binary                      text of hexadecimal digits
variant                            a list of two: its metadata, its value, as binary
struct, list                       a list
map                                a list of [key, value], sorted
"""

import json
import uuid
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.peers.normal import normal_rows

FOLDER = Path(__file__).parent / "expected"
Expected = dict[str, Any]


def load_all() -> Iterator[Expected]:
    """Load what is expected of every table, by name."""
    for path in sorted(FOLDER.glob("*.json")):
        yield json.loads(path.read_text())


def save(expected: Expected) -> None:
    """Write what is expected of a table, with one line per row."""
    FOLDER.mkdir(exist_ok=True)
    as_json = json.loads(json.dumps(expected))
    (FOLDER / f"{expected['name']}.json").write_text(_layout(as_json, "") + "\n")


def catalogue_line(expected: Expected) -> str:
    """Return the line of a table in the catalogue, README.md."""
    return f"| `{expected['name']}` | {expected['maker']} | {expected['format_version']} | {expected['shows']} |"


def rows_of(table: pa.Table, like: pa.Schema) -> list[Any]:
    """Return the rows of an Arrow table in the form above; `like` says what its columns mean."""
    return in_order(plain_value(row) for row in normal_rows(table, like))


def in_order(rows: Iterable[Any]) -> list[Any]:
    """Sort rows that are in the form above."""
    return sorted(rows, key=json.dumps)


def plain_value(value: Any) -> Any:
    """Bring one value, as Python has it, to the form above."""
    match value:
        case tuple() | list():
            return [plain_value(inner) for inner in value]
        case float():
            return repr(value)
        case Decimal():
            return format(value, "f")
        case uuid.UUID():
            return str(value)
        case bytes() | bytearray():
            return value.hex()
        case _:
            return value


def _layout(value: Any, indent: str) -> str:
    """Spread objects, and lists of objects or lists, over lines; leave other values on one line."""
    inner = indent + " "
    if isinstance(value, dict) and len(indent) < 4 and len(json.dumps(value)) > 100:
        lines = (f"{inner}{json.dumps(key)}: {_layout(item, inner)}" for key, item in value.items())
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list) and value and isinstance(value[0], list | dict) and len(indent) < 4:
        return "[\n" + ",\n".join(inner + _layout(item, inner) for item in value) + f"\n{indent}]"
    return json.dumps(value)
