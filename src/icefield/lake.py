"""The lake: a catalog of tables and the store that their files live in.

`connect("lake/")` makes or opens a directory: a SQLite catalog inside, tables beside it.
Raises InvalidInput, NoSuchNamespace, NoSuchTable, AlreadyExists, NamespaceNotEmpty, CatalogError, Unsupported.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from icefield.ambient import Ambient, SystemAmbient
from icefield.catalog.catalog import Catalog, PointerSwap
from icefield.catalog.memory import MemoryCatalog
from icefield.catalog.sqlite import SqliteSettings, open_sqlite_catalog
from icefield.commit.create import TableDefinition, create_table
from icefield.errors import AlreadyExists, InvalidInput, NoSuchNamespace, NoSuchTable, Unsupported
from icefield.model.names import Namespace, TableName, parse_namespace, parse_table_name
from icefield.model.partition import parse_partition_by
from icefield.model.sort_order import parse_order_by
from icefield.rows import as_schema, load_spark_engine
from icefield.storage.local import LocalStore
from icefield.storage.location import check_inside, join_location, location_of_path, parse_location
from icefield.storage.memory import MemoryStore
from icefield.storage.store import Store
from icefield.table import Table
from icefield.types.schema import assign_fresh_ids

CATALOG_FILE = "catalog.db"
CATALOG_NAME = "icefield"
MEMORY = "memory:"
MAX_FOLDER_BYTES = 200  # file systems take names of 255 bytes, and the folder's name has more in it than the table's


def connect(
    target: str | os.PathLike[str],
    *,
    roots: Iterable[str | os.PathLike[str]] = (),
    durable: bool = True,
    ambient: Ambient | None = None,
) -> "Lake":
    """Open a lake, making it if it is not there.

    target: a directory, or `memory:` for a lake that lives in this process. roots: further directories that the
    lake's tables may have files in. durable=False leaves out fsync: a power cut may then lose commits.
    """
    ambient = ambient or SystemAmbient()
    if target == MEMORY:
        return Lake(MemoryCatalog(CATALOG_NAME), MemoryStore(), "memory://lake", ambient)
    folder = _local_folder(target)
    allowed = [_location(folder), *(_location(Path(root)) for root in roots)]
    settings = SqliteSettings(durable=durable)
    catalog = open_sqlite_catalog(folder / CATALOG_FILE, name=CATALOG_NAME, settings=settings, ambient=ambient)
    return Lake(catalog, LocalStore(roots=allowed, durable=durable), allowed[0], ambient)


class Lake:
    """Namespaces and tables."""

    def __init__(self, catalog: Catalog, store: Store, warehouse: str, ambient: Ambient) -> None:
        self.catalog = catalog
        self.store = store
        self.warehouse = warehouse
        self.ambient = ambient

    @property
    def spark(self) -> Any:
        """The Spark session that rows go through; started on first use."""
        return load_spark_engine().session()

    def create_table(
        self,
        name: str,
        schema: object,
        *,
        partition_by: Sequence[str] = (),
        order_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
    ) -> Table:
        """Create an empty table; its namespace is created too if it is missing.

        schema: a text (`id long not null, name string`), an Arrow schema, or a Spark schema or DataFrame.
        partition_by: columns or transforms, such as `day(ts)`, `bucket(16, id)`. order_by: such as `ts desc`.
        """
        table = parse_table_name(name)
        fields = assign_fresh_ids(as_schema(schema))
        definition = TableDefinition(
            fields, parse_partition_by(partition_by, fields), parse_order_by(order_by, fields), dict(properties or {})
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
        table = Table(self.catalog, self.store, self.ambient, name)
        table.refresh()
        return table

    def _known(self, name: str) -> TableName:
        """Check a name, and say what there is when the table is not."""
        table = parse_table_name(name)
        try:
            self.catalog.pointer(table)
        except NoSuchTable as missing:
            near = self._neighbours(table.namespace)
            raise NoSuchTable(f"no table {table} in {self.warehouse}", hint=near) from missing
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


def _local_folder(target: str | os.PathLike[str]) -> Path:
    text = os.fspath(target)
    if "://" in text and not text.startswith("file://"):
        scheme = text.partition("://")[0]
        raise Unsupported(
            f"cannot connect to {text!r}: {scheme} is not supported", hint="Give a directory, such as connect('lake/')"
        )
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
