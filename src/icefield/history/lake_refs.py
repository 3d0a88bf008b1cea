"""Branches and tags of many tables at once: created, published and dropped in one swap.

    lake.tag("2026-q1")                        one consistent state of all tables
    lake.at("2026-q1").table("shop.orders")    a table as it was then
    work = lake.branch("experiment")           a branch of all tables
    work.table("shop.orders").append(rows)
    work.publish()                             all tables, or none

A table without snapshots gets an empty one for a branch, and is left out of a tag. No data is copied.
Raises AlreadyExists, ConcurrentChange, NoSuchSnapshot, and Unsupported on catalogs that swap one pointer at a time.
"""

from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from icefield.backend import Backend
from icefield.commit.action import Action
from icefield.commit.actions.refs import BeginEmptyBranch, CreateRef, DropRef, make_ref
from icefield.commit.loop import Committer, TableCommit
from icefield.commit.operations.choose import operations_of
from icefield.commit.operations.tables import TableVersion
from icefield.dml.head import LiveHead, preview
from icefield.errors import AlreadyExists, NoSuchSnapshot, NoSuchTable, Unsupported
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
    backend: Backend,
    tables: Sequence[TableName],
    name: str,
    kind: RefKind,
    retention: Mapping[str, int],
    *,
    dry_run: bool = False,
) -> dict[TableName, UUID]:
    """Create a branch or tag of several tables, at one moment; return those that have it now, with their UUIDs.

    dry_run: those that would have it; fail as the change would, and change nothing.
    """

    def make(table: TableName, metadata: TableMetadata) -> Action | None:
        if (known := metadata.refs.get(name)) is not None:
            raise AlreadyExists(
                f"{table} has a {known.kind} {name!r} already", hint="Nothing was changed; use another name"
            )
        head = metadata.current_snapshot
        if head is not None:
            return CreateRef(name, make_ref(head.snapshot_id, kind, retention))
        return BeginEmptyBranch(name, make_ref(0, kind, retention)) if kind is RefKind.BRANCH else None

    made = _change(backend, tables, make, dry_run=dry_run)
    if not made:
        needed = "table with a snapshot" if kind is RefKind.TAG else "table"
        raise NoSuchSnapshot(f"cannot create {kind} {name!r}: there is no {needed}")
    return made


def drop_refs(
    backend: Backend, tables: Sequence[TableName], name: str, kind: RefKind | None, *, dry_run: bool = False
) -> None:
    """Drop a branch or tag of all tables that have it.

    kind: what it must be; None if it may be either. dry_run: fail as the change would, and change nothing.
    """

    def make(table: TableName, metadata: TableMetadata) -> Action | None:
        return DropRef(name, kind or metadata.refs[name].kind) if name in metadata.refs else None

    _change(backend, tables, make, dry_run=dry_run)


def tables_with(backend: Backend, tables: Sequence[TableName], name: str) -> dict[TableName, UUID]:
    """Return the tables that have a branch or tag, with their UUIDs."""
    found = _load_all(backend, tables)
    return {table: version.metadata.table_uuid for table, version in found.items() if name in version.metadata.refs}


def check_tables(backend: Backend, tables: Sequence[TableName]) -> None:
    """Raise NoSuchTable if one of some tables does not exist."""
    found = _load_all(backend, tables)
    for table in tables:
        if table not in found:
            raise NoSuchTable(f"no table {table}")


def _load_all(backend: Backend, tables: Sequence[TableName]) -> Mapping[TableName, TableVersion]:
    """Load tables at one moment, but for those that do not exist."""
    found: Mapping[TableName, TableVersion] = operations_of(backend).load_all(tables, {})
    return found


def _change(
    backend: Backend,
    tables: Sequence[TableName],
    make: Callable[[TableName, TableMetadata], Action | None],
    *,
    dry_run: bool,
) -> dict[TableName, UUID]:
    parts = []
    for table, version in _load_all(backend, tables).items():
        action = make(table, version.metadata)
        if action is not None:
            parts.append(TableCommit(table, [action], version.metadata.table_uuid, version))
    if dry_run:
        for part in parts:
            for action in part.actions:
                preview(action, LiveHead(backend, part.table, part.known))
    elif parts:
        Committer(backend).commit(parts)
    return {part.table: part.expected_uuid for part in parts}
