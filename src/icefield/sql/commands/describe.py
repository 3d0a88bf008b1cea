"""DESCRIBE: tables, views and metadata tables, one column, namespaces, queries; the history and details of a table.

The rows are those that Spark shows for tables of Iceberg. DESCRIBE HISTORY and DESCRIBE DETAIL have Delta's columns
where these have a meaning here; a version is the id of a snapshot.
"""

import datetime
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import pyarrow as pa

from icefield.arguments import whole_number
from icefield.catalog.catalog import Kind
from icefield.engine.choose import LOCAL
from icefield.errors import InvalidInput, Unsupported
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot
from icefield.plan.partition.struct import partition_struct
from icefield.sql.commands.delta import parse_count
from icefield.sql.commands.details import (
    OWNER,
    relation_of,
    schema_of,
    shown_properties,
    table_details,
    view_properties,
)
from icefield.sql.commands.type_text import described_type, partition_term
from icefield.sql.namespaces import NAMESPACE_WORDS, open_namespace
from icefield.sql.query.read import open_query, open_relation
from icefield.sql.query.spark_statements import parse_left_to_spark
from icefield.sql.schema.properties import COMMENT
from icefield.sql.session import Relation, Rows, Run, Statement
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.place import Place
from icefield.types.datatypes import NestedField
from icefield.types.metadata_columns import LINEAGE, with_metadata_columns
from icefield.types.transforms import Identity

_COLUMNS = pa.schema({"col_name": pa.string(), "data_type": pa.string(), "comment": pa.string()})
_VALUES = pa.schema({"info_name": pa.string(), "info_value": pa.string()})
_TEXTS = pa.map_(pa.string(), pa.string())
_TIME = pa.timestamp("us", "UTC")
_HISTORY = pa.schema(
    {
        "version": pa.int64(),
        "timestamp": _TIME,
        "operation": pa.string(),
        "readVersion": pa.int64(),
        "isCurrentAncestor": pa.bool_(),
        "refs": pa.list_(pa.string()),
        "operationMetrics": _TEXTS,
        "engineInfo": pa.string(),
    }
)
_DETAIL = pa.schema(
    {
        "format": pa.string(),
        "id": pa.string(),
        "name": pa.string(),
        "description": pa.string(),
        "location": pa.string(),
        "lastModified": _TIME,
        "partitionColumns": pa.list_(pa.string()),
        "numFiles": pa.int64(),
        "sizeInBytes": pa.int64(),
        "numRows": pa.int64(),
        "properties": _TEXTS,
        "formatVersion": pa.int32(),
    }
)
_BLANK = ["", "", ""]
_FIRST = ("_spec_id", "_partition")  # in Iceberg's order
_QUERY_WORDS = ("select", "with", "values", "from", "map", "reduce", "(")


@dataclass(frozen=True)
class DescribeTable:
    """DESCRIBE [EXTENDED | FORMATTED] of a table or view."""

    name: Name
    is_extended: bool

    def run(self, run: Run) -> Any:
        """Return its columns, partition fields and details."""
        found = None if run.find_temporary(self.name.parts) is not None else run.find(self.name)
        if found is None and run.engine != LOCAL:  # a temporary view, or what Spark knows by this name
            return _columns_of_frame(open_relation(run, self.name))
        if found is None:
            raise run.missing(self.name)
        rows = [[f.name, described_type(f.type), _comment(found, f)] for f in schema_of(run, found).fields]
        if found.kind is Kind.VIEW:
            rows += self._of_view(run, found) if self.is_extended else []
        elif found.inspects is None:
            rows += self._of_table(run, found)
        return Rows.of(_COLUMNS, rows)

    def _of_table(self, run: Run, found: Relation) -> list[list[Any]]:
        table = run.open(found.name)
        metadata = table.metadata
        rows = _partitioning(metadata)
        if self.is_extended:
            rows += [_BLANK, ["# Metadata Columns", "", ""], *_metadata_columns(metadata)]
            rows += [_BLANK, ["# Detailed Table Information", "", ""]]
            rows += [[name, value, ""] for name, value in table_details(run, table)]
        return rows

    def _of_view(self, run: Run, found: Relation) -> list[list[Any]]:
        view = run.lake.view(str(found.name))
        version, catalog = view.metadata.current_version, run.lake.catalog.name
        properties = ",".join(f"{key}={value}" for key, value in sorted(view_properties(view).items()))
        details = {
            "Name": f"{catalog}.{found.name}",
            "Comment": view.properties.get(COMMENT),
            "View Catalog and Namespace": f"{catalog}.{'.'.join(version.default_namespace)}",
            "View Query Output Columns": f"[{', '.join(view.schema.column_names)}]",
            "View Text": view.sql,
            "View Properties": f"[{properties}]",
        }
        shown = [[name, value, ""] for name, value in details.items() if value is not None]
        return [_BLANK, ["# Detailed View Information", "", ""], *shown]


