"""The lake: a catalog of tables and views, and the store of their files. `config.connect` opens one.

Raises InvalidInput, NoSuchNamespace, NoSuchTable, AlreadyExists, NamespaceNotEmpty, CatalogError, Unsupported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from icefield.ambient import Ambient
from icefield.arguments import check_arguments
from icefield.deferred import deferred_imports
from icefield.errors import (
    AlreadyExists,
    InvalidInput,
    LocationRefused,
    NoSuchNamespace,
    NoSuchTable,
    Unsupported,
)
from icefield.properties.format_versions import FORMAT_VERSION
from icefield.properties.table import SERIALIZABLE
from icefield.showing import html_table
from icefield.storage.store import StaysInProcess, Store
from icefield.table.drops import LakeDrops
from icefield.table.fsck import LakeChecks
from icefield.table.lake_sql import LakeSql
from icefield.table.lakes.metrics import Reporting
from icefield.table.lakes.namespaces import LakeNamespaces
from icefield.table.lakes.refs import LakeRefs
from icefield.table.lakes.upkeep import LakeUpkeep
from icefield.view import LakeViews, Source

with deferred_imports(__name__):
    from icefield.backend import Backend
    from icefield.catalog.catalog import Catalog, Kind, PointerSwap, refuse_taken, walk_namespaces
    from icefield.commit.actions.create import TableDefinition, register_table
    from icefield.commit.load import load_table_metadata
    from icefield.commit.operations.choose import operations_of
    from icefield.commit.operations.locations import check_table_locations
    from icefield.commit.operations.tables import TableVersion
    from icefield.commit.relocate import MovedLake, Relocation, plan_relocation, relocate
    from icefield.commit.validate.ownership import claim_of, guard_of
    from icefield.dml.head import LiveHead
    from icefield.dml.new_table import NewTable
    from icefield.engine.choose import EngineName, check_engine
    from icefield.engine.rows import SessionChoice, as_schema, hold_rows, load_spark_engine
    from icefield.expr.parse.ast import Predicate
    from icefield.model.names import Namespace, TableName, parse_namespace, parse_table_name
    from icefield.plan.versions import AsOf
    from icefield.storage.location import check_inside, join_location, parse_location
    from icefield.table.definition import all_optional, define_like, define_table
    from icefield.table.table import Table
    from icefield.table.transaction import Transaction

# Opens the same lake in another process; it can be pickled.
LakeOpener = Callable[[], "Lake"]
MAX_FOLDER_BYTES = 200  # file systems allow 255 bytes; the name of the folder is longer than the table's


@check_arguments
class Lake(LakeDrops, LakeSql, LakeViews, LakeChecks, LakeNamespaces, LakeUpkeep, LakeRefs, Reporting, StaysInProcess):
    """A catalog of tables and views, and the store of their files; `icefield.connect` opens one."""

    def __init__(self, backend: Backend, warehouse: str) -> None:
        self._sessions = SessionChoice()
        self.backend = backend
        self.warehouse = warehouse
        self.opener: LakeOpener | None = None

    @property
    def catalog(self) -> Catalog:
        """Where tables and views are named."""
        return self.backend.catalog

    @property
    def store(self) -> Store:
        """Where files are."""
        return self.backend.store

    @property
    def ambient(self) -> Ambient:
        """Clock and randomness."""
        return self.backend.ambient

    @property
    def spark(self) -> Any:
        """The Spark session; started on first use if none is active. Its format `icefield` reads this lake."""
        engine = load_spark_engine()
        session = engine.session(self._sessions.session)
        engine.register_source(session, self)
        return session

    def use(self, session: Any | None = None, *, engine: EngineName | None = None) -> Self:
        """Use this Spark session (None: the active one), and this engine for verbs that name none."""
        self._sessions.choose(session, None if engine is None else check_engine(engine))
        return self

    def read(
        self,
        name: str,
        where: Predicate | str | Any = None,
        select: Sequence[str] | None = None,
        as_of: AsOf | None = None,
    ) -> Any:
        """Return rows of a table as a Spark DataFrame: `table(name).scan(where, select, as_of).to_spark()`."""
        return self.table(name).scan(where, select, as_of).to_spark()

    def create_table(  # noqa: PLR0913 - one parameter per option
        self,
        name: str,
        schema: object,
        *,
        partition_by: Sequence[str] = (),
        order_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        format_version: int | None = None,
        replace: bool = False,
        if_not_exists: bool = False,
    ) -> Table:
        """Create an empty table, and its namespace if that is missing.

        Args:
            schema: Text (`id long not null, name string`), an Arrow schema, or a Spark schema or DataFrame.
            partition_by: Columns or transforms, such as `day(ts)` or `bucket(16, id) as shard`.
            order_by: The sort order of new files, such as `ts desc`.
            location: Where the files go. By default a new directory in the warehouse.
            format_version: 1, 2 or 3 of the table format; 2 by default. A table can be upgraded later.
            replace: If the table exists, replace it as `Table.replace` does.
            if_not_exists: If the table exists, return it as it is, whatever its columns are.
        """
        table = parse_table_name(name)
        if replace and if_not_exists:
            raise InvalidInput("replace and if_not_exists exclude each other")
        version = FORMAT_VERSION if format_version is None else format_version
        definition = define_table(schema, partition_by, order_by, properties, version)
        if replace and self.has_table(name):
            known = self._open(table)
            known.replace(
                definition.schema,
                partition_by=partition_by,
                order_by=order_by,
                properties=properties,
                format_version=format_version,
            )
            return known
        if if_not_exists and self.has_table(name):
            return self._open(table)
        try:
            return self._create(table, location, definition, None)
        except AlreadyExists:
            if not if_not_exists or not self.has_table(name):
                raise
            return self._open(table)  # created concurrently

    def create_table_as(  # noqa: PLR0913 - one parameter per option
        self,
        name: str,
        rows: object,
        *,
        partition_by: Sequence[str] = (),
        order_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        format_version: int | None = None,
        replace: bool = False,
        engine: EngineName | None = None,
    ) -> Table:
        """Create a table with the columns of some rows, all optional, and these rows in it, as one commit.

        Others see the table with its rows, or not at all. If the rows cannot be written, nothing is left.

        Args:
            rows: A Spark DataFrame or Arrow data, as in `Table.append`.
            replace: If the table exists, replace it as `Table.replace` does, in the same commit.
            engine: As in `Table.append`.

        The other parameters are those of `create_table`.
        """
        table, taken = parse_table_name(name), hold_rows(rows)
        schema = all_optional(as_schema(taken))
        if replace and self.has_table(name):
            with self._transaction() as change:
                known = change.table(name)
                known.replace(
                    schema,
                    partition_by=partition_by,
                    order_by=order_by,
                    properties=properties,
                    format_version=format_version,
                )
                known.append(taken, engine=engine)
            return self._open(table)
        version = FORMAT_VERSION if format_version is None else format_version
        definition = define_table(schema, partition_by, order_by, properties, version)
        refuse_taken(table, self.catalog.find(table))
        return self._create(table, location, definition, lambda new: new.append(taken, engine=engine))

    def create_table_like(
        self, name: str, source: str, *, properties: Mapping[str, str] | None = None, location: str | None = None
    ) -> Table:
        """Create an empty table with the columns, partition fields, sort order and properties of another one.

        Args:
            name: The new table.
            source: The table to take them from.
            properties: More properties, or other values of them.
            location: As in `create_table`.
        """
        table = parse_table_name(name)
        definition = define_like(self.table(source).metadata, properties)
        return self._create(table, location, definition, None)

    def table(self, name: str) -> Table:
        """Open a table."""
        try:
            return self._open(parse_table_name(name))
        except NoSuchTable:
            self._known(name)  # raises a more specific error
            raise
        except LocationRefused as refused:
            raise MovedLake(self.catalog, self.store, self.warehouse).explain(refused) from refused

    def head(self, name: str, known: TableVersion | None = None) -> LiveHead:
        """Return the commit target of a table, for engines whose tasks write the files.

        known: the version that the change started from.
        """
        table = self._known(name) if known is None else parse_table_name(name)
        return LiveHead(self.backend, table, known)

    def has_table(self, name: str) -> bool:
        """Return whether a table exists."""
        try:
            self.catalog.pointer(parse_table_name(name))
        except NoSuchTable:
            return False
        return True

    def tables(self, namespace: str | None = None) -> list[str]:
        """List the tables of one namespace, or of all, by full name."""
        return self._list(self.catalog.list_tables, namespace)

    def rename_table(self, name: str, new_name: str) -> None:
        """Rename a table. Its files stay where they are."""
        self.catalog.rename_table(parse_table_name(name), parse_table_name(new_name))

    def _register(self, name: str, metadata_location: str, *, is_restored: bool) -> Table:
        table = parse_table_name(name)
        if operations_of(self.backend).places_tables:
            # A server reads the file itself, and manages its tables.
            self._make_namespace(table.namespace)
            self.catalog.swap([PointerSwap(table, None, metadata_location)])
            return self._handle(table)
        known = TableVersion(load_table_metadata(self.backend.reading, metadata_location), metadata_location)
        refuse_taken(table, self.catalog.find(table))
        check_table_locations(self.store, known.metadata)
        claim = claim_of(known.metadata.table_uuid, known.metadata.location, known.metadata.properties)
        guard_of(self.store, table, claim)(self.catalog.entries())
        self._make_namespace(table.namespace)
        return self._handle(table, register_table(self.backend, table, known, is_restored=is_restored))

    def relocate(
        self, old: str | None = None, *, dry_run: bool = False, progress: Callable[[str], None] = lambda name: None
    ) -> Relocation:
        """Rewrite the metadata of a lake that was moved or copied, so that it names the new location.

        Nothing is deleted, and an interrupted run is finished by the next one.

        Args:
            old: The former location, if it cannot be determined.
            dry_run: Return what would be rewritten, and change nothing.
            progress: Called with each name that is done.
        """
        plan = plan_relocation(self.catalog, self.store, self.warehouse, old)
        return plan if dry_run else relocate(self.catalog, self.store, plan, progress)

    def transaction(self, *, isolation: str = SERIALIZABLE) -> Transaction:
        """Begin a transaction over several tables: they are read at one moment, and committed together.

        With `serializable` isolation it also fails if rows that it only read have changed; with `snapshot` it does not.
        """
        if not self.catalog.swaps_many:
            raise Unsupported(
                "this catalog swaps one pointer at a time, so it does not support multi-table transactions",
                hint="Commit the tables one after another, or use a catalog in a database",
            )
        return self._transaction(isolation)

    def close(self) -> None:
        """Close the connections to the catalog."""
        self.backend.queue.close()
        self.catalog.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Lake({self.warehouse!r})"

    def _repr_html_(self) -> str:
        names = [("table", name) for name in self.tables()] + [("view", name) for name in self.views()]
        return html_table(repr(self), ["kind", "name"], names)

    def _transaction(self, isolation: str = SERIALIZABLE) -> Transaction:
        transaction = Transaction(self.backend, isolation=isolation)
        transaction.sessions = self._sessions
        return transaction

    def _create(
        self,
        table: TableName,
        location: str | None,
        definition: TableDefinition,
        fill: Callable[[Table], object] | None,
    ) -> Table:
        place = self._new_location(table, location)
        self._make_namespace(table.namespace)
        new = NewTable(self.backend, table, place, definition, self._sessions)
        if fill is not None:
            fill(Table(new))
        if new.created is None:
            new.commit([])
        return self._handle(table, new.created)

    def _open(self, name: TableName) -> Table:
        table = self._handle(name)
        table.refresh()
        return table

    def _handle(self, name: TableName, known: TableVersion | None = None) -> Table:
        head = LiveHead(self.backend, name, known)
        head.sessions = self._sessions
        return Table(head)

    @property
    def source(self) -> Source:
        """How the queries of views find their tables, and the Spark session that runs them."""
        return Source(self.backend, self._sessions)

    def _known(self, name: str) -> TableName:
        """Check a name; if the table does not exist, raise an error that lists the alternatives."""
        table = parse_table_name(name)
        found = self.catalog.find(table)
        if found is None:
            raise NoSuchTable(f"no table {table} in {self.warehouse}", hint=self._neighbours(table.namespace))
        if found.kind is Kind.VIEW:
            raise NoSuchTable(f"{table} is a view, not a table", hint=f"Use lake.view({str(table)!r}), or SQL")
        return table

    def _neighbours(self, namespace: Namespace) -> str:
        try:
            tables = self.catalog.list_tables(namespace)
        except NoSuchNamespace:
            spaces = ", ".join(self.namespaces()) or "none"
            return f"There is no namespace {'.'.join(namespace)} (namespaces: {spaces})"
        return f"Tables in {'.'.join(namespace)}: {', '.join(t.name for t in tables) or 'none'}"

    def _new_location(self, table: TableName, location: str | None) -> str | None:
        """Return the location of a new table, or None if the catalog chooses it."""
        if operations_of(self.backend).places_tables:
            return None if location is None else str(parse_location(location)).rstrip("/")
        if location is None:
            # Unique, so that a recreated table never shares files with the dropped one of the same name.
            short = table.name.encode()[:MAX_FOLDER_BYTES].decode(errors="ignore")
            unique = f"{short}-{self.ambient.random_uuid().hex[:8]}"
            return join_location(self.warehouse, *table.namespace, unique)
        place = str(parse_location(location)).rstrip("/")
        check_inside(place, [self.warehouse])
        if place == self.warehouse.rstrip("/"):
            raise InvalidInput(f"table {table} cannot have the whole warehouse as its location")
        return place

    def _make_namespace(self, namespace: Namespace) -> None:
        with suppress(AlreadyExists):
            self.catalog.create_namespace(namespace)

    def _list(self, listing: Callable[[Namespace], list[TableName]], namespace: str | None) -> list[str]:
        if namespace is not None:
            return [str(name) for name in listing(parse_namespace(namespace))]
        found: list[str] = []
        for space in walk_namespaces(self.catalog.list_namespaces):
            # One may be dropped concurrently, and some servers list parts of names that are not namespaces.
            with suppress(NoSuchNamespace):
                found.extend(str(name) for name in listing(space))
        return found
