"""SHOW: tables, views, namespaces, columns, properties, partitions, branches and tags.

The columns of the results are Spark's. SHOW PARTITIONS has the rows of the metadata table `partitions`. What SHOW does
not find here is Spark's, such as functions.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

import pyarrow as pa

from icefield.catalog.catalog import Kind
from icefield.model.names import Namespace, TableName
from icefield.model.snapshot import RefKind
from icefield.sql.commands.details import relation_of, schema_of, shown_properties, table_details, view_properties
from icefield.sql.commands.pattern import matching, parse_pattern
from icefield.sql.commands.show_create import parse_show_create
from icefield.sql.namespaces import NAMESPACE_WORDS, find_namespace, missing_namespace, open_namespace
from icefield.sql.query.spark_statements import parse_left_to_spark
from icefield.sql.schema.types import parse_text
from icefield.sql.session import Rows, Run, Statement
from icefield.sql.syntax.cursor import Cursor, Name

_TABLES = pa.schema({"namespace": pa.string(), "tableName": pa.string(), "isTemporary": pa.bool_()})
_VIEWS = pa.schema({"namespace": pa.string(), "viewName": pa.string(), "isTemporary": pa.bool_()})
_EXTENDED = _TABLES.append(pa.field("information", pa.string()))
_NAMESPACES = pa.schema({"namespace": pa.string()})
_CURRENT = pa.schema({"catalog": pa.string(), "namespace": pa.string()})
_CATALOGS = pa.schema({"catalog": pa.string()})
_COLUMNS = pa.schema({"col_name": pa.string()})
_PROPERTIES = pa.schema({"key": pa.string(), "value": pa.string()})
_REFS = pa.schema(
    {
        "name": pa.string(),
        "snapshot_id": pa.int64(),
        "max_reference_age_in_ms": pa.int64(),
        "min_snapshots_to_keep": pa.int32(),
        "max_snapshot_age_in_ms": pa.int64(),
    }
)


@dataclass(frozen=True)
class ShowTables:
    """SHOW TABLES, SHOW VIEWS and SHOW TABLE EXTENDED."""

    namespace: Name | None
    pattern: str | None
    kind: str

    def run(self, run: Run) -> Rows:
        """List names, and temporary views of the session after them."""
        space = run.session.namespace if self.namespace is None else open_namespace(run, self.namespace)
        catalog = run.lake.catalog
        listing = catalog.list_views if self.kind == "views" else catalog.list_tables
        names = [each.name for each in listing(space)] if space else []
        inside = ".".join(space)
        if self.kind == "extended":
            rows: list[list[object]] = [
                [inside, name, False, _information(run, space, name)] for name in matching(names, self.pattern)
            ]
            return Rows.of(_EXTENDED, rows)
        rows = [[inside, name, False] for name in matching(names, self.pattern)]
        local = [name for name in run.session.temporary_views if "." not in name]
        rows += [["", name, True] for name in matching(local, self.pattern)]
        return Rows.of(_VIEWS if self.kind == "views" else _TABLES, rows)


@dataclass(frozen=True)
class ShowNamespaces:
    """SHOW NAMESPACES, DATABASES or SCHEMAS."""

    parent: Name | None
    pattern: str | None

    def run(self, run: Run) -> Rows:
        """List the namespaces one level below the parent."""
        parent = None if self.parent is None else _parent(run, self.parent)
        found = [".".join(space) for space in run.lake.catalog.list_namespaces(parent)]
        return Rows.of(_NAMESPACES, [[name] for name in matching(found, self.pattern)])


@dataclass(frozen=True)
class ShowCatalogs:
    """SHOW CATALOGS."""

    pattern: str | None

    def run(self, run: Run) -> Rows:
        """List the lake."""
        return Rows.of(_CATALOGS, [[name] for name in matching([run.lake.catalog.name], self.pattern)])


@dataclass(frozen=True)
class ShowCurrent:
    """SHOW CURRENT NAMESPACE."""

    def run(self, run: Run) -> Rows:
        """Return what USE chose."""
        return Rows.of(_CURRENT, [[run.lake.catalog.name, ".".join(run.session.namespace)]])


@dataclass(frozen=True)
class ShowColumns:
    """SHOW COLUMNS."""

    name: Name

    def run(self, run: Run) -> Rows:
        """List the columns in their order."""
        return Rows.of(_COLUMNS, [[column] for column in schema_of(run, relation_of(run, self.name)).column_names])


@dataclass(frozen=True)
class ShowProperties:
    """SHOW TBLPROPERTIES."""

    name: Name
    key: str | None

    def run(self, run: Run) -> Rows:
        """List all properties, or tell the value of one."""
        found = relation_of(run, self.name)
        if found.kind is Kind.VIEW:
            properties, what = view_properties(run.lake.view(str(found.name))), "View"
        else:
            properties, what = shown_properties(run.open(found.name)), "Table"
        if self.key is None:
            return Rows.of(_PROPERTIES, sorted(properties.items()))
        missing = f"{what} {run.lake.catalog.name}.{found.name} does not have property: {self.key}"
        return Rows.of(_PROPERTIES, [[self.key, properties.get(self.key, missing)]])


@dataclass(frozen=True)
class ShowPartitions:
    """SHOW PARTITIONS."""

    name: Name

    def run(self, run: Run) -> Rows:
        """Return the rows of the metadata table `partitions`."""
        return Rows(run.table(self.name, "show the partitions of").inspect("partitions").to_arrow().read_all())


@dataclass(frozen=True)
class ShowRefs:
    """SHOW BRANCHES and SHOW TAGS."""

    name: Name
    kind: RefKind
    pattern: str | None

    def run(self, run: Run) -> Rows:
        """List the branches or tags, with their retention."""
        refs = run.table(self.name, "show the refs of").refs()
        chosen = {name for name in matching(refs, self.pattern) if refs[name].kind is self.kind}
        rows = [
            [name, ref.snapshot_id, ref.max_ref_age_ms, ref.min_snapshots_to_keep, ref.max_snapshot_age_ms]
            for name, ref in refs.items()
            if name in chosen
        ]
        return Rows.of(_REFS, rows)


def parse_show(cursor: Cursor) -> Statement:
    """Parse SHOW."""
    start = cursor.position
    cursor.expect("show")
    if cursor.accept("create", "table"):
        return parse_show_create(cursor)
    if cursor.accept("table", "extended"):
        return _parse_tables(cursor, "extended")
    if cursor.accept_any("current"):
        cursor.expect_any(*NAMESPACE_WORDS)
        cursor.expect_end()
        return ShowCurrent()
    word = cursor.peek()
    if word in _PARSERS:
        cursor.take()
        return _PARSERS[word](cursor)
    if word in _OF_SPARK or cursor.peek(1) in _OF_SPARK:
        return parse_left_to_spark(cursor, start)
    near = get_close_matches(word, _PARSERS, n=1)
    hint = f"Did you mean SHOW {near[0].upper()}?" if near else f"There is {', '.join(_PARSERS).upper()}, CREATE TABLE"
    raise cursor.error(f"cannot show {cursor.place.text!r}", hint=hint)


def _information(run: Run, space: Namespace, name: str) -> str:
    table = run.open(TableName(space, name))
    return "".join(f"{key}: {value}\n" for key, value in table_details(run, table))


def _parent(run: Run, name: Name) -> Namespace | None:
    found = find_namespace(run, name)
    if found is None and (len(name.parts) > 1 or name.parts[0].lower() != run.lake.catalog.name.lower()):
        raise missing_namespace(run, name.parts, name.place)
    return found


def _parse_tables(cursor: Cursor, kind: str) -> ShowTables:
    space = cursor.name("the name of a namespace") if cursor.accept_any("in", "from") else None
    if kind == "extended" and not cursor.is_at("like"):
        raise cursor.expected("LIKE")
    pattern = parse_pattern(cursor)
    cursor.expect_end()
    return ShowTables(space, pattern, kind)


def _parse_namespaces(cursor: Cursor) -> ShowNamespaces:
    parent = cursor.name("the name of a namespace") if cursor.accept_any("in", "from") else None
    pattern = parse_pattern(cursor)
    cursor.expect_end()
    return ShowNamespaces(parent, pattern)


def _parse_catalogs(cursor: Cursor) -> ShowCatalogs:
    pattern = parse_pattern(cursor)
    cursor.expect_end()
    return ShowCatalogs(pattern)


def _parse_columns(cursor: Cursor) -> ShowColumns:
    cursor.expect_any("in", "from")
    name = cursor.name("the name of a table")
    if cursor.accept_any("in", "from"):
        space = cursor.name("the name of a namespace")
        name = Name((*space.parts, name.parts[-1]), name.place)
    cursor.expect_end()
    return ShowColumns(name)


def _parse_properties(cursor: Cursor) -> ShowProperties:
    name = cursor.name("the name of a table")
    key = None
    if cursor.accept("("):
        key = property_key(cursor)
        cursor.expect(")")
    cursor.expect_end()
    return ShowProperties(name, key)


def property_key(cursor: Cursor) -> str:
    """Parse the key of a property: a string, or words joined by dots."""
    token = cursor.token()
    return (
        str(cursor.name("the key of a property"))
        if token is not None and token.is_name
        else parse_text(cursor, "a key")
    )


def _parse_partitions(cursor: Cursor) -> ShowPartitions:
    name = cursor.name("the name of a table")
    cursor.expect_end()
    return ShowPartitions(name)


def _refs_parser(kind: RefKind) -> Callable[[Cursor], ShowRefs]:
    def parse(cursor: Cursor) -> ShowRefs:
        cursor.expect_any("in", "from")
        name = cursor.name("the name of a table")
        pattern = parse_pattern(cursor)
        cursor.expect_end()
        return ShowRefs(name, kind, pattern)

    return parse


_PARSERS: Mapping[str, Callable[[Cursor], Statement]] = {
    "tables": lambda cursor: _parse_tables(cursor, "tables"),
    "views": lambda cursor: _parse_tables(cursor, "views"),
    "namespaces": _parse_namespaces,
    "databases": _parse_namespaces,
    "schemas": _parse_namespaces,
    "catalogs": _parse_catalogs,
    "columns": _parse_columns,
    "tblproperties": _parse_properties,
    "partitions": _parse_partitions,
    "branches": _refs_parser(RefKind.BRANCH),
    "tags": _refs_parser(RefKind.TAG),
}
_OF_SPARK: Iterable[str] = ("functions", "locks", "roles", "collations", "cached")
