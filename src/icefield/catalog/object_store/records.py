"""The records of an object store catalog: one per name, and one per namespace that was created.

`<root>/<namespace>/.../<name>.pointer` is a NameRecord, `<root>/<namespace>/.../.namespace` a NamespaceRecord. No part
of a name has a dot, so the two never collide. A record is never deleted, only marked as dropped, because not every
store has conditional deletes. Each write of a record has a new token, so that no two are equal and a writer whose
response was lost can recognise its own record.

Raises CatalogError (nothing was changed), CommitConflict, CommitStateUnknown, CorruptFile (not a valid record).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from icefield.ambient import Ambient
from icefield.catalog.catalog import Entry, Kind
from icefield.errors import CatalogError, CommitStateUnknown, CorruptFile, IcefieldError, StorageError
from icefield.model.names import Namespace, TableName
from icefield.storage.location import join_location
from icefield.storage.object_store.conditional import ConditionalStore

_POINTER_SUFFIX = ".pointer"
_NAMESPACE_KEY = ".namespace"


class NameRecord(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """The entry of a name.

    pointer None: it was dropped. moving_to: a rename to that name has begun. arrived: the tokens of the renames that
    ended here, which the name keeps forever. fenced: the writes that a collector has fenced.
    """

    token: str
    kind: Kind
    pointer: str | None = None
    moving_to: str | None = None
    arrived: tuple[str, ...] = ()
    fenced: tuple[str, ...] = ()

    @property
    def entry(self) -> Entry | None:
        """The catalog entry of this record."""
        return None if self.pointer is None else Entry(self.kind, self.pointer)


class NamespaceRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A namespace that was created; properties None: it was dropped."""

    token: str
    properties: dict[str, str] | None = None


Record = TypeVar("Record", NameRecord, NamespaceRecord)


@dataclass(frozen=True)
class Found(Generic[Record]):
    """A record, and the version that a replacement requires."""

    record: Record
    version: str


@dataclass(frozen=True)
class Records:
    """The records below a root."""

    store: ConditionalStore
    root: str
    ambient: Ambient

    def new_token(self) -> str:
        """Return a new token for one write of a record."""
        return str(self.ambient.random_uuid())

    def read_name(self, name: TableName) -> Found[NameRecord] | None:
        """Return the record of a name, dropped or not."""
        return self._read(self._location_of(name), NameRecord)

    def read_namespace(self, namespace: Namespace) -> Found[NamespaceRecord] | None:
        """Return the record of a namespace, dropped or not."""
        return self._read(join_location(self.root, *namespace, _NAMESPACE_KEY), NamespaceRecord)

    def put_name(self, name: TableName, record: NameRecord, over: Found[NameRecord] | None) -> None:
        """Write a record over the one that was found."""
        self._put(self._location_of(name), record, over)

    def put_namespace(self, namespace: Namespace, record: NamespaceRecord, over: Found[NamespaceRecord] | None) -> None:
        """Write a record over the one that was found."""
        self._put(join_location(self.root, *namespace, _NAMESPACE_KEY), record, over)

    def list_records(self, namespace: Namespace) -> Iterator[TableName | Namespace]:
        """Yield the name of every record below a namespace, dropped or not: of tables and views, and of namespaces."""
        base = join_location(self.root, *namespace) if namespace else self.root
        with _as_catalog_errors():
            for location in self.store.list_keys(base):
                *inner, last = location.removeprefix(base).strip("/").split("/")
                if last == _NAMESPACE_KEY:
                    yield (*namespace, *inner)
                elif last.endswith(_POINTER_SUFFIX):
                    yield TableName((*namespace, *inner), last.removesuffix(_POINTER_SUFFIX))

    def _location_of(self, name: TableName) -> str:
        return join_location(self.root, *name.namespace, f"{name.name}{_POINTER_SUFFIX}")

    def _read(self, location: str, kind: type[Record]) -> Found[Record] | None:
        with _as_catalog_errors():
            found = self.store.read_versioned(location)
        if found is None:
            return None
        try:
            return Found(msgspec.json.decode(found.data, type=kind), found.version)
        except msgspec.MsgspecError as error:
            raise CorruptFile(location, f"it is not a valid catalog record: {error}") from error

    def _put(self, location: str, record: Record, over: Found[Record] | None) -> None:
        try:
            with _as_catalog_errors():
                self.store.put_if_match(location, msgspec.json.encode(record), over.version if over else None)
        except CommitStateUnknown:
            if not self._is_there(location, record):
                raise

    def _is_there(self, location: str, record: Record) -> bool:
        # A different record proves nothing: it may have been written after ours. The commit loop checks the table's
        # history.
        try:
            found = self._read(location, type(record))
        except IcefieldError:
            return False
        return found is not None and found.record.token == record.token


@contextmanager
def _as_catalog_errors() -> Iterator[None]:
    try:
        yield
    except StorageError as error:
        raise CatalogError(f"the catalog failed: {error.message}", hint=error.hint) from error
