"""Branches and tags of all tables of a lake: one consistent state, or work on many tables that is published at once.

Raises AlreadyExists, NoSuchSnapshot, NoSuchTable, ConcurrentChange, Unsupported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal
from uuid import UUID

from icefield.arguments import check_arguments
from icefield.deferred import deferred_imports
from icefield.errors import IcefieldError, NoSuchSnapshot
from icefield.model.snapshot import MAIN, RefKind, note_keys
from icefield.storage.store import StaysInProcess
from icefield.table.lakes.notes import LakeNotes

with deferred_imports(__name__):
    from icefield.commit.replay.decisions import parse_decision
    from icefield.history.lake_refs import check_swaps_many, check_tables, create_refs, drop_refs, tables_with
    from icefield.history.replay import Replay
    from icefield.model.names import TableName, parse_table_name
    from icefield.table.table import Table
    from icefield.table.transaction import Transaction
    from icefield.table.versions.history import OnCollision


@check_arguments
class LakeRefs(LakeNotes, ABC):
    """The part of a lake that deals with branches and tags of many tables."""

    @abstractmethod
    def tables(self, namespace: str | None = None) -> list[str]:
        """List the tables."""

    @abstractmethod
    def table(self, name: str) -> Table:
        """Open a table."""

    @abstractmethod
    def transaction(self, *, isolation: str = ...) -> Transaction:
        """Begin a transaction."""

    def tag(self, name: str, *, tables: Sequence[str] | None = None, **retention: int) -> LakeVersion:
        """Tag one consistent state of the tables, in one swap; tables without snapshots are left out.

        Args:
            name: The name of the tag.
            tables: The tables. By default all.
            retention: `max_ref_age_ms`.
        """
        return LakeVersion(self, name, self._create_refs(name, RefKind.TAG, tables, retention).values())

    def branch(self, name: str, *, tables: Sequence[str] | None = None, **retention: int) -> LakeVersion:
        """Create a branch of the tables at one moment, in one swap. No data is copied.

        Args:
            name: The name of the branch.
            tables: The tables. By default all.
            retention: `min_snapshots_to_keep`, `max_snapshot_age_ms`, `max_ref_age_ms`.
        """
        return LakeVersion(self, name, self._create_refs(name, RefKind.BRANCH, tables, retention).values())

    def preview_refs(
        self, kind: Literal["branch", "tag"], name: str, *, tables: Sequence[str] | None = None, **retention: int
    ) -> list[str]:
        """Return the tables that `branch` or `tag` would give one; fail as it would, and change nothing.

        Args:
            kind: `branch` or `tag`.
            name: The name of it.
            tables: The tables. By default all.
            retention: The rules of it.
        """
        return list(map(str, self._create_refs(name, RefKind(kind), tables, retention, dry_run=True)))

    def at(self, name: str) -> LakeVersion:
        """Open the tables that have a branch or tag, at it."""
        found = _tables_with(self, name)
        if not found:
            raise NoSuchSnapshot(f"no table of the lake has a branch or tag {name!r}")
        return LakeVersion(self, name, found.values())

    def _create_refs(
        self,
        name: str,
        kind: RefKind,
        tables: Sequence[str] | None,
        retention: dict[str, int],
        *,
        dry_run: bool = False,
    ) -> dict[TableName, UUID]:
        check_swaps_many(self.backend, f"create {kind} {name!r} of several tables")
        names = [parse_table_name(each) for each in (self.tables() if tables is None else tables)]
        if tables is not None:
            check_tables(self.backend, names)
        return create_refs(self.backend, names, name, kind, retention, dry_run=dry_run)


@check_arguments
class LakeVersion(StaysInProcess):
    """The tables of a lake at a branch or tag; `Lake.at`, `Lake.tag` and `Lake.branch` return one.

    Tables that were renamed since belong to it under their new names, and those that were dropped do not any more.
    """

    def __init__(self, lake: LakeRefs, name: str, tables: Iterable[UUID]) -> None:
        self._lake = lake
        self._uuids = frozenset(tables)
        self.name = name

    def tables(self) -> list[str]:
        """List the tables that have the branch or tag now."""
        return [name for name, table_uuid in _tables_with(self._lake, self.name).items() if table_uuid in self._uuids]

    def table(self, name: str) -> Table:
        """Open a table at the branch or tag."""
        return self._lake.table(name).at(self.name)

    def read(self, name: str, **scanned: Any) -> Any:
        """Return rows of a table as a Spark DataFrame: `table(name).scan(...).to_spark()`."""
        return self.table(name).scan(**scanned).to_spark()

    def publish(
        self,
        to: str = MAIN,
        *,
        dry_run: bool = False,
        message: str | None = None,
        on_collision: OnCollision | None = None,
    ) -> list[str]:
        """Publish the branch of all tables to another one, in one swap, and return the tables that changed.

        The rules are those of `Table.publish`, with the checks of each table. Queries among the checks read all tables
        at the branch. If one table collides or breaks a check, none is published.

        Args:
            to: The branch to publish to.
            dry_run: Return the tables that would change, and change nothing.
            message: Why, for the summaries of the new snapshots.
            on_collision: `ours` or `theirs`, as for `Table.publish`.
        """
        check_swaps_many(self._lake.backend, f"publish {self.name!r} of several tables")
        decision, notes, changed = parse_decision(on_collision), note_keys(message=message), []
        tables = self._existing()
        with self._lake.transaction() as transaction:
            transaction.pin(tables)
            opened = {name: transaction.table(name) for name in tables}
            heads = {table.commit_head.name: table.commit_head for table in opened.values()}
            checked = {}
            for name, table in opened.items():
                with _naming(name):
                    checked[name] = table.check_branch(self.name, beside=heads)
            for name, table in opened.items():
                # The metadata of the head does not count as a read of rows: those that others add do not collide.
                before = table.commit_head.load().metadata.ref_head(to)
                with _naming(name):
                    made = Replay(table.commit_head, to, dry_run, notes, decision).publish(self.name, checked[name])
                changed += [name] if made is not None and made != before else []
        return changed

    def drop(self, *, kind: Literal["branch", "tag"] | None = None, dry_run: bool = False) -> list[str]:
        """Drop the branch or tag of all tables, in one swap, and return them.

        Args:
            kind: Refuse to drop anything else: `branch` or `tag`.
            dry_run: Return the tables that have it, fail as the change would, and change nothing.
        """
        check_swaps_many(self._lake.backend, f"drop {self.name!r} of several tables")
        found = self._existing()
        expected = None if kind is None else RefKind(kind)
        names = [parse_table_name(each) for each in found]
        drop_refs(self._lake.backend, names, self.name, expected, dry_run=dry_run)
        return found

    def _existing(self) -> list[str]:
        found = self.tables()
        if not found:
            raise NoSuchSnapshot(f"no table has the branch or tag {self.name!r} any more")
        return found

    def __repr__(self) -> str:
        return f"LakeVersion({self.name!r}, {len(self._uuids)} tables)"


@contextmanager
def _naming(table: str) -> Iterator[None]:
    """Have errors about one of the tables say which one it is."""
    try:
        yield
    except IcefieldError as error:
        error.message = f"{table}: {error.message}"
        raise


def _tables_with(lake: LakeRefs, name: str) -> dict[str, UUID]:
    """Return the tables that have a branch or tag now, with their UUIDs."""
    found = tables_with(lake.backend, [parse_table_name(each) for each in lake.tables()], name)
    return {str(table): table_uuid for table, table_uuid in found.items()}