@dataclass(frozen=True)
class DescribeColumn:
    """DESCRIBE of one column, which may be inside a struct."""

    name: Name
    column: Name

    def run(self, run: Run) -> Rows:
        """Return its name, type and comment."""
        schema = schema_of(run, relation_of(run, self.name))
        fields = {tuple(part.lower() for part in path): i for i, path in schema.paths.items()}
        found = fields.get(tuple(part.lower() for part in self.column.parts))
        if found is None:
            near = get_close_matches(str(self.column), [schema.name_of(i) for i in schema.paths], n=1)
            known = ", ".join(schema.column_names)
            hint = f"Did you mean {near[0]!r}?" if near else None
            raise self.column.place.error(
                f"no column {str(self.column)!r} (columns: {known})", hint=hint, kind=InvalidInput
            )
        field = schema.by_id[found]
        # Spark shows the word NULL, not a null.
        rows = {"col_name": field.name, "data_type": described_type(field.type), "comment": field.doc or "NULL"}
        return Rows.of(_VALUES, list(rows.items()))


@dataclass(frozen=True)
class DescribeNamespace:
    """DESCRIBE NAMESPACE [EXTENDED]."""

    name: Name
    is_extended: bool

    def run(self, run: Run) -> Rows:
        """Return its name, comment, location, owner and properties."""
        space = open_namespace(run, self.name)
        properties = run.lake.catalog.namespace_properties(space)
        rows: list[list[str]] = [["Catalog Name", run.lake.catalog.name], ["Namespace Name", ".".join(space)]]
        for label, key in (("Comment", COMMENT), ("Location", "location"), ("Owner", OWNER)):
            if key in properties:
                rows.append([label, properties[key]])
        if self.is_extended:
            others = sorted((k, v) for k, v in properties.items() if k not in (COMMENT, "location", OWNER))
            rows.append(["Properties", f"({','.join(f'({key},{value})' for key, value in others)})" if others else ""])
        return Rows.of(_VALUES, rows)


@dataclass(frozen=True)
class DescribeQuery:
    """DESCRIBE [QUERY] of a query, which is analysed, not run."""

    query: Place

    def run(self, run: Run) -> Any:
        """Return the columns of the query."""
        return _columns_of_frame(open_query(run, self.query))


@dataclass(frozen=True)
class DescribeHistory:
    """DESCRIBE HISTORY, as in Delta: the newest first."""

    name: Name
    limit: int | None

    def run(self, run: Run) -> Rows:
        """Return one row for each snapshot."""
        metadata = run.table(self.name, "describe the history of").metadata
        current = {snapshot.snapshot_id for snapshot in metadata.ancestors(metadata.current_snapshot)}
        snapshots = list(reversed(list(metadata.snapshots)))[: self.limit]
        return Rows.of(_HISTORY, [self._row(metadata, snapshot, current) for snapshot in snapshots])

    def _row(self, metadata: TableMetadata, snapshot: Snapshot, current: set[int]) -> list[object]:
        refs = [name for name, ref in metadata.refs.items() if ref.snapshot_id == snapshot.snapshot_id]
        summary = dict(snapshot.summary)
        return [
            snapshot.snapshot_id,
            _moment(snapshot.timestamp_ms),
            summary.pop("operation", str(snapshot.operation or "")),
            snapshot.parent_snapshot_id,
            snapshot.snapshot_id in current,
            sorted(refs),
            sorted(summary.items()),
            summary.get("engine-name"),
        ]


