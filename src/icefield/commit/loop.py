"""Commit to one or several tables: load, propose, publish; in the loop of `retry`.

Invariants:
- Publishing is the only visible step. Everything before it writes new files that nothing references.
- A conflict removes the files of that attempt only, and proposes again on the new base.
- If the response to a swap is lost, nothing is removed until the catalog shows the outcome.
- After any error before the request to the catalog, all files written for the change are removed.
- A file that a snapshot of the table references is never removed, whichever change it was written for.

Raises ConcurrentChange (a concurrent commit conflicts with this one), CommitConflict (all retries conflicted),
CommitStateUnknown (it may have been committed: check before running it again), NoSuchTable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from icefield.catalog.commit_queue.queue import NO_QUEUE
from icefield.deferred import deferred_imports
from icefield.errors import CommitConflict, IcefieldError, MissingFile, NoSuchTable
from icefield.metrics import stopwatch
from icefield.properties.table import COMMIT_RETRIES

with deferred_imports(__name__):
    import logging

    from icefield.backend import Backend
    from icefield.commit.action import Action, ProposedChange, WriteContext
    from icefield.commit.actions.expire import TrimHistory
    from icefield.commit.attempt import Attempt, begin_attempt
    from icefield.commit.open_write import OpenWrite
    from icefield.commit.operations.choose import operations_of
    from icefield.commit.operations.locations import check_proposed_locations
    from icefield.commit.operations.retired_metadata import look_after_commit
    from icefield.commit.operations.tables import Proposal, TableOperations, TableVersion
    from icefield.commit.retry import retry
    from icefield.commit.validate.references import remove_quietly, remove_unreferenced
    from icefield.commit.validate.transaction_reads import Reads
    from icefield.metrics import report_of_commit
    from icefield.model.apply import apply, check
    from icefield.model.metadata import TableMetadata
    from icefield.model.names import TableName
    from icefield.model.updates import AddSnapshot
    from icefield.storage.store import Store


@dataclass(frozen=True)
class OwnFiles:
    """Data files that were written for a change.

    since: the version of the table before they were written. is_optional: the change is skipped if another run of it
    has been committed. write: what protects them until the swap.
    """

    locations: Sequence[str] = ()
    since: TableMetadata | None = None
    is_optional: bool = False
    write: OpenWrite | None = field(default=None, compare=False)


NO_FILES = OwnFiles()
FRESH_S = 1.0  # how long a loaded version is assumed to be the newest


@dataclass(frozen=True)
class TableCommit:
    """What a commit does to one table.

    known: a version that was loaded before; it is not loaded again while it is the newest. known_at: when it was
    loaded, on a monotonic clock. reads: what was read from the table, which must be unchanged at commit time. own: data
    files to remove if the commit certainly failed. retries: after conflicts; None for as many as the table's properties
    say.
    """

    table: TableName
    actions: Sequence[Action]
    expected_uuid: UUID
    known: TableVersion | None = None
    reads: Reads | None = None
    own: Sequence[OwnFiles] = ()
    known_at: float | None = None
    retries: int | None = None


@dataclass(frozen=True)
class Committer:
    """Commits actions to one or several tables."""

    backend: Backend

    def commit(self, parts: Sequence[TableCommit]) -> list[TableVersion]:
        """Apply all actions in one swap, retrying after conflicts; tables that change come first."""
        elapsed_ns = stopwatch()
        run = _Run(parts, [own.write for part in parts for own in part.own if own.write is not None])
        if not run.writes:
            run.writes.append(OpenWrite(self.backend))
        try:
            landed = retry(
                self.backend.ambient,
                parts[0].table,
                lambda: self._load(run),
                lambda _, bases: self._attempt(run, bases),
                lambda: self._slot(parts),
            )
        except BaseException as error:
            if run.attempt is None or not run.attempt.may_have_landed(error):
                for part in parts:
                    self.discard(part)
            else:
                # The swap may still be on its way. The leases hold its files until a collector has fenced it.
                for write in run.writes:
                    write.abandon()
            raise
        finally:
            for write in run.writes:
                write.close()
        if run.attempt is not None and run.attempt.is_landed:
            self._report(run, elapsed_ns())
            for part, version in zip(parts, landed, strict=True):
                if part.actions:
                    look_after_commit(self.backend, part.table, version)
        return landed

    def _report(self, run: _Run, duration_ns: int) -> None:
        """Log and report the snapshots of a commit that landed."""
        snapshots = [(p.table, u.snapshot) for p in run.proposals for u in p.updates if isinstance(u, AddSnapshot)]
        for table, snapshot in snapshots:
            text = "committed snapshot %d (%s) to %s, attempt %d, %.0f ms"
            what = (snapshot.snapshot_id, snapshot.operation, table, run.attempts, duration_ns / 1e6)
            logging.getLogger("icefield.commit").info(text, *what)
            if self.backend.listeners:
                more = {"total-duration": duration_ns, "attempts": run.attempts}
                self.backend.listeners.send(report_of_commit(str(table), snapshot, more))

    def discard(self, part: TableCommit) -> None:
        """Remove the files of a part that was certainly not committed, on any base."""
        reusable = [location for action in part.actions for location in action.reusable_files()]
        is_optional = any(own.is_optional for own in part.own)
        for own in (*part.own, OwnFiles(reusable, is_optional=is_optional)):
            if own.locations:
                self._remove_unreferenced(part, own)

    def _remove_unreferenced(self, part: TableCommit, own: OwnFiles) -> None:
        try:
            now = self._load_base(part).metadata
        except NoSuchTable:
            # Another run of the change may have committed the files to the table, under the name that it has now.
            if not own.is_optional:
                remove_quietly(self.backend.store, own.locations)
            return
        except IcefieldError:
            return
        since = own.since or (part.known.metadata if part.known else None)
        remove_unreferenced(self.backend.reading, own.locations, now, since)

    @contextmanager
    def _slot(self, parts: Sequence[TableCommit]) -> Iterator[None]:
        with ExitStack() as slots:
            # In a fixed order, so that no two transactions wait for each other.
            for table in sorted({part.table for part in parts if part.actions}, key=str):
                slots.enter_context(self.backend.queue.slot(table))
            yield

    def _operations(self, store: Store) -> TableOperations:
        return operations_of(self.backend.on(store))

    def _load(self, run: _Run) -> tuple[str, _Bases]:
        known = self._fresh(run.parts) if run.attempt is None else None
        bases = _Bases(known or [self._load_base(part) for part in run.parts], run.parts[0].retries)
        return bases.tables[0].location, bases

    def _fresh(self, parts: Sequence[TableCommit]) -> list[TableVersion] | None:
        """Return the versions that the caller has just loaded, to save a request.

        A writer that waited in the commit queue loads again, because others committed. If a version is stale, the swap
        fails.
        """
        since = self.backend.ambient.monotonic() - FRESH_S
        found = [part.known for part in parts if part.known and part.known_at is not None and part.known_at >= since]
        return found if self.backend.queue is NO_QUEUE and len(found) == len(parts) else None

    def _load_base(self, part: TableCommit) -> TableVersion:
        base = self._operations(self.backend.store).load(part.table, part.known)
        if not base.metadata.is_table(part.expected_uuid):
            raise NoSuchTable(f"table {part.table} was dropped and recreated since it was opened", hint="Reopen it")
        return base

    def _attempt(self, run: _Run, bases: _Bases) -> list[TableVersion]:
        attempt = run.attempt = begin_attempt(self.backend.store, run.protect(bases.tables))
        run.attempts += 1
        try:
            proposals = [self._propose(p, base, attempt) for p, base in zip(run.parts, bases.tables, strict=True)]
            moved = [proposal for proposal in proposals if proposal.updates]
            if not moved:
                self._remove(attempt.written, run)
                return list(bases.tables)
            for proposal in moved:
                check_proposed_locations(self.backend.store, proposal)
            run.proposals = moved
            still = {p.table: p.base.location for p in proposals if not p.updates}
            committed = self._operations(attempt.store).commit(moved, still, attempt)
        except BaseException as error:
            if not attempt.may_have_landed(error):
                attempt.is_sent = False
                self._remove(attempt.written, run)
            if isinstance(error, MissingFile) and self._has_moved(run, bases):
                # Files of a base that is not the newest any more may be gone.
                raise CommitConflict(f"{run.parts[0].table} changed while its files were read") from error
            raise
        remove_quietly(self.backend.store, [f for p in proposals for change in p.changes for f in change.unused])
        made = {proposal.table: new for proposal, new in zip(moved, committed, strict=True)}
        return [made.get(proposal.table, proposal.base) for proposal in proposals]

    def _has_moved(self, run: _Run, bases: _Bases) -> bool:
        return any(
            self._load_base(part).location != base.location for part, base in zip(run.parts, bases.tables, strict=True)
        )

    def _propose(self, part: TableCommit, base: TableVersion, attempt: Attempt) -> Proposal:
        if part.reads is not None:
            part.reads.check(part.table, base.metadata, self.backend.reading)
        changes: list[ProposedChange] = []
        context = WriteContext.of(self.backend, attempt.store, attempt.write_id)
        metadata = propose_all(part.actions, base.metadata, context, changes)
        if any(isinstance(update, AddSnapshot) for change in changes for update in change.updates):
            metadata = propose_all([TrimHistory()], metadata, context, changes)
        return Proposal(part.table, base, changes, metadata)

    def _remove(self, written: Sequence[str], run: _Run) -> None:
        """Remove the files that an attempt wrote for its own bases; files for every base are kept for the next one."""
        reusable = {location for part in run.parts for action in part.actions for location in action.reusable_files()}
        remove_quietly(self.backend.store, [location for location in written if location not in reusable])


@dataclass
class _Run:
    """A commit in progress: its parts, the newest attempt and what it proposed, and how many there were."""

    parts: Sequence[TableCommit]
    writes: list[OpenWrite]
    attempt: Attempt | None = field(default=None)
    attempts: int = 0
    proposals: Sequence[Proposal] = ()

    def protect(self, tables: Sequence[TableVersion]) -> Sequence[OpenWrite]:
        """Protect the files of an attempt, which the first one names; return all that protect files of the commit."""
        for part, table in zip(self.parts, tables, strict=True):
            if part.actions:
                self.writes[0].protect(table.metadata)
        return self.writes


def propose_all(
    actions: Sequence[Action], base: TableMetadata, context: WriteContext, changes: list[ProposedChange] | None = None
) -> TableMetadata:
    """Propose actions, each on the result of the previous one; record them in `changes`."""
    for action in actions:
        change = action.propose(base, context)
        check(base, change.requirements)
        if change.updates:
            base = apply(base, change.updates, context.ambient.now_ms())
            if changes is not None:
                changes.append(change)
    return base


@dataclass(frozen=True)
class _Bases:
    """The tables as loaded for an attempt; the properties of the first one set the retries."""

    tables: Sequence[TableVersion]
    retries: int | None = None

    @property
    def properties(self) -> Mapping[str, str]:
        own = self.tables[0].metadata.properties
        return own if self.retries is None else {**own, COMMIT_RETRIES.key: str(self.retries)}
