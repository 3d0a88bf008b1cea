"""Strings and binaries that are too long for a footer: their bounds are kept beside it.

Arrow leaves minimum and maximum of a row group out when one of them is longer than a limit. A manifest holds them cut
to a few characters, so for it no value is too long.
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
    """Yield field id and bounds of the columns of a row group that hold a value too long for the footer."""
    for leaf in schema.leaves:
        if leaf.repeated or not isinstance(leaf.type, StringType | BinaryType):
            continue
        values = column_at(table, leaf.path)
        longest = pc.max(pc.binary_length(values)).as_py()
        if longest is not None and longest > MAX_FOOTER_BYTES:
            found = pc.min_max(values.cast(pa.binary())).as_py()
            with suppress(UnicodeDecodeError):  # what is not UTF-8 has no bounds that could be cut
                lower, upper = found["min"], found["max"]
                is_text = isinstance(leaf.type, StringType)
                yield leaf.field.field_id, (lower.decode(), upper.decode()) if is_text else (lower, upper)
