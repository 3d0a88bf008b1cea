"""A thread-safe catalog in the memory of this process: for tests, and for temporary lakes."""

import threading
from collections.abc import Iterable, Mapping, Sequence

from icefield.catalog.catalog import (
    Entry,
    Kind,
    PointerSwap,
    check_changes,
    check_new_namespace,
    check_new_table,
    check_pointer,
    check_properties,
    find_children,
    refuse_fenced,
    refuse_taken,
    require_kind,
    write_ids_of,
)
from icefield.errors import AlreadyExists, NamespaceNotEmpty, NoSuchNamespace
from icefield.model.names import Namespace, TableName


class MemoryCatalog:
    """Two dictionaries under one lock; every method is one critical section.

    entries, namespaces, fenced: the initial contents; namespaces are those that were created, with their properties.
    """

    swaps_many = True

    def __init__(
        self,
        name: str = "default",
        entries: Mapping[TableName, Entry] | None = None,
        namespaces: Mapping[Namespace, Mapping[str, str]] | None = None,
        fenced: Iterable[str] = (),
    ) -> None:
        self.name = name
        self.identity = f"memory:{id(self)}"
        self._lock = threading.RLock()
        self._entries: dict[TableName, Entry] = dict(entries or {})
        self._namespaces: dict[Namespace, dict[str, str]] = {key: dict(of) for key, of in (namespaces or {}).items()}
        self._fenced = set(fenced)

    def swap(self, changes: Sequence[PointerSwap]) -> None:
        check_changes(changes)
        with self._lock:
            for change in changes:
                check_pointer(change, self._entries.get(change.table))
                if change.expected is None:
                    self._require_namespace(change.table.namespace)
                if change.guard is not None:
                    change.guard(self._entries)
            refuse_fenced(self._fenced.intersection(write_ids_of(changes)))
            for change in changes:
                self._move(change)

    def fence(self, table: TableName, write_ids: Sequence[str]) -> bool:
        with self._lock:
            self._fenced.update(write_ids)
        return True

    def fenced(self) -> set[str]:
        """Return the writes that are fenced."""
        with self._lock:
            return set(self._fenced)

    def pointer(self, table: TableName, kind: Kind = Kind.TABLE) -> str:
        return require_kind(table, kind, self.find(table))

    def find(self, name: TableName) -> Entry | None:
        with self._lock:
            return self._entries.get(name)

    def pointers(self, tables: Iterable[TableName]) -> dict[TableName, str]:
        with self._lock:
            found = ((table, self._entries.get(table)) for table in tables)
            return {table: entry.pointer for table, entry in found if entry and entry.kind is Kind.TABLE}

    def entries(self) -> dict[TableName, Entry]:
        with self._lock:
            return dict(self._entries)

    def created_namespaces(self) -> dict[Namespace, dict[str, str]]:
        """Return the namespaces that were created, with their properties; others exist only through their contents."""
        with self._lock:
            return {namespace: dict(properties) for namespace, properties in self._namespaces.items()}

    def pointed_at(self, locations: Iterable[str]) -> set[str]:
        return {entry.pointer for entry in self.entries().values()} & set(locations)

    def list_tables(self, namespace: Namespace) -> list[TableName]:
        return self._list(namespace, Kind.TABLE)

    def list_views(self, namespace: Namespace) -> list[TableName]:
        return self._list(namespace, Kind.VIEW)

    def rename_table(self, old: TableName, new: TableName) -> None:
        self._rename(old, new, Kind.TABLE)

    def rename_view(self, old: TableName, new: TableName) -> None:
        self._rename(old, new, Kind.VIEW)

    def list_namespaces(self, parent: Namespace | None = None) -> list[Namespace]:
        with self._lock:
            if parent:
                self._require_namespace(parent)
            return find_children(parent or (), self._known())

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str] | None = None) -> None:
        check_new_namespace(namespace, properties or {})
        with self._lock:
            if self._exists(namespace):
                raise AlreadyExists(f"namespace {'.'.join(namespace)} already exists")
            self._namespaces[namespace] = dict(properties or {})

    def drop_namespace(self, namespace: Namespace) -> None:
        with self._lock:
            self._require_namespace(namespace)
            if any(name.namespace == namespace for name in self._entries) or self.list_namespaces(namespace):
                raise NamespaceNotEmpty(
                    f"namespace {'.'.join(namespace)} is not empty: it still has tables, views or namespaces"
                )
            del self._namespaces[namespace]

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        with self._lock:
            self._require_namespace(namespace)
            return dict(self._namespaces.get(namespace, {}))

    def update_namespace_properties(
        self, namespace: Namespace, removals: Iterable[str], updates: Mapping[str, str]
    ) -> None:
        removed = set(removals)
        check_properties(removed, updates)
        with self._lock:
            self._require_namespace(namespace)
            kept = {key: value for key, value in self._namespaces.get(namespace, {}).items() if key not in removed}
            self._namespaces[namespace] = {**kept, **updates}

    @property
    def metadata_server(self) -> None:
        return None

    def close(self) -> None:
        """Do nothing: the memory is freed with the object."""

    def _move(self, change: PointerSwap) -> None:
        if change.new is None:
            del self._entries[change.table]
        else:
            self._entries[change.table] = Entry(change.kind, change.new)

    def _list(self, namespace: Namespace, kind: Kind) -> list[TableName]:
        with self._lock:
            self._require_namespace(namespace)
            return sorted(n for n, entry in self._entries.items() if n.namespace == namespace and entry.kind is kind)

    def _rename(self, old: TableName, new: TableName, kind: Kind) -> None:
        check_new_table(new)
        with self._lock:
            require_kind(old, kind, self._entries.get(old))
            if old == new:
                return
            self._require_namespace(new.namespace)
            refuse_taken(new, self._entries.get(new))
            self._entries[new] = self._entries.pop(old)

    def _known(self) -> set[Namespace]:
        return self._namespaces.keys() | {name.namespace for name in self._entries}

    def _exists(self, namespace: Namespace) -> bool:
        return bool(namespace) and any(known[: len(namespace)] == namespace for known in self._known())

    def _require_namespace(self, namespace: Namespace) -> None:
        if not self._exists(namespace):
            raise NoSuchNamespace(f"there is no namespace {'.'.join(namespace)}")
