"""Statistics of float columns with NaN, which must not be in the footer.

Arrow omits NaN from a row group's minimum and maximum, and does not record that there was any. Spark, for which NaN is
the greatest number, then skips row groups with NaN under a DataFrame filter such as `x > 5`, and loses rows. So a
column with NaN in a file has no statistics in its footer, and its bounds are only in the manifest, next to the NaN
count.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefield.types.datatypes import DoubleType, FloatType, ListType, MapType
from icefield.types.schema import Leaf, Schema


@dataclass
class NaNColumn:
    """Null count and bounds of a column in one file; the bounds exclude null and NaN."""

    nulls: int = 0
    lower: float | None = None
    upper: float | None = None

    def add(self, values: pa.Array | pa.ChunkedArray) -> None:
        """Add values."""
        self.nulls += values.null_count
        found = pc.min_max(values.filter(pc.invert(pc.is_nan(values)))).as_py()
        if found["min"] is None:
            return
        # -0.0 equals 0.0, but a lower bound must not be the greater of the two. (spec: Field-level Metrics)
        low = -0.0 if found["min"] == 0 else found["min"]
        high = 0.0 if found["max"] == 0 else found["max"]
        self.lower = low if self.lower is None else min(self.lower, low)
        self.upper = high if self.upper is None else max(self.upper, high)


def float_leaves(schema: Schema) -> Iterator[Leaf]:
    """Yield the float columns that are not inside a list or map."""
    return (leaf for leaf in schema.leaves if not leaf.repeated and isinstance(leaf.type, FloatType | DoubleType))


def column_at(rows: pa.RecordBatch | pa.Table, path: Sequence[str]) -> pa.Array | pa.ChunkedArray:
    """Return the values of a column that may be inside structs."""
    column = rows.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def count_nans(rows: pa.RecordBatch | pa.Table, schema: Schema) -> dict[int, int]:
    """Count NaN values of each float column that is not inside a list or map."""
    return {
        leaf.field.field_id: pc.sum(pc.is_nan(column_at(rows, leaf.path))).as_py() or 0 for leaf in float_leaves(schema)
    }


def columns_with_statistics(schema: Schema, silent: Collection[int]) -> list[str]:
    """Return the Parquet paths of all columns except the given ones."""
    return [parquet_path(leaf) for leaf in schema.leaves if leaf.field.field_id not in silent]


def parquet_path(leaf: Leaf) -> str:
    """Return the Parquet path of a column."""
    steps: list[str] = []
    for parent in leaf.parents:
        steps.append(parent.name)
        if isinstance(parent.type, ListType | MapType):
            steps.append("list" if isinstance(parent.type, ListType) else "key_value")
    return ".".join((*steps, leaf.field.name))
