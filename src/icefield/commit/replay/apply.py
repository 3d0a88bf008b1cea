"""Propose a change again on the head of a branch, as one snapshot: the action of cherry-picks, reverts and publishes.

Data files of the change are added as they are, with their row ids; their sequence number is that of the new snapshot,
so that equality deletes of the branch, which came before, do not apply to them. Rows are deleted by position, or with
their files. Equality deletes are added again, and apply to all older rows of the branch.

What must be true at commit time: every row that the change removes is in the branch, where rewrites may have moved it.
Rows that were added to the branch since do not conflict, unless they have the identifier of a row that the change adds.
Raises ConcurrentChange with a list of the collisions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from icefield.cache.reading import ReadContext
from icefield.codec.manifest.columns import ALL
from icefield.codec.manifest.header import DATA_MANIFEST, DELETE_MANIFEST
from icefield.codec.manifest.rows import DataFiles
from icefield.commit.action import NOTHING_TO_DO, CommitTarget, ProposedChange, WriteContext
from icefield.commit.actions.snapshot_update import FilesDraft, propose_files
from icefield.commit.attempt import DraftStore
from icefield.commit.replay.collided_rows import CollidedRows, RowDescriber
from icefield.commit.replay.collisions import Collision, CollisionKind, refuse
from icefield.commit.replay.culprits import find_culprits
from icefield.commit.replay.decisions import NOT_DECIDED, Decision
from icefield.commit.replay.difference import Difference, find_difference, find_files, no_difference
from icefield.commit.replay.key_deletes import load_key_deletes
from icefield.commit.replay.net_rows import has_new_rows
from icefield.commit.replay.row_ids import Lost
from icefield.commit.replay.rows import (
    AppliedRows,
    RowApplication,
    RowChange,
    Side,
    find_removed_rows,
    without_moved_rows,
)
from icefield.commit.replay.shared_keys import KeyReader, find_shared_keys
from icefield.commit.replay.sources import ChangeSource, OfBranch, OfSnapshot, OppositeOf, Request
from icefield.commit.snapshot.manifest_filter import RemovedFiles
from icefield.commit.snapshot.manifests import (
    AddedFiles,
    ManifestRow,
    ManifestShape,
    as_data_files,
    write_added,
)
from icefield.commit.snapshot.moved_rows import load_row_maps
from icefield.commit.snapshot.position_deletes import as_added_files, open_delete_writer
from icefield.commit.snapshot.summary import NO_DELETE_FILES, tally, tally_deletes
from icefield.commit.validate.ancestry import MERGED, PICKED, find_rewrites
from icefield.commit.validate.schema_compatibility import check_fits
from icefield.errors import ConcurrentChange, InvalidInput, NoSuchSnapshot, RowsMoved
from icefield.model.apply import apply
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.model.snapshot import MAIN, Operation, Snapshot, SnapshotRef
from icefield.model.updates import RemoveSnapshotRef, SetSnapshotRef, Update
from icefield.parquet.read.deletes import Positions
from icefield.parquet.read.task import FileTask
from icefield.parquet.write.delete_files import DeleteDestination, DeleteEntry
from icefield.plan.entries_of_files import load_entries_of_files
from icefield.plan.partition.values import load_partition_values
from icefield.plan.plan import ScanPlan
from icefield.plan.planned_files import PlannedFiles
from icefield.plan.versions import ResolvedVersion
from icefield.storage.location import is_inside


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
    are. notes: more keys for the summary. decision: about rows that both changed. is_known: the branch has the change
    already, which is applied to an earlier version of it.
    """

    source: ChangeSource
    target: CommitTarget
    place: DeleteDestination
    copies: CopiedRows | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    decision: Decision = NOT_DECIDED
    is_known: bool = False
    snapshot_id: int | None = None

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        if self.snapshot_id is not None and base.snapshots.find(self.snapshot_id) is not None:
            return NOTHING_TO_DO
        request = self.source.resolve(base, self.target.ref)
        if request is None:
            return NOTHING_TO_DO
        if self.snapshot_id is None:
            self.snapshot_id = context.ambient.random_id()
        reading = context.reading
        if request.shared:
            request, reading = self._with_shared(request, base, context)
        change = _Proposal(self, request, base, context, reading).propose()
        if not change.updates:
            self.snapshot_id = None
        return change

    def _with_shared(self, request: Request, base: TableMetadata, context: WriteContext) -> tuple[Request, ReadContext]:
        """Apply to the earlier version what both sides contain; return it, and what it is read with.

        It exists only in memory.
        """
        drafts = replace(context, store=DraftStore(context.store))
        metadata, before = base, request.before
        for source in request.shared:
            metadata = apply(metadata, [_start_of(before)], context.ambient.now_ms())
            try:
                change = ApplyChange(source=source, target=CommitTarget(MAIN), place=self.place, is_known=True)
                metadata = apply(metadata, change.propose(metadata, drafts).updates, context.ambient.now_ms())
            except (ConcurrentChange, InvalidInput, NoSuchSnapshot):
                if isinstance(source, OfSnapshot):  # what was picked does not fit alone
                    continue
                raise
            before = metadata.ref_head(MAIN)
        return replace(request, before=before, shared=()), drafts.reading

    def find_copies(self, base: TableMetadata, context: WriteContext) -> Sequence[tuple[FileTask, Positions]]:
        """Return the files with rows that the change adds, each with the positions that are not among them."""
        request = self.source.resolve(base, self.target.ref)
        if request is None:
            return []
        return _Proposal(self, request, base, context, context.reading).find_copies()

    def prepare(self, base: TableMetadata, context: WriteContext) -> None:
        """Write nothing in advance: all files depend on the base."""

    def reusable_files(self) -> Sequence[str]:
        return ()


