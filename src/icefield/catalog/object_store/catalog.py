"""A catalog without a database: one small object per table, replaced by a conditional write.

In an object store that is a conditional request (If-Match, If-None-Match), in a local directory a hard link; see
`storage.object_store.conditional`. The whole state of the catalog is in the records (`records`).

Limitations and guarantees:
- It moves one pointer at a time. A swap of several raises Unsupported before anything is written.
- `pointers` reads until two reads agree, so that its result was current at one point in time.
- A rename writes its intent under the old name, the table under the new one, and the drop under the old one. It takes
  effect with the second step: no reader finds the table under both names or under none. A writer that finds an
  unfinished rename finishes it first, so a crash in between loses nothing.
- A table created while its namespace is being dropped may land; the namespace then exists because of it.
- A guard is called before the pointer is written and again afterwards; if it then refuses the pointer, the write is
  undone. A writer that dies in between leaves a pointer that was checked once.
- A fence is part of the record of a name, so that a swap which did not see it fails.
- Dropped names leave a record of a few hundred bytes. Listings read every record, several at a time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec

from icefield.ambient import Ambient, SystemAmbient
from icefield.catalog.catalog import (
    Entry,
    Guard,
    Kind,
    PointerSwap,
    check_changes,
    check_new_namespace,
    check_new_table,
    check_pointer,
    check_properties,
    refuse_fenced,
    refuse_taken,
    require_kind,
    write_ids_of,
)
from icefield.catalog.object_store.records import Found, NameRecord, NamespaceRecord, Records
from icefield.catalog.object_store.rename import finish_rename, has_arrived
from icefield.errors import (
    AlreadyExists,
    CatalogError,
    CommitConflict,
    CommitStateUnknown,
    CorruptFile,
    IcefieldError,
    InvalidInput,
    NamespaceNotEmpty,
    NoSuchNamespace,
    StorageError,
    Unsupported,
)
from icefield.model.names import Namespace, TableName, parse_namespace
from icefield.storage.object_store.conditional import ConditionalStore

_READERS = 16
_TRIES = 20
Item = TypeVar("Item")
Result = TypeVar("Result")


class ObjectStoreCatalog:
    """A catalog whose records are below `root`, which nothing else should use."""

    swaps_many = False

    def __init__(
        self, store: ConditionalStore, root: str, name: str = "default", *, ambient: Ambient | None = None
    ) -> None:
        self.name = name
        self.identity = f"objects:{root.rstrip('/')}"
        self._records = Records(store, root.rstrip("/"), ambient or SystemAmbient())

    def swap(self, changes: Sequence[PointerSwap]) -> None:
        check_changes(changes)
        if len(changes) > 1:
            raise Unsupported(
                "a catalog in an object store cannot commit to several tables at once",
                hint="Commit the tables one after another, or use a SQL or REST catalog",
            )
        for change in changes:
            self._swap_one(change)

    def fence(self, table: TableName, write_ids: Sequence[str]) -> bool:
        for _ in range(_TRIES):
            found = self._read_settled(table)
            if found is None:
                return True  # there is nothing that a swap could move
            fenced = tuple(dict.fromkeys((*found.record.fenced, *write_ids)))
            record = msgspec.structs.replace(found.record, token=self._records.new_token(), fenced=fenced)
            try:
                self._records.put_name(table, record, found)
            except CommitConflict:
                continue
            return True
        raise CommitConflict(f"the writers of {table} could not be fenced: other writers keep changing it")

    def pointer(self, table: TableName, kind: Kind = Kind.TABLE) -> str:
        return require_kind(table, kind, self.find(table))

    def find(self, name: TableName) -> Entry | None:
        found = self._read(name)
        if found is None or has_arrived(self._records, found.record):
            return None
        return found.record.entry

    def pointers(self, tables: Iterable[TableName]) -> dict[TableName, str]:
        wanted = list(dict.fromkeys(tables))
        before = self._map(self.find, wanted)
        # A pointer is never reused, so two equal reads mean that nothing moved in between.
        for _ in range(_TRIES):
            after = before if len(wanted) < 2 else self._map(self.find, wanted)
            if after == before:
                found = zip(wanted, after, strict=True)
                return {table: entry.pointer for table, entry in found if entry and entry.kind is Kind.TABLE}
            before = after
        raise CatalogError(
            "the tables change too often to be read at one point in time", hint="Read fewer tables at once"
        )

    def entries(self) -> dict[TableName, Entry]:
        names = [key for key in self._records.list_records(()) if isinstance(key, TableName)]
        return {name: entry for name, entry in zip(names, self._map(self.find, names), strict=True) if entry}

    def pointed_at(self, locations: Iterable[str]) -> set[str]:
        # No other client writes the records, and `swap` refuses a table that already has a name.
        return set()

    def list_tables(self, namespace: Namespace) -> list[TableName]:
        return self._list(namespace, Kind.TABLE)

    def list_views(self, namespace: Namespace) -> list[TableName]:
        return self._list(namespace, Kind.VIEW)

    def rename_table(self, old: TableName, new: TableName) -> None:
        self._rename(old, new, Kind.TABLE)

    def rename_view(self, old: TableName, new: TableName) -> None:
        self._rename(old, new, Kind.VIEW)

    def list_namespaces(self, parent: Namespace | None = None) -> list[Namespace]:
        if parent:
            self._require_namespace(parent)
        return self._live_children(parent or ())

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str] | None = None) -> None:
        check_new_namespace(namespace, properties or {})
        found = self._records.read_namespace(namespace)
        if self._exists(namespace):
            raise AlreadyExists(f"namespace {'.'.join(namespace)} already exists")
        record = NamespaceRecord(self._records.new_token(), dict(properties or {}))
        try:
            self._records.put_namespace(namespace, record, found)
        except CommitConflict as conflict:
            raise AlreadyExists(f"namespace {'.'.join(namespace)} already exists") from conflict

    def drop_namespace(self, namespace: Namespace) -> None:
        def check_and_drop(_: dict[str, str]) -> None:
            if self._live_children(namespace) or self._live_names(namespace):
                raise NamespaceNotEmpty(
                    f"namespace {'.'.join(namespace)} is not empty: it still has tables, views or namespaces"
                )

        self._change_namespace(namespace, check_and_drop)

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        self._require_namespace(namespace)
        found = self._records.read_namespace(namespace)
        return dict(found.record.properties or {}) if found else {}

    def update_namespace_properties(
        self, namespace: Namespace, removals: Iterable[str], updates: Mapping[str, str]
    ) -> None:
        removed = set(removals)
        check_properties(removed, updates)

        def change(properties: dict[str, str]) -> dict[str, str]:
            return {**{key: value for key, value in properties.items() if key not in removed}, **updates}

        self._change_namespace(namespace, change)

    @property
    def metadata_server(self) -> None:
        return None

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _swap_one(self, change: PointerSwap) -> None:
        found = self._read_settled(change.table)
        check_pointer(change, found.record.entry if found else None)
        if change.expected is None:
            self._require_namespace(change.table.namespace)
        if change.new == change.expected:
            return
        refuse_fenced(set(found.record.fenced if found else ()).intersection(write_ids_of([change])))
        if change.guard is not None:
            change.guard(self.entries())
        arrived, fenced = (found.record.arrived, found.record.fenced) if found else ((), ())
        record = NameRecord(self._records.new_token(), change.kind, change.new, None, arrived, fenced)
        try:
            self._records.put_name(change.table, record, found)
        except CommitConflict:
            check_pointer(change, self.find(change.table))
            raise
        if change.guard is not None:
            self._look_back(change, change.guard)

    def _look_back(self, change: PointerSwap, guard: Guard) -> None:
        """Undo a pointer that conflicts with an entry written at the same time.

        Two concurrent writers both check after they have written, so at least one of them sees the other. Both may, and
        then both are undone. If anything else fails here, the pointer has been written: that is a CommitStateUnknown,
        and the metadata file is not removed.
        """
        try:
            refusal = self._find_refusal(guard)
            if refusal is None:
                return
            found = self._read_settled(change.table)
            if found is not None and found.record.pointer == change.new:
                record = msgspec.structs.replace(
                    found.record, token=self._records.new_token(), kind=change.kind, pointer=change.expected
                )
                self._records.put_name(change.table, record, found)
                raise refusal
        except (CatalogError, CommitConflict, CorruptFile, StorageError) as error:
            raise CommitStateUnknown(
                f"{change.table} was written, but it is not known whether it conflicts with another entry: {error}",
                hint="Check the table before retrying, and delete nothing",
            ) from error
        raise CommitStateUnknown(
            f"{change.table} was created concurrently with a conflicting entry, and was "
            "changed before it could be undone",
            hint="Check both and drop one of them",
        ) from refusal

    def _find_refusal(self, guard: Guard) -> IcefieldError | None:
        try:
            guard(self.entries())
        except (AlreadyExists, InvalidInput) as refusal:
            return refusal
        return None

    def _rename(self, old: TableName, new: TableName, kind: Kind) -> None:
        check_new_table(new)
        for _ in range(_TRIES):
            found = self._read_settled(old)
            require_kind(old, kind, found.record.entry if found else None)
            if old == new:
                return
            self._require_namespace(new.namespace)
            self._read_settled(new)
            refuse_taken(new, self.find(new))
            assert found is not None
            intent = msgspec.structs.replace(found.record, token=self._records.new_token(), moving_to=str(new))
            try:
                self._records.put_name(old, intent, found)
            except CommitConflict:
                continue
            if not finish_rename(self._records, old, intent):
                refuse_taken(new, self.find(new))
                continue
            return
        raise CommitConflict(f"{old} could not be renamed: other writers keep changing it")

    def _read(self, name: TableName) -> Found[NameRecord] | None:
        return self._records.read_name(name) if _is_name((*name.namespace, name.name)) else None

    def _read_settled(self, name: TableName) -> Found[NameRecord] | None:
        """Read a record, after finishing a rename that another writer may have begun."""
        found = self._read(name)
        while found is not None and found.record.moving_to is not None:
            finish_rename(self._records, name, found.record)
            found = self._read(name)
        return found

    def _list(self, namespace: Namespace, kind: Kind) -> list[TableName]:
        self._require_namespace(namespace)
        return sorted(name for name, entry in self._live_names(namespace).items() if entry.kind is kind)

    def _live_names(self, namespace: Namespace) -> dict[TableName, Entry]:
        listed = self._records.list_records(namespace)
        names = [key for key in listed if isinstance(key, TableName) and key.namespace == namespace]
        return {name: entry for name, entry in zip(names, self._map(self.find, names), strict=True) if entry}

    def _live_children(self, parent: Namespace) -> list[Namespace]:
        """Return the namespaces one level below that have their own record, or are not empty."""
        depth = len(parent) + 1
        inside: dict[Namespace, list[TableName | Namespace]] = {}
        for key in self._records.list_records(parent):
            namespace = key.namespace if isinstance(key, TableName) else key
            if len(namespace) >= depth:
                inside.setdefault(namespace[:depth], []).append(key)
        children = sorted(inside)
        live = self._map(lambda child: self._has_live(child, inside[child]), children)
        return [child for child, is_live in zip(children, live, strict=True) if is_live]

    def _has_live(self, namespace: Namespace, keys: Sequence[TableName | Namespace]) -> bool:
        # Its own record most likely exists, and then nothing else needs to be read.
        return any(self._is_live(key) for key in sorted(keys, key=lambda key: key != namespace))

    def _is_live(self, key: TableName | Namespace) -> bool:
        if isinstance(key, TableName):
            return self.find(key) is not None
        found = self._records.read_namespace(key)
        return found is not None and found.record.properties is not None

    def _exists(self, namespace: Namespace) -> bool:
        if not _is_name(namespace):
            return False
        return self._is_live(namespace) or self._has_live(namespace, list(self._records.list_records(namespace)))

    def _require_namespace(self, namespace: Namespace) -> None:
        if not self._exists(namespace):
            raise NoSuchNamespace(f"there is no namespace {'.'.join(namespace)}")

    def _change_namespace(
        self, namespace: Namespace, change: Callable[[dict[str, str]], dict[str, str] | None]
    ) -> None:
        """Replace the properties of a namespace, or drop it if the change returns None."""
        for _ in range(_TRIES):
            self._require_namespace(namespace)
            found = self._records.read_namespace(namespace)
            properties = change(dict(found.record.properties or {}) if found else {})
            try:
                record = NamespaceRecord(self._records.new_token(), properties)
                return self._records.put_namespace(namespace, record, found)
            except CommitConflict:
                continue
        raise CatalogError(f"namespace {'.'.join(namespace)} could not be changed: other writers keep changing it")

    def _map(self, read: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        if len(items) < 2:
            return [read(item) for item in items]
        with ThreadPoolExecutor(min(_READERS, len(items))) as readers:
            return list(readers.map(read, items))


def _is_name(parts: Namespace) -> bool:
    """Return whether the parts can name a record; other parts would lead to a record with a different name."""
    try:
        return parse_namespace(".".join(parts)) == parts
    except InvalidInput:
        return False
