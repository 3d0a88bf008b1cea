"""Several tables in one transaction: read at one moment, changed in one swap.

    with lake.transaction() as tx:
        tx.table("shop.orders").append(orders)
        tx.table("shop.stock").overwrite(stock, where="day = '2026-01-05'")

Inside, every table stands still but for what the transaction does to it. Nothing can be seen by others before the block
ends; if it raises, nothing happens. Writers that came meanwhile are met as by single commits: what commutes is made
again on the new base, what does not fails with ConcurrentChange. So does, under serializable isolation, a transaction
that read a table which was changed since.

Raises ConcurrentChange, CommitConflict, CommitStateUnknown, NoSuchTable.
"""

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from icefield.ambient import Ambient
from icefield.arguments import check_arguments
from icefield.catalog.catalog import Catalog
from icefield.catalog.lane import NO_LANES, Lanes
from icefield.commit.action import Action, Workshop
from icefield.commit.loop import Committer, Part, propose_all, remove_quietly
from icefield.commit.publish import Committed
from icefield.commit.publishers import publisher_of
from icefield.errors import ConcurrentChange, IcefieldError, InvalidInput, NoSuchTable
from icefield.model.metadata import TableMetadata
from icefield.model.names import TableName, parse_table_name
from icefield.properties import SERIALIZABLE, SNAPSHOT
from icefield.storage.store import Store
from icefield.table import Table


@check_arguments
class Transaction:
    """Gathers changes to tables; `lake.transaction()` makes it, and the end of its block commits it."""

    def __init__(
        self,
        catalog: Catalog,
        store: Store,
        ambient: Ambient,
        lanes: Lanes = NO_LANES,
        *,
        isolation: str = SERIALIZABLE,
    ) -> None:
        if isolation not in (SERIALIZABLE, SNAPSHOT):
            raise InvalidInput(f"isolation is {SERIALIZABLE} or {SNAPSHOT}, not {isolation!r}")
        self._catalog = catalog
        self._store = store
        self._ambient = ambient
        self._lanes = lanes
        self._isolation = isolation
        self._heads: dict[TableName, _StagedHead] = {}
        self._is_over = False

    def table(self, name: str) -> Table:
        """Open a table as of the moment of the transaction."""
        table = parse_table_name(name)
        if table not in self._heads:
            self._pin([table])
        return Table(self._heads[table], self._store, self._ambient)

    def pin(self, names: Iterable[str]) -> None:
        """Fix the versions of several tables at one moment, before they are opened."""
        self._pin([parse_table_name(name) for name in names])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        if error is not None:
            self._abandon()
            return
        self._commit()

    def _pin(self, tables: Sequence[TableName]) -> None:
        """Take the versions of all tables at one moment; those that were taken before must not have moved."""
        if self._is_over:
            raise InvalidInput("the transaction is over", hint="Begin another one")
        known = {name: head.base for name, head in self._heads.items()}
        found = publisher_of(self._catalog, self._store, self._ambient).load_all([*known, *tables], known)
        for name, base in known.items():
            if found.get(name) is not base:
                raise ConcurrentChange(
                    f"{name} was changed after the transaction opened it, and before it opened {tables[0]}",
                    hint="Nothing was changed; run it again, or pin all tables at its beginning: tx.pin([…])",
                )
        for table in tables:
            if table not in found:
                raise NoSuchTable(f"no table {table}")
            if table not in self._heads:
                self._heads[table] = _StagedHead(table, found[table], Workshop(self._store, self._ambient))

    def _commit(self) -> None:
        changed = [head for head in self._heads.values() if head.actions]
        if not changed:
            return
        parts = [Part(head.name, head.actions, head.base.metadata.table_uuid, head.base) for head in changed]
        only_read = {h.name: h.base.location for h in self._heads.values() if not h.actions and h.was_read}
        committer = Committer(self._catalog, self._store, self._ambient, self._lanes)
        try:
            committer.commit(parts, only_read if self._isolation == SERIALIZABLE else {})
        except IcefieldError as error:
            if error.cleanable:
                self._abandon()
            raise
        # What was written to look at the changes before they landed; the commit wrote its own.
        remove_quietly(self._store, [location for head in changed for location in head.written])

    def _abandon(self) -> None:
        for head in self._heads.values():
            reusable = [location for action in head.actions for location in action.reusable_files()]
            remove_quietly(self._store, [*head.data_files, *head.written, *reusable])


class _StagedHead:
    """A table as a transaction sees it: fixed, but for the transaction's own changes."""

    def __init__(self, name: TableName, base: Committed, workshop: Workshop) -> None:
        self.name = name
        self.base = base
        self.actions: list[Action] = []
        self.data_files: list[str] = []
        self.written: list[str] = []
        self.was_read = False
        self._workshop = workshop
        self._staged = base.metadata

    def load(self) -> Committed:
        self.was_read = True
        return Committed(self._staged, self.base.location)

    def committed(self, loaded: TableMetadata) -> TableMetadata:
        return self.base.metadata

    def commit(self, actions: Sequence[Action], data_files: Sequence[str] = ()) -> TableMetadata:
        self.data_files.extend(data_files)
        self._staged = propose_all(actions, self._staged, self._workshop, self.written)
        self.actions.extend(actions)
        return self._staged
