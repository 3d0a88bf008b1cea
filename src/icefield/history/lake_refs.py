"""Branches and tags of many tables at once: created, published and dropped in one swap.

    lake.tag("2026-q1")                        one consistent state of all tables
    lake.at("2026-q1").table("shop.orders")    a table as it was then
    work = lake.branch("experiment")           a branch of all tables
    work.table("shop.orders").append(rows)
    work.publish()                             all tables, or none

A table without snapshots gets an empty one for a branch, and is left out of a tag. No data is copied.
Raises AlreadyExists, ConcurrentChange, NoSuchSnapshot, and Unsupported on catalogs that swap one pointer at a time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from icefield.backend import Backend
from icefield.commit.action import Action
from icefield.commit.actions.refs import BeginEmptyBranch, CreateRef, DropRef, make_ref
from icefield.commit.loop import Committer, TableCommit
from icefield.commit.operations.choose import operations_of
from icefield.commit.operations.tables import TableVersion
from icefield.errors import NoSuchSnapshot, NoSuchTable, Unsupported
from icefield.model.metadata import TableMetadata
from icefield.model.names import TableName
from icefield.model.snapshot import RefKind


def check_swaps_many(backend: Backend, verb: str) -> None:
    """Refuse a catalog that cannot move several pointers at once, before any work."""
    if not backend.catalog.swaps_many:
        raise Unsupported(
            f"cannot {verb}: this catalog swaps one pointer at a time",
            hint="Do it table by table, or use a catalog in a database",
        )


def create_refs(
    backend: Backend, tables: Iterable[TableName], name: str, kind: RefKind, retention: Mapping[str, int]
) -> list[TableName]:
    """Create a branch or tag of several tables, at one moment; return those that have it now."""

    def make(metadata: TableMetadata) -> Action | None:
        head = metadata.current_snapshot
        if head is not None:
            return CreateRef(name, make_ref(head.snapshot_id, kind, retention))
        return BeginEmptyBranch(name, make_ref(0, kind, retention)) if kind is RefKind.BRANCH else None

    return _change(backend, tables, make)


def drop_refs(backend: Backend, tables: Iterable[TableName], name: str) -> list[TableName]:
    """Drop a branch or tag of all tables that have it."""

    def make(metadata: TableMetadata) -> Action | None:
        return DropRef(name, metadata.refs[name].kind) if name in metadata.refs else None

    return _change(backend, tables, make)


def tables_with(backend: Backend, tables: Sequence[TableName], name: str) -> list[TableName]:
    """Return the tables that have a branch or tag. Raises NoSuchSnapshot if none has."""
    found = [table for table, version in load_all(backend, tables).items() if name in version.metadata.refs]
    if not found:
        raise NoSuchSnapshot(f"no table of the lake has a branch or tag {name!r}")
    return found


def load_all(backend: Backend, tables: Sequence[TableName]) -> Mapping[TableName, TableVersion]:
    """Load tables at one moment. Raises NoSuchTable."""
    found: Mapping[TableName, TableVersion] = operations_of(backend).load_all(tables, {})
    for table in tables:
        if table not in found:
            raise NoSuchTable(f"no table {table}")
    return found


def _change(
    backend: Backend, tables: Iterable[TableName], make: Callable[[TableMetadata], Action | None]
) -> list[TableName]:
    parts = []
    for table, version in load_all(backend, list(tables)).items():
        action = make(version.metadata)
        if action is not None:
            parts.append(TableCommit(table, [action], version.metadata.table_uuid, version))
    if parts:
        Committer(backend).commit(parts)
    return [part.table for part in parts]
