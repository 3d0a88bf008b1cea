"""A catalog in a store of versioned nodes, such as ZooKeeper: one node for each table and view.

    root                  no data; its version rises with every change of a name or a namespace
      table:shop.orders   the pointer: the location of the table's metadata; a view is at view:shop.recent
      namespace:shop      the properties of a namespace that was created, as JSON
      fence:5f0c…         no data; a write that a collector has fenced

Parts of names are percent-encoded, including dots. A change is made to a MemoryCatalog with the nodes that were read,
and the difference is written in one transaction:

    swap shop.orders a → b   read     root 7, table:shop.orders "a" at version 3
                             commit   root still 7, table:shop.orders still 3 → "b"

Every transaction checks the version of the root, because a node that is deleted and created again may start at its old
version. A transaction that creates or removes a name, changes a namespace or has a guard also increments it, so that
what it read of other names is still valid. Moves of different tables do not conflict with each other, nor with a guard:
what a guard checks (uuids and directories) is changed only by swaps that have one. A fence increments the root, too, so
that a swap which did not read it fails.

See `catalog` for the contract, and `NodeStore` for the requirements of the store.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn, Protocol
from urllib.parse import quote, unquote

import msgspec

from icefield.ambient import Ambient
from icefield.catalog.catalog import (
    Entry,
    Kind,
    PointerSwap,
    check_changes,
    check_properties,
    require_kind,
    write_ids_of,
)
from icefield.catalog.memory import MemoryCatalog
from icefield.errors import CatalogError, Unsupported
from icefield.model.names import Namespace, TableName

ROOT = ""  # as the name of a node
_NAMESPACE, _FENCE = "namespace", "fence"
_KINDS = {kind.value: kind for kind in Kind}
_NODE_BYTES = 200  # the overhead per node: the root, the access rights, versions
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 0.05


class Node(NamedTuple):
    """A node's data, and the version that a transaction may require."""

    data: bytes
    version: int


@dataclass(frozen=True)
class Reading:
    """The nodes that were read at one version of the root.

    nodes: the requested nodes that exist. names: of all nodes, if requested.
    """

    root_version: int
    nodes: Mapping[str, Node]
    names: Sequence[str] = ()


class Write(NamedTuple):
    """A node to create (version None), to replace, or to delete (data None), at the given version."""

    name: str
    version: int | None
    data: bytes | None


@dataclass(frozen=True)
class Transaction:
    """Writes that are made together, if all named nodes, including the root, have the given versions."""

    checks: Mapping[str, int]
    writes: Sequence[Write]

    @property
    def size_bytes(self) -> int:
        """The approximate size."""
        named = [*self.checks, *(write.name for write in self.writes)]
        return sum(len(name) + _NODE_BYTES for name in named) + sum(len(write.data or b"") for write in self.writes)


class NodeStore(Protocol):
    """A root and the nodes below it.

    Reads see every commit that was acknowledged before they began. Raises CatalogError when nothing was changed, and
    CommitStateUnknown when the response to a commit was lost. most_bytes: the size limit of a transaction.
    """

    identity: str
    most_bytes: int

    def read(self, names: Sequence[str], *, with_names: bool) -> Reading:
        """Read nodes, and the names of all others if requested, at one version of the root."""
        ...

    def commit(self, transaction: Transaction) -> bool:
        """Make the changes and return True; change nothing and return False if a version does not match."""
        ...

    def close(self) -> None:
        """Close the connection; the store cannot be used afterwards."""
        ...