def _start_of(version: Snapshot | None) -> Update:
    """Return the update by which `main` is at a version, in memory; None is the empty table."""
    return RemoveSnapshotRef(MAIN) if version is None else SetSnapshotRef(MAIN, SnapshotRef(version.snapshot_id))


@dataclass(frozen=True)
class _Proposal:
    action: ApplyChange
    request: Request
    base: TableMetadata
    context: WriteContext
    reading: ReadContext

    def propose(self) -> ProposedChange:
        request, reading = self.request, self.reading
        theirs = find_difference(reading, self.base, request.before, request.after, request.theirs)
        if theirs.is_empty:
            return NOTHING_TO_DO
        ours = self._find_ours(theirs)
        change = find_removed_rows(theirs, self.base, reading)
        copies = self.action.copies
        if change.restored and copies is None:
            raise InvalidInput(
                f"cannot {self.action.source.verb}: it removes deletes, by which rows reappear",
                hint="Rebase the branch first, which applies its snapshots one by one, or write these rows instead",
            )
        if theirs.key_deletes and self.action.decision.is_for_ours:
            raise InvalidInput(
                f"cannot {self.action.source.verb}: its equality deletes apply to all rows, also to those of ours",
                hint="Convert the equality deletes of the branch first",
            )
        rows = self._apply(theirs, ours, change)
        self._check(theirs, ours, rows)
        if copies is not None:
            if not _are_same_rows(_find_copies(theirs, change, rows), copies.sources):
                what = "rows that it restores were changed or moved concurrently"
                raise RowsMoved(f"cannot {self.action.source.verb}: {what}", hint="Nothing was changed; run it again")
            rows.added = {}
        draft = self._draft(theirs, ours, rows)
        proposed = propose_files(draft, None, self.action.target, self.base, self.context)
        return replace(
            proposed,
            updates=[*proposed.updates, *self.request.updates],
            requirements=[*proposed.requirements, *self.request.requirements],
        )

    def find_copies(self) -> Sequence[tuple[FileTask, Positions]]:
        """Return the files with rows that the change adds, each with the positions that are not among them."""
        theirs = find_difference(self.reading, self.base, self.request.before, self.request.after)
        change = find_removed_rows(theirs, self.base, self.reading)
        return _find_copies(theirs, change, self._apply(theirs, self._find_ours(theirs), change))

    def _apply(self, theirs: Difference, ours: Difference, change: RowChange) -> AppliedRows:
        mine, other = self._sides(theirs, ours)
        moved: Mapping[str, Positions] = {}
        # Files are not added as they are; version 1 can only replace whole files.
        if isinstance(self.action.source, OppositeOf) and self.base.format_version > 1:
            change, moved = without_moved_rows(mine, change, self.base, self.reading)
        rows = RowApplication(mine, other, self.base, self.reading, self.action.decision).apply(change)
        rows.leave_out(moved, mine.added)
        return rows

    def _sides(self, theirs: Difference, ours: Difference) -> tuple[Side, Side]:
        sides = (theirs, self.request.theirs), (ours, self.request.ours)
        mine, other = (
            Side(difference, load_row_maps(self.reading.store, find_rewrites(by)), any(map(_adds_key_deletes, by)))
            for difference, by in sides
        )
        return mine, other

    def _find_ours(self, theirs: Difference) -> Difference:
        """Return how the branch differs from the base, if that matters: rows that are only added fit any version.

        That needs files which are new to the branch. It may have those that came with a snapshot that was published or
        picked before, even if that is not known any more, and files that were not written for the branch.
        """
        head = self.base.ref_head(self.action.target.ref)
        only_adds = not (theirs.removed.num_rows or theirs.changed or self.base.schema.identifier_field_ids)
        shares = any(map(_may_share_files, (*self.request.ours, *self.request.theirs)))
        if only_adds and not shares and _are_all_inside(theirs.added, self.action.place.layout.folder):
            return no_difference(ResolvedVersion(head, self.base.schema))
        return find_difference(self.reading, self.base, self.request.before, head)

    def _check(self, theirs: Difference, ours: Difference, rows: AppliedRows) -> None:
        """Raise an error that lists what collides."""
        copies = self.action.copies
        found: list[Collision] = []
        never_had = self._find_new(theirs, rows.lost) if rows.lost else []
        lost = never_had if rows.lost and self._both_only_delete(theirs, ours) else rows.lost
        if lost:
            found += self._row_collisions(theirs, ours, lost)
        if self.base.format_version == 1:
            new = () if copies else (path for path, gone in rows.added.items() if len(gone))
            found += [Collision(CollisionKind.FILES, path, 0) for path in (*rows.deleted, *new)]
        own = copies.sources if copies else _find_added(theirs, rows)
        if self.request.may_share_keys:
            back = [] if self.request.common is None else find_removed_rows(ours, self.base, self.reading).restored
            found += find_shared_keys(own, ours, rows, KeyReader(self.base, self.context), back)
        if found:
            hint = "pick the snapshots that added these rows first" if never_had else self._hint(found)
            raise refuse(self.action.source.verb, found, hint)

    def _both_only_delete(self, theirs: Difference, ours: Difference) -> bool:
        """Return whether no side has rows that the base does not have, so that none was changed."""
        if (copies := self.action.copies) is not None and copies.files.num_rows:
            return False
        sides = [side for side in self._sides(theirs, ours) if copies is None or side.difference is ours]
        return not any(has_new_rows(side, self.base, self.reading) for side in sides)

    def _find_new(self, theirs: Difference, lost: Sequence[Lost]) -> Sequence[Lost]:
        """Return the rows that a cherry-pick deletes and that the branch has never had, because they came later.

        They may still come to the branch; the delete would not come again, because the branch contains it.
        """
        if self.request.common is None or self.action.is_known:
            return []
        mine = Side(theirs, load_row_maps(self.reading.store, ()))
        for version in self.request.common:
            then = Side(find_difference(self.reading, self.base, self.request.before, version), mine.maps)
            change = RowChange((), [(each.task, each.positions) for each in lost], ())
            lost = RowApplication(mine, then, self.base, self.reading).apply(change).lost
        return lost

    def _hint(self, found: Sequence[Collision]) -> str:
        hint = "undo one of the two changes, or apply it again by hand"
        if self.action.decision:
            return f"on_collision decides only about rows that have row ids, and keep them on both sides; {hint}"
        can_decide = self.base.has_row_ids and isinstance(self.action.source, OfBranch | OfSnapshot)
        if can_decide and any(each.kind is CollisionKind.ROWS for each in found):
            return f"{hint}, or decide about rows with on_collision"
        return hint

    def _row_collisions(self, theirs: Difference, ours: Difference, lost: Sequence[Lost]) -> Iterator[Collision]:
        culprits = find_culprits(self.reading, self.base, self.request.ours, lost, theirs.before)
        added = [list(side.after.tasks(side.added)) for side in (ours, theirs)]
        described = RowDescriber(KeyReader(self.base, self.context), *added).describe(lost)
        for each in lost:
            path = each.task.location
            known = described.get(path, CollidedRows())
            yield Collision(
                CollisionKind.ROWS, path, len(each.positions), culprits[path], known.keys, known.ours, known.theirs
            )

    def _draft(self, theirs: Difference, ours: Difference, rows: AppliedRows) -> FilesDraft:
        assert self.action.snapshot_id is not None
        data = list(self._data_groups(theirs, rows))
        deletes = [*self._delete_groups(theirs, ours, rows), *self._key_delete_groups(theirs, ours)]
        columns = [group.columns for group in deletes]
        removed = find_files(rows.removed, [ours.after.files, theirs.before.files])
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
            load_partition_values(self.reading, self.base, plan, plan.files.at(paths))
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


