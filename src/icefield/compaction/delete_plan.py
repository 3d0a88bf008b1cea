"""Which position deletes to rewrite, and why: a pure function of the delete files of a table.

    version 2, by file        a data file that several delete files apply to gets one of its own
    version 2, by partition   the small delete files of a partition are combined in levels, as data files are
    version 3                 position delete files become vectors; small Puffin files are combined in levels, and one
                              that has mostly vectors of removed data files is written again without them

Delete files that apply to no data file are dropped, whatever they hold: their data files are gone, or a vector has
replaced them. A delete file of several data files that names a removed one first or last is written again without it;
what it says of data files in between is only known by reading it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby

from icefield.compaction.plan import CHEAP_BYTES, Thresholds, fold_levels
from icefield.parquet.read.task import DeleteFile, DeleteType, FileTask
from icefield.plan.delete_index import ListedDelete

TARGET_BYTES = 64 * 1024 * 1024  # as Iceberg has it for delete files
TASK_BYTES_READ = 128 * 1024 * 1024  # of delete files that one task reads
_FOOTER_BYTES = 160  # about what a vector takes in the footer of its Puffin file, beside the location of its data file
_LIVE_SHARE = 0.5


class DeleteReason(StrEnum):
    """Why a delete file is rewritten."""

    SEVERAL = "several for one data file"
    SMALL = "small"
    NO_VECTOR = "not a deletion vector"
    REMOVED_FILES = "of removed data files"
    SHARED = "of several data files"


@dataclass(frozen=True)
class DeleteRules:
    """What decides. has_vectors: of version 3. by_partition: of version 2, whether delete files of a partition are
    shared. chosen: the data files to look at; None for all. rewrites_shared: rewrite all delete files that name no
    single data file.
    """

    has_vectors: bool
    by_partition: bool
    min_input_files: int
    chosen: frozenset[str] | None = None
    rewrites_shared: bool = False


@dataclass(frozen=True)
class DeletePlan:
    """What `rewrite_deletes` would do. A Puffin file counts once, however many deletion vectors it has.

    Attributes:
        files: How many delete files were looked at.
        bytes: Their size.
        files_to_rewrite: Delete files whose positions are written to others.
        bytes_to_rewrite: Their size.
        files_dangling: Delete files that apply to no data file, which are dropped.
        bytes_dangling: Their size.
        vectors_dangling: Deletion vectors of removed data files, which are dropped.
        equality_files: Of all, those that are equality delete files and apply to a data file.
        reasons: How many delete files are rewritten for each reason.
        groups: The data files whose deletes are rewritten together; their tasks have only those deletes.
        sequence_number: The newest data sequence number of what is rewritten.
    """

    files: int = 0
    bytes: int = 0
    files_to_rewrite: int = 0
    bytes_to_rewrite: int = 0
    files_dangling: int = 0
    bytes_dangling: int = 0
    vectors_dangling: int = 0
    equality_files: int = 0
    reasons: Mapping[DeleteReason, int] = field(default_factory=dict)
    groups: Sequence[Sequence[FileTask]] = ()
    sequence_number: int | None = None

    @property
    def files_good(self) -> int:
        """How many delete files are left as they are."""
        return self.files - self.files_to_rewrite - self.files_dangling

    @property
    def replaced(self) -> dict[str, frozenset[DeleteFile]]:
        """The deletes of each data file that are rewritten."""
        return {task.location: frozenset(task.deletes) for group in self.groups for task in group}

    @property
    def is_empty(self) -> bool:
        """Nothing is to be done."""
        return not (self.files_to_rewrite or self.files_dangling or self.vectors_dangling)


def plan_deletes(
    listed: Sequence[ListedDelete], tasks: Sequence[FileTask], data_files: frozenset[str], rules: DeleteRules
) -> DeletePlan:
    """Choose the delete files to rewrite. listed: all. tasks: the data files that have deletes. data_files: all."""
    applied = {delete.location for task in tasks for delete in task.deletes}
    live = [each for each in listed if each.location in applied and (not _is_vector(each) or each.target in data_files)]
    looked_at = _looked_at(tasks, rules.chosen)
    positions = [each for each in live if each.kind is not DeleteType.EQUALITY and each.location in looked_at]
    reasons = _find_reasons(positions, tasks, data_files, rules)
    sizes = {each.location: each.size_bytes for each in listed}
    dangling = sizes.keys() - {each.location for each in live}
    dead = [each for each in listed if _is_vector(each) and each.target not in data_files]
    chosen = [with_only(task, reasons) for task in tasks]
    return DeletePlan(
        files=len(sizes),
        bytes=sum(sizes.values()),
        files_to_rewrite=len(reasons),
        bytes_to_rewrite=sum(sizes[location] for location in reasons),
        files_dangling=len(dangling),
        bytes_dangling=sum(sizes[location] for location in dangling),
        vectors_dangling=len(dead),
        equality_files=len({each.location for each in live if each.kind is DeleteType.EQUALITY}),
        reasons={why: list(reasons.values()).count(why) for why in DeleteReason if why in reasons.values()},
        groups=list(_groups([task for task in chosen if task.deletes], rules)),
        sequence_number=max((each.sequence_number for each in live if each.location in reasons), default=None),
    )


def with_only(task: FileTask, locations: Mapping[str, object]) -> FileTask:
    """Return a task with only the position deletes in some files."""
    kept = (each for each in task.deletes if each.location in locations and each.kind is not DeleteType.EQUALITY)
    return replace(task, deletes=tuple(kept))


def _is_vector(listed: ListedDelete) -> bool:
    return listed.kind is DeleteType.VECTOR


def _looked_at(tasks: Iterable[FileTask], chosen: frozenset[str] | None) -> set[str]:
    wanted = (task for task in tasks if chosen is None or task.location in chosen)
    return {delete.location for task in wanted for delete in task.deletes}


def _find_reasons(
    positions: Sequence[ListedDelete], tasks: Sequence[FileTask], data_files: frozenset[str], rules: DeleteRules
) -> dict[str, DeleteReason]:
    """Return which of the position delete files are rewritten, and why."""
    files = [each for each in positions if not _is_vector(each)]
    if rules.has_vectors:
        vectors = [each for each in positions if _is_vector(each)]
        return _of_puffin_files(vectors, rules) | dict.fromkeys((f.location for f in files), DeleteReason.NO_VECTOR)
    found: dict[str, DeleteReason] = {}
    if rules.by_partition:
        for _, group in groupby(sorted(files, key=_by_group), lambda each: each.group):
            found |= _small({each.location: each.size_bytes for each in group}, rules)
    else:
        known = {each.location for each in files}
        for task in tasks:
            own = {d.location for d in task.deletes if d.kind is DeleteType.POSITIONS} & known
            found |= dict.fromkeys(own if len(own) > 1 else (), DeleteReason.SEVERAL)
    for each in files:
        if each.target is None and any(path and path not in data_files for path in each.paths):
            found.setdefault(each.location, DeleteReason.REMOVED_FILES)
        elif each.target is None and rules.rewrites_shared:
            found.setdefault(each.location, DeleteReason.SHARED)
    return found


def _of_puffin_files(vectors: Sequence[ListedDelete], rules: DeleteRules) -> dict[str, DeleteReason]:
    accounted: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for each in sorted(vectors, key=_by_group):
        known = each.content_bytes + len(each.target or "") + _FOOTER_BYTES
        accounted[each.location] = accounted.get(each.location, 0) + known
        sizes[each.location] = each.size_bytes
    dead = [location for location, size in sizes.items() if accounted[location] < size * _LIVE_SHARE]
    return dict.fromkeys(dead, DeleteReason.REMOVED_FILES) | _small(sizes, rules)


def _small(sizes: Mapping[str, int], rules: DeleteRules) -> dict[str, DeleteReason]:
    """Return the small files that are combined: those of full levels, or all if they are few bytes."""
    rule = Thresholds(TARGET_BYTES, TARGET_BYTES * 3 // 4, TARGET_BYTES * 2, rules.min_input_files, 1.0)
    small = [location for location, size in sizes.items() if size < rule.min_file_bytes]
    if len(small) > 1 and sum(sizes[location] for location in small) <= CHEAP_BYTES:
        return dict.fromkeys(small, DeleteReason.SMALL)
    runs = fold_levels([sizes[location] for location in small], rule)
    return {small[at]: DeleteReason.SMALL for run in runs if len(run) > 1 for at in run}


def _by_group(listed: ListedDelete) -> tuple[int, int, str]:
    """Order delete files by partition, and in it by age, so that what was deleted together stays together."""
    return listed.group, listed.sequence_number, listed.location


def _groups(tasks: Sequence[FileTask], rules: DeleteRules) -> Iterator[list[FileTask]]:
    """Split data files into groups of about one size; delete files that a partition shares are not split."""
    group: list[FileTask] = []
    seen: set[DeleteFile] = set()
    size, is_shared = 0, rules.by_partition and not rules.has_vectors
    for task in sorted(tasks, key=lambda each: each.partition_identity):
        is_cut = not is_shared or (group and group[-1].partition_identity != task.partition_identity)
        if group and size >= TASK_BYTES_READ and is_cut:
            yield group
            group, seen, size = [], set(), 0
        group.append(task)
        size += sum(each.content_size_bytes or each.file_size_bytes or 0 for each in task.deletes if each not in seen)
        seen.update(task.deletes)
    if group:
        yield group
