"""The catalog protocol: names of tables and views, each with one pointer, which `swap` moves.

Only `swap` moves pointers: all or nothing, linearizable. Loading, validation, retries and resolving unknown commit
outcomes are implemented once, on top of it. A name is that of a table or of a view, never of both; a lookup of a table
does not find a view, and vice versa.

A namespace exists while it has properties of its own, a table or view in it, or a namespace below it; so creating `a.b`
makes `a` exist, and dropping the last entry of an `a` that was not created explicitly ends it. That is the rule of
Iceberg's JDBC catalog and of PyIceberg, which share the database.

Errors:
CommitConflict      an expected pointer is not the current one: reload and propose again
AlreadyExists       the name to create (or to rename to) is taken, by a table or a view
NoSuchTable         the table to read, move or drop does not exist, or is a view
NotFound            the view to read, move or drop does not exist, or is a table
NoSuchNamespace     the namespace to create in, list or change does not exist
NamespaceNotEmpty   the namespace to drop is not empty
InvalidInput        an invalid name, or an invalid set of changes
Unsupported         the catalog does not support views
LeaseLost           a collector has fenced the write: its files may be deleted, and it never lands
CatalogError        the catalog could not be reached, or refused the request; nothing was changed
CommitStateUnknown  the response to a change was lost; it may have landed: check before doing anything else
Any other exception (such as a KeyboardInterrupt) also leaves the outcome of a change unknown.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from icefield.errors import (
    AlreadyExists,
    CatalogError,
    CommitConflict,
    InvalidInput,
    LeaseLost,
    NoSuchTable,
    NotFound,
)
from icefield.model.names import Namespace, TableName, parse_namespace, parse_table_name

if TYPE_CHECKING:
    from icefield.catalog.server import MetadataServer

# Limits for listing all namespaces, against servers that keep returning more of them.
MAX_NAMESPACES, MAX_NAMESPACE_LEVELS = 100_000, 100


class Kind(Enum):
    """The type of an entry."""

    TABLE = "table"
    VIEW = "view"


@dataclass(frozen=True)
class Entry:
    """The entry of a name in a catalog."""

    kind: Kind
    pointer: str


# Raises unless a pointer is allowed beside all other entries of the catalog.
Guard = Callable[[Mapping[TableName, Entry]], None]


@dataclass(frozen=True)
class PointerSwap:
    """One pointer's move from `expected` to `new`.

    expected None: creates the name, which must be free. new None: the table or view is dropped.
    new equal to expected: the pointer does not move, but the swap fails unless it is still current.
    guard: called with every entry of the catalog in the transaction that moves the pointer; if it raises, the swap
    fails. write_ids: the leases that protect the files of the change; if one is fenced, the swap fails.
    """

    table: TableName
    expected: str | None
    new: str | None
    kind: Kind = Kind.TABLE
    guard: Guard | None = field(default=None, compare=False, repr=False)
    write_ids: tuple[str, ...] = field(default=(), compare=False, repr=False)


class Catalog(Protocol):
    """Namespaces, tables, views and their pointers."""

    name: str

    @property
    def identity(self) -> str:
        """What distinguishes this catalog from others, as long as it is not moved; contains no secrets."""
        ...

    @property
    def swaps_many(self) -> bool:
        """Return whether several pointers can be moved at once."""
        ...

    def swap(self, changes: Sequence[PointerSwap]) -> None:
        """Move several pointers at once, or none."""
        ...

    def fence(self, table: TableName, write_ids: Sequence[str]) -> bool:
        """Have every later swap of these writes fail; return False if the catalog cannot do that.

        A swap of them that landed is visible to every read of the pointer after this returns.
        """
        ...

    def pointer(self, table: TableName, kind: Kind = Kind.TABLE) -> str:
        """Return the location of the current metadata of a table, or of a view."""
        ...

    def find(self, name: TableName) -> Entry | None:
        """Return the table or view of a name; None if there is none."""
        ...

    def pointers(self, tables: Iterable[TableName]) -> dict[TableName, str]:
        """Return the pointers of several tables at one point in time, without tables that do not exist."""
        ...

    def entries(self) -> dict[TableName, Entry]:
        """Return the entries of all namespaces."""
        ...

    def pointed_at(self, locations: Iterable[str]) -> set[str]:
        """Return which of the metadata locations are pointers of entries, including those of other clients."""
        ...

    def list_tables(self, namespace: Namespace) -> list[TableName]:
        """Return the tables of a namespace in order, without those of nested namespaces and without views."""
        ...

    def list_views(self, namespace: Namespace) -> list[TableName]:
        """Return the views of a namespace in order, without those of nested namespaces."""
        ...

    def rename_table(self, old: TableName, new: TableName) -> None:
        """Rename a table; its pointer and files stay where they are."""
        ...

    def rename_view(self, old: TableName, new: TableName) -> None:
        """Rename a view; its pointer and files stay where they are."""
        ...

    def list_namespaces(self, parent: Namespace | None = None) -> list[Namespace]:
        """Return the namespaces one level below the parent (or at the top), in order."""
        ...

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace; raise AlreadyExists if it exists."""
        ...

    def drop_namespace(self, namespace: Namespace) -> None:
        """Drop an empty namespace."""
        ...

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """Return the properties of a namespace."""
        ...

    def update_namespace_properties(
        self, namespace: Namespace, removals: Iterable[str], updates: Mapping[str, str]
    ) -> None:
        """Remove and set properties at once; removing a missing one does nothing."""
        ...

    @property
    def metadata_server(self) -> "MetadataServer | None":
        """The server that writes metadata itself; None where clients write metadata files and swap pointers."""
        ...

    def close(self) -> None:
        """Release the catalog's resources; it cannot be used afterwards."""
        ...


