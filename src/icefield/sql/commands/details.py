"""What SHOW and DESCRIBE tell of a table or view: its columns, properties and details. Raises NoSuchTable."""

from collections.abc import Iterator

from icefield.catalog.catalog import Kind
from icefield.model.metadata import TableMetadata
from icefield.sql.commands.type_text import sort_term
from icefield.sql.schema.properties import COMMENT, IDENTIFIER_FIELDS, SORT_ORDER
from icefield.sql.session import Relation, Run
from icefield.sql.syntax.cursor import Name
from icefield.table.table import Table
from icefield.types.schema import Schema
from icefield.view import QUERY_COLUMNS, View

OWNER = "owner"
# Properties that Spark shows elsewhere.
_ELSEWHERE = (COMMENT, OWNER, "location", "provider")


def relation_of(run: Run, name: Name) -> Relation:
    """Return what a name refers to."""
    found = run.find(name)
    if found is None:
        raise run.missing(name)
    return found


def schema_of(run: Run, found: Relation) -> Schema:
    """Return the columns of a table, view, metadata table, branch or tag."""
    if found.kind is Kind.VIEW:
        return run.lake.view(str(found.name)).schema
    table = run.open(found.name)
    if found.inspects is not None:
        return table.inspect(found.inspects).schema
    return table.schema if found.ref is None else table.scan(as_of=found.ref).schema


def shown_properties(table: Table) -> dict[str, str]:
    """Return the properties of a table, and what Iceberg shows as such in Spark, in order."""
    metadata = table.metadata
    snapshot = metadata.current_snapshot
    shown = {key: value for key, value in metadata.properties.items() if key not in _ELSEWHERE}
    shown["current-snapshot-id"] = "none" if snapshot is None else str(snapshot.snapshot_id)
    shown["format"] = f"iceberg/{metadata.properties.get('write.format.default', 'parquet')}"
    shown["format-version"] = str(metadata.format_version)
    return dict(sorted({**shown, **order_properties(metadata)}.items()))


def view_properties(view: View) -> dict[str, str]:
    """Return the properties of a view that its author gave."""
    return {key: value for key, value in view.properties.items() if key not in (COMMENT, QUERY_COLUMNS)}


def order_properties(metadata: TableMetadata) -> dict[str, str]:
    """Return the sort order and the identifier fields as properties, where there are any."""
    shown: dict[str, str] = {}
    schema = metadata.schema
    if not metadata.sort_order.is_unsorted:
        shown[SORT_ORDER] = ", ".join(sort_term(field, schema) for field in metadata.sort_order.fields)
    if schema.identifier_field_ids:
        names = sorted(schema.name_of(field_id) for field_id in schema.identifier_field_ids)
        shown[IDENTIFIER_FIELDS] = f"[{','.join(names)}]"
    return shown


def table_details(run: Run, table: Table) -> Iterator[tuple[str, str]]:
    """Yield what DESCRIBE EXTENDED tells of a table."""
    metadata = table.metadata
    properties = metadata.properties
    yield "Name", f"{run.lake.catalog.name}.{table.name}"
    yield "Type", "MANAGED"
    if COMMENT in properties:
        yield "Comment", properties[COMMENT]
    yield "Location", metadata.location
    yield "Provider", "iceberg"
    if OWNER in properties:
        yield "Owner", properties[OWNER]
    yield "Table Properties", f"[{','.join(f'{key}={value}' for key, value in shown_properties(table).items())}]"
    summary = {} if metadata.current_snapshot is None else metadata.current_snapshot.summary
    size, rows = summary.get("total-files-size"), summary.get("total-records")
    if size is not None and rows is not None:
        yield "Statistics", f"{size} bytes, {rows} rows"