@dataclass(frozen=True)
class DescribeDetail:
    """DESCRIBE DETAIL, as in Delta."""

    name: Name

    def run(self, run: Run) -> Rows:
        """Return one row."""
        table = run.table(self.name, "describe")
        metadata = table.metadata
        snapshot = metadata.current_snapshot
        summary = {} if snapshot is None else snapshot.summary
        terms = [partition_term(field, metadata.schema) for field in metadata.spec.fields]
        totals = [
            0 if snapshot is None else whole_number(summary.get(key))
            for key in ("total-data-files", "total-files-size", "total-records")
        ]
        row = [
            "iceberg",
            str(metadata.table_uuid),
            f"{run.lake.catalog.name}.{table.name}",
            metadata.properties.get(COMMENT),
            metadata.location,
            _moment(metadata.last_updated_ms),
            terms,
            *totals,
            list(shown_properties(table).items()),
            metadata.format_version,
        ]
        return Rows.of(_DETAIL, [row])


def parse_describe(cursor: Cursor) -> Statement:
    """Parse DESCRIBE or DESC."""
    start = cursor.position
    cursor.expect_any("describe", "desc")
    if cursor.accept("query") or cursor.peek() in _QUERY_WORDS:
        return DescribeQuery(cursor.rest("a query"))
    if cursor.is_at("table") and cursor.token(2) is None:  # of a query `TABLE t` the columns are those of t
        cursor.take()
    follows = cursor.token(1) is not None and cursor.peek(1) != "."
    if follows and cursor.accept("function"):
        return parse_left_to_spark(cursor, start)
    if follows and cursor.accept_any(*NAMESPACE_WORDS):
        is_extended = cursor.token(1) is not None and cursor.accept("extended")
        return _ended(cursor, DescribeNamespace(cursor.name("the name of a namespace"), is_extended))
    if follows and cursor.accept("history"):
        name = cursor.name("the name of a table")
        limit = int(parse_count(cursor)) if cursor.accept("limit") else None
        return _ended(cursor, DescribeHistory(name, limit))
    if follows and cursor.accept("detail"):
        return _ended(cursor, DescribeDetail(cursor.name("the name of a table")))
    return _parse_table(cursor)


def _parse_table(cursor: Cursor) -> Statement:
    if _is_word_before_name(cursor):
        cursor.accept("table")
    is_extended = _is_word_before_name(cursor) and cursor.accept_any("extended", "formatted") is not None
    start = cursor.position
    name = cursor.name("the name of a table")
    if cursor.accept("partition"):
        raise cursor.error("DESCRIBE does not take a partition", hint="See SHOW PARTITIONS", kind=Unsupported)
    if cursor.accept("as", "json"):
        raise cursor.error("DESCRIBE AS JSON is not supported", cursor.since(start), kind=Unsupported)
    if cursor.is_at_end:
        return DescribeTable(name, is_extended)
    return _ended(cursor, DescribeColumn(name, cursor.name("the name of a column")))


def _is_word_before_name(cursor: Cursor) -> bool:
    """Return whether the next word is followed by a name, so that it is not the name itself."""
    after = cursor.token(1)
    return after is not None and after.is_name


def _ended(cursor: Cursor, statement: Statement) -> Statement:
    cursor.expect_end()
    return statement


def _columns_of_frame(frame: Any) -> Rows:
    return Rows.of(_COLUMNS, [[name, kind, None] for name, kind in frame.dtypes])


def _comment(found: Relation, field: NestedField) -> str | None:
    # Spark shows no comment of a view's column as an empty text, and of a table's as null.
    return field.doc if field.doc is not None or found.kind is not Kind.VIEW else ""


def _partitioning(metadata: TableMetadata) -> list[list[Any]]:
    schema, fields = metadata.schema, metadata.spec.fields
    if metadata.spec.is_unpartitioned:
        return []
    if all(isinstance(field.transform, Identity) for field in fields):
        head = [["# Partition Information", "", ""], ["# col_name", "data_type", "comment"]]
        sources = [schema.by_id[field.source_id] for field in fields]
        return head + [[schema.name_of(f.field_id), described_type(f.type), f.doc] for f in sources]
    parts = [[f"Part {at}", partition_term(field, schema), ""] for at, field in enumerate(fields)]
    return [_BLANK, ["# Partitioning", "", ""], *parts]


def _metadata_columns(metadata: TableMetadata) -> list[list[Any]]:
    hidden = () if metadata.has_row_ids else LINEAGE
    columns = with_metadata_columns(metadata.schema, partition_struct(metadata).fields).fields
    added = {field.name: field for field in columns[len(metadata.schema.fields) :] if field not in hidden}
    ordered = [*(name for name in _FIRST if name in added), *(name for name in added if name not in _FIRST)]
    return [[name, described_type(added[name].type), ""] for name in ordered]


def _moment(timestamp_ms: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(timestamp_ms / 1000, datetime.UTC)
