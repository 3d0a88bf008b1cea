"""Runs of upkeep over the tables of a lake, by their policies. Raises InvalidInput, NoSuchTable, CatalogError."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from icefield.arguments import check_arguments
from icefield.backend import Backend
from icefield.commit.relocate import MovedLake
from icefield.dml.head import LiveHead
from icefield.engine.choose import EngineName, check_engine
from icefield.engine.rows import SessionChoice
from icefield.model.names import TableName, parse_namespace, parse_table_name
from icefield.policy.budget import Budget
from icefield.policy.result import UpkeepResult
from icefield.policy.run import OnProgress, UpkeepRun
from icefield.policy.settings import Policies, check_namespace_properties


@check_arguments
class LakeUpkeep(ABC):
    """The part of a lake that keeps its tables in order, and the properties of namespaces, which may say how."""

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
        if tables is None:
            names = [parse_table_name(name) for name in self.tables()]
        else:
            names = [self._known(name) for name in dict.fromkeys(tables)]
        chosen = None if engine is None else check_engine(engine)
        run = UpkeepRun(
            names,
            self._head_of,
            Policies(self.backend.catalog),
            Budget.of(self.backend.ambient, minutes, max_bytes),
            on_progress or (lambda _progress: None),
            MovedLake(self.backend.catalog, self.backend.store, self.warehouse).explain,
            chosen,
        )
        return run.plan() if dry_run else run.run()

    def create_namespace(self, name: str, properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace. Its properties `icefield.upkeep.*` are defaults for its tables."""
        check_namespace_properties(properties or {})
        self.backend.catalog.create_namespace(parse_namespace(name), properties)

    def update_namespace_properties(
        self, name: str, updates: Mapping[str, str] | None = None, *, removals: Iterable[str] = ()
    ) -> None:
        """Set and remove properties of a namespace, in one step. Those of upkeep are defaults for its tables."""
        check_namespace_properties(updates or {})
        self.backend.catalog.update_namespace_properties(parse_namespace(name), removals, dict(updates or {}))

    def _head_of(self, name: TableName) -> LiveHead:
        head = LiveHead(self.backend, name)
        head.sessions = self._sessions
        return head
