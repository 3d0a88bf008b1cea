"""Commit to a catalog that writes metadata itself, from updates and requirements, as REST servers do.

Lost and unreliable responses: a server error, a broken connection or a gateway that sends a request twice leave the
outcome unknown, so only the table itself is trusted. Its snapshots include ours (committed); its history continues from
the base without them (conflict); the requirements still hold (sent again, under the same key: whichever request arrives
first makes the other fail); or none of these: CommitStateUnknown, and nothing is removed. The same applies if the
server answers 200 without the change in its response, or 409 to a request that a gateway sent twice. Once a change is
known to be committed, a failure to load the table does not count as a failure of the change.

Raises CommitConflict, CommitStateUnknown, AlreadyExists, NoSuchTable, CatalogError.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from icefield.ambient import Ambient
from icefield.deferred import deferred_imports
from icefield.errors import (
    AlreadyExists,
    CatalogError,
    CommitConflict,
    CommitStateUnknown,
    IcefieldError,
    InvalidInput,
)

with deferred_imports(__name__):
    from icefield.catalog.rest.fences import not_fenced
    from icefield.catalog.rest.tables import LoadedTable, TableChange, new_key
    from icefield.catalog.server import MetadataServer
    from icefield.commit.attempt import Attempt
    from icefield.commit.operations.rest_metrics import report_commit
    from icefield.commit.operations.tables import Proposal, TableVersion
    from icefield.commit.retry import Outcome, UnknownOutcome, resolve_outcome
    from icefield.model.apply import check
    from icefield.model.creation import AssertCreate, creation_updates
    from icefield.model.metadata import TableMetadata
    from icefield.model.names import TableName
    from icefield.model.requirements import find_requirements, find_version
    from icefield.model.updates import AddSnapshot, RemoveSnapshotRef, Requirement, SetSnapshotRef
    from icefield.model.updates_applied import has_snapshot, updates_applied

T = TypeVar("T")


@dataclass(frozen=True)
class RestTableOperations:
    """Commits by sending changes to the server."""

    server: MetadataServer
    ambient: Ambient
    places_tables = True

    def load(self, table: TableName, known: TableVersion | None = None) -> TableVersion:
        loaded = self.server.tables.load(table, known.location if known else None)
        if loaded is not None:
            return _committed(loaded)
        assert known is not None
        return known

    def load_all(
        self, tables: Iterable[TableName], known: Mapping[TableName, TableVersion]
    ) -> dict[TableName, TableVersion]:
        found = self.server.tables.load_all(tables)
        return {
            table: known[table] if table in known and known[table].location == loaded.location else _committed(loaded)
            for table, loaded in found.items()
        }

    def commit(
        self, proposals: Sequence[Proposal], unmoved: Mapping[TableName, str], attempt: Attempt
    ) -> Sequence[TableVersion]:
        still = [self._unmoved(table, pointer) for table, pointer in unmoved.items()]
        fences = not_fenced(attempt.write_ids)
        sending = _Sending(self, proposals, [_change(p, fences) for p in proposals], still, self._new_key())
        attempt.send(proposal.base.metadata for proposal in proposals)
        made = sending.send()
        attempt.is_landed = True
        if self.server.wants_reports:
            for proposal in proposals:
                report_commit(self.server.tables, proposal)
        return made

    def stage(self, table: TableName, location: str | None, metadata: TableMetadata) -> TableMetadata:
        return self.server.tables.stage(table, location, metadata)

    def create(self, proposal: Proposal, attempt: Attempt) -> TableVersion:
        table, staged = proposal.table, proposal.base.metadata
        change = TableChange(table, [AssertCreate()], [*creation_updates(staged), *proposal.updates])
        key = self._new_key()
        attempt.is_sent = True

        def send() -> TableVersion:
            return _decoded(self.server.tables.commit(change, key))

        def look() -> Outcome:
            found = _quietly(lambda: self.server.tables.load_all([table]))
            if found is None:
                return Outcome.UNKNOWN
            if table in found and found[table].metadata().is_table(staged.table_uuid):
                return Outcome.LANDED
            # A free name, or another table under it, proves nothing: ours may have been created, and dropped or
            # renamed since. Only a server that recognises the key can be asked twice.
            return Outcome.UNMOVED if table not in found and key is not None else Outcome.UNKNOWN

        try:
            return send()
        except CommitStateUnknown as unknown:
            outcome = UnknownOutcome(table, f"the table's uuid is {staged.table_uuid}", unknown)
            resolve_outcome(self.ambient, outcome, look, lambda: _quietly(send) is not None)
        except (CommitConflict, AlreadyExists):
            if look() is not Outcome.LANDED:
                raise
        return self.load_landed(table)

    def load_landed(self, table: TableName) -> TableVersion:
        """Load a table after a successful commit."""
        try:
            return self.load(table)
        except IcefieldError as error:
            raise CommitStateUnknown(
                f"the commit to {table} succeeded, but the table cannot be loaded: {error.message}",
                hint="Check the table later; do not commit again",
            ) from error

    def _unmoved(self, table: TableName, pointer: str) -> TableChange:
        """Return a change that does nothing, and fails unless a table is as it was read."""
        loaded = self.load(table)
        if loaded.location != pointer:
            raise CommitConflict(f"{table} has moved from {pointer} to {loaded.location}")
        return TableChange(table, find_version(loaded.metadata), [])

    def _new_key(self) -> str | None:
        return new_key(self.ambient) if self.server.takes_keys else None


@dataclass(frozen=True)
class _Sending:
    """One attempt to commit, which may be sent several times."""

    operations: RestTableOperations
    proposals: Sequence[Proposal]
    changes: Sequence[TableChange]
    still: Sequence[TableChange]
    key: str | None

    def send(self) -> list[TableVersion]:
        """Send the changes, and return the tables once they are known to be committed."""
        try:
            made = self._send_once()
        except CommitStateUnknown as unknown:
            return self._resolve_outcome(unknown)
        except CommitConflict as conflict:
            # A gateway may have sent it twice, so that the second request conflicts with the first.
            if self._shows_snapshots(conflict):
                return self._load_landed()
            raise
        except (CatalogError, InvalidInput) as refused:
            # Servers also reject stale requests, such as sequence numbers that another branch has used.
            if self._has_moved():
                raise CommitConflict(f"{self._first.table} has moved: {refused.message}") from refused
            raise
        if all(_holds(table, proposal) for table, proposal in zip(made, self.proposals, strict=True)):
            return made
        return self._resolve_outcome(
            CommitStateUnknown("the catalog reported success, but its response does not contain the change")
        )

    @property
    def _first(self) -> Proposal:
        return self.proposals[0]

    def _send_once(self) -> list[TableVersion]:
        tables = self.operations.server.tables
        everything = [*self.changes, *self.still]
        if len(everything) == 1:
            return [_decoded(tables.commit(everything[0], self.key))]
        tables.commit_all(everything, self.key)
        return self._load_landed()

    def _resolve_outcome(self, unknown: CommitStateUnknown) -> list[TableVersion]:
        ids = [u.snapshot.snapshot_id for p in self.proposals for u in p.updates if isinstance(u, AddSnapshot)]
        trace = f"snapshot {ids[0]} is in the table" if ids else "its changes are in the table"
        resolve_outcome(
            self.operations.ambient, UnknownOutcome(self._first.table, trace, unknown), self._look, self._send_again
        )
        return self._load_landed()

    def _look(self) -> Outcome:
        """Determine the outcome of all changes: they are committed atomically."""
        outcomes: set[Outcome] = set()
        for proposal, change in zip(self.proposals, self.changes, strict=True):
            current = _quietly(lambda p=proposal: self.operations.load(p.table))  # type: ignore[misc]
            outcomes.add(Outcome.UNKNOWN if current is None else _judge(proposal, change, current))
        for certain in (Outcome.LANDED, Outcome.LOST, Outcome.UNKNOWN):
            if certain in outcomes:
                return certain
        return Outcome.UNMOVED

    def _send_again(self) -> bool:
        made = _quietly(self._send_once)
        return made is not None and all(_holds(t, p) for t, p in zip(made, self.proposals, strict=True))

    def _shows_snapshots(self, conflict: CommitConflict) -> bool:
        for proposal in self.proposals:
            added = [update for update in proposal.updates if isinstance(update, AddSnapshot)]
            if added:
                try:
                    current = self.operations.load(proposal.table)
                except IcefieldError as error:
                    raise CommitStateUnknown(f"{conflict.message}; and the table cannot be loaded") from error
                return has_snapshot(current.metadata, added[0])
        return False

    def _has_moved(self) -> bool:
        current = _quietly(lambda: self.operations.load(self._first.table))
        return current is not None and current.location != self._first.base.location

    def _load_landed(self) -> list[TableVersion]:
        return [self.operations.load_landed(proposal.table) for proposal in self.proposals]


def _change(proposal: Proposal, fences: Sequence[Requirement]) -> TableChange:
    stated = [requirement for change in proposal.changes for requirement in change.requirements]
    updates = proposal.updates
    requirements = [*find_requirements(proposal.base.metadata, updates, stated), *fences]
    return TableChange(proposal.table, requirements, updates)


def _committed(loaded: LoadedTable) -> TableVersion:
    return TableVersion(loaded.metadata(), loaded.location)


def _decoded(answer: LoadedTable) -> TableVersion:
    try:
        return _committed(answer)
    except IcefieldError as error:
        raise CommitStateUnknown(f"malformed response to the commit: {error.message}") from error


def _holds(table: TableVersion, proposal: Proposal) -> bool:
    """Return whether the result of a commit contains the commit."""
    added = [update for update in proposal.updates if isinstance(update, AddSnapshot)]
    if added:
        return all(has_snapshot(table.metadata, update) for update in added)
    refs = [update for update in proposal.updates if isinstance(update, SetSnapshotRef | RemoveSnapshotRef)]
    if refs or table.location == proposal.base.location:
        return updates_applied(table.metadata, refs or proposal.updates, proposal.metadata)
    return True


def _judge(proposal: Proposal, change: TableChange, current: TableVersion) -> Outcome:
    """Determine the outcome of a change from the current table."""
    if current.location == proposal.base.location:
        return Outcome.UNMOVED
    if not current.metadata.is_table(proposal.base.metadata.table_uuid):
        return Outcome.UNKNOWN  # another table took the name; ours may have been changed before it was renamed
    added = [update for update in proposal.updates if isinstance(update, AddSnapshot)]
    if any(has_snapshot(current.metadata, update) for update in added):
        return Outcome.LANDED
    if not added and updates_applied(current.metadata, proposal.updates, proposal.metadata):
        return Outcome.LANDED
    requirements = [each for each in change.requirements if not isinstance(each, AssertCreate)]
    if added and _still_hold(current.metadata, requirements):
        return Outcome.UNMOVED
    if added and not _goes_on(proposal, current.metadata):
        return Outcome.UNKNOWN  # ours may have been committed and expired since
    return Outcome.UNKNOWN if _still_hold(current.metadata, requirements) else Outcome.LOST


def _still_hold(table: TableMetadata, requirements: Sequence[Requirement]) -> bool:
    try:
        check(table, requirements)
    except CommitConflict:
        return False
    return True


def _goes_on(proposal: Proposal, current: TableMetadata) -> bool:
    """Return whether the history of every ref to be moved includes its snapshot in the base."""
    for update in proposal.updates:
        if not isinstance(update, SetSnapshotRef):
            continue
        before, now = proposal.base.metadata.refs.get(update.name), current.refs.get(update.name)
        history = list(current.ancestors(current.snapshot_by_id(now.snapshot_id))) if now else []
        if before is not None and all(s.snapshot_id != before.snapshot_id for s in history):
            return False
        if before is None and history and history[-1].parent_snapshot_id is not None:
            return False
    return True


def _quietly(ask: Callable[[], T]) -> T | None:
    try:
        return ask()
    except IcefieldError:
        return None
