"""The lake: a catalog of tables and views, and the store that their files live in.

`connect("lake/")` makes or opens a directory: a SQLite catalog inside, tables beside it.
`connect("postgresql://...", warehouse="lake/")` keeps the catalog in PostgreSQL, and the tables in a directory.
Raises InvalidInput, NoSuchNamespace, NoSuchTable, AlreadyExists, NamespaceNotEmpty, CatalogError, Unsupported.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from icefield.ambient import Ambient, SystemAmbient
from icefield.catalog.catalog import Catalog, Kind, PointerSwap
from icefield.catalog.lane import NO_LANES, FileLanes, Lanes
from icefield.catalog.memory import MemoryCatalog
from icefield.catalog.sqlite import SqliteSettings, open_sqlite_catalog
from icefield.commit.create import TableDefinition, create_table
from icefield.commit.view import ViewCommitter
from icefield.errors import AlreadyExists, InvalidInput, NoSuchNamespace, NoSuchTable, Unsupported
from icefield.model.metadata import FORMAT_VERSION
from icefield.model.names import Namespace, TableName, parse_namespace, parse_table_name
from icefield.model.partition import parse_partition_by
from icefield.model.sort_order import parse_order_by
from icefield.model.view import ViewDefinition, ViewMetadata, replace_version, set_properties
from icefield.properties import SERIALIZABLE
from icefield.rows import as_schema, load_spark_engine
from icefield.storage.local import LocalStore
from icefield.storage.location import check_inside, join_location, location_of_path, parse_location
from icefield.storage.memory import MemoryStore
from icefield.storage.store import Store
from icefield.table import Table
from icefield.table_head import LiveHead
from icefield.transaction import Transaction
from icefield.types.schema import assign_fresh_ids
from icefield.view import QUERY_COLUMNS, Source, View, ViewQuery, define_view

CATALOG_FILE = "catalog.db"
LANES_FOLDER = "catalog.lanes"
CATALOG_NAME = "icefield"
MEMORY = "memory:"
POSTGRES_SCHEMES = ("postgresql://", "postgres://")
POSTGRES_CATALOG = "icefield.catalog.postgres"  # loaded when it is asked for: its driver is an extra
MAX_FOLDER_BYTES = 200  # file systems take names of 255 bytes, and the folder's name has more in it than the table's


def connect(
    target: str | os.PathLike[str],
    *,
    warehouse: str | os.PathLike[str] | None = None,
    roots: Iterable[str | os.PathLike[str]] = (),
    durable: bool = True,
    ambient: Ambient | None = None,
) -> "Lake":
    """Open a lake, making it if it is not there.

    target: a directory, `postgresql://user:password@host/database` for a catalog on a server, or `memory:` for a lake
    that lives in this process. warehouse: the directory of the tables, for a catalog on a server. roots: further
    directories that the lake's tables may have files in. durable=False leaves out fsync: a power cut may then lose
    commits.
    """
    ambient = ambient or SystemAmbient()
    on_server = os.fspath(target).startswith(POSTGRES_SCHEMES)
    if (warehouse is not None) != on_server:
        raise InvalidInput("warehouse= is the directory of the tables of a catalog on a server, and goes with no other")
    if target == MEMORY:
        return Lake(MemoryCatalog(CATALOG_NAME), MemoryStore(), "memory://lake", ambient)
    folder = _local_folder(target if warehouse is None else warehouse)
    allowed = [_location(folder), *(_location(Path(root)) for root in roots)]
    catalog: Catalog
    if on_server:
        catalog = _postgres_catalog(os.fspath(target), ambient, durable=durable)
    else:
        settings = SqliteSettings(durable=durable)
        catalog = open_sqlite_catalog(folder / CATALOG_FILE, name=CATALOG_NAME, settings=settings, ambient=ambient)
    lanes = FileLanes(folder / LANES_FOLDER, ambient)
    return Lake(catalog, LocalStore(roots=allowed, durable=durable), allowed[0], ambient, lanes)


class Lake:
    """Namespaces, tables and views."""

    def __init__(
        self, catalog: Catalog, store: Store, warehouse: str, ambient: Ambient, lanes: Lanes = NO_LANES
    ) -> None:
        self._lanes = lanes
        self.catalog = catalog
        self.store = store
        self.warehouse = warehouse
        self.ambient = ambient

    @property
    def spark(self) -> Any:
        """The Spark session that rows go through; started on first use."""
        return load_spark_engine().session()

    def create_table(  # noqa: PLR0913 - one parameter per option
        self,
        name: str,
        schema: object,
        *,
        partition_by: Sequence[str] = (),
        order_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        format_version: int = FORMAT_VERSION,
    ) -> Table:
        """Create an empty table; its namespace is created too if it is missing.

        schema: a text (`id long not null, name string`), an Arrow schema, or a Spark schema or DataFrame.
        partition_by: columns or transforms, such as `day(ts)`, `bucket(16, id)`. order_by: such as `ts desc`.
        format_version: 1, 2 or 3 of Iceberg's table format; a table can be upgraded later.
        """
        table = parse_table_name(name)
        fields = assign_fresh_ids(as_schema(schema))
        definition = TableDefinition(
            fields,
            parse_partition_by(partition_by, fields),
            parse_order_by(order_by, fields),
            dict(properties or {}),
            format_version,
        )
        place = self._new_location(table, location)
        self._make_namespace(table.namespace)
        create_table(self.catalog, self.store, self.ambient, table, place, definition)
        return self._open(table)

    def table(self, name: str) -> Table:
        """Open a table."""
        return self._open(self._known(name))

    def has_table(self, name: str) -> bool:
        """Say whether a table is there."""
        try:
            self.catalog.pointer(parse_table_name(name))
        except NoSuchTable:
            return False
        return True

    def tables(self, namespace: str | None = None) -> list[str]:
        """List tables by full name: of one namespace, or of all."""
        if namespace is not None:
            return [str(table) for table in self.catalog.list_tables(parse_namespace(namespace))]
        return [str(table) for space in self._all_namespaces() for table in self.catalog.list_tables(space)]

    def drop_table(self, name: str) -> None:
        """Take a table out of the catalog; its files stay where they are."""
        table = self._known(name)
        self.catalog.swap([PointerSwap(table, self.catalog.pointer(table), None)])

    def rename_table(self, name: str, new_name: str) -> None:
        """Give a table another name; its files stay where they are."""
        self.catalog.rename_table(parse_table_name(name), parse_table_name(new_name))

    def create_view(
        self,
        name: str,
        sql: str,
        *,
        schema: object | None = None,
        default_namespace: str | None = None,
        properties: Mapping[str, str] | None = None,
        replace: bool = False,
    ) -> View:
        """Give a query over tables and views a name; its namespace is created too if it is missing.

        sql: a SELECT in Spark's dialect. Tables are written with their namespace, or without if they are in the
        default one, which is the view's own unless another is given. schema: other names and types for the columns;
        then Spark is not asked for them, and is not started. replace: replace the view if it is there.
        """
        view = parse_table_name(name)
        space = parse_namespace(default_namespace) if default_namespace is not None else view.namespace
        definition, settings = define_view(self._source, view, ViewQuery(sql, space, schema, dict(properties or {})))
        committer = ViewCommitter(self.catalog, self.store, self.ambient, view)
        if not (replace and self.has_view(name)):
            self._make_namespace(view.namespace)
            try:
                committer.create(self._new_location(view, None), definition, settings)
                return self.view(name)
            except AlreadyExists:
                if not replace:
                    raise
        known = self.view(name)
        committer.edit(partial(_redefined, definition, settings), known.metadata.view_uuid)
        return known

    def view(self, name: str) -> View:
        """Open a view."""
        view = View(self._source, parse_table_name(name))
        view.refresh()
        return view

    def has_view(self, name: str) -> bool:
        """Say whether a view is there."""
        found = self.catalog.find(parse_table_name(name))
        return found is not None and found.kind is Kind.VIEW

    def views(self, namespace: str | None = None) -> list[str]:
        """List views by full name: of one namespace, or of all."""
        spaces = self._all_namespaces() if namespace is None else [parse_namespace(namespace)]
        return [str(view) for space in spaces for view in self.catalog.list_views(space)]

    def drop_view(self, name: str) -> None:
        """Take a view out of the catalog; its files stay where they are."""
        view = parse_table_name(name)
        self.catalog.swap([PointerSwap(view, self.catalog.pointer(view, Kind.VIEW), None, Kind.VIEW)])

    def rename_view(self, name: str, new_name: str) -> None:
        """Give a view another name."""
        self.catalog.rename_view(parse_table_name(name), parse_table_name(new_name))

    def transaction(self, *, isolation: str = SERIALIZABLE) -> Transaction:
        """Begin a transaction over any tables: read at one moment, changed in one swap at the end of its block.

        isolation: `serializable` also fails when a table that was only read was changed meanwhile; `snapshot` does not.
        """
        if not self.catalog.swaps_many:
            raise Unsupported(
                "this catalog moves one pointer at a time, so that it has no transactions over several tables",
                hint="Commit the tables one after another, or keep the catalog in a database",
            )
        return Transaction(self.catalog, self.store, self.ambient, self._lanes, isolation=isolation)

    def create_namespace(self, name: str, properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace."""
        self.catalog.create_namespace(parse_namespace(name), properties)

    def drop_namespace(self, name: str) -> None:
        """Drop a namespace that holds nothing."""
        self.catalog.drop_namespace(parse_namespace(name))

    def namespaces(self, parent: str | None = None) -> list[str]:
        """List the namespaces one level below a parent, or at the top."""
        inside = parse_namespace(parent) if parent is not None else None
        return [".".join(space) for space in self.catalog.list_namespaces(inside)]

    def namespace_properties(self, name: str) -> dict[str, str]:
        """Return the properties of a namespace."""
        return self.catalog.namespace_properties(parse_namespace(name))

    def update_namespace_properties(
        self, name: str, updates: Mapping[str, str] | None = None, *, removals: Iterable[str] = ()
    ) -> None:
        """Set and remove properties of a namespace, at once."""
        self.catalog.update_namespace_properties(parse_namespace(name), removals, dict(updates or {}))

    def close(self) -> None:
        """Let go of the catalog."""
        self.catalog.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Lake({self.warehouse!r})"

    def _open(self, name: TableName) -> Table:
        table = Table(LiveHead(self.catalog, self.store, self.ambient, name, self._lanes), self.store, self.ambient)
        table.refresh()
        return table

    @property
    def _source(self) -> Source:
        return Source(self.catalog, self.store, self.ambient)

    def _known(self, name: str) -> TableName:
        """Check a name, and say what there is when the table is not."""
        table = parse_table_name(name)
        found = self.catalog.find(table)
        if found is None:
            raise NoSuchTable(f"no table {table} in {self.warehouse}", hint=self._neighbours(table.namespace))
        if found.kind is Kind.VIEW:
            raise NoSuchTable(f"{table} is a view, not a table", hint="Use the verbs for views, such as lake.view(...)")
        return table

    def _neighbours(self, namespace: Namespace) -> str:
        try:
            tables = self.catalog.list_tables(namespace)
        except NoSuchNamespace:
            spaces = ", ".join(self.namespaces()) or "none"
            return f"There is no namespace {'.'.join(namespace)} either (namespaces: {spaces})"
        return f"Tables in {'.'.join(namespace)}: {', '.join(t.name for t in tables) or 'none'}"

    def _new_location(self, table: TableName, location: str | None) -> str:
        if location is None:
            # Unique, so that a table made anew under an old name never shares files with the dropped one.
            short = table.name.encode()[:MAX_FOLDER_BYTES].decode(errors="ignore")
            unique = f"{short}-{self.ambient.random_uuid().hex[:8]}"
            return join_location(self.warehouse, *table.namespace, unique)
        place = str(parse_location(location)).rstrip("/")
        check_inside(place, [self.warehouse])
        if place == self.warehouse.rstrip("/"):
            raise InvalidInput(f"table {table} cannot take the whole warehouse as its location")
        return place

    def _make_namespace(self, namespace: Namespace) -> None:
        try:
            self.catalog.create_namespace(namespace)
        except AlreadyExists:
            return

    def _all_namespaces(self, parent: Namespace | None = None) -> list[Namespace]:
        found: list[Namespace] = []
        for space in self.catalog.list_namespaces(parent):
            found.extend((space, *self._all_namespaces(space)))
        return found


