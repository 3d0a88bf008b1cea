"""Branches and tags of all tables of a lake: one consistent state, or work on many tables that is published at once.

Raises AlreadyExists, NoSuchSnapshot, NoSuchTable, ConcurrentChange, Unsupported.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from icefield.arguments import check_arguments
from icefield.backend import Backend
from icefield.history.lake_refs import check_swaps_many, create_refs, drop_refs, tables_with
from icefield.model.names import parse_table_name
from icefield.model.snapshot import MAIN, RefKind
from icefield.storage.store import StaysInProcess
from icefield.table.table import Table
from icefield.table.transaction import Transaction


@check_arguments
class LakeRefs(ABC):
    """The part of a lake that deals with branches and tags of many tables."""

    backend: Backend

    @abstractmethod
    def tables(self, namespace: str | None = None) -> list[str]:
        """List the tables."""

    @abstractmethod
    def table(self, name: str) -> Table:
        """Open a table."""

    @abstractmethod
    def transaction(self, *, isolation: str = ...) -> Transaction:
        """Begin a transaction."""

    def tag(self, name: str, *, tables: Sequence[str] | None = None, **retention: int) -> "LakeVersion":
        """Tag one consistent state of the tables, in one swap; tables without snapshots are left out.

        Args:
            name: The name of the tag.
            tables: The tables. By default all.
            retention: `max_ref_age_ms`.
        """
        return self._create_refs(name, RefKind.TAG, tables, retention)

    def branch(self, name: str, *, tables: Sequence[str] | None = None, **retention: int) -> "LakeVersion":
        """Create a branch of the tables at one moment, in one swap. No data is copied.

        Args:
            name: The name of the branch.
            tables: The tables. By default all.
            retention: `min_snapshots_to_keep`, `max_snapshot_age_ms`, `max_ref_age_ms`.
        """
        return self._create_refs(name, RefKind.BRANCH, tables, retention)

    def at(self, name: str) -> "LakeVersion":
        """Open the tables that have a branch or tag, at it."""
        found = tables_with(self.backend, [parse_table_name(each) for each in self.tables()], name)
        return LakeVersion(self, name, [str(table) for table in found])

    def _create_refs(
        self, name: str, kind: RefKind, tables: Sequence[str] | None, retention: dict[str, int]
    ) -> "LakeVersion":
        check_swaps_many(self.backend, f"create {kind} {name!r} of several tables")
        names = [parse_table_name(each) for each in (self.tables() if tables is None else tables)]
        made = create_refs(self.backend, names, name, kind, retention)
        return LakeVersion(self, name, [str(table) for table in made])


@check_arguments
class LakeVersion(StaysInProcess):
    """The tables of a lake at a branch or tag; `Lake.at`, `Lake.tag` and `Lake.branch` return one."""

    def __init__(self, lake: LakeRefs, name: str, tables: Sequence[str]) -> None:
        self._lake = lake
        self._tables = list(tables)
        self.name = name

    def tables(self) -> list[str]:
        """List the tables that have the branch or tag."""
        return list(self._tables)

    def table(self, name: str) -> Table:
        """Open a table at the branch or tag."""
        return self._lake.table(name).at(self.name)

    def read(self, name: str, **scanned: Any) -> Any:
        """Return rows of a table as a Spark DataFrame: `table(name).scan(...).to_spark()`."""
        return self.table(name).scan(**scanned).to_spark()

    def publish(self, to: str = MAIN) -> list[str]:
        """Publish the branch of all tables to another one, in one swap, and return the tables that changed.

        The rules are those of `Table.publish`, with the checks of each table. If one table collides, none is published.
        """
        check_swaps_many(self._lake.backend, f"publish {self.name!r} of several tables")
        changed = []
        with self._lake.transaction() as transaction:
            transaction.pin(self._tables)
            for name in self._tables:
                table = transaction.table(name).at(to) if to != MAIN else transaction.table(name)
                before = table.metadata.refs.get(to)
                table.publish(self.name)
                changed += [name] if table.metadata.refs.get(to) != before else []
        return changed

    def drop(self) -> None:
        """Drop the branch or tag of all tables, in one swap."""
        check_swaps_many(self._lake.backend, f"drop {self.name!r} of several tables")
        drop_refs(self._lake.backend, [parse_table_name(name) for name in self._tables], self.name)

    def __repr__(self) -> str:
        return f"LakeVersion({self.name!r}, {len(self._tables)} tables)"
