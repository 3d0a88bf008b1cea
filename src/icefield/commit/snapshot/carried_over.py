"""A change of rows whose files were rewritten since it was planned, carried over to the files where the rows are now.

A snapshot that replaces files without changing rows stores where each row went (`moved_rows`). So the rows of a lost
file are found in the new ones, and deleted there by position, whether the change deletes some of them or replaces the
whole file; a new file of which no row is left is removed.

Raises ConcurrentChange if a row was also deleted or changed by another commit, and RowsMoved if it is not known where
the rows went: after a rewrite in another order, by another engine, or of a table without position deletes.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from icefield.codec.manifest.rows import ManifestEntries
from icefield.commit.action import WriteContext
from icefield.commit.snapshot.moved_rows import NO_POSITIONS, load_row_maps
from icefield.commit.snapshot.position_deletes import has_position_deletes, load_positions
from icefield.commit.validate.read_set import ReadSet
from icefield.errors import ConcurrentChange, MissingFile
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.parquet.read.deletes import Positions
from icefield.parquet.read.task import FileTask
from icefield.parquet.write.delete_files import DeleteFileWriter
from icefield.plan.partition.values import load_partition_values
from icefield.plan.plan import ScanPlan, plan_scan
from icefield.plan.planned_files import PlannedFiles
from icefield.plan.versions import ResolvedVersion


@dataclass(frozen=True)
class LostFiles:
    """Planned files that are not in the newest version. plan: of that version."""

    files: PlannedFiles
    plan: ScanPlan

    @property
    def paths(self) -> frozenset[str]:
        """Their locations."""
        return self.files.paths


@dataclass(frozen=True)
class LostRows:
    """Rows of a lost file to delete: positions that were live when it was planned.

    is_exact: it is a conflict if one of them was deleted since, because it was copied or changed.
    """

    planned: FileTask
    positions: Positions
    is_exact: bool


@dataclass(frozen=True)
class CarriedOver:
    """Rows to delete in the files where they are now.

    plan: of the newest version. new: the positions to delete, by file; every: with those deleted before. emptied: files
    without other rows. superseded: the files whose deletion vectors are replaced.
    """

    plan: ScanPlan
    new: Mapping[str, Positions]
    every: Mapping[str, Positions]
    emptied: PlannedFiles
    superseded: frozenset[str]

    def write(self, writer: DeleteFileWriter) -> None:
        """Write the deletes; a deletion vector includes the earlier ones."""
        for path, positions in (self.every if writer.has_vectors else self.new).items():
            writer.add(path, positions)

    def partition_values(
        self, base: TableMetadata, context: WriteContext
    ) -> Iterator[tuple[PartitionSpec, ManifestEntries]]:
        """Yield the files that get deletes, with their partition values."""
        files = self.plan.files.at(self.new)
        return load_partition_values(context.reading, base, self.plan, files) if files.num_rows else iter(())


def find_lost_files(
    read_set: ReadSet, files: PlannedFiles, base: TableMetadata, context: WriteContext
) -> LostFiles | None:
    """Find planned files that rewrites have removed since; None if there are none."""
    if files.num_rows == 0 or not read_set.rewrites_since(base):
        return None
    if not read_set.is_disturbed(base, context.reading, files):
        return None
    version = ResolvedVersion(base.ref_head(read_set.ref), read_set.plan.version.schema)
    plan = plan_scan(context.reading, base, version, read_set.plan.where)
    lost = files.paths - plan.files.paths
    return LostFiles(files.at(lost), plan) if lost else None


def live_rows(read_set: ReadSet, files: PlannedFiles, base: TableMetadata, context: WriteContext) -> Iterator[LostRows]:
    """Yield all rows of planned files; they were copied or dropped, which the caller knows."""
    tasks = list(read_set.plan.tasks(files))
    try:
        for task, deleted in zip(tasks, load_positions(tasks, base, context.store), strict=True):
            yield LostRows(task, np.setdiff1d(np.arange(task.record_count), deleted), is_exact=False)
    except MissingFile as error:  # of an expired version
        raise read_set.conflict(f"delete files of the planned version no longer exist: {error}") from error


def carry_over(
    read_set: ReadSet, lost: LostFiles, rows: Iterable[LostRows], base: TableMetadata, context: WriteContext
) -> CarriedOver:
    """Find rows of lost files in the newest version, and check that no other commit deleted one of them."""
    if base.format_version == 1:
        raise read_set.missing(lost.paths, base, context.reading)
    maps = load_row_maps(context.store, read_set.snapshots_since(base))
    wanted: dict[str, list[Positions]] = {}
    exact: dict[str, list[Positions]] = {}
    for each in rows:
        places = maps.find(each.planned.location, each.positions)
        is_unknown = not places.keys() <= lost.plan.files.paths or each.planned.has_key_deletes
        if is_unknown:
            raise read_set.missing(lost.paths, base, context.reading)
        gone = len(each.positions) - sum(map(len, places.values()))
        if gone and each.is_exact:
            raise _changed(read_set, gone, each.planned.location)
        for path, positions in places.items():
            wanted.setdefault(path, []).append(positions)
            if each.is_exact:
                exact.setdefault(path, []).append(positions)
    return _merge(read_set, lost.plan, _joined(wanted), _joined(exact), base, context)


def _merge(
    read_set: ReadSet,
    plan: ScanPlan,
    wanted: Mapping[str, Positions],
    exact: Mapping[str, Positions],
    base: TableMetadata,
    context: WriteContext,
) -> CarriedOver:
    tasks = list(plan.tasks(plan.files.at(wanted)))
    new, every, emptied, superseded = {}, {}, set(), set()
    for task, now in zip(tasks, load_positions(tasks, base, context.store), strict=True):
        path = task.location
        own = exact.get(path, NO_POSITIONS)
        if len(own) and task.has_key_deletes:
            raise read_set.conflict(f"rows in {path} were concurrently deleted by an equality delete")
        if both := len(np.intersect1d(now, own)):
            raise _changed(read_set, both, path)
        positions = np.setdiff1d(wanted[path], now)
        if len(positions) + len(now) == task.record_count:
            emptied.add(path)
        elif len(positions):
            new[path], every[path] = positions, np.union1d(now, positions)
            # A vector includes the earlier deletes of its file; position deletes of version 2 are added to them.
            superseded |= {path} if base.has_row_ids and has_position_deletes(task) else set()
    return CarriedOver(plan, new, every, plan.files.at(emptied), frozenset(superseded))


def _joined(parts: Mapping[str, list[Positions]]) -> dict[str, Positions]:
    return {path: np.unique(np.concatenate(found)) for path, found in parts.items()}


def _changed(read_set: ReadSet, count: int, path: str) -> ConcurrentChange:
    return read_set.conflict(f"{count} row(s) of {path} were concurrently deleted or changed by another commit")