def _redefined(
    definition: ViewDefinition, properties: Mapping[str, str], base: ViewMetadata, now_ms: int
) -> ViewMetadata:
    # What the columns of the old query were called says nothing of the new one.
    return replace_version(set_properties(base, properties, [QUERY_COLUMNS]), definition, now_ms)


def _postgres_catalog(url: str, ambient: Ambient, *, durable: bool) -> Catalog:
    try:
        postgres = import_module(POSTGRES_CATALOG)
    except ImportError as error:
        hint = "Run pip install 'icefield[postgres]'"
        raise Unsupported(f"cannot connect to PostgreSQL: {error}", hint=hint) from error
    settings = postgres.PostgresSettings(durable=durable)
    catalog: Catalog = postgres.open_postgres_catalog(url, name=CATALOG_NAME, settings=settings, ambient=ambient)
    return catalog


def _local_folder(target: str | os.PathLike[str]) -> Path:
    text = os.fspath(target)
    if "://" in text and not text.startswith("file://"):
        scheme = text.partition("://")[0]
        hint = "Give a directory, such as connect('lake/'), or postgresql://host/database and warehouse='lake/'"
        raise Unsupported(f"cannot connect to {text!r}: {scheme} is not supported", hint=hint)
    folder = Path(text.removeprefix("file://")).resolve()
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"cannot open a lake at {folder}: it is a file", hint="Give a directory")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot make the directory {folder}: {error.strerror}") from error
    return folder


def _location(path: Path) -> str:
    return location_of_path(str(path.resolve()))