def _find_added(theirs: Difference, rows: AppliedRows) -> list[tuple[FileTask, Positions]]:
    """Return the files to add, each with its rows that are deleted."""
    return [(task, rows.added[task.location]) for task in theirs.after.tasks(theirs.added.at(rows.added))]


def _find_copies(theirs: Difference, change: RowChange, rows: AppliedRows) -> list[tuple[FileTask, Positions]]:
    """Return the files with rows to copy, each with the positions that are left out."""
    some = [(task, np.setdiff1d(np.arange(task.record_count), back)) for task, back in change.restored]
    return [(replace(task, deletes=()), left_out) for task, left_out in (*_find_added(theirs, rows), *some)]


def _are_same_rows(rows: Sequence[tuple[FileTask, Positions]], others: Sequence[tuple[FileTask, Positions]]) -> bool:
    left_out, other = ({task.location: gone for task, gone in each} for each in (rows, others))
    return left_out.keys() == other.keys() and all(np.array_equal(gone, other[at]) for at, gone in left_out.items())


def _may_share_files(snapshot: Snapshot) -> bool:
    """Return whether other branches may have files of a snapshot."""
    return any(key in snapshot.summary for key in (MERGED, PICKED))


def _adds_key_deletes(snapshot: Snapshot) -> bool:
    return snapshot.summary.get("added-equality-deletes", "0") != "0"


def _are_all_inside(files: PlannedFiles, folder: str) -> bool:
    """Return whether files are in the folder of new files: others may have been added to several branches."""
    return all(is_inside(path, folder) for path in files.paths)
