"""Which data files to rewrite, and why: a pure function of the planned files of a table.

Small files are compacted in levels: the files of a partition that are about as many times smaller than the target size
are of one level. A level with `min_input_files` files is full: they are rewritten as one file, which is of the next
level. So each row is rewritten about once for each level, however often compaction runs:

    target 512, levels of 8      sizes                          levels
    7 appends                    1 1 1 1 1 1 1                  nothing is full
    8 appends                    1 1 1 1 1 1 1 1                -> one file of 8
    64 appends, never compacted  64 files of 1                  -> 8 of 8, which are full too -> one file of 64

All levels that are full, or get full, are folded into one rewrite, which takes along what is left of lower levels. The
files of a level are taken in the order of their commits, so that values that grow with time stay in narrow ranges.
Besides, files are rewritten that are too large, that have too many deleted rows, or that have an older partition spec;
and all small files of a partition if they are so few bytes that rewriting them costs less than the commit itself, but
for one that has most of them: else each append of a few rows would rewrite all before it.

Files of older partition specs are rewritten together, whatever their partitions: their rows belong to other partitions
now, and each group of files makes a file in each of these. A partition without any such file is left alone: what is
good is not read again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from math import log

import numpy as np

from icefield.plan.planned_files import NO_FILES, PlannedFiles
from icefield.types.arrays import Longs

CHEAP_BYTES = 128 * 1024  # about what the metadata of a commit takes
MOST_OF_THEM = 0.75
GROUP_TARGETS = 8  # how many files of the target size one group becomes at most


class Reason(StrEnum):
    """Why a file is rewritten."""

    LEVEL_FULL = "level full"
    FEW_BYTES = "few bytes"
    DELETED_ROWS = "deleted rows"
    OLD_SPEC = "old spec"
    TOO_LARGE = "too large"
    ORDER = "order"
    ASKED = "asked for"


@dataclass(frozen=True)
class Thresholds:
    """What makes a file worth rewriting.

    min_file_bytes, max_file_bytes: smaller and larger files are not good. min_input_files: how many files make a level
    full. delete_ratio: the share of rows with deletes from which on a file is rewritten.
    """

    target_bytes: int
    min_file_bytes: int
    max_file_bytes: int
    min_input_files: int
    delete_ratio: float

    @property
    def group_bytes(self) -> int:
        """How much is rewritten together at most."""
        return self.target_bytes * GROUP_TARGETS


@dataclass(frozen=True)
class FileGroup:
    """Files of one partition, or of older specs, that are rewritten together. reasons: of each file."""

    files: PlannedFiles
    reasons: tuple[Reason, ...]

    @property
    def spec_id(self) -> int:
        """The partition spec of the files; one of them, if it is not the current one."""
        return int(self.files.spec_id[0].as_py())

    @property
    def total_bytes(self) -> int:
        """The size of the files."""
        return self.files.total_bytes


@dataclass(frozen=True)
class PartitionPlan:
    """What is done to one partition."""

    partition: str
    spec_id: int
    files: int
    bytes: int
    files_to_rewrite: int = 0
    bytes_to_rewrite: int = 0
    groups: int = 0


@dataclass(frozen=True)
class CompactionPlan:
    """What compaction would do.

    Attributes:
        files: How many data files were looked at.
        bytes: Their size.
        groups: The files that are rewritten together. Each group is one task, and several are one commit.
        partitions: The same for each partition that was looked at; those of older specs may share groups.
        thresholds: What makes a file worth rewriting.
    """

    files: int
    bytes: int
    groups: tuple[FileGroup, ...]
    partitions: tuple[PartitionPlan, ...]
    thresholds: Thresholds

    @property
    def files_to_rewrite(self) -> int:
        """How many files are rewritten."""
        return sum(group.files.num_rows for group in self.groups)

    @property
    def files_good(self) -> int:
        """How many files are left as they are."""
        return self.files - self.files_to_rewrite

    @property
    def bytes_to_rewrite(self) -> int:
        """The size of the files that are rewritten."""
        return sum(group.total_bytes for group in self.groups)

    @property
    def reasons(self) -> dict[Reason, int]:
        """How many files are rewritten for each reason."""
        found = [reason for group in self.groups for reason in group.reasons]
        return {reason: found.count(reason) for reason in Reason if reason in found}

    @property
    def chosen(self) -> PlannedFiles:
        """The files that are rewritten."""
        return PlannedFiles.concat(group.files for group in self.groups) if self.groups else NO_FILES


def plan_compaction(
    files: PlannedFiles,
    delete_rows: Longs,
    thresholds: Thresholds,
    spec_id: int,
    *,
    every: Reason | None = None,
    most_bytes: int | None = None,
) -> CompactionPlan:
    """Choose the files to rewrite. delete_rows: how many rows the deletes of each file have. spec_id: the current spec.

    every: rewrite every file for this reason; to put rows in order, those of a partition stay together. most_bytes: how
    much is rewritten at most, so that a larger group would be left.
    """
    order = _order(files)
    files, delete_rows = files.take(order), delete_rows[order]
    is_old = (files.spec_id.to_numpy() != spec_id) & (every is not Reason.ORDER)
    group_bytes = thresholds.group_bytes if most_bytes is None else min(most_bytes, thresholds.group_bytes)
    cuts = list(_cut(np.flatnonzero(is_old).tolist(), files.file_size_in_bytes.to_numpy(), group_bytes))
    groups = [_group(files.take(cut), every or Reason.OLD_SPEC) for cut in cuts]
    partitions: list[PartitionPlan] = []
    for start, end in _partitions(files):
        partition = files.slice(start, end - start)
        if is_old[start]:
            sharing = sum(cut[0] < end and cut[-1] >= start for cut in cuts)
            partitions.append(_describe(partition, [partition], sharing))
            continue
        if every is Reason.ORDER:
            own = [_group(partition, every)]
        elif every is not None:
            sizes = partition.file_size_in_bytes.to_numpy()
            own = [_group(partition.take(cut), every) for cut in _cut(range(len(sizes)), sizes, thresholds.group_bytes)]
        else:
            own = list(_plan_partition(partition, delete_rows[start:end], thresholds))
        groups += own
        partitions.append(_describe(partition, [group.files for group in own], len(own)))
    return CompactionPlan(files.num_rows, files.total_bytes, tuple(groups), tuple(partitions), thresholds)


def _group(files: PlannedFiles, reason: Reason) -> FileGroup:
    return FileGroup(files, (reason,) * files.num_rows)


def plan_newest(files: PlannedFiles, thresholds: Thresholds, spec_id: int, most_bytes: int) -> CompactionPlan:
    """Choose full levels among the newest small files of each partition alone, of at most so many bytes in all.

    Levels go by rows here: the smallest files have about the same size, however few rows they have.
    """
    files = files.take(_order(files))
    groups: list[FileGroup] = []
    partitions: list[PartitionPlan] = []
    for start, end in _partitions(files):
        partition = files.slice(start, end - start)
        sizes, rows = partition.file_size_in_bytes.to_numpy(), partition.record_count.to_numpy()
        is_small = (sizes < thresholds.min_file_bytes) & (partition.spec_id.to_numpy() == spec_id)
        small = np.flatnonzero(is_small)
        newest = small[np.cumsum(sizes[small][::-1])[::-1] <= most_bytes]
        runs = [newest[run] for run in fold_levels(rows[newest].tolist(), thresholds) if len(run) > 1]
        own = [_group(partition.take(run), Reason.LEVEL_FULL) for run in runs]
        most_bytes -= sum(group.total_bytes for group in own)
        groups += own
        partitions.append(_describe(partition, [group.files for group in own], len(own)))
    return CompactionPlan(files.num_rows, files.total_bytes, tuple(groups), tuple(partitions), thresholds)


def fold_levels(sizes: Sequence[int], thresholds: Thresholds) -> list[list[int]]:
    """Return what small files become, as the sources of each new file; a file that stays is alone.

    Levels are counted from the target size down, so that the level of a file never changes.
    """
    runs = [_Run(size, (at,)) for at, size in enumerate(sizes)]
    width = thresholds.min_input_files
    finished, left = list[_Run](), list[_Run]()
    while runs:
        lowest = max(run.level(thresholds) for run in runs)
        level = sorted((run for run in runs if run.level(thresholds) == lowest), key=lambda run: run.sources)
        runs = [run for run in runs if run.level(thresholds) != lowest]
        full = len(level) - len(level) % width
        made = [_Run.of(level[start : start + width]) for start in range(0, full, width)]
        if made:
            # What is left of lower levels costs little to take along, and is not left for long.
            made[-1], left = _Run.of([made[-1], *left]), []
        left += level[full:]
        for run in made:
            is_finished = run.size >= thresholds.min_file_bytes or run.level(thresholds) == lowest
            (finished if is_finished else runs).append(run)
    return [sorted(run.sources) for run in (*finished, *left)]


@dataclass(frozen=True)
class _Run:
    """A small file, or those that become one."""

    size: int
    sources: tuple[int, ...]

    @classmethod
    def of(cls, parts: Sequence["_Run"]) -> "_Run":
        return cls(sum(part.size for part in parts), tuple(at for part in parts for at in part.sources))

    def level(self, thresholds: Thresholds) -> int:
        """Return how many times files must be combined to reach the target size."""
        return max(0, round(log(thresholds.target_bytes / max(self.size, 1), thresholds.min_input_files)))


def _plan_partition(files: PlannedFiles, delete_rows: Longs, thresholds: Thresholds) -> Iterator[FileGroup]:
    """Yield the groups of one partition, whose files are in the order of their commits."""
    sizes = files.file_size_in_bytes.to_numpy()
    reasons = _find_reasons(files, delete_rows, thresholds)
    small = np.flatnonzero(sizes < thresholds.min_file_bytes)
    runs: list[list[int]] = []
    if Reason.FEW_BYTES not in reasons.values():
        found = fold_levels(sizes[small].tolist(), thresholds)
        runs = [small[run].tolist() for run in found if len(run) > 1]
    for run in runs:
        reasons |= {at: reasons.get(at, Reason.LEVEL_FULL) for at in run}
    in_runs = {at for run in runs for at in run}
    runs.append(sorted(reasons.keys() - in_runs))
    for run in runs:
        for cut in _cut(run, sizes, thresholds.group_bytes):
            # A file of a full level that was cut off from the others has nothing to be combined with.
            if len(cut) > 1 or reasons[cut[0]] is not Reason.LEVEL_FULL:
                yield FileGroup(files.take(cut), tuple(reasons[at] for at in cut))


def _find_reasons(files: PlannedFiles, delete_rows: Longs, thresholds: Thresholds) -> dict[int, Reason]:
    """Return which files of one partition are rewritten whatever their level, and why."""
    sizes, rows = files.file_size_in_bytes.to_numpy(), files.record_count.to_numpy()
    is_small = sizes < thresholds.min_file_bytes
    has_deletes = files.delete_keys.is_valid().to_numpy()
    reasons: dict[int, Reason] = {}
    total, largest = sizes[is_small].sum(), sizes[is_small].max(initial=0)
    if total <= CHEAP_BYTES and (largest <= total * MOST_OF_THEM or (is_small & has_deletes).any()):
        reasons |= dict.fromkeys(np.flatnonzero(is_small).tolist(), Reason.FEW_BYTES)
    has_many = has_deletes & (delete_rows >= np.maximum(1, rows * thresholds.delete_ratio))
    reasons |= dict.fromkeys(np.flatnonzero(has_many).tolist(), Reason.DELETED_ROWS)
    # A file is closed after the row that fills it, and a row is not split: such a file would be written again for ever.
    is_too_large = (sizes > thresholds.max_file_bytes) & (
        sizes - sizes // np.maximum(rows, 1) > thresholds.target_bytes
    )
    return reasons | dict.fromkeys(np.flatnonzero(is_too_large).tolist(), Reason.TOO_LARGE)


def _order(files: PlannedFiles) -> Longs:
    """Return the order by spec, partition and commit."""
    return np.lexsort((files.sequence_number.to_numpy(), _partition_numbers(files), files.spec_id.to_numpy()))


def _partition_numbers(files: PlannedFiles) -> Longs:
    """Number the partitions, so that files can be sorted by them."""
    numbers: Longs = files.partition_key.combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)
    return numbers


def _partitions(files: PlannedFiles) -> Iterator[tuple[int, int]]:
    """Yield where the files of each partition begin and end."""
    start = 0
    for _, same in groupby(zip(files.spec_id.to_pylist(), files.partition_key.to_pylist(), strict=True)):
        end = start + len(list(same))
        yield start, end
        start = end


def _cut(rows: Sequence[int], sizes: Longs, most_bytes: int) -> Iterator[list[int]]:
    """Split files into groups of at most one size, so that a large partition becomes many tasks."""
    cut: list[int] = []
    held = 0
    for at in rows:
        if cut and held + int(sizes[at]) > most_bytes:
            yield cut
            cut, held = [], 0
        cut.append(at)
        held += int(sizes[at])
    if cut:
        yield cut


def _describe(files: PlannedFiles, rewritten: Sequence[PlannedFiles], groups: int) -> PartitionPlan:
    return PartitionPlan(
        partition=str(files.partition[0].as_py() or ""),
        spec_id=int(files.spec_id[0].as_py()),
        files=files.num_rows,
        bytes=files.total_bytes,
        files_to_rewrite=sum(each.num_rows for each in rewritten),
        bytes_to_rewrite=sum(each.total_bytes for each in rewritten),
        groups=groups,
    )
