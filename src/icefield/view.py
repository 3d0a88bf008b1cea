"""A view: a named query over tables and views of the lake, read through Spark.

A handle follows the view: every call uses the newest version. Names in the query are resolved when it is read, each
once: tables at their current snapshot, views by their own query. Spark applies the filters of the query.

Raises NotFound, NoSuchTable, Unsupported (no query in Spark's dialect), InvalidInput, SchemaMismatch, CorruptFile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from icefield.arguments import check_arguments
from icefield.deferred import deferred_imports
from icefield.engine.rows import SessionChoice, as_schema, load_spark_engine
from icefield.errors import AlreadyExists, InvalidInput, NoSuchTable, NotFound, Unsupported
from icefield.storage.store import StaysInProcess

with deferred_imports(__name__):
    from icefield.backend import Backend
    from icefield.catalog.catalog import Kind, PointerSwap
    from icefield.commit.operations.choose import view_operations_of
    from icefield.commit.operations.views import LoadedView, ViewOperations
    from icefield.commit.view import ViewCommitter
    from icefield.dml.head import LiveHead, TableHead
    from icefield.dml.subqueries import resolve_relation
    from icefield.expr.query.select import parse_query
    from icefield.model import view as view_model
    from icefield.model.names import Namespace, TableName, parse_namespace, parse_table_name
    from icefield.model.view import SqlRepresentation, VersionLogEntry, ViewDefinition, ViewMetadata, ViewVersion
    from icefield.table.table import Table
    from icefield.types.datatypes import NestedField
    from icefield.types.schema import Schema, assign_fresh_ids

SPARK = "spark"
# The property name that Iceberg uses for views in Spark.
QUERY_COLUMNS = "spark.query-column-names"
MAX_DEPTH = 50
MAX_TABLES = 1000
SUMMARY = {"engine-name": "icefield"}


@dataclass(frozen=True)
class Source:
    """Resolves names. beside: opens tables instead of their newest versions, in a transaction."""

    backend: Backend
    sessions: SessionChoice = field(default_factory=SessionChoice)
    beside: Callable[[TableName], TableHead] | None = None

    def head(self, name: TableName) -> TableHead:
        """Return the head of a table."""
        return LiveHead(self.backend, name) if self.beside is None else self.beside(name)

    @property
    def views(self) -> ViewOperations:
        """Loads views."""
        return view_operations_of(self.backend)


class View(StaysInProcess):
    """A handle on one view: a named query, read through Spark.

    `Lake.view` and `Lake.create_view` return one. Each call works on the newest version of the view.
    """

    def __init__(self, source: Source, name: TableName, read: Callable[[TableName], Any]) -> None:
        self._source = source
        self._name = name
        self._read = read
        self._known: LoadedView | None = None

    @property
    def name(self) -> str:
        """The full name, such as `shop.recent`."""
        return str(self._name)

    @property
    def metadata(self) -> ViewMetadata:
        """The newest metadata."""
        return self.refresh()

    @property
    def metadata_location(self) -> str:
        """The location of the newest metadata file."""
        return self._load().location

    @property
    def sql(self) -> str:
        """The query in Spark's dialect."""
        return spark_sql_of(self._name, self.metadata.current_version)

    @property
    def schema(self) -> Schema:
        """The columns of the view."""
        return self.metadata.schema

    @property
    def properties(self) -> dict[str, str]:
        """The view's properties."""
        return dict(self.metadata.properties)

    def versions(self) -> list[ViewVersion]:
        """List the versions that are kept, oldest first."""
        return sorted(self.metadata.versions, key=lambda version: version.version_id)

    def history(self) -> list[VersionLogEntry]:
        """List the versions that were current, with the time of each change."""
        return list(self.metadata.version_log)

    def to_spark(self) -> Any:
        """Return a Spark DataFrame of the query's rows. Its tables are those of this moment; rows are read later."""
        return self._read(self._name)

    def set_properties(self, updates: Mapping[str, str], *, removals: Iterable[str] = ()) -> None:
        """Set and remove properties of the view."""

        def edit(base: ViewMetadata, now_ms: int) -> ViewMetadata:
            return view_model.set_properties(base, updates, removals)

        ViewCommitter(self._source.backend, self._name).edit(edit, self._load().metadata.view_uuid)

    def refresh(self) -> ViewMetadata:
        """Load the newest metadata and return it."""
        return self._load().metadata

    def __repr__(self) -> str:
        return f"View({self.name!r})"

    def _load(self) -> LoadedView:
        loaded = self._source.views.load(self._name, self._known)
        if self._known is not None and loaded.metadata.view_uuid != self._known.metadata.view_uuid:
            raise NotFound(f"view {self.name} was dropped and recreated since this handle was opened", hint="Reopen it")
        self._known = loaded
        return loaded


@dataclass(frozen=True)
class ViewQuery:
    """The definition of a new view, as the user gives it."""

    sql: str
    default_namespace: Namespace
    schema: object | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str | None] | None = None


