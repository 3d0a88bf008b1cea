"""Bounds of strings and binaries that are too long for the footer.

Arrow omits minimum and maximum of a row group if one of them exceeds a length limit. A manifest has them truncated to a
few characters, so no value is too long for it.
"""

from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from icefield.parquet.nan_columns import column_at
from icefield.types.datatypes import BinaryType, StringType, Value
from icefield.types.schema import Schema

MAX_FOOTER_BYTES = 4096


def long_bounds(table: pa.Table, schema: Schema) -> Iterator[tuple[int, tuple[Value, Value]]]:
    """Yield field id and bounds of the columns of a row group with a value that is too long for the footer."""
    for leaf in schema.leaves:
        if leaf.repeated or not isinstance(leaf.type, StringType | BinaryType):
            continue
        values = column_at(table, leaf.path)
        longest = pc.max(pc.binary_length(values)).as_py()
        if longest is not None and longest > MAX_FOOTER_BYTES:
            found = pc.min_max(values.cast(pa.binary())).as_py()
            with suppress(UnicodeDecodeError):  # a value that is not UTF-8 has no bounds that could be truncated
                lower, upper = found["min"], found["max"]
                is_text = isinstance(leaf.type, StringType)
                yield leaf.field.field_id, (lower.decode(), upper.decode()) if is_text else (lower, upper)
