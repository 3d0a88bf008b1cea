"""The rows of a branch, as the checks before a publish read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import chain, islice

from icefield.deferred import deferred_imports

with deferred_imports(__name__):
    import pyarrow as pa

    from icefield.commit.operations.tables import TableVersion
    from icefield.dml.head import PinnedHead, TableHead
    from icefield.expr.parse.ast import Predicate
    from icefield.history.checks import Sample
    from icefield.model.names import TableName
    from icefield.model.snapshot import Snapshot
    from icefield.plan.versions import ResolvedVersion
    from icefield.table.reading.readable import python_values
    from icefield.table.scan import TableScan
    from icefield.table.table import Table
    from icefield.types.schema import Schema

QUERIES = "icefield.sql.checks"  # it comes after this room


@dataclass(frozen=True)
class CheckedBranch:
    """One version of a branch. beside: further tables, at the branches of theirs that are published with it."""

    head: TableHead
    loaded: TableVersion
    branch: str
    snapshot: Snapshot
    beside: Mapping[TableName, TableHead]

    @property
    def schema(self) -> Schema:
        """The columns of the table."""
        return self.loaded.metadata.schema

    @property
    def now_ms(self) -> int:
        """The time, in milliseconds since the epoch."""
        return self.head.backend.ambient.now_ms()

    def count(self, where: Predicate | str | None) -> int:
        """Count the rows that match a filter."""
        return self._scan(where).count()

    def extreme(self, column: str, *, least: bool) -> pa.Scalar:
        """Return the least or the greatest value of a column."""
        return self._scan(None).min(column) if least else self._scan(None).max(column)

    def sample(self, where: Predicate | str, count: int) -> Sample:
        """Return some rows that match a filter."""
        batches = (python_values(batch) for batch in self._scan(where).to_arrow())
        return list(islice(chain.from_iterable(batches), count))

    def query(self, text: str, count: int) -> tuple[int, Sample]:
        """Run a query; the table, and those that are published with it, are read at the branch."""
        heads: Sequence[TableHead] = [self.head, *self.beside.values()]
        pinned = {head.name: self._at_branch(head) for head in heads}
        return import_module(QUERIES).run_check(self.head.backend, pinned, text, count)  # type: ignore[no-any-return]

    def _at_branch(self, head: TableHead) -> Table:
        loaded = self.loaded if head is self.head else head.load()
        pinned = PinnedHead(head.backend, head.name, loaded, head.backend.ambient.monotonic())
        return Table(pinned, self.branch)

    def _scan(self, where: Predicate | str | None) -> TableScan:
        metadata = self.loaded.metadata
        version = ResolvedVersion(self.snapshot, metadata.schema)
        return TableScan(self.head.backend.reading, self.head.name, metadata, version, where)