class NodeCatalog:
    """The catalog in a store of nodes. busy_timeout_s: how long to retry when other writers win."""

    swaps_many = True

    def __init__(self, store: NodeStore, name: str, *, ambient: Ambient, busy_timeout_s: float = 60.0) -> None:
        self._store, self.name, self._ambient = store, name, ambient
        self._busy_timeout_s = busy_timeout_s

    @property
    def identity(self) -> str:
        return self._store.identity

    def swap(self, changes: Sequence[PointerSwap]) -> None:
        check_changes(changes)
        is_guarded = any(change.guard is not None for change in changes)
        is_move = not is_guarded and all(None not in (change.expected, change.new) for change in changes)
        nodes = [node for change in changes for node in _nodes_of(change.table)]
        nodes += map(_fence_of, write_ids_of(changes))
        self._change(lambda catalog: catalog.swap(changes), nodes, names_stay=is_move, with_entries=is_guarded)

    def fence(self, table: TableName, write_ids: Sequence[str]) -> bool:
        self._change(lambda catalog: catalog.fence(table, write_ids), [_fence_of(each) for each in write_ids])
        return True

    def pointer(self, table: TableName, kind: Kind = Kind.TABLE) -> str:
        return require_kind(table, kind, self.find(table))

    def find(self, name: TableName) -> Entry | None:
        return _catalog_of(self._store.read(_nodes_of(name), with_names=False)).find(name)

    def pointers(self, tables: Iterable[TableName]) -> dict[TableName, str]:
        wanted = list(tables)
        nodes = [node for table in wanted for node in _nodes_of(table)]
        reading, again = None, self._store.read(nodes, with_names=False)
        # Pointers move without the root. If two reads agree, both were current at a point in time between them.
        while len(wanted) > 1 and again != reading:
            reading, again = again, self._store.read(nodes, with_names=False)
        return _catalog_of(again).pointers(wanted)

    def entries(self) -> dict[TableName, Entry]:
        return _catalog_of(self._read((), with_names=True, with_entries=True)).entries()

    def pointed_at(self, locations: Iterable[str]) -> set[str]:
        return {entry.pointer for entry in self.entries().values()} & set(locations)

    def list_tables(self, namespace: Namespace) -> list[TableName]:
        return self._names().list_tables(namespace)

    def list_views(self, namespace: Namespace) -> list[TableName]:
        return self._names().list_views(namespace)

    def rename_table(self, old: TableName, new: TableName) -> None:
        self._change(lambda catalog: catalog.rename_table(old, new), [*_nodes_of(old), *_nodes_of(new)])

    def rename_view(self, old: TableName, new: TableName) -> None:
        self._change(lambda catalog: catalog.rename_view(old, new), [*_nodes_of(old), *_nodes_of(new)])

    def list_namespaces(self, parent: Namespace | None = None) -> list[Namespace]:
        return self._names().list_namespaces(parent)

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str] | None = None) -> None:
        self._change(lambda catalog: catalog.create_namespace(namespace, properties))

    def drop_namespace(self, namespace: Namespace) -> None:
        nodes = [encode_name(_NAMESPACE, namespace)]
        self._change(lambda catalog: catalog.drop_namespace(namespace), nodes)

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        reading = self._store.read([encode_name(_NAMESPACE, namespace)], with_names=True)
        return _catalog_of(reading).namespace_properties(namespace)

    def update_namespace_properties(
        self, namespace: Namespace, removals: Iterable[str], updates: Mapping[str, str]
    ) -> None:
        removed = set(removals)
        check_properties(removed, updates)
        self._change(
            lambda catalog: catalog.update_namespace_properties(namespace, removed, updates),
            [encode_name(_NAMESPACE, namespace)],
        )

    @property
    def metadata_server(self) -> None:
        return None

    def close(self) -> None:
        self._store.close()

    def __reduce__(self) -> NoReturn:
        raise Unsupported("a catalog cannot be sent to another process with its connections", hint="Open it there")

    def _names(self) -> MemoryCatalog:
        return _catalog_of(self._store.read((), with_names=True))

    def _change(
        self,
        change: Callable[[MemoryCatalog], object],
        nodes: Sequence[str] = (),
        *,
        names_stay: bool = False,
        with_entries: bool = False,
    ) -> None:
        """Read, apply a change and write it; retry if the nodes were changed concurrently."""
        deadline, pause_s = self._ambient.monotonic() + self._busy_timeout_s, _FIRST_PAUSE_S
        while True:
            reading = self._read(nodes, with_names=not names_stay, with_entries=with_entries)
            catalog = _catalog_of(reading)
            before = _encode_catalog(catalog)
            change(catalog)
            writes = _difference(before, _encode_catalog(catalog), reading)
            checks = {name: reading.nodes[name].version for name in nodes if name in reading.nodes}
            if names_stay:
                checks[ROOT] = reading.root_version
            else:
                writes.append(Write(ROOT, reading.root_version, b""))
            for write in writes:
                checks.pop(write.name, None)
            transaction = Transaction(checks, writes)
            self._check_size(transaction)
            if self._store.commit(transaction):
                return
            if self._ambient.monotonic() >= deadline:
                raise CatalogError(
                    f"catalog {self.name} was changed by others for {self._busy_timeout_s:g} s without a pause"
                )
            self._ambient.sleep(self._ambient.uniform(0, pause_s))
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _check_size(self, transaction: Transaction) -> None:
        if transaction.size_bytes > self._store.most_bytes:
            raise Unsupported(
                f"a change of {transaction.size_bytes:,} bytes is too large for {self.identity}, which takes "
                f"{self._store.most_bytes:,}. Nothing was changed",
                hint="Change fewer tables in one transaction, or set fewer or shorter properties",
            )

    def _read(self, nodes: Sequence[str], *, with_names: bool, with_entries: bool) -> Reading:
        if not with_entries:
            return self._store.read(nodes, with_names=with_names)
        while True:
            names = self._store.read((), with_names=True).names
            reading = self._store.read([*nodes, *(name for name in names if name not in nodes)], with_names=True)
            if set(reading.names) <= {*names, *nodes}:
                return reading


