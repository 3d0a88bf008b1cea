"""Position deletes in a commit: delete files as manifest columns, and concurrent deletes.

Another writer may have deleted other rows of the same data file since the plan; both deletes apply. A version 3 table
has one deletion vector per data file, so the new vector includes the old one; older versions allow any number of
position delete files. (spec: Deletion Vectors, Position Delete Files)

Positions are loaded file by file: a change of many rows needs no more memory than its largest file.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from icefield.ambient import Ambient
from icefield.cache.reading import ReadContext
from icefield.codec.manifest.header import DELETE_MANIFEST
from icefield.codec.manifest.rows import ManifestEntries
from icefield.commit.snapshot.manifests import AddedFiles, ManifestShape
from icefield.commit.validate.read_set import ReadSet
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.parquet.read.deletes import Positions
from icefield.parquet.read.read_ahead import read_ahead, wanted_deletes
from icefield.parquet.read.task import DeleteFile, DeleteType, FileTask
from icefield.parquet.write.delete_files import (
    DeleteDestination,
    DeleteEntry,
    DeleteFileWriter,
    as_delete_columns,
    data_files_of,
)
from icefield.plan.plan import plan_scan
from icefield.plan.planned_files import PlannedFiles
from icefield.plan.versions import ResolvedVersion
from icefield.storage.store import Store


@dataclass(frozen=True)
class ChangedFile:
    """A planned data file, as planned and as it is now."""

    planned: FileTask
    now: FileTask

    @property
    def new_equality_deletes(self) -> frozenset[str]:
        """The equality delete files that did not apply to it when it was planned."""
        return _locations(self.now, DeleteType.EQUALITY) - _locations(self.planned, DeleteType.EQUALITY)


@dataclass(frozen=True)
class FilesNow:
    """What became of planned files. removed: those that are no longer there; changed: those with other deletes."""

    removed: frozenset[str]
    changed: Sequence[ChangedFile]


def find_files_now(
    read_set: ReadSet, files: PlannedFiles, base: TableMetadata, context: ReadContext
) -> FilesNow | None:
    """Find out what became of planned files since the plan; None if they are as they were."""
    if not read_set.is_disturbed(base, context, files):
        return None
    version = ResolvedVersion(base.ref_head(read_set.ref), read_set.plan.version.schema)
    plan = plan_scan(context, base, version, read_set.plan.where)
    found = plan.files.at(files.paths)
    now = {task.location: task for task in plan.tasks(found)}
    pairs = (ChangedFile(task, now[task.location]) for task in read_set.plan.tasks(files.at(now)))
    changed = [pair for pair in pairs if set(pair.planned.deletes) != set(pair.now.deletes)]
    return FilesNow(files.paths - found.paths, changed)


def find_changed_files(
    read_set: ReadSet, files: PlannedFiles, base: TableMetadata, context: ReadContext
) -> Sequence[ChangedFile]:
    """Find the planned files whose deletes have changed since the plan.

    Raises ConcurrentChange if one of the files was removed.
    """
    now = find_files_now(read_set, files, base, context)
    if now is not None and now.removed:
        raise read_set.missing(now.removed, base, context)
    return [] if now is None else now.changed


def load_positions(tasks: Iterable[FileTask], base: TableMetadata, store: Store) -> Iterator[Positions]:
    """Load the deleted positions of each file, one file after another."""
    for reader, task in read_ahead(store, base, tasks, wanted_deletes):
        yield reader.deleted_positions(task)


def has_position_deletes(task: FileTask) -> bool:
    """Return whether rows of a file are deleted by position."""
    return any(delete.kind is not DeleteType.EQUALITY for delete in task.deletes)


def with_deletes(task: FileTask, *deletes: DeleteFile) -> FileTask:
    """Return a task with only these deletes."""
    return replace(task, deletes=deletes)


def open_delete_writer(
    place: DeleteDestination, base: TableMetadata, store: Store, ambient: Ambient
) -> DeleteFileWriter:
    """Return a writer of delete files for a base, with names unique to the attempt."""
    place = replace(place, name=f"{place.name}-{ambient.random_uuid().hex[:8]}")
    return DeleteFileWriter(place, store, base.has_row_ids)


def as_added_files(
    entries: Sequence[DeleteEntry], partitions: Iterable[tuple[PartitionSpec, ManifestEntries]], base: TableMetadata
) -> list[AddedFiles]:
    """Return delete files as columns of manifest entries, grouped by spec.

    partitions: the data files that they refer to, each batch of one spec, with their locations and partition values.
    """
    by_path = {path: at for at, entry in enumerate(entries) for path in data_files_of(entry)}
    groups = []
    for spec, files in partitions:
        schema = base.schema_of_spec(spec)
        # A delete file has the partition of its data files: any one of them.
        one_each = {by_path[path]: at for at, path in enumerate(files.file_path.to_pylist())}
        if one_each:
            own = [entries[at] for at in one_each]
            values = files.take(list(one_each.values())).without(["file_path"])
            columns = as_delete_columns(own, values, spec, schema)
            groups.append(AddedFiles(columns, ManifestShape(schema, spec, DELETE_MANIFEST)))
    return groups


def _locations(task: FileTask, kind: DeleteType) -> frozenset[str]:
    return frozenset(delete.location for delete in task.deletes if delete.kind is kind)
