"""How many tasks write the new rows of one partition.

A partition with many new rows is split, so that its files have about the target size and no task has much more to do
than the others. A small one goes to one task, which writes one file.

    new versions of rows      by the data file and the block of positions of the old row: a change of a partition with
                              few data files writes few new ones
    rows of a large source    by a hash of the row, in partitions for which the source has many rows
"""

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from icefield.expr.render.spark_sql import spark_literal
from icefield.plan.planned_files import PlannedFiles
from icefield.types.datatypes import StringType

BLOCK_ROWS = 250_000  # that one task writes well
MOST_BLOCKS = 8  # of a partition whose files would be smaller than the target
CHANGED_SHARE = 0.25  # of the bytes of a partition that are expected to change
LARGEST_PARTITIONS = 100
MOST_OFFSETS = 1000  # in one expression


def split_count(rows: int, size_bytes: float, target_bytes: int) -> int:
    """Return how many tasks should write new rows of one partition."""
    by_rows = min(MOST_BLOCKS, -(-rows // BLOCK_ROWS))
    return max(1, by_rows, -int(-size_bytes // target_bytes))


@dataclass(frozen=True)
class Blocks:
    """Blocks of rows of large partitions. splits: the number of tasks for one partition. offsets: of their files."""

    splits: int = 1
    offsets: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, files: PlannedFiles, target_bytes: int) -> "Blocks":
        """Find the partitions whose new versions of rows should be written by several tasks."""
        sizes = pa.table(
            [files.spec_id, files.partition_key, files.record_count, files.file_size_in_bytes],
            names=["spec", "key", "rows", "bytes"],
        )
        sums = sizes.group_by(["spec", "key"]).aggregate([("rows", "sum"), ("bytes", "sum")]).to_pylist()
        counts = {
            (part["spec"], part["key"]): split_count(part["rows_sum"], part["bytes_sum"] * CHANGED_SHARE, target_bytes)
            for part in sums
        }
        large = {part for part, count in counts.items() if count > 1}
        return cls(max(counts[part] for part in large), _offsets(files, large)) if large else cls()

    def split(self, file: str, position: str) -> str:
        """Return in SQL the number of the task for the new version of a row. file, position: the names of its place."""
        block = f"{position} DIV {BLOCK_ROWS}"
        if len(self.offsets) > MOST_OFFSETS:
            return f"CAST(pmod(xxhash64({file}, {block}), {self.splits}) AS INT)"
        pairs = ", ".join(f"{spark_literal(path, StringType())}, {at}" for path, at in self.offsets.items())
        return f"coalesce(CAST(pmod(try_element_at(map({pairs}), {file}) + {block}, {self.splits}) AS INT), 0)"


def _offsets(files: PlannedFiles, parts: Container[tuple[int, bytes]]) -> dict[str, int]:
    """Return the number of the first block of each file in some partitions."""
    columns = (files.spec_id, files.partition_key, files.file_path, files.record_count)
    blocks, found = Counter[tuple[int, bytes]](), dict[str, int]()
    for spec, key, path, rows in zip(*(column.to_pylist() for column in columns), strict=True):
        if (spec, key) in parts:
            found[path] = blocks[spec, key]
            blocks[spec, key] += -(-rows // BLOCK_ROWS)
    return found


def bytes_per_row(files: PlannedFiles) -> float:
    """Return the average size of a row in files; 0 without files."""
    rows = pc.sum(files.record_count).as_py() or 0
    return files.total_bytes / rows if rows else 0.0
