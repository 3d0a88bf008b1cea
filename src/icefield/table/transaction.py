"""A transaction over several tables: all are read at one moment, and committed atomically.

    with lake.transaction() as tx:
        tx.table("shop.orders").append(orders)
        tx.table("shop.stock").overwrite(stock, where="day = '2026-01-05'")

Within a transaction a table changes only by the transaction itself. No one else sees the changes before the block ends;
if it raises, nothing is changed. Concurrent commits are handled as for single-table commits: changes that do not
conflict are applied again to the new base, others fail with ConcurrentChange. Under serializable isolation, a
transaction also fails if rows that it read, of any table, have changed since.

Raises ConcurrentChange, CommitConflict, CommitStateUnknown, NoSuchTable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from icefield.arguments import check_arguments
from icefield.commit.loop import NO_FILES, Committer, OwnFiles, TableCommit, propose_all
from icefield.deferred import deferred_imports
from icefield.errors import ConcurrentChange, InvalidInput, NoSuchTable
from icefield.properties.table import SERIALIZABLE, SNAPSHOT
from icefield.storage.store import StaysInProcess

with deferred_imports(__name__):
    from icefield.backend import Backend
    from icefield.commit.action import Action, WriteContext
    from icefield.commit.attempt import begin_attempt
    from icefield.commit.open_write import OpenWrite, needs_lease
    from icefield.commit.operations.choose import operations_of
    from icefield.commit.operations.tables import TableVersion
    from icefield.commit.validate.references import remove_quietly, remove_unreferenced
    from icefield.commit.validate.transaction_reads import Reads, RowsRead
    from icefield.engine.rows import SessionChoice
    from icefield.expr.parse.ast import Predicate
    from icefield.model.metadata import TableMetadata
    from icefield.model.names import TableName, parse_table_name
    from icefield.model.snapshot import Snapshot
    from icefield.plan.versions import AsOf
    from icefield.table.table import Table


@check_arguments
class Transaction(StaysInProcess):
    """Changes to several tables, committed together at the end of a `with` block; `Lake.transaction` returns one.

    All tables are read at one moment, and the transaction sees its own changes. No one else sees them before the block
    ends. If the block raises, nothing is changed.
    """

    def __init__(self, backend: Backend, *, isolation: str = SERIALIZABLE, checks_sources: bool = True) -> None:
        """Begin a transaction. checks_sources: tables that are only read must be unchanged too, if serializable."""
        if isolation not in (SERIALIZABLE, SNAPSHOT):
            raise InvalidInput(f"isolation must be {SERIALIZABLE} or {SNAPSHOT}, not {isolation!r}")
        self._backend = backend
        self._isolation = isolation
        self._checks_sources = checks_sources
        self._heads: dict[TableName, _StagedHead] = {}
        self._is_over = False
        self.sessions = SessionChoice()

    def table(self, name: str) -> Table:
        """Open a table as of the moment of the transaction."""
        return Table(self._head(parse_table_name(name)))

    def read(
        self,
        name: str,
        where: Predicate | str | Any = None,
        select: Sequence[str] | None = None,
        as_of: AsOf | None = None,
    ) -> Any:
        """Return rows of a table as a Spark DataFrame: `table(name).scan(where, select, as_of).to_spark()`."""
        return self.table(name).scan(where, select, as_of).to_spark()

    def pin(self, names: Iterable[str]) -> None:
        """Fix the versions of several tables at one moment; those that are open already stay as they are."""
        self._check_open()
        new = [table for table in map(parse_table_name, names) if table not in self._heads]
        if new:
            self._pin(new)

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_over:  # the block may have ended it
            self._end(self._commit if error is None else self._abandon)

    def commit(self) -> None:
        """Commit all changes and end the transaction, as the end of a `with` block does."""
        self._check_open()
        self._end(self._commit)

    def rollback(self) -> None:
        """Discard all changes and end the transaction."""
        self._check_open()
        self._end(self._abandon)

    def _end(self, finish: Callable[[], None]) -> None:
        self._is_over = True
        try:
            finish()
        finally:
            for head in self._heads.values():
                head.close()

    def _head(self, table: TableName) -> _StagedHead:
        if table not in self._heads:
            self._pin([table])
        head = self._heads[table]
        head.sessions = self.sessions
        return head

    def _pin(self, tables: Sequence[TableName]) -> None:
        """Fix the versions of all tables at one moment; what was already read must be unchanged then.

        Tables that have changed since are read at their newest version, with the transaction's own changes applied.
        This is not observable: whatever was read of the older version is the same in the newer one.
        """
        self._check_open()
        found = self._load(tables)
        for table in tables:
            if table not in found:
                raise NoSuchTable(f"no table {table}")
        for name, head in self._heads.items():
            if name not in found or not found[name].version.metadata.is_table(head.base.metadata.table_uuid):
                raise ConcurrentChange(
                    f"{name} was dropped or recreated since the transaction opened it",
                    hint="Nothing was changed; run it again",
                )
            if found[name].version is not head.base:
                head.rebase(found[name])
        for table in tables:
            if table not in self._heads:
                self._heads[table] = _StagedHead(table, found[table], self._backend, self._head)

    def _load(self, tables: Sequence[TableName]) -> dict[TableName, _Pinned]:
        """Load tables, and those that are open already, at one moment, and protect what is new from a collector."""
        load_all = operations_of(self._backend).load_all
        known = {name: head.base for name, head in self._heads.items()}
        while True:
            at = self._backend.ambient.monotonic()
            found = load_all([*known, *tables], known)
            new = {name: version for name, version in found.items() if known.get(name) is not version}
            opened = {name: self._open(version) for name, version in new.items() if needs_lease(version.metadata)}
            # A collector that did not see the leases has moved the pointer before.
            now = load_all(opened, found) if opened else {}
            if all(name in now and _has_heads(now[name], found[name]) for name in opened):
                return {name: _Pinned(version, at, opened.get(name)) for name, version in found.items()}
            for write in opened.values():
                write.close()

    def _open(self, version: TableVersion) -> OpenWrite:
        write = OpenWrite(self._backend)
        write.protect(version.metadata, _heads_of(version))
        return write

    def _check_open(self) -> None:
        if self._is_over:
            raise _over()

    @property
    def _committer(self) -> Committer:
        return Committer(self._backend)

    def _commit(self) -> None:
        changed = [head for head in self._heads.values() if head.actions]
        if not changed:
            return
        counts = self._isolation == SERIALIZABLE
        checks_sources = counts and self._checks_sources
        read = [head for head in self._heads.values() if not head.actions and head.reads.rows and checks_sources]
        landed = self._committer.commit([head.part(with_reads=counts) for head in (*changed, *read)])
        for head, table in zip(changed, landed, strict=False):
            head.forget_staged(table.metadata)

    def _abandon(self) -> None:
        for head in self._heads.values():
            self._committer.discard(head.part(with_reads=False))


def _over() -> InvalidInput:
    return InvalidInput("the transaction is over", hint="Begin a new one, or open the table from the lake")


def _heads_of(version: TableVersion) -> list[Snapshot]:
    """Return the snapshots that branches and tags point at."""
    snapshots = version.metadata.snapshots
    found = (snapshots.find(ref.snapshot_id) for ref in version.metadata.refs.values())
    return [snapshot for snapshot in found if snapshot is not None]


def _has_heads(now: TableVersion, before: TableVersion) -> bool:
    """Return whether a later version still has what branches and tags pointed at."""
    same = now.metadata.is_table(before.metadata.table_uuid)
    return same and all(now.metadata.snapshots.find(head.snapshot_id) is not None for head in _heads_of(before))


@dataclass(frozen=True)
class _Pinned:
    """A version of a table, when it was loaded on the monotonic clock, and what protects it if that is needed."""

    version: TableVersion
    at: float
    write: OpenWrite | None


class _StagedHead:
    """A table as a transaction sees it: fixed, except for the transaction's own changes."""

    def __init__(
        self, name: TableName, pinned: _Pinned, backend: Backend, beside: Callable[[TableName], _StagedHead]
    ) -> None:
        self.backend = backend
        self.beside = beside
        self.name = name
        self.sessions = SessionChoice()
        self.base = base = pinned.version
        self.pinned_at: float | None = pinned.at
        self._opened: list[OpenWrite] = []
        self._held: set[int] = set()
        self._hold(pinned)
        self.actions: list[Action] = []
        self.reads = Reads(base.metadata)
        self.is_over = False
        self._first = base.metadata
        self._own: list[OwnFiles] = []
        self._written: list[str] = []  # files for previews of the changes; the commit writes its own
        self._staged = base.metadata

    def load(self) -> TableVersion:
        if self.is_over and self.actions:
            raise _over()  # the previews of its changes were removed
        return TableVersion(self._staged, self.base.location)

    def committed(self, loaded: TableMetadata) -> TableMetadata:
        return self.base.metadata

    def note_read(self, find: Callable[[], RowsRead | None]) -> None:
        if (read := find()) is not None:
            self.reads.note(read)

    def commit(self, actions: Sequence[Action], own: OwnFiles = NO_FILES) -> TableMetadata:
        try:
            if self.is_over:
                raise _over()
            self._staged = self._propose(actions, self._staged)
        except BaseException:
            part = TableCommit(self.name, actions, self.base.metadata.table_uuid, self.base, own=[own])
            Committer(self.backend).discard(part)
            raise
        self.actions.extend(actions)
        self._own.append(own)
        return self._staged

    def rebase(self, pinned: _Pinned) -> None:
        """Move to a newer version in which everything that was read is unchanged."""
        base = pinned.version
        self._hold(pinned)
        self.reads.check(self.name, base.metadata, self.backend.reading)
        self._staged = self._propose(self.actions, base.metadata)
        self.base, self.reads = base, Reads(base.metadata, self.reads.rows)
        self.pinned_at = pinned.at

    def holds(self, snapshot: Snapshot) -> bool:
        return snapshot.snapshot_id in self._held

    def _hold(self, pinned: _Pinned) -> None:
        if pinned.write is not None:
            self._opened.append(pinned.write)
            self._held.update(head.snapshot_id for head in _heads_of(pinned.version))

    def close(self) -> None:
        """End the transaction for this table."""
        self.is_over = True
        for write in self._opened:
            write.close()

    def part(self, *, with_reads: bool) -> TableCommit:
        """Return the changes to commit."""
        uuid, reads = self.base.metadata.table_uuid, self.reads if with_reads else None
        own = [*self._own, OwnFiles(self._only_staged(), self.base.metadata)]
        own += [OwnFiles(write=write) for write in self._opened]
        return TableCommit(self.name, self.actions, uuid, self.base, reads, own)

    def forget_staged(self, now: TableMetadata) -> None:
        """Remove files that only the block itself could see, and files of changes that another run committed."""
        remove_quietly(self.backend.store, self._only_staged())
        if any(own.is_optional for own in self._own):
            reusable = [location for action in self.actions for location in action.reusable_files()]
            own = [location for own in self._own for location in own.locations]
            remove_unreferenced(self.backend.reading, [*own, *reusable], now, self._first)

    def _only_staged(self) -> list[str]:
        reusable = {location for action in self.actions for location in action.reusable_files()}
        return [location for location in self._written if location not in reusable]

    def _propose(self, actions: Sequence[Action], base: TableMetadata) -> TableMetadata:
        attempt = begin_attempt(self.backend.store, self._opened)
        try:
            return propose_all(actions, base, WriteContext.of(self.backend, attempt.store, attempt.write_id))
        finally:
            self._written.extend(attempt.written)
