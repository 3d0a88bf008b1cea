"""The versions of a table: the version of a handle, its snapshots, and how branches get those of other branches.

Raises NoSuchTable, NoSuchSnapshot, InvalidInput, ConcurrentChange, CommitConflict, CommitStateUnknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, Self

from icefield.ambient import Ambient
from icefield.arguments import check_arguments
from icefield.deferred import deferred_imports
from icefield.errors import NoSuchSnapshot
from icefield.model.snapshot import MAIN, note_keys
from icefield.table.versions.refs import TableRefs

with deferred_imports(__name__):
    from icefield.cache.reading import ReadContext
    from icefield.commit.actions.expire import RemoveTheseSnapshots
    from icefield.commit.actions.refs import MoveBranch, RollBack
    from icefield.commit.replay.decisions import parse_decision
    from icefield.commit.validate.transaction_reads import find_read
    from icefield.dml.head import TableHead
    from icefield.expr.bind import bound
    from icefield.expr.bind.bound import Bound
    from icefield.history.checks import find_checks, run_checks
    from icefield.history.diff import VersionDiff
    from icefield.history.log import LogEntry, list_log
    from icefield.history.refs import find_previous_head
    from icefield.history.replay import Replay
    from icefield.model.metadata import TableMetadata
    from icefield.model.names import TableName
    from icefield.model.partition import PartitionSpec
    from icefield.model.snapshot import Snapshot, SnapshotLogEntry
    from icefield.plan.versions import AsOf, ResolvedVersion
    from icefield.table.reading.checked_branch import CheckedBranch
    from icefield.types.schema import Schema

OnCollision = Literal["ours", "theirs"]
OnCollisions = OnCollision | Mapping[str, OnCollision]


@check_arguments
class TableHistory(TableRefs):
    """The part of a table handle that deals with versions: snapshots, and what moves branches."""

    def __init__(self, head: TableHead, ref: str = MAIN, notes: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(head, ref)
        self._notes = notes  # for the summaries of new snapshots

    @property
    def _context(self) -> ReadContext:
        return self._head.backend.reading

    @property
    def _ambient(self) -> Ambient:
        return self._head.backend.ambient

    @property
    def name(self) -> str:
        """The full name, such as `shop.orders`."""
        return str(self._head.name)

    @property
    def commit_head(self) -> TableHead:
        """Where the handle loads its metadata, which then does not count as a read of rows, and commits."""
        return self._head

    @property
    def metadata(self) -> TableMetadata:
        """The newest metadata. In a transaction this counts as a read of all rows."""
        return self.refresh()

    @property
    def metadata_location(self) -> str:
        """The location of the newest metadata file, from which other engines can open the table.

        In a transaction this is the version that the table was opened at, and counts as a read of all rows.
        """
        loaded = self._head.load()
        self._reading(loaded.metadata, None)
        return loaded.location

    @property
    def location(self) -> str:
        """The base location of the table's files."""
        return self._load().location

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self._load().schema

    @property
    def spec(self) -> PartitionSpec:
        """The partition spec of new files."""
        return self._load().spec

    @property
    def properties(self) -> dict[str, str]:
        """The table's properties."""
        return dict(self._load().properties)

    def refresh(self) -> TableMetadata:
        """Load the newest metadata and return it. In a transaction this counts as a read of all rows."""
        metadata = self._load()
        self._reading(metadata, None)
        return metadata

    def noting(self, *, message: str | None = None, author: str | None = None) -> Self:
        """Return a handle whose changes say why and by whom, in the summaries of the snapshots that they make.

        Args:
            message: Why: `icefield.message` in the summary.
            author: Who: `icefield.author`.
        """
        given = note_keys(message=message, author=author)
        return type(self)(self._head, self._ref, tuple({**dict(self._notes), **given}.items()))

    def snapshots(self) -> list[Snapshot]:
        """List the snapshots, oldest first."""
        return list(self.metadata.snapshots)

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The newest snapshot of this branch; None for a table without snapshots."""
        return self._reading(self._load(), None).snapshot

    def history(self) -> list[SnapshotLogEntry]:
        """List the snapshots that `main` has pointed at, with the time of each change."""
        return list(self.metadata.snapshot_log)

    def log(self, ref: str | None = None) -> list[LogEntry]:
        """List the snapshots as a graph, newest first: what each was made from, its refs, author and message.

        Args:
            ref: Only the snapshots that this branch or tag was made from. By default those of all.
        """
        return list_log(self.metadata, ref)

    def publish(
        self,
        branch: str,
        *,
        checks: Mapping[str, str] | None = None,
        fast_forward_only: bool = False,
        dry_run: bool = False,
        message: str | None = None,
        on_collision: OnCollisions | None = None,
    ) -> Snapshot | None:
        """Make the changes of another branch visible in this one, at once, and return its new head.

        If the other branch descends from the head of this one, this one is moved to its head. Otherwise what the other
        branch changed since they parted is applied to the head, as one snapshot: files and rows that it removed are
        removed, files that it added are added. Rewrites on either side do not conflict. Fail with ConcurrentChange,
        which lists the collisions, if both removed or changed a row, or both added rows with the same identifier.

        Before, the checks of the table, its properties `icefield.check.NAME`, are run on the other branch. Fail with
        CheckFailed, which says which rows break which, if one fails.

        Args:
            branch: The other branch, or a tag. It is not changed.
            checks: More checks by name: a filter that must match no row, a condition over metrics that must be true,
                such as `count(*) > 0`, or a query that must return no row and sees the branch under the table's name.
            fast_forward_only: Fail if the branches have diverged.
            dry_run: Return the head that this branch would have, and change nothing.
            message: Why, for the summary of the new snapshot; a branch that is only moved forward gets none.
            on_collision: What becomes of rows that both removed or changed: `ours` is as in this branch, `theirs` as in
                the other one; or one of the two for each file of the report, as `{collision.file: "ours"}`. Only rows
                with row ids are decided in this way (format version 3).
        """
        replay, checked_id = self._replay(dry_run, message, on_collision), self.check_branch(branch, checks)
        made = (replay.fast_forward if fast_forward_only else replay.publish)(branch, checked_id)
        return made or self._load().ref_head(self._ref)

    def rebase(
        self, onto: str = MAIN, *, squash: bool = False, dry_run: bool = False, message: str | None = None
    ) -> Snapshot | None:
        """Move this branch to the head of another one, with its own snapshots after it, one by one, in one commit.

        Each keeps its author and message. Return the new head, or None if the branch contains the other one already.
        Conflicts are those of `publish`, for each snapshot.

        Args:
            onto: The branch or tag to start from.
            squash: Make one snapshot of all changes: what was added and taken back on the branch cannot collide.
            dry_run: Return the head that this branch would have, and change nothing.
            message: Why, for the summaries of the new snapshots, instead of their own messages.
        """
        return self._replay(dry_run, message).rebase(onto, squashes=squash)

    def cherry_pick(
        self,
        snapshot_id: int,
        *,
        dry_run: bool = False,
        message: str | None = None,
        on_collision: OnCollisions | None = None,
    ) -> Snapshot | None:
        """Apply to this branch what one snapshot of another one changed, and return the new snapshot.

        Return None for a snapshot that changed no row. Conflicts are those of `publish`. Fail with InvalidInput if this
        branch contains the change already.

        Args:
            snapshot_id: The snapshot.
            dry_run: Return the snapshot that would be made, and change nothing.
            message: Why, for the summary of the new snapshot.
            on_collision: As for `publish`.
        """
        return self._replay(dry_run, message, on_collision).cherry_pick(snapshot_id)

    def revert(self, snapshot_id: int, *, dry_run: bool = False, message: str | None = None) -> Snapshot | None:
        """Take back what one snapshot of this branch changed, and return the new snapshot.

        Rows that it added are deleted, and rows that it removed are written again; later changes stay. Return None for
        a snapshot that changed no row. Fail with ConcurrentChange if a later change removed or changed one of the rows
        that it added.

        Args:
            snapshot_id: The snapshot. Its parent must not have expired.
            dry_run: Return the snapshot that would be made, and change nothing. Its counts of new files are not known.
            message: Why, for the summary of the new snapshot.
        """
        return self._replay(dry_run, message).revert(snapshot_id)

    def diff(self, before: AsOf | None, after: AsOf | None = None) -> VersionDiff:
        """Compare two versions: rows and files that only one of them has, columns, properties, the partition spec.

        Rows that were only moved to another file, as by compaction, are not part of the difference.

        Args:
            before: A snapshot id, a time, or a branch or tag; None is the empty table.
            after: The second version. By default the head of this branch.
        """
        metadata = self.refresh()
        first = None if before is None else self._point(metadata, before).snapshot
        return VersionDiff(self._context, metadata, first, self._point(metadata, after).snapshot)

    def rollback(self, to: AsOf) -> Snapshot | None:
        """Move this branch back to an earlier version, and `main` also forward to one that it was at before.

        Args:
            to: A snapshot id, a time, or a branch or tag.
        """
        if isinstance(to, int):
            return self._head.commit([RollBack(self._ref, to)]).ref_head(self._ref)
        found = self._point(self._load(), to).snapshot
        if found is None:
            raise NoSuchSnapshot(f"cannot roll back to {to!r}: it has no snapshots")
        return self._head.commit([RollBack(self._ref, found.snapshot_id)]).ref_head(self._ref)

    def undo(self) -> Snapshot | None:
        """Move this branch to where it was before its last move: a write, a publish, a rollback, or an undo.

        The earlier metadata files of the table tell where it was. Fail with ConcurrentChange if the branch is changed
        concurrently, as by a write, which is not undone.
        """
        metadata = self._load()
        previous, head = find_previous_head(self._context, metadata, self._ref), metadata.ref_head(self._ref)
        move = MoveBranch(self._ref, previous, None if head is None else head.snapshot_id)
        return self._head.commit([move]).ref_head(self._ref)

    def set_current_snapshot(self, snapshot_id: int) -> Snapshot | None:
        """Move this branch to any snapshot of the table, also to one that is not among its ancestors."""
        return self._head.commit([MoveBranch(self._ref, snapshot_id)]).ref_head(self._ref)

    def remove_snapshots(self, snapshot_ids: Iterable[int]) -> None:
        """Remove snapshots from the table's metadata; no file is deleted. Refuse one that a branch or tag points at."""
        self._head.commit([RemoveTheseSnapshots(frozenset(snapshot_ids))])

    def check_branch(
        self, branch: str, checks: Mapping[str, str] | None = None, beside: Mapping[TableName, TableHead] | None = None
    ) -> int | None:
        """Run the checks of a publish on a branch; return the snapshot that was checked, None if there are no checks.

        Args:
            branch: The branch or tag.
            checks: More checks, as for `publish`.
            beside: Further tables that queries read at the branch of this name, by name.
        """
        loaded = self._head.load()
        found, head = find_checks(loaded.metadata, checks), loaded.metadata.ref_head(branch)
        if not found or head is None:
            return None

        run_checks(branch, found, CheckedBranch(self._head, loaded, branch, head, beside or {}))
        return head.snapshot_id

    def _replay(
        self,
        is_dry_run: bool,  # noqa: FBT001
        message: str | None,
        on_collision: OnCollisions | None = None,
    ) -> Replay:
        notes = {**dict(self._notes), **note_keys(message=message)}
        return Replay(self._head, self._ref, is_dry_run, notes, parse_decision(on_collision))

    def _reading(
        self, metadata: TableMetadata, as_of: AsOf | None, where: Bound | None = None, columns: Iterable[int] = ()
    ) -> ResolvedVersion:
        """Return the version to read, and record which of its rows are read."""
        version = self._point(metadata, as_of)
        asked = self._ref if as_of is None else as_of
        self._head.note_read(
            lambda: find_read(metadata, version, asked, bound.TRUE if where is None else where, columns)
        )
        return version