def encode_name(kind: str, parts: Iterable[str]) -> str:
    """Return the name of a node: ASCII, without slashes, and with dots only between the parts."""
    # Lone surrogates are in no valid name, but may be looked up.
    encoded = (quote(part, safe="", errors="surrogatepass").replace(".", "%2E") for part in parts)
    return f"{kind}:{'.'.join(encoded)}"


def _fence_of(write_id: str) -> str:
    return f"{_FENCE}:{write_id}"


def _nodes_of(name: TableName) -> list[str]:
    return [encode_name(kind, (*name.namespace, name.name)) for kind in _KINDS]


def _catalog_of(reading: Reading) -> MemoryCatalog:
    """Return a catalog with the nodes that were read; of the others it has only the names."""
    entries: dict[TableName, Entry] = {}
    namespaces: dict[Namespace, dict[str, str]] = {}
    fenced: set[str] = set()
    for node in {*reading.names, *reading.nodes}:
        kind, _, encoded = node.partition(":")
        if kind == _FENCE:
            fenced.add(encoded)
            continue
        if kind != _NAMESPACE and kind not in _KINDS:
            continue
        parts = tuple(unquote(part) for part in encoded.split("."))
        if "" in parts or encode_name(kind, parts) != node:
            raise CatalogError(f"the node {node} does not have the name of a {kind}", hint="Remove or rename it")
        if kind == _NAMESPACE:
            namespaces[parts] = _decode_properties(node, reading)
            continue
        name = TableName(parts[:-1], parts[-1])
        if name in entries:
            raise CatalogError(f"the node {node} has the name of another one, for {name}", hint="Remove one of them")
        entries[name] = Entry(_KINDS[kind], _decode_pointer(node, reading))
    return MemoryCatalog(entries=entries, namespaces=namespaces, fenced=fenced)


def _decode_properties(node: str, reading: Reading) -> dict[str, str]:
    if node not in reading.nodes:
        return {}
    try:
        return msgspec.json.decode(reading.nodes[node].data, type=dict[str, str])
    except msgspec.MsgspecError as error:
        raise CatalogError(f"the node {node} does not hold the properties of a namespace: {error}") from error


def _decode_pointer(node: str, reading: Reading) -> str:
    if node not in reading.nodes:
        return ""
    try:
        pointer = reading.nodes[node].data.decode()
    except UnicodeDecodeError as error:
        raise CatalogError(f"the node {node} does not hold a metadata location: {error}") from error
    if not pointer:
        raise CatalogError(f"the node {node} has no metadata location")
    return pointer


def _encode_catalog(catalog: MemoryCatalog) -> dict[str, bytes]:
    """Return the data of all nodes."""
    entries = {
        encode_name(entry.kind.value, (*name.namespace, name.name)): entry.pointer.encode()
        for name, entry in catalog.entries().items()
    }
    namespaces = {
        encode_name(_NAMESPACE, namespace): msgspec.json.encode(properties)
        for namespace, properties in catalog.created_namespaces().items()
    }
    return entries | namespaces | {_fence_of(write_id): b"" for write_id in catalog.fenced()}


def _difference(before: Mapping[str, bytes], after: Mapping[str, bytes], reading: Reading) -> list[Write]:
    made = [Write(name, None, data) for name, data in after.items() if name not in before]
    changed = [name for name, data in before.items() if after.get(name) != data]
    return made + [Write(name, reading.nodes[name].version, after.get(name)) for name in changed]
