"""Types of CSV columns that keep what the cells say, where those that Arrow infers would change it.

00501, 90210             text: an integer drops the zeros
12345678901234567890     decimal(38, 0): a double, which Arrow takes beyond 64 bits, rounds it
"""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from icefield.cli.files.row_format import WHOLE_NUMBER

_LEADING_ZERO = r"^\s*[+-]?0\d"
_WHOLE = r"^\s*[+-]?\d+\s*$"
_TOO_LONG = r"\d{39}"


def is_number(kind: pa.DataType) -> bool:
    """Return whether cells of such a column have to be looked at."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def exact_types(found: pa.Schema, cells: pa.RecordBatch) -> Mapping[str, pa.DataType]:
    """Return the types of columns that lose nothing; cells has the columns of numbers as they are in the file."""
    return {name: _exact_type(found.field(name).type, cells.column(name)) for name in cells.schema.names}


def _exact_type(found: pa.DataType, cells: pa.Array) -> pa.DataType:
    if pc.any(pc.match_substring_regex(cells, _LEADING_ZERO)).as_py():
        return pa.string()
    if pa.types.is_floating(found) and pc.all(pc.match_substring_regex(cells, _WHOLE)).as_py():
        return pa.string() if pc.any(pc.match_substring_regex(cells, _TOO_LONG)).as_py() else WHOLE_NUMBER
    return found
