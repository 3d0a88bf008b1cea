"""SHOW CREATE TABLE: a statement that creates an equal table, or an equal view.

    CREATE TABLE lake.shop.orders (
      id BIGINT NOT NULL,
      day DATE)
    USING iceberg
    PARTITIONED BY (day)
    TBLPROPERTIES (
      'format-version' = '2')

The sort order and the identifier fields are properties, as Iceberg shows them in Spark; CREATE TABLE reads them. A
location that the lake chose is left out, because a new table gets its own.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from icefield.catalog.catalog import Kind
from icefield.errors import Unsupported
from icefield.expr.render.spark_sql import spark_literal
from icefield.model.names import TableName
from icefield.sql.commands.details import order_properties, relation_of, view_properties
from icefield.sql.commands.type_text import comment_clause, declared_type, named_partition_term, quoted
from icefield.sql.schema.properties import COMMENT
from icefield.sql.session import Rows, Run
from icefield.sql.syntax.cursor import Cursor, Name
from icefield.sql.syntax.strings import literal_of
from icefield.storage.location import join_location
from icefield.types.datatypes import EmptyStruct, NestedField, PrimitiveType
from icefield.types.transforms import Void

_STATEMENT = pa.schema({"createtab_stmt": pa.string()})
# What the commits of a table write by themselves.
_OWN_PROPERTIES = ("icefield.idempotency-keys@", "icefield.stream.")


@dataclass(frozen=True)
class ShowCreate:
    """SHOW CREATE TABLE."""

    name: Name

    def run(self, run: Run) -> Rows:
        """Return the statement."""
        found = relation_of(run, self.name)
        if found.inspects is not None or found.ref is not None:
            raise self.name.place.error(f"{self.name} was not created by a statement of its own", kind=Unsupported)
        text = _view_text(run, found.name) if found.kind is Kind.VIEW else _table_text(run, found.name)
        return Rows.of(_STATEMENT, [[text]])


def parse_show_create(cursor: Cursor) -> ShowCreate:
    """Parse what follows SHOW CREATE TABLE."""
    name = cursor.name("the name of a table")
    cursor.accept("as", "serde")
    cursor.expect_end()
    return ShowCreate(name)


def _table_text(run: Run, name: TableName) -> str:
    metadata = run.open(name).metadata
    schema, spec = metadata.schema, metadata.spec
    properties = {
        **{k: v for k, v in metadata.properties.items() if k != COMMENT and not k.startswith(_OWN_PROPERTIES)},
        "format-version": str(metadata.format_version),
        **order_properties(metadata),
    }
    lines = [f"CREATE TABLE {_full_name(run, name)} ({_listed([_column(field) for field in schema.fields])})"]
    lines.append("USING iceberg")
    if not spec.is_unpartitioned:
        fields = [field for field in spec.fields if not isinstance(field.transform, Void)]
        lines.append(f"PARTITIONED BY ({', '.join(named_partition_term(field, schema) for field in fields)})")
    if COMMENT in metadata.properties:
        lines.append(f"COMMENT {literal_of(metadata.properties[COMMENT])}")
    if not _is_chosen(run, name, metadata.location):
        lines.append(f"LOCATION {literal_of(metadata.location)}")
    lines.append(_properties(properties))
    return "\n".join(lines) + "\n"


def _view_text(run: Run, name: TableName) -> str:
    view = run.lake.view(str(name))
    columns = [f"{quoted(field.name)}{comment_clause(field.doc)}" for field in view.schema.fields]
    properties = view_properties(view)
    lines = [f"CREATE VIEW {_full_name(run, name)} ({_listed(columns)})"]
    if COMMENT in view.properties:
        lines.append(f"COMMENT {literal_of(view.properties[COMMENT])}")
    if properties:
        lines.append(_properties(properties))
    return "\n".join([*lines, "AS", view.sql]) + "\n"


def _column(field: NestedField) -> str:
    required = " NOT NULL" if field.required else ""
    default = field.write_default
    text = ""
    if default is not None and not isinstance(default, EmptyStruct) and isinstance(field.type, PrimitiveType):
        text = f" DEFAULT {spark_literal(default, field.type)}"
    return f"{quoted(field.name)} {declared_type(field.type)}{required}{text}{comment_clause(field.doc)}"


def _is_chosen(run: Run, name: TableName, location: str) -> bool:
    """Return whether a location is one that the lake chooses: unique, below that of the namespace."""
    folder, _, last = location.rpartition("/")
    return folder == join_location(run.lake.warehouse, *name.namespace) and bool(re.search(r"-[0-9a-f]{8}\Z", last))


def _full_name(run: Run, name: TableName) -> str:
    return ".".join(quoted(part) for part in (run.lake.catalog.name, *name.namespace, name.name))


def _listed(items: Sequence[str]) -> str:
    return "\n  " + ",\n  ".join(items)


def _properties(properties: Mapping[str, str]) -> str:
    pairs = [f"{literal_of(key)} = {literal_of(value)}" for key, value in sorted(properties.items())]
    return f"TBLPROPERTIES ({_listed(pairs)})"
