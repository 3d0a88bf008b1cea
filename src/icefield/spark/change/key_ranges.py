"""Split the files of a MERGE into groups whose ranges of keys do not overlap, so that each can be merged alone.

A source row can match rows of one group only: the one whose range its key is in.

    >>> bounds = [Bounds(1, 40, 5), Bounds(35, 60, 5), Bounds(70, 90, 6), Bounds(91, 99, 3)]
    >>> pack_ranges(bounds, group_size=10)
    [KeyRange(start=1, numbers=(0, 1)), KeyRange(start=70, numbers=(2, 3))]
    >>> pack_ranges(bounds, group_size=4)
    [KeyRange(start=1, numbers=(0, 1)), KeyRange(start=70, numbers=(2,)), KeyRange(start=91, numbers=(3,))]

In the first case keys below 70 belong to the first group, and all others to the second. Files whose ranges overlap are
never separated, even if a group becomes larger than it should be.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from icefield.cache.reading import ReadContext
from icefield.codec.manifest.columns import ManifestColumns
from icefield.expr.prune.ordered import value_of
from icefield.model.metadata import TableMetadata
from icefield.plan.entries_of_files import INHERITED, load_entries_of_files
from icefield.plan.file_statistics import column_statistics
from icefield.plan.plan import ScanPlan
from icefield.types.datatypes import (
    DateType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
    Value,
)

# The order of these values is the same in Python, in manifests and in Spark; none of them has a NaN.
RANGED_TYPES = (IntegerType, LongType, DateType, TimestampType, TimestamptzType, StringType)


@dataclass(frozen=True)
class Bounds:
    """The least and the greatest key that a file may have, and the size of the file."""

    lower: Value
    upper: Value
    size_bytes: int


@dataclass(frozen=True)
class KeyRange:
    """Files with the keys of a range, which ends where the next one starts. numbers: of the files."""

    start: Value
    numbers: tuple[int, ...]


def load_bounds(context: ReadContext, metadata: TableMetadata, scan: ScanPlan, key: NestedField) -> list[Bounds] | None:
    """Return the bounds of a column in each planned file; None if those of a file are not known."""
    if not isinstance(key.type, RANGED_TYPES) or not isinstance(key.type, PrimitiveType):
        return None
    want = ManifestColumns((*INHERITED, "record_count")).with_statistics([key.field_id])
    found: dict[int, tuple[Value, Value]] = {}
    for _, entries in load_entries_of_files(context, metadata, scan, scan.files, want):
        statistics = column_statistics(entries, scan.version.schema)(key.field_id)
        if statistics is None or not (statistics.lower.known & statistics.upper.known).all():
            return None
        numbers = pc.index_in(entries.file_path, value_set=scan.files.file_path).to_pylist()
        ends = (
            [value_of(value, key.type) for value in column.array().to_pylist()]
            for column in (statistics.lower, statistics.upper)
        )
        found |= dict(zip(numbers, zip(*ends, strict=True), strict=True))
    if len(found) < scan.files.num_rows:
        return None
    sizes = scan.files.file_size_in_bytes.to_pylist()
    return [Bounds(*found[number], size) for number, size in enumerate(sizes)]


def pack_ranges(files: Sequence[Bounds], group_size: int) -> list[KeyRange]:
    """Return groups of files, in the order of keys. group_size: the bytes after which a new group begins."""
    groups: list[KeyRange] = []
    held: list[int] = []
    highest: Value | None = None
    size = 0
    for number in sorted(range(len(files)), key=lambda at: files[at].lower):
        file = files[number]
        if held and size >= group_size and file.lower > highest:  # type: ignore[operator]
            groups.append(KeyRange(files[held[0]].lower, tuple(held)))
            held, size = [], 0
        highest = file.upper if highest is None or file.upper > highest else highest  # type: ignore[operator]
        held.append(number)
        size += file.size_bytes
    return [*groups, KeyRange(files[held[0]].lower, tuple(held))] if held else groups
