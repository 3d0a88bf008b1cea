"""A catalog on a server with Iceberg's REST protocol. (rest-catalog-open-api.yaml)

The server writes metadata itself, from updates and requirements: clients cannot move pointers. So `swap` only creates
names (register) and drops them, and commits go through `tables`.
A drop cannot require a version: the pointer is compared first, and the table may move in between.

Raises what every catalog raises (see `catalog`), and Unsupported for what the protocol or the server does not support.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn, Self

import msgspec

from icefield.ambient import Ambient, SystemAmbient
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
    walk_namespaces,
)
from icefield.catalog.rest.fences import add_fences
from icefield.catalog.rest.http import HttpClient, Request, check_url
from icefield.catalog.rest.session import TRANSACTIONS, RestConfig, RestSession, decode_answer, load_config
from icefield.catalog.rest.settings import REPORTS, RestSettings
from icefield.catalog.rest.tables import RestTables, encode_identifier
from icefield.catalog.rest.views import RestViews
from icefield.codec.json.keys import Json
from icefield.errors import AlreadyExists, NoSuchNamespace, NoSuchTable, NotFound, Unsupported
from icefield.model.names import Namespace, TableName

NO_MOVES = "a REST catalog takes changes of tables, and moves no pointers"


def open_rest_catalog(
    url: str, *, name: str = "default", settings: RestSettings | None = None, ambient: Ambient | None = None
) -> "RestCatalog":
    """Open a catalog, and load the server's configuration."""
    settings, ambient = settings or RestSettings(), ambient or SystemAmbient()
    url = check_url(url).removesuffix("/v1")
    http = HttpClient(settings.timeout_seconds, ambient)
    try:
        authorization = settings.authorization(url, http, ambient)
        config = RestConfig(settings.said, max_answer_bytes=settings.max_answer_bytes)
        session = RestSession(url, http, authorization, ambient, settings.headers, config)
        return RestCatalog(load_config(session, settings.trusted_origins), name, settings.page_size)
    except BaseException:
        http.close()
        raise


