"""Upkeep of a table: expire snapshots, remove orphan files, sweep, and see who holds what.

Files are deleted in two steps. Expiry and the search for orphan files mark files; a sweep deletes them when the grace
period is over and no lease holds them. Raises InvalidInput, CatalogError, StorageError; then nothing more is deleted.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable

from icefield.arguments import check_arguments
from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput
from icefield.table.versions.history import TableHistory
from icefield.upkeep.result import MOST_LOCATIONS, silent

with deferred_imports(__name__):
    from icefield.commit.actions.expire import ExpireSnapshots, RemoveTheseSnapshots
    from icefield.commit.relocate import Progress
    from icefield.dml.head import LiveHead
    from icefield.model.snapshot import Snapshot
    from icefield.plan.versions import parse_moment, to_millis
    from icefield.policy.inline import compact_inline
    from icefield.upkeep.expire import expire_snapshots
    from icefield.upkeep.leases import HeldLease, list_leases
    from icefield.upkeep.orphans import remove_orphans
    from icefield.upkeep.result import ExpiryResult, OrphanResult, SweepResult
    from icefield.upkeep.sweep import sweep


@check_arguments
class TableUpkeep(TableHistory):
    """The part of a table handle that removes what is not needed any more."""

    def expire_snapshots(
        self,
        older_than: datetime.datetime | str | None = None,
        *,
        keep_last: int | None = None,
        snapshot_ids: Iterable[int] | None = None,
        dry_run: bool = False,
        progress: Progress = silent,
    ) -> ExpiryResult:
        """Remove old snapshots, and mark the files that only they needed, to be deleted after the grace period.

        Also deletes files that were marked earlier, as `sweep` does.

        Args:
            older_than: Expire snapshots that are older than this. By default the property
                `history.expire.max-snapshot-age-ms` decides.
            keep_last: Keep at least this many snapshots of every branch.
            snapshot_ids: Expire these snapshots instead. Refuse one that a branch or tag points at.
            dry_run: Return what would be removed, and change nothing.
            progress: Called with each file that is deleted.
        """
        if snapshot_ids is not None and (older_than is not None or keep_last is not None):
            raise InvalidInput("snapshots expire by their ids or by age, not by both")
        if keep_last is not None and keep_last < 1:
            raise InvalidInput(f"keep_last must be at least one, not {keep_last}", hint="Each branch keeps its head")
        limit = None if older_than is None else to_millis(parse_moment(older_than, "older_than"))
        by_age = ExpireSnapshots(limit, keep_last)
        action = by_age if snapshot_ids is None else RemoveTheseSnapshots(frozenset(snapshot_ids))
        if dry_run:
            self.refresh()  # in a transaction this is a read
        return expire_snapshots(self._head, action, dry_run=dry_run, progress=progress)

    def remove_orphans(
        self,
        *,
        older_than: datetime.timedelta | None = None,
        unsafe: bool = False,
        dry_run: bool = False,
        most_locations: int = MOST_LOCATIONS,
        progress: Progress = silent,
    ) -> OrphanResult:
        """Mark files in the table's directories that nothing refers to, to be deleted after the grace period.

        Also deletes files that were marked earlier, as `sweep` does.

        Args:
            older_than: The least age of a file, by the store's clock. By default the property
                `icefield.gc.orphan-age-ms`, which is also the least.
            unsafe: Allow an age below a day, although other engines may be writing.
            dry_run: Return what would be marked, and change nothing.
            most_locations: How many of the files the result names.
            progress: Called with each file that is deleted.
        """
        return remove_orphans(
            self._live(),
            older_than_ms=None if older_than is None else int(older_than.total_seconds() * 1000),
            unsafe=unsafe,
            dry_run=dry_run,
            most_locations=most_locations,
            progress=progress,
        )

    def sweep(self, *, dry_run: bool = False, progress: Progress = silent) -> SweepResult:
        """Delete marked files whose grace period is over, unless they are in use again or held by a lease.

        Args:
            dry_run: Return what would be deleted, and delete nothing.
            progress: Called with each file that is deleted.
        """
        return sweep(self._live(), dry_run=dry_run, progress=progress)

    def leases(self) -> list[HeldLease]:
        """List who reads or writes the table for long, and what that holds back."""
        return list_leases(self._live())

    def _kept_up(self, made: Snapshot | None) -> Snapshot | None:
        """Return what was committed, after inline compaction if the table asks for it."""
        compact_inline(self._head, self._ref, made)
        return made

    def _live(self) -> LiveHead:
        if not isinstance(self._head, LiveHead):
            raise InvalidInput("files are not deleted in a transaction", hint="Use a handle of the lake")
        return self._head
