"""Runs of upkeep over the tables of a lake, by their policies. Raises InvalidInput, NoSuchTable, CatalogError."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from icefield.arguments import check_arguments
from icefield.deferred import deferred_imports
from icefield.errors import LocationRefused, NoSuchTable

with deferred_imports(__name__):
    from icefield.backend import Backend
    from icefield.commit.relocate import MovedLake
    from icefield.dml.head import LiveHead
    from icefield.engine.choose import EngineName, check_engine
    from icefield.engine.rows import SessionChoice
    from icefield.model.names import TableName, parse_table_name
    from icefield.policy.budget import Budget
    from icefield.policy.result import UpkeepResult
    from icefield.policy.run import OnProgress, UpkeepRun
    from icefield.policy.settings import Policies
    from icefield.upkeep.leases import HeldLease, list_leases


@check_arguments
class LakeUpkeep(ABC):
    """The part of a lake that keeps its tables in order."""

    backend: Backend
    warehouse: str
    _sessions: SessionChoice

    @abstractmethod
    def tables(self, namespace: str | None = None) -> list[str]:
        """List the tables."""

    @abstractmethod
    def _known(self, name: str) -> TableName:
        """Check the name of a table."""

    def upkeep(
        self,
        tables: Sequence[str] | None = None,
        *,
        minutes: float | None = None,
        max_bytes: int | None = None,
        dry_run: bool = False,
        on_progress: OnProgress | None = None,
        engine: EngineName | None = None,
    ) -> UpkeepResult:
        """Do the upkeep that tables need, by their properties `icefield.upkeep.*`, the worst debt first.

        Steps are: convert equality deletes, compact, rewrite manifests, expire snapshots, search orphan files, and
        sweep. Several machines may run it at once: each works on tables that no other is at. A table that fails does
        not stop the others; the result says so.

        Args:
            tables: The tables. By default all.
            minutes: How long the run may take. A step in progress ends with its next commit.
            max_bytes: How many bytes compaction may rewrite, of all tables together.
            dry_run: Return what is due, in the order in which it would be done, and change nothing.
            on_progress: Called with an `UpkeepProgress` before each table is measured, and before each step.
            engine: As in `Table.delete`.
        """
        names = self._names_of(tables)
        chosen = None if engine is None else check_engine(engine)
        run = UpkeepRun(
            names,
            self._head_of,
            Policies(self.backend.catalog),
            Budget.of(self.backend.ambient, minutes, max_bytes),
            on_progress or (lambda _progress: None),
            self._moved.explain,
            chosen,
        )
        return run.plan() if dry_run else run.run()

    def leases(self, tables: Sequence[str] | None = None) -> list[HeldLease]:
        """List who reads or writes tables for long, and what that holds back.

        Args:
            tables: The tables. By default all.
        """
        found: list[HeldLease] = []
        for name in self._names_of(tables):
            try:
                found += list_leases(self._head_of(name))
            except NoSuchTable:  # else it was dropped since the tables were listed
                if tables is not None:
                    raise
            except LocationRefused as error:
                raise self._moved.explain(error) from error
        return found

    @property
    def _moved(self) -> MovedLake:
        return MovedLake(self.backend.catalog, self.backend.store, self.warehouse)

    def _names_of(self, tables: Sequence[str] | None) -> list[TableName]:
        if tables is None:
            return [parse_table_name(name) for name in self.tables()]
        return [self._known(name) for name in dict.fromkeys(tables)]

    def _head_of(self, name: TableName) -> LiveHead:
        head = LiveHead(self.backend, name)
        head.sessions = self._sessions
        return head