def define_view(source: Source, name: TableName, query: ViewQuery) -> tuple[ViewDefinition, dict[str, str]]:
    """Return the definition and the properties. Unless the columns are given, Spark determines them, without a job.

    A query that reads the view itself, at any depth, is rejected.
    """
    parse_query(query.sql)
    properties = dict(query.properties)
    if query.schema is None:
        frame = Reading(source, (name,)).query(query.sql, query.default_namespace)
        fields = tuple(replace(each, required=False) for each in as_schema(frame).fields)
        schema = assign_fresh_ids(Schema(fields if query.columns is None else _renamed(fields, query.columns)))
        if not any("," in column for column in frame.columns):
            properties.setdefault(QUERY_COLUMNS, ",".join(frame.columns))
    else:
        schema = assign_fresh_ids(as_schema(query.schema))
    representations = (SqlRepresentation(query.sql, SPARK),)
    return ViewDefinition(schema, representations, query.default_namespace, summary=SUMMARY), properties


def _renamed(fields: Sequence[NestedField], columns: Mapping[str, str | None]) -> tuple[NestedField, ...]:
    if len(fields) != len(columns):
        raise InvalidInput(f"the view names {len(columns)} columns, and its query has {len(fields)}")
    return tuple(replace(f, name=name, doc=doc) for f, (name, doc) in zip(fields, columns.items(), strict=True))


def spark_sql_of(name: TableName, version: ViewVersion) -> str:
    """Return a version's query in Spark's dialect."""
    found = version.find_sql(SPARK)
    if found is None:
        known = ", ".join(version.dialects) or "none"
        raise Unsupported(f"view {name} has no query in Spark's dialect (dialects: {known})")
    return found


@dataclass(frozen=True)
class _Opened:
    """The DataFrame of a name, and how many tables it reads."""

    frame: Any
    tables: int


class Reading:
    """One resolution of queries over the lake: every name is resolved once, so it means the same throughout.

    inside: views that the query must not read, because they are being defined. pinned: opens a table at one version.
    """

    def __init__(
        self,
        source: Source,
        inside: Sequence[TableName] = (),
        pinned: Mapping[TableName, Callable[[], Any]] | None = None,
    ) -> None:
        self._source = source
        self._inside = list(inside)
        self._pinned = pinned or {}
        self._opened: dict[TableName, _Opened] = {}
        self._views: dict[TableName, ViewMetadata] = {}

    def frame(self, name: TableName) -> Any:
        """Open a table or view as a DataFrame."""
        return self._open(name).frame

    @property
    def opened(self) -> frozenset[TableName]:
        """The tables and views that were opened, directly or by views."""
        return frozenset(self._opened)

    def over(self, pinned: Mapping[TableName, Callable[[], Any]]) -> Reading:
        """Return a resolution of the same views over tables that are opened otherwise."""
        other = Reading(self._source, self._inside, pinned)
        other._views = self._views
        return other

    @property
    def queries(self) -> list[str]:
        """The queries of the views that were loaded."""
        return [spark_sql_of(name, metadata.current_version) for name, metadata in self._views.items()]

    def tables_of(self, name: TableName) -> list[TableName]:
        """Return the tables that a view reads, directly or by other views."""
        found, seen, waiting, catalog = list[TableName](), {name}, [name], self._source.backend.catalog
        while waiting:
            version = self._view(view := waiting.pop()).current_version
            for parts in parse_query(spark_sql_of(view, version)).tables:
                each = resolve_relation(catalog, parts, version.default_namespace)
                known = None if each in seen else catalog.find(each)
                seen.add(each)
                if known is not None:
                    (found if known.kind is Kind.TABLE else waiting).append(each)
        return found

    def query(self, sql: str, default_namespace: Namespace) -> Any:
        """Open a query as a DataFrame; names of one part are looked up in the default namespace."""
        return self._query(sql, default_namespace).frame

    def _open(self, name: TableName) -> _Opened:
        if name not in self._opened:
            self._opened[name] = self._open_anew(name)
        return self._opened[name]

    def _open_anew(self, name: TableName) -> _Opened:
        source = self._source
        found = source.backend.catalog.find(name)
        if found is None:
            reader = f"view {self._inside[-1]} reads" if self._inside else "the query reads"
            raise NoSuchTable(f"{reader} {name}, which is neither a table nor a view of the lake")
        if found.kind is Kind.TABLE:
            session = source.sessions.session
            frame = self._pinned[name]() if name in self._pinned else Table(source.head(name)).scan().to_spark(session)
            return _Opened(frame, 1)
        self._check_way(name)
        self._inside.append(name)
        try:
            return self._open_view(name, self._view(name))
        finally:
            self._inside.pop()

    def _view(self, name: TableName) -> ViewMetadata:
        if name not in self._views:
            self._views[name] = self._source.views.load(name).metadata
        return self._views[name]

    def _open_view(self, name: TableName, metadata: ViewMetadata) -> _Opened:
        version = metadata.current_version
        if version.default_catalog not in (None, self._source.backend.catalog.name):
            raise Unsupported(
                f"view {name} reads from the catalog {version.default_catalog!r}, and the lake is the catalog "
                f"{self._source.backend.catalog.name!r}"
            )
        opened = self._query(spark_sql_of(name, version), version.default_namespace)
        recorded = metadata.properties.get(QUERY_COLUMNS)
        columns = recorded.split(",") if recorded else None
        frame = load_spark_engine().conform_to_view(opened.frame, metadata.schema, columns)
        return _Opened(frame, opened.tables)

    def _query(self, sql: str, default_namespace: Namespace) -> _Opened:
        query, catalog = parse_query(sql), self._source.backend.catalog
        opened = {parts: self._open(resolve_relation(catalog, parts, default_namespace)) for parts in query.tables}
        # Spark's plan grows with every use of a view in another one, possibly exponentially.
        tables = sum(each.tables for each in opened.values())
        if tables > MAX_TABLES:
            raise InvalidInput(f"the query reads {tables} tables in total; at most {MAX_TABLES} are allowed")
        frames = {parts: each.frame for parts, each in opened.items()}
        scope = self._source.backend.ambient.random_uuid().hex
        return _Opened(load_spark_engine().query(query, frames, scope, self._source.sessions.session), tables)

    def _check_way(self, name: TableName) -> None:
        if name in self._inside:
            way = " -> ".join(str(each) for each in [*self._inside[self._inside.index(name) :], name])
            raise InvalidInput(f"views cannot reference each other in a cycle: {way}")
        if len(self._inside) >= MAX_DEPTH:
            raise InvalidInput(f"view {name} is nested in more than {MAX_DEPTH} other views")


