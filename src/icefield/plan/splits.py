"""Split planned files at their row groups, and pack the splits into tasks of about one size, as Iceberg Java does.

    file → splits at `split_offsets`, or of the target size if the writer omitted them
    splits → bins: a bin takes splits up to the target size; small files count as much as opening one costs

The splits of a file cover it from its first byte to its last, so every row group starts in exactly one of them.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pyarrow.compute as pc

from icefield.cache.reading import ReadContext
from icefield.codec.manifest.columns import ManifestColumns
from icefield.model.metadata import TableMetadata
from icefield.plan.entries_of_files import INHERITED, load_entries_of_files
from icefield.plan.plan import ScanPlan
from icefield.plan.planned_files import PlannedFiles
from icefield.properties.table import SPLIT_LOOKBACK, SPLIT_OPEN_FILE_COST_BYTES, SPLIT_TARGET_SIZE_BYTES

COLUMNS = ManifestColumns((*INHERITED, "split_offsets"), partition=False)


@dataclass(frozen=True)
class SplitSettings:
    """The target size of tasks, how many bins may be open while packing, and what opening a file costs."""

    target_bytes: int = SPLIT_TARGET_SIZE_BYTES.default
    lookback: int = SPLIT_LOOKBACK.default
    open_file_bytes: int = SPLIT_OPEN_FILE_COST_BYTES.default


@dataclass(frozen=True)
class Split:
    """A split of a data file: the row groups that start in its bytes."""

    location: str
    start: int
    length: int

    @property
    def end(self) -> int:
        """The byte after the last one."""
        return self.start + self.length


def split_settings(properties: Mapping[str, str]) -> SplitSettings:
    """Read the settings from a table's properties."""
    return SplitSettings(
        SPLIT_TARGET_SIZE_BYTES.read(properties),
        SPLIT_LOOKBACK.read(properties),
        SPLIT_OPEN_FILE_COST_BYTES.read(properties),
    )


def plan_splits(
    context: ReadContext, metadata: TableMetadata, plan: ScanPlan, files: PlannedFiles
) -> list[list[Split]]:
    """Split files of a plan, and pack the splits into tasks."""
    settings = split_settings(metadata.properties)
    # Only files that are larger than a task are split, so only their offsets are looked up.
    large = files.filter(pc.greater(files.file_size_in_bytes, settings.target_bytes))
    offsets = _load_offsets(context, metadata, plan, large)
    paths, sizes = files.file_path.to_pylist(), files.file_size_in_bytes.to_pylist()
    splits = (
        split
        for path, size in zip(paths, sizes, strict=True)
        for split in split_file(path, size, offsets.get(path), settings.target_bytes)
    )
    return list(pack_splits(splits, settings))


def split_file(location: str, size: int, offsets: Sequence[int] | None, target_bytes: int) -> list[Split]:
    """Split a file that is larger than the target; invalid offsets are ignored. (spec: split_offsets)"""
    if size <= target_bytes:
        return [Split(location, 0, size)]
    if offsets and _are_sound(offsets, size):
        starts = [0, *offsets[1:]]
    else:
        starts = list(range(0, size, target_bytes))
    ends = [*starts[1:], size]
    return [Split(location, start, end - start) for start, end in zip(starts, ends, strict=True)]


def pack_splits(splits: Iterable[Split], settings: SplitSettings) -> Iterator[list[Split]]:
    """Put each split into the first open task with room; when too many are open, close the fullest."""
    bins: deque[_Bin] = deque()
    for split in splits:
        weight = max(split.length, settings.open_file_bytes)
        chosen = next((b for b in bins if b.weight + weight <= settings.target_bytes), None)
        if chosen is None:
            chosen = _Bin()
            bins.append(chosen)
        chosen.add(split, weight)
        if len(bins) > settings.lookback:
            fullest = max(bins, key=lambda b: b.weight)
            bins.remove(fullest)
            yield _merged(fullest.splits)
    yield from (_merged(left.splits) for left in bins)


def _load_offsets(
    context: ReadContext, metadata: TableMetadata, plan: ScanPlan, files: PlannedFiles
) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for _, entries in load_entries_of_files(context, metadata, plan, files, COLUMNS):
        rows = zip(*(entries[name].to_pylist() for name in ("file_path", "split_offsets")), strict=True)
        found |= {path: offsets for path, offsets in rows if offsets}
    return found


def _are_sound(offsets: Sequence[int], size: int) -> bool:
    ascending = all(first < second for first, second in pairwise(offsets))
    return ascending and offsets[0] >= 0 and offsets[-1] < size


class _Bin:
    def __init__(self) -> None:
        self.splits: list[Split] = []
        self.weight = 0

    def add(self, split: Split, weight: int) -> None:
        self.splits.append(split)
        self.weight += weight


def _merged(splits: Sequence[Split]) -> list[Split]:
    """Join adjacent splits of one file, to open it only once."""
    merged: list[Split] = []
    for split in splits:
        last = merged[-1] if merged else None
        if last and last.location == split.location and last.end == split.start:
            merged[-1] = replace(last, length=last.length + split.length)
        else:
            merged.append(split)
    return merged
