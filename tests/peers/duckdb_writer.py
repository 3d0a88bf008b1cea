"""DuckDB as a writer of Iceberg tables: its SQL for values and filters, and tables that it copies to a directory.

`COPY … (FORMAT iceberg)` needs no network, unlike its writes through a catalog, for which it loads an extension that is
not among the wheels. It leaves out of the metadata what others need; `copy_table` adds it.
"""

import datetime as dt
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.matrix.reading_filters import EPOCH, Both, Filter, Not, float_text
from tests.peers.duckdb_reader import DuckDBReader

from icefield.types.datatypes import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    Type,
    UUIDType,
)

NAMES: dict[type[PrimitiveType], str] = {
    BooleanType: "BOOLEAN",
    IntegerType: "INTEGER",
    LongType: "BIGINT",
    FloatType: "FLOAT",
    DoubleType: "DOUBLE",
    DateType: "DATE",
    TimeType: "TIME",
    TimestampType: "TIMESTAMP",
    TimestamptzType: "TIMESTAMPTZ",
    StringType: "VARCHAR",
    BinaryType: "BLOB",
    UUIDType: "UUID",
}


def name_of(kind: Type) -> str:
    """Return what DuckDB calls a type."""
    match kind:
        case DecimalType(precision, scale):
            return f"DECIMAL({precision}, {scale})"
        case StructType(fields):
            return f"STRUCT({', '.join(declare(f) for f in fields)})"
        case _:
            assert isinstance(kind, PrimitiveType)
            return NAMES[type(kind)]


def declare(field: NestedField) -> str:
    """Return the declaration of a column."""
    return f'"{field.name}" {name_of(field.type)}'


def literal(value: Any, kind: Type) -> str:
    """Write a value, as the models of the matrix have it."""
    if value is None:
        return f"CAST(NULL AS {name_of(kind)})"
    match kind:
        case StructType(fields):
            return "{" + ", ".join(f"'{f.name}': {literal(value[f.field_id], f.type)}" for f in fields) + "}"
        case StringType():
            return f"decode({literal(value.encode(), BinaryType())})"
        case BinaryType():
            return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
        case _:
            return f"CAST('{_text(value, kind)}' AS {name_of(kind)})"


def condition(filter_: Filter) -> str:
    """Write a filter. As in Spark, null is not NaN."""
    match filter_:
        case Not(part):
            return f"NOT ({condition(part)})"
        case Both(word, left, right):
            return f"({condition(left)}) {word} ({condition(right)})"
    name = ".".join(['"own"', *(f'"{f.name}"' for f in filter_.place.fields)])
    values = [literal(v, filter_.place.kind) for v in filter_.values]
    match filter_.word:
        case "IS NULL" | "IS NOT NULL":
            return f"{name} {filter_.word}"
        case "ISNAN":
            return f"coalesce(isnan({name}), false)"
        case "STARTSWITH":
            return f"starts_with({name}, {values[0]})"
        case "IN" | "NOT IN":
            return f"{name} {filter_.word} ({', '.join(values)})"
        case "<=>":
            return f"{name} IS NOT DISTINCT FROM {values[0]}"
        case word:
            return f"{name} {word} {values[0]}"


def create_own(duckdb: DuckDBReader, fields: Sequence[NestedField], rows: Sequence[dict[int, Any]]) -> None:
    """Make DuckDB's own table `own`."""
    values = ", ".join("(" + ", ".join(literal(row[f.field_id], f.type) for f in fields) + ")" for row in rows)
    duckdb.query(f"CREATE OR REPLACE TABLE own ({', '.join(map(declare, fields))})")
    duckdb.query(f"INSERT INTO own VALUES {values}")


def copy_table(duckdb: DuckDBReader, directory: Path) -> str:
    """Copy the table `own` to an Iceberg table, and return the location of its metadata file."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    duckdb.query(f"COPY own TO '{directory}' (FORMAT iceberg)")
    (written,) = (directory / "metadata").glob("*.metadata.json")
    metadata = json.loads(written.read_text())
    assert "last-sequence-number" not in metadata
    assert metadata["sort-orders"] == []
    metadata |= {"last-sequence-number": 0, "sort-orders": [{"order-id": 0, "fields": []}]}
    whole = directory / "metadata" / "v1.metadata.json"
    whole.write_text(json.dumps(metadata))
    return str(whole)


def _text(value: Any, kind: Type) -> str:
    match kind:
        case FloatType() | DoubleType():
            return float_text(value)
        case DecimalType():
            return f"{value:f}"
        case DateType():
            return (EPOCH + dt.timedelta(days=value)).date().isoformat()
        case TimeType():
            return (EPOCH + dt.timedelta(microseconds=value)).time().isoformat()
        case TimestampType() | TimestamptzType():
            zone = "+00" if isinstance(kind, TimestamptzType) else ""
            return (EPOCH + dt.timedelta(microseconds=value)).isoformat(" ", "microseconds") + zone
        case _:
            return str(value)
