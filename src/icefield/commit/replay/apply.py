"""Propose a change again on the head of a branch, as one snapshot: the action of cherry-picks, reverts and publishes.

Data files of the change are added as they are, with their row ids; their sequence number is that of the new snapshot,
so that equality deletes of the branch, which came before, do not apply to them. Rows are deleted by position, or with
their files. Equality deletes are added again, and apply to all older rows of the branch.

What must be true at commit time: every row that the change removes is in the branch, where rewrites may have moved it.
Rows that were added to the branch since do not conflict, unless they have the identifier of a row that the change adds.
Raises ConcurrentChange with a list of the collisions.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
import pyarrow as pa

from icefield.codec.manifest.columns import ALL
from icefield.codec.manifest.header import DATA_MANIFEST, DELETE_MANIFEST
from icefield.codec.manifest.rows import DataFiles, ManifestEntries
from icefield.codec.manifest.schema import data_file_arrow_schema
from icefield.commit.action import NOTHING_TO_DO, CommitTarget, ProposedChange, WriteContext
from icefield.commit.actions.snapshot_update import FilesDraft, propose_files
from icefield.commit.replay.collisions import Collision, CollisionKind, refuse
from icefield.commit.replay.culprits import find_culprits
from icefield.commit.replay.difference import Difference, find_difference, no_difference
from icefield.commit.replay.key_deletes import load_key_deletes
from icefield.commit.replay.rows import AppliedRows, RowApplication, Side, find_removed_rows
from icefield.commit.replay.shared_keys import KeyReader, find_shared_keys
from icefield.commit.replay.sources import ChangeSource, Request
from icefield.commit.snapshot.manifest_filter import RemovedFiles
from icefield.commit.snapshot.manifests import AddedFiles, ManifestRow, ManifestShape, write_added
from icefield.commit.snapshot.moved_rows import load_row_maps
from icefield.commit.snapshot.position_deletes import as_added_files, open_delete_writer
from icefield.commit.snapshot.summary import NO_DELETE_FILES, tally, tally_deletes
from icefield.commit.validate.ancestry import PICKED, find_rewrites
from icefield.commit.validate.schema_compatibility import check_fits
from icefield.errors import InvalidInput
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.model.snapshot import Operation
from icefield.parquet.read.deletes import Positions
from icefield.parquet.read.task import FileTask
from icefield.parquet.write.delete_files import DeleteDestination, DeleteEntry
from icefield.plan.entries_of_files import load_entries_of_files
from icefield.plan.partition.values import load_partition_values
from icefield.plan.plan import ScanPlan
from icefield.plan.planned_files import PlannedFiles
from icefield.plan.versions import ResolvedVersion


@dataclass(frozen=True)
class CopiedRows:
    """Rows that a change adds, written to new files.

    files: the new files. sources: where the rows were, each with the positions that were left out.
    """

    files: DataFiles
    sources: Sequence[tuple[FileTask, Positions]]


@dataclass(kw_only=True)
class ApplyChange:
    """Applies what distinguishes two versions to a branch.

    place: where position deletes go. copies: the rows that it adds, if not the files of the change are added as they
    are. notes: more keys for the summary.
    """

    source: ChangeSource
    target: CommitTarget
    place: DeleteDestination
    copies: CopiedRows | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    snapshot_id: int | None = None

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        if self.snapshot_id is not None and base.snapshots.find(self.snapshot_id) is not None:
            return NOTHING_TO_DO
        request = self.source.resolve(base, self.target.ref)
        if request is None:
            return NOTHING_TO_DO
        if self.snapshot_id is None:
            self.snapshot_id = context.ambient.random_id()
        return _Proposal(self, request, base, context).propose()

    def prepare(self, base: TableMetadata, context: WriteContext) -> None:
        """Write nothing in advance: all files depend on the base."""

    def reusable_files(self) -> Sequence[str]:
        return ()


@dataclass(frozen=True)
class _Proposal:
    action: ApplyChange
    request: Request
    base: TableMetadata
    context: WriteContext

    def propose(self) -> ProposedChange:
        request, reading = self.request, self.context.reading
        theirs = find_difference(reading, self.base, request.before, request.after, request.theirs)
        if theirs.is_empty:
            return NOTHING_TO_DO
        ours = self._find_ours(theirs)
        change = find_removed_rows(theirs, self.base, reading)
        if change.restored and self.action.copies is None:
            raise InvalidInput(
                f"cannot {self.action.source.verb}: it removes deletes, by which rows reappear",
                hint="Write these rows to the branch instead",
            )
        store = self.context.store
        mine = Side(theirs, load_row_maps(store, find_rewrites(self.request.theirs)))
        other = Side(ours, load_row_maps(store, find_rewrites(self.request.ours)))
        rows = RowApplication(mine, other, self.base, reading).apply(change)
        if self.action.copies is not None:
            rows.added = {}
        self._check(theirs, ours, rows)
        draft = self._draft(theirs, ours, rows)
        proposed = propose_files(draft, None, self.action.target, self.base, self.context)
        return replace(
            proposed,
            updates=[*proposed.updates, *self.request.updates],
            requirements=[*proposed.requirements, *self.request.requirements],
        )

    def _find_ours(self, theirs: Difference) -> Difference:
        """Return how the branch differs from the base, if that matters: rows that are only added fit any version.

        Files of a snapshot that was picked before are in the branch already.
        """
        head = self.base.ref_head(self.action.target.ref)
        only_adds = not (theirs.removed.num_rows or theirs.changed or self.base.schema.identifier_field_ids)
        if only_adds and not any(PICKED in snapshot.summary for snapshot in self.request.ours):
            return no_difference(ResolvedVersion(head, self.base.schema))
        return find_difference(self.context.reading, self.base, self.request.before, head)

    def _check(self, theirs: Difference, ours: Difference, rows: AppliedRows) -> None:
        """Raise an error that lists what collides."""
        both_delete = theirs.added.num_rows == 0 and all(
            each.operation in (Operation.DELETE, Operation.REPLACE) for each in self.request.ours
        )
        found: list[Collision] = []
        if rows.lost and not both_delete:
            reading = self.context.reading
            culprits = find_culprits(reading, self.base, self.request.ours, rows.lost, theirs.before)
            found += [
                Collision(CollisionKind.ROWS, each.task.location, len(each.positions), culprits[each.task.location])
                for each in rows.lost
            ]
        if self.base.format_version == 1:
            paths = [*rows.deleted, *(path for path, gone in rows.added.items() if len(gone))]
            found += [Collision(CollisionKind.FILES, path, 0) for path in paths]
        new = theirs.after.tasks(theirs.added.at(rows.added))
        own = self.action.copies.sources if self.action.copies else [(task, rows.added[task.location]) for task in new]
        found += find_shared_keys(own, ours, rows, KeyReader(self.base, self.context))
        if found:
            raise refuse(self.action.source.verb, found, "undo one of the two changes, or apply it again by hand")

    def _draft(self, theirs: Difference, ours: Difference, rows: AppliedRows) -> FilesDraft:
        assert self.action.snapshot_id is not None
        data = list(self._data_groups(theirs, rows))
        deletes = [*self._delete_groups(theirs, ours, rows), *self._key_delete_groups(theirs, ours)]
        columns = [group.columns for group in deletes]
        removed = _find_files(rows.removed, [ours.after.files, theirs.before.files])
        stale = removed.filter(removed.delete_keys.is_valid()).paths
        if self.base.has_row_ids:  # a vector includes the earlier deletes of its file
            stale |= {path for path, gone in rows.before.items() if len(gone)}
        return FilesDraft(
            self.action.snapshot_id,
            self._operation(has_added=bool(data), has_removed=bool(rows.removed or deletes)),
            RemovedFiles(removed, stale),
            [row for group in (*data, *deletes) for row in self._write(group)],
            added=tally(DataFiles.concat([group.columns for group in data])) if data else tally(removed.slice(0, 0)),
            added_deletes=tally_deletes(DataFiles.concat(columns)) if columns else NO_DELETE_FILES,
            partitions=frozenset().union(*(group.partitions for group in (*data, *deletes))),
            extra={**self.request.summary, **self.action.notes},
        )

    def _operation(self, *, has_added: bool, has_removed: bool) -> Operation:
        if self.request.only_moves_rows and self.request.theirs:
            return Operation.REPLACE
        if not has_removed:
            return Operation.APPEND
        return Operation.OVERWRITE if has_added else Operation.DELETE

    def _write(self, group: AddedFiles) -> list[ManifestRow]:
        assert self.action.snapshot_id is not None
        return write_added(group, self.base, self.context, self.action.snapshot_id)

    def _data_groups(self, theirs: Difference, rows: AppliedRows) -> Iterator[AddedFiles]:
        """Yield the new data files, by spec, as they are in the manifests of the change."""
        if self.action.copies is not None:
            if self.action.copies.files.num_rows:
                yield AddedFiles(self.action.copies.files, ManifestShape(self.base.schema, self.base.spec))
            return
        after = self.request.after
        if rows.added and after is not None and after.schema_id is not None:
            check_fits(self.base.schema_by_id(after.schema_id), self.base)
        chosen = theirs.added.at(rows.added)
        for spec, entries in load_entries_of_files(self.context.reading, self.base, theirs.after, chosen, ALL):
            yield AddedFiles(as_data_files(entries, spec, self.base), self._shape(spec, DATA_MANIFEST))

    def _delete_groups(self, theirs: Difference, ours: Difference, rows: AppliedRows) -> list[AddedFiles]:
        """Write position deletes, for rows of the branch and of new files."""
        if not (rows.deleted or any(map(len, rows.added.values()))):
            return []
        writer = open_delete_writer(self.action.place, self.base, self.context.store, self.context.ambient)
        for path, positions in rows.deleted.items():
            writer.add(path, np.union1d(rows.before[path], positions) if writer.has_vectors else positions)
        for path, positions in rows.added.items():
            if len(positions):
                writer.add(path, positions)
        entries: list[DeleteEntry] = writer.close()
        values = chain.from_iterable(
            load_partition_values(self.context.reading, self.base, plan, plan.files.at(paths))
            for plan, paths in self._listings(theirs, ours, rows)
        )
        return as_added_files(entries, values, self.base)

    def _key_delete_groups(self, theirs: Difference, ours: Difference) -> Iterator[AddedFiles]:
        """Yield the equality deletes of the change."""
        for spec, entries in load_key_deletes(self.context.reading, self.base, theirs, ours, self.action.source.verb):
            yield AddedFiles(as_data_files(entries, spec, self.base), self._shape(spec, DELETE_MANIFEST))

    def _listings(
        self, theirs: Difference, ours: Difference, rows: AppliedRows
    ) -> Iterator[tuple[ScanPlan, frozenset[str]]]:
        """Yield the versions that list the files with new deletes, each with those files."""
        deleted, listed = frozenset(rows.deleted), ours.after.files.paths
        yield ours.after, deleted & listed
        yield theirs.before, deleted - listed
        yield theirs.after, frozenset(path for path, gone in rows.added.items() if len(gone))

    def _shape(self, spec: PartitionSpec, content: int) -> ManifestShape:
        return ManifestShape(self.base.schema_of_spec(spec), spec, content)


def as_data_files(entries: ManifestEntries, spec: PartitionSpec, base: TableMetadata) -> DataFiles:
    """Return the files of manifest entries of one spec, as they are added again."""
    target = data_file_arrow_schema(spec.columns(base.schema_of_spec(spec)))
    rows = entries.num_rows
    columns = [
        entries[field.name] if field.name in entries else pa.chunked_array([pa.nulls(rows, field.type)])
        for field in target
    ]
    return DataFiles(
        pa.Table.from_arrays([column.cast(f.type) for column, f in zip(columns, target, strict=True)], schema=target)
    )


def _find_files(paths: Set[str], listings: Sequence[PlannedFiles]) -> PlannedFiles:
    """Return files, each as the first of some listings has it."""
    found, left = [], set(paths)
    for files in listings:
        found.append(files.at(left))
        left -= found[-1].paths
    return PlannedFiles.concat(found)
