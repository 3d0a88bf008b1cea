"""A table that PyIceberg makes, fills and evolves, step by step, in the catalog of a lake."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)
from tests.peers.predicates import Predicate

NAME = "theirs.evolved"
FIRST_SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "number", IntegerType()),
    NestedField(3, "ratio", FloatType()),
    NestedField(4, "price", DecimalType(9, 2)),
    NestedField(5, "text", StringType()),
    NestedField(6, "reused", StringType()),
    NestedField(7, "inner", StructType(NestedField(8, "x", IntegerType()), NestedField(9, "y", StringType()))),
    NestedField(10, "items", ListType(11, IntegerType(), element_required=False)),
    NestedField(12, "pairs", MapType(13, StringType(), 14, IntegerType(), value_required=False)),
    NestedField(15, "region", StringType()),
)
# About columns as the last step leaves them; each is asked of files of every age.
ASKS = (
    Predicate("id", ">=", (30,)),
    Predicate("number", "<", (12,)),
    Predicate("number", "=", (2**40,)),
    Predicate("number", "is null"),
    Predicate("ratio", ">", (3.25,)),
    Predicate("price", "=", (Decimal("5.05"),)),
    Predicate("price", ">", (Decimal("99999999.00"),)),
    Predicate("label", "starts with", ("text 1",)),
    Predicate("label", "!=", ("text 13",)),
    Predicate("reused", "is null"),
    Predicate("reused", "in", (110, 155)),
    Predicate("inner.w", "<=", (5,)),
    Predicate("inner.z", "is not null"),
    Predicate("note", "=", ("note 16",)),
    Predicate("region", "=", ("us",)),
    Predicate("region", "is null"),
)


def evolve(catalog: SqlCatalog) -> Iterator[Table]:
    """Make the table and yield it after every step that wrote rows."""
    catalog.create_namespace_if_not_exists("theirs")
    table = catalog.create_table(NAME, FIRST_SCHEMA)
    table.append(rows(table, range(10)))
    yield table
    for at, step in enumerate((_widen, _reuse_a_name, _partition, _unpartition), start=1):
        step(table)
        table.append(rows(table, range(10 * at, 10 * at + 10)))
        yield table
    table.delete("number < 3")
    yield table
    table.overwrite(rows(table, range(60, 65)), overwrite_filter="region = 'eu'")
    yield table


def rows(table: Table, numbers: Sequence[int]) -> pa.Table:
    """Make rows that fit the table as it is: values and nulls, chosen by the column's name."""
    schema = table.schema().as_arrow()
    made = [{field.name: _value(field.name, n) for field in schema} for n in numbers]
    return pa.Table.from_pylist(made, schema)


def _value(name: str, n: int) -> Any:
    if name == "id":
        return n
    if n % 10 == 9:
        return None
    wide = n >= 10  # values that only the wider types hold
    values: dict[str, Any] = {
        "number": 2**40 if wide and n % 10 == 3 else n,
        "ratio": 0.1 + n if wide else n / 4,
        "price": Decimal(f"{n}.{n % 100:02d}") + (10**9 if wide and n % 10 == 2 else 0),
        "text": f"text {n}",
        "label": f"text {n}",
        "reused": f"old {n}" if n < 20 else n * 5,  # another column by then
        "inner": {"x": n, "w": n, "y": None if n % 4 == 0 else f"y{n}", "z": n / 8},
        "items": [n, None] if n % 3 else [],
        "pairs": [("n", n), ("none", None)] if n % 3 else [],
        "note": f"note {n}",
        "region": ("eu", "us", None)[n % 3],
    }
    return values[name]


def _widen(table: Table) -> None:
    with table.update_schema() as update:
        update.add_column("note", StringType())
        update.rename_column("text", "label")
        update.update_column("number", LongType())
        update.update_column("ratio", DoubleType())
        update.update_column("price", DecimalType(18, 2))


def _reuse_a_name(table: Table) -> None:
    with table.update_schema() as update:
        update.delete_column("reused")
    with table.update_schema() as update:
        update.add_column("reused", LongType())
        update.add_column(("inner", "z"), DoubleType())
        update.rename_column("inner.x", "w")
        update.move_first("region")
        update.move_after("note", "id")


def _partition(table: Table) -> None:
    with table.update_spec() as update:
        update.add_field("region", IdentityTransform(), "region")


def _unpartition(table: Table) -> None:
    with table.update_spec() as update:
        update.remove_field("region")
        update.add_field("note", IdentityTransform(), "by_note")