# How JDBC catalogs store a namespace without properties; never shown to users.
EXISTS_PROPERTY = "exists"


def check_changes(changes: Sequence[PointerSwap]) -> None:
    """Refuse an invalid set of changes, before the catalog is called."""
    tables = [change.table for change in changes]
    if len(set(tables)) < len(tables):
        raise InvalidInput("a swap may change each table only once")
    for change in changes:
        if change.expected is None and change.new is None:
            raise InvalidInput(f"the swap of {change.table} neither expects nor sets a pointer")
        if change.expected is None:
            check_new_table(change.table)


def check_pointer(change: PointerSwap, found: Entry | None) -> None:
    """Reject a change whose expected pointer is not that of the current entry."""
    if change.expected is None:
        refuse_taken(change.table, found)
        return
    current = require_kind(change.table, change.kind, found)
    if current != change.expected:
        raise CommitConflict(f"{change.table} has moved from {change.expected} to {current}")


def write_ids_of(changes: Iterable[PointerSwap]) -> list[str]:
    """Return the leases that protect the files of some changes."""
    return sorted({write_id for change in changes for write_id in change.write_ids})


def refuse_fenced(fenced: Iterable[str]) -> None:
    """Reject a swap of writes that a collector has fenced."""
    if found := sorted(fenced):
        raise LeaseLost(
            f"the lease {found[0]} of this writer was declared dead before its commit",
            hint="Its files may be deleted; run it again",
        )


def require_kind(name: TableName, kind: Kind, found: Entry | None) -> str:
    """Return the pointer of an entry, which must be of the given kind."""
    if found is not None and found.kind is kind:
        return found.pointer
    error = NoSuchTable if kind is Kind.TABLE else NotFound
    if found is None:
        raise error(f"there is no {kind.value} {name}")
    raise error(f"{name} is a {found.kind.value}, not a {kind.value}")


def refuse_taken(name: TableName, found: Entry | None) -> None:
    """Reject a name that is already in use."""
    if found is not None:
        raise AlreadyExists(f"the name {name} is already used by a {found.kind.value}")


def check_new_table(table: TableName) -> None:
    """Refuse to create a name that would be read back as another one."""
    if parse_table_name(str(table)) != table:
        raise InvalidInput(f"table name {table!r} has a part with a dot")


def check_new_namespace(namespace: Namespace, properties: Mapping[str, str]) -> None:
    """Refuse to create a namespace that would be read back as another one, or with a reserved property."""
    if parse_namespace(".".join(namespace)) != namespace:
        raise InvalidInput(f"namespace {namespace!r} has a part with a dot")
    check_properties((), properties)


def check_properties(removals: Iterable[str], updates: Mapping[str, str]) -> None:
    """Refuse to change the reserved property, to set and remove a property at once, and values that are not strings."""
    removed = set(removals)
    if EXISTS_PROPERTY in removed | updates.keys():
        raise InvalidInput(f"the namespace property {EXISTS_PROPERTY!r} is reserved")
    if both := sorted(removed & updates.keys()):
        raise InvalidInput(f"cannot both remove and set namespace properties: {', '.join(both)}")
    for text in (*updates.keys(), *updates.values()):
        if not isinstance(text, str):
            raise InvalidInput(f"namespace properties must be strings, not {text!r}")


def find_children(parent: Namespace, known: Iterable[Namespace]) -> list[Namespace]:
    """Return the namespaces one level below a parent, given all that are known at any depth."""
    depth = len(parent)
    return sorted(
        {namespace[: depth + 1] for namespace in known if len(namespace) > depth and namespace[:depth] == parent}
    )


def walk_namespaces(list_namespaces: Callable[[Namespace | None], list[Namespace]]) -> list[Namespace]:
    """Return all namespaces, each before those below it; refuse a catalog with too many or too deep ones."""
    found: dict[Namespace, None] = {}
    pending = list_namespaces(None)[::-1]
    while pending:
        namespace = pending.pop()
        if namespace in found:
            continue
        if len(namespace) > MAX_NAMESPACE_LEVELS or len(found) == MAX_NAMESPACES:
            raise CatalogError(
                f"the catalog has more than {MAX_NAMESPACES:,} namespaces, or more than {MAX_NAMESPACE_LEVELS} levels",
                hint="Name the namespace to list",
            )
        found[namespace] = None
        pending.extend(list_namespaces(namespace)[::-1])
    return list(found)