class RestCatalog:
    """A REST catalog with its tables and views; thread-safe."""

    def __init__(self, session: RestSession, name: str, page_size: int | None = None) -> None:
        self.name = name
        self.tables = RestTables(session)
        self.views = RestViews(session)
        self._session = session
        self._paging = {} if page_size is None else {"pageSize": str(page_size), "pageToken": ""}

    @property
    def url(self) -> str:
        """The URL of the server."""
        return self._session.url

    @property
    def properties(self) -> Mapping[str, str]:
        """The merged configuration of client and server, such as `s3.endpoint`; it may contain secrets."""
        return self._session.config.properties

    @property
    def identity(self) -> str:
        return f"rest:{self.url}"

    @property
    def metadata_server(self) -> Self:
        return self

    @property
    def swaps_many(self) -> bool:
        """Whether the server supports commits to several tables."""
        return self._session.supports(TRANSACTIONS)

    @property
    def takes_keys(self) -> bool:
        """Whether the server supports idempotency keys."""
        return self._session.config.takes_idempotency_keys

    @property
    def wants_reports(self) -> bool:
        """Whether commits are reported to the server."""
        return self.properties.get(REPORTS, "true").lower() != "false"

    def swap(self, changes: Sequence[PointerSwap]) -> None:
        check_changes(changes)
        if not changes:
            return
        if len(changes) > 1:
            raise Unsupported(NO_MOVES)
        change = changes[0]
        things = self.tables if change.kind is Kind.TABLE else self.views
        if change.expected is None:
            assert change.new is not None
            things.register(change.table, change.new)
            return
        check_pointer(change, self.find(change.table))
        if change.new is None:
            things.drop(change.table)
        elif change.new != change.expected:
            raise Unsupported(NO_MOVES)

    def fence(self, table: TableName, write_ids: Sequence[str]) -> bool:
        """Fence writes by tags; return False for a table without a snapshot."""
        return add_fences(self.tables, table, write_ids, self._session.ambient.now_ms())

    def pointer(self, table: TableName, kind: Kind = Kind.TABLE) -> str:
        if kind is Kind.VIEW:
            return self.views.load(table).location
        loaded = self.tables.load(table)
        assert loaded is not None
        return loaded.location

    def find(self, name: TableName) -> Entry | None:
        for kind in Kind:
            try:
                return Entry(kind, self.pointer(name, kind))
            except NotFound:
                continue
        return None

    def pointers(self, tables: Iterable[TableName]) -> dict[TableName, str]:
        return {table: loaded.location for table, loaded in self.tables.load_all(tables).items()}

    def entries(self) -> dict[TableName, Entry]:
        found: dict[TableName, Entry] = {}
        for space in walk_namespaces(self.list_namespaces):
            for name in (*self.list_tables(space), *self.list_views(space)):
                if (entry := self.find(name)) is not None:
                    found[name] = entry
        return found

    def pointed_at(self, locations: Iterable[str]) -> set[str]:
        return {entry.pointer for entry in self.entries().values()} & set(locations)

    def list_tables(self, namespace: Namespace) -> list[TableName]:
        return self._list(namespace, "tables")

    def list_views(self, namespace: Namespace) -> list[TableName]:
        return self._list(namespace, "views") if self.views.are_there else []

    def rename_table(self, old: TableName, new: TableName) -> None:
        self._rename(old, new, Kind.TABLE)

    def rename_view(self, old: TableName, new: TableName) -> None:
        self._rename(old, new, Kind.VIEW)

    def list_namespaces(self, parent: Namespace | None = None) -> list[Namespace]:
        query = {**self._paging, **({"parent": self._session.joined(parent)} if parent else {})}
        doing = f"list the namespaces in {'.'.join(parent)}" if parent else "list the namespaces"
        found: set[Namespace] = set()
        try:
            for page in self._session.pages(self._session.path("namespaces"), doing, query):
                found.update(decode_answer(page, _Namespaces, doing).namespaces)
        except NotFound as error:
            raise NoSuchNamespace(error.message) from error
        # A server without nested namespaces may ignore `parent` and list the top level again.
        return find_children(parent or (), found)

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str] | None = None) -> None:
        check_new_namespace(namespace, properties or {})
        body = {"namespace": list(namespace), "properties": dict(properties or {})}
        request = Request("POST", self._session.path("namespaces"), body=body)
        doing = f"create namespace {'.'.join(namespace)}"
        try:
            self._session.change(request, doing, NoSuchNamespace)
        except NoSuchNamespace:
            if len(namespace) < 2:
                raise
            # Some servers require the parent namespaces to exist.
            self._make(namespace[:-1])
            self._session.change(request, doing, NoSuchNamespace)

    def drop_namespace(self, namespace: Namespace) -> None:
        url = self._session.namespace_path(_named(namespace))
        self._session.change(Request("DELETE", url), f"drop namespace {'.'.join(namespace)}", NoSuchNamespace)

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        doing = f"load namespace {'.'.join(namespace)}"
        answer = self._session.read(self._session.namespace_path(_named(namespace)), doing, NoSuchNamespace)
        return decode_answer(answer.body, _Namespace, doing).properties or {}

    def update_namespace_properties(
        self, namespace: Namespace, removals: Iterable[str], updates: Mapping[str, str]
    ) -> None:
        removed = sorted(set(removals))
        check_properties(removed, updates)
        url = self._session.namespace_path(_named(namespace), "properties")
        request = Request("POST", url, body={"removals": removed, "updates": dict(updates)})
        self._session.change(request, f"change namespace {'.'.join(namespace)}", NoSuchNamespace)

    def close(self) -> None:
        """Close the connections."""
        self._session.http.close()

    def __reduce__(self) -> NoReturn:
        raise Unsupported("a catalog cannot be pickled: it holds connections", hint="Open it there")

    def __repr__(self) -> str:
        return f"RestCatalog({self.url!r})"

    def _make(self, namespace: Namespace) -> None:
        try:
            self.create_namespace(namespace)
        except AlreadyExists:
            return

    def _list(self, namespace: Namespace, what: str) -> list[TableName]:
        url = self._session.namespace_path(_named(namespace), what)
        doing = f"list the {what} in {'.'.join(namespace)}"
        found: set[TableName] = set()
        try:
            for page in self._session.pages(url, doing, self._paging):
                found.update(TableName(i.namespace, i.name) for i in decode_answer(page, _Names, doing).identifiers)
        except NotFound as error:
            raise NoSuchNamespace(error.message) from error
        return sorted(found)

    def _rename(self, old: TableName, new: TableName, kind: Kind) -> None:
        check_new_table(new)
        if old == new:
            self.pointer(old, kind)
            return
        body: Json = {"source": encode_identifier(old), "destination": encode_identifier(new)}
        url = self._session.path(f"{kind.value}s", "rename")
        missing = NoSuchTable if kind is Kind.TABLE else NotFound
        self._session.change(Request("POST", url, body=body), f"rename {old} to {new}", missing)


def _named(namespace: Namespace) -> Namespace:
    if not namespace:
        raise NoSuchNamespace("a namespace needs a name")
    return namespace


class _Identifier(msgspec.Struct):
    namespace: tuple[str, ...]
    name: str


class _Names(msgspec.Struct):
    identifiers: list[_Identifier] = []


class _Namespaces(msgspec.Struct):
    namespaces: list[tuple[str, ...]] = []


class _Namespace(msgspec.Struct):
    properties: dict[str, str] | None = None