def redefine_view(
    definition: ViewDefinition, properties: Mapping[str, str], base: ViewMetadata, now_ms: int
) -> ViewMetadata:
    """Replace the query of a view."""
    # The column names of the old query do not describe the new one.
    return view_model.replace_version(view_model.set_properties(base, properties, [QUERY_COLUMNS]), definition, now_ms)


@check_arguments
class LakeViews(ABC):
    """The part of a lake that deals with views."""

    backend: Backend
    _read_view: Callable[[TableName], Any]  # opens a view as a DataFrame

    @property
    @abstractmethod
    def source(self) -> Source:
        """How the queries of views find their tables, and the Spark session that runs them."""

    @abstractmethod
    def _new_location(self, table: TableName, location: str | None) -> str | None:
        """Return the location of a new table or view, or None if the catalog chooses it."""

    @abstractmethod
    def _make_namespace(self, namespace: Namespace) -> None:
        """Create a namespace if it does not exist."""

    @abstractmethod
    def _list(self, listing: Callable[[Namespace], list[TableName]], namespace: str | None) -> list[str]:
        """List the names of one namespace, or of all."""

    def create_view(  # noqa: PLR0913 - one parameter per option
        self,
        name: str,
        sql: str,
        *,
        schema: object | None = None,
        columns: Mapping[str, str | None] | None = None,
        default_namespace: str | None = None,
        properties: Mapping[str, str] | None = None,
        replace: bool = False,
    ) -> View:
        """Create a view: a named query over tables and views.

        Args:
            sql: A SELECT in Spark's dialect.
            schema: Names and types of the columns. With a schema, Spark is not started to determine them.
            columns: Names for the columns of the query, in order, each with a description or None.
            default_namespace: For names without a namespace. By default that of the view.
            replace: Replace the view if it exists.
        """
        view = parse_table_name(name)
        space = parse_namespace(default_namespace) if default_namespace is not None else view.namespace
        query = ViewQuery(sql, space, schema, dict(properties or {}), columns)
        definition, settings = define_view(self.source, view, query)
        committer = ViewCommitter(self.backend, view)
        if not (replace and self.has_view(name)):
            self._make_namespace(view.namespace)
            try:
                committer.create(self._new_location(view, None), definition, settings)
                return self.view(name)
            except AlreadyExists:
                if not replace:
                    raise
        known = self.view(name)
        committer.edit(partial(redefine_view, definition, settings), known.metadata.view_uuid)
        return known

    def view(self, name: str) -> View:
        """Open a view."""
        view = View(self.source, parse_table_name(name), self._read_view)
        view.refresh()
        return view

    def has_view(self, name: str) -> bool:
        """Return whether a view exists."""
        found = self.backend.catalog.find(parse_table_name(name))
        return found is not None and found.kind is Kind.VIEW

    def views(self, namespace: str | None = None) -> list[str]:
        """List the views of one namespace, or of all, by full name."""
        return self._list(self.backend.catalog.list_views, namespace)

    def drop_view(self, name: str) -> None:
        """Remove a view from the catalog. Its files are kept."""
        view = parse_table_name(name)
        self.backend.catalog.swap([PointerSwap(view, self.backend.catalog.pointer(view, Kind.VIEW), None, Kind.VIEW)])

    def rename_view(self, name: str, new_name: str) -> None:
        """Rename a view."""
        self.backend.catalog.rename_view(parse_table_name(name), parse_table_name(new_name))
