"""The tables of a statement at one moment: all are loaded in one call, and read at those versions.

In a transaction they are read as it sees them. Raises NoSuchTable.
"""

from collections.abc import Iterable

from icefield.commit.operations.choose import operations_of
from icefield.dml.head import PinnedHead
from icefield.errors import NoSuchTable
from icefield.model.names import TableName
from icefield.sql.session import Run
from icefield.table.table import Table


class Pins:
    """Versions of tables, fixed by the first `load`."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._tables = dict(run.session.pinned)

    def load(self, names: Iterable[TableName]) -> None:
        """Fix the versions of tables at one moment; those that are fixed already stay."""
        new = [name for name in dict.fromkeys(names) if name not in self._tables]
        if not new:
            return
        transaction, source = self._run.session.transaction, self._run.lake.source
        if transaction is not None:
            transaction.pin([str(name) for name in new])
            self._tables |= {name: transaction.table(str(name)) for name in new}
            return
        at = source.backend.ambient.monotonic()
        found = operations_of(source.backend).load_all(new, {})
        for name in new:
            if name not in found:
                raise NoSuchTable(f"no table {name}: it was dropped just now")
            head = PinnedHead(source.backend, name, found[name], at)
            head.sessions = source.sessions
            self._tables[name] = Table(head)

    def table(self, name: TableName) -> Table:
        """Return a table at its version."""
        self.load([name])
        return self._tables[name]
