"""CREATE TABLE, REPLACE TABLE and CREATE OR REPLACE TABLE, with columns, like another table, or as a query.

A table with the rows of a query is one commit: no one sees it without them. A replacement keeps the history of the
table, and fails if it is changed concurrently.
Raises AlreadyExists, NoSuchTable, NoSuchNamespace, InvalidInput, Unsupported.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from icefield.catalog.catalog import Kind, refuse_taken
from icefield.engine.rows import as_schema, is_spark, load_spark_engine
from icefield.errors import IcefieldError, InvalidInput, LocationRefused, Unsupported
from icefield.model.names import TableName
from icefield.model.snapshot import Snapshot
from icefield.properties.format_versions import FORMAT_VERSION
from icefield.sql.counts import counts_of_append
from icefield.sql.namespaces import has_namespace, missing_namespace
from icefield.sql.query.statements import Query
from icefield.sql.schema.change import one_commit, refuse_in_transaction
from icefield.sql.schema.columns import Column, parse_columns, refuse_twice, schema_of
from icefield.sql.schema.table_clauses import TableClauses, parse_clauses
from icefield.sql.session import NOTHING, Rows, Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place, point_at, pointing_at
from icefield.table.definition import all_optional
from icefield.types.schema import Schema
from icefield.types.versions import DEFAULTS_ADDED_IN, minimum_version

_QUERY_WORDS = ("select", "with", "values", "from", "table", "(")


@dataclass(frozen=True)
class CreateMode:
    """Which tables a statement creates: a new one, one that is missing, or one instead of another."""

    if_not_exists: bool = False
    replaces: bool = False
    creates: bool = True


@dataclass(frozen=True)
class CreateTable:
    """CREATE TABLE with columns, or as a query."""

    name: Name
    mode: CreateMode
    columns: tuple[Column, ...]
    clauses: TableClauses
    query: Place | None

    def run(self, run: Run) -> Rows:
        """Create or replace the table; return what the query added."""
        table, is_there = resolve_new(run, self.name, self.mode)
        if is_there and self.mode.if_not_exists:
            return NOTHING
        if is_there:
            made = self._replace(run, table)
        elif self.query is None:
            made = self._create(run, table)
        else:
            made = self._create_as(run, table, self.query)
        return NOTHING if self.query is None else counts_of_append(made)

    def explain(self, run: Run, mode: str) -> str:
        """Return what it would create, and the plan of its query."""
        table, is_there = resolve_new(run, self.name, self.mode)
        if is_there and self.mode.if_not_exists:
            return f"nothing to do: {table} exists"
        said = f"{'replace' if is_there else 'create'} {table} in one commit"
        return said if self.query is None else f"{said}, with the rows of\n{Query(self.query).explain(run, mode)}"

    def _create(self, run: Run, table: TableName) -> Snapshot | None:
        shape = self.clauses.shape(schema_of(run, self.columns))
        self._check_versions(shape.format_version or FORMAT_VERSION)
        with self._pointing():
            run.lake.create_table(
                str(table),
                shape.schema,
                partition_by=shape.partition_by,
                order_by=shape.order_by,
                properties=shape.properties,
                location=self.clauses.location,
                format_version=shape.format_version,
            )
        return None

    def _create_as(self, run: Run, table: TableName, query: Place) -> Snapshot | None:
        frame = _open(run, query)
        shape = self.clauses.shape(_schema_of_query(frame, query))
        with self._pointing(), _explained(frame):
            made = run.lake.create_table_as(
                str(table),
                frame,
                partition_by=shape.partition_by,
                order_by=shape.order_by,
                properties=shape.properties,
                location=self.clauses.location,
                format_version=shape.format_version,
            )
        return made.metadata.current_snapshot

    def _check_versions(self, format_version: int) -> None:
        """Refuse what a format version does not have, at the column."""
        for column in self.columns:
            if column.default is not None and format_version < DEFAULTS_ADDED_IN:
                raise column.default.place.error(
                    f"defaults need format version {DEFAULTS_ADDED_IN}, and the table has {format_version}",
                    hint=f"Write TBLPROPERTIES ('format-version' = '{DEFAULTS_ADDED_IN}')",
                    kind=InvalidInput,
                )
            if (needed := minimum_version(column.type)) > format_version:
                raise column.type_place.error(
                    f"the type needs format version {needed}, and the table has {format_version}",
                    hint=f"Write TBLPROPERTIES ('format-version' = '{needed}')",
                    kind=InvalidInput,
                )

    def _replace(self, run: Run, table: TableName) -> Snapshot | None:
        if self.clauses.location is not None:
            raise self.clauses.place.error(
                "a table that is replaced keeps its location", hint="Use ALTER TABLE ... SET LOCATION", kind=Unsupported
            )
        # The version to replace is fixed before the query reads it: a change between the two is not lost.
        with self._pointing(), one_commit(run, table) as changed:
            frame = None if self.query is None else _open(run, self.query)
            columns = schema_of(run, self.columns) if self.query is None else _schema_of_query(frame, self.query)
            shape = self.clauses.shape(columns)
            changed.replace(
                shape.schema,
                partition_by=shape.partition_by,
                order_by=shape.order_by,
                properties=shape.properties,
                format_version=shape.format_version,
            )
            if self.query is None:
                return None
            with _explained(frame):
                return changed.append(frame)

    @contextmanager
    def _pointing(self) -> Iterator[None]:
        try:
            yield
        except LocationRefused as error:
            point_at(error, self.clauses.place)
            raise
        except IcefieldError as error:
            point_at(error, self.name.place if self.query is None else self.query)
            raise


@dataclass(frozen=True)
class CreateTableLike:
    """CREATE TABLE LIKE: an empty table with the columns, partition fields, order and properties of another one."""

    name: Name
    mode: CreateMode
    source: Name
    clauses: TableClauses

    def run(self, run: Run) -> Rows:
        """Create the table."""
        table, is_there = resolve_new(run, self.name, self.mode)
        if is_there:
            return NOTHING
        with pointing_at(self.source.place):
            found = run.find_changed(self.source, "copy the columns of")
            if found is None:
                raise run.missing(self.source)
            if found.ref is not None or found.inspects is not None:
                raise Unsupported(f"{self.source} is not a table", hint="Name the table itself")
        properties = self.clauses.properties.for_table()
        with pointing_at(self.name.place):
            if found.kind is Kind.VIEW:
                schema = all_optional(run.lake.view(str(found.name)).schema)
                run.lake.create_table(str(table), schema, properties=properties, location=self.clauses.location)
            else:
                run.lake.create_table_like(
                    str(table), str(found.name), properties=properties, location=self.clauses.location
                )
        return NOTHING


def parse_create_table(cursor: Cursor, mode: CreateMode) -> CreateTable | CreateTableLike:
    """Parse what follows CREATE, REPLACE or CREATE OR REPLACE."""
    cursor.expect("table")
    place = cursor.place
    if cursor.accept("if", "not", "exists"):
        if mode.replaces:
            raise place.error("a table is replaced, or created IF NOT EXISTS, not both", kind=InvalidInput)
        mode = replace(mode, if_not_exists=True)
    name = cursor.name("the name of a table")
    if cursor.accept("like"):
        source = cursor.name("the name of a table")
        clauses = parse_clauses(cursor)
        cursor.expect_end()
        return CreateTableLike(name, mode, source, clauses)
    columns = parse_columns(cursor) if cursor.is_at("(") and cursor.peek(1) not in _QUERY_WORDS else ()
    clauses = parse_clauses(cursor)
    query = cursor.rest() if cursor.accept("as") or cursor.peek() in _QUERY_WORDS else None
    cursor.expect_end()
    columns = (*columns, *clauses.partition_columns)
    refuse_twice(columns)
    _check_columns(name, columns, query)
    return CreateTable(name, mode, columns, clauses, query)


def resolve_new(run: Run, name: Name, mode: CreateMode) -> tuple[TableName, bool]:
    """Return the full name of a new table, and whether a table has it; refuse what the mode does not allow."""
    refuse_in_transaction(run, name.place, "create or replace tables")
    with pointing_at(name.place):
        table = run.new_name(name)
        found = run.lake.catalog.find(table)
        if found is not None and (found.kind is Kind.VIEW or not (mode.if_not_exists or mode.replaces)):
            refuse_taken(table, found)
        if found is None and not mode.creates:
            raise run.missing(name, "table")
    if found is None and not has_namespace(run, table.namespace):
        raise missing_namespace(run, table.namespace, name.place)
    return table, found is not None


def _check_columns(name: Name, columns: Sequence[Column], query: Place | None) -> None:
    """Refuse a table without columns, and a query with columns of the statement."""
    if query is None and not columns:
        raise name.place.error(f"the table {name} has no columns", kind=InvalidInput)
    if query is not None and columns:
        raise columns[0].name.place.error(
            "the columns of a table that is created from a query are those of the query",
            hint="Name them in the query, with AS",
            kind=InvalidInput,
        )


def _open(run: Run, query: Place) -> Any:
    """Open the rows of a query: a DataFrame, or Arrow data of the local engine."""
    opened = Query(query).run(run)
    return opened.table if isinstance(opened, Rows) else opened


def _explained(rows: object) -> AbstractContextManager[None]:
    """Raise errors of values, which come while rows are written, as InvalidInput."""
    return load_spark_engine().explained("create the table") if is_spark(rows) else nullcontext()


def _schema_of_query(frame: Any, query: Place) -> Schema:
    with pointing_at(query):
        seen: set[str] = set()
        for column in frame.schema.names:
            if column.lower() in seen:
                raise InvalidInput(f"the query has two columns {column!r}", hint="Rename one of them, with AS")
            seen.add(column.lower())
        return all_optional(as_schema(frame))
