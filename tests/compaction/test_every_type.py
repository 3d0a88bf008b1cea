"""Rows of every type are sorted and clustered, at the top and inside a struct; what has no order is refused at once."""

from itertools import product
from random import Random

import pyarrow as pa
import pytest
from tests.histories.checks import read_rows
from tests.histories.features import NEWER_KINDS, PLAIN_KINDS
from tests.histories.values import arrow_values, draw_value, plain_field

from icefield.errors import InvalidInput
from icefield.lake import Lake
from icefield.table.table import Table
from icefield.types.datatypes import (
    GeographyType,
    GeometryType,
    LongType,
    NestedField,
    PrimitiveType,
    StructType,
    UnknownType,
    VariantType,
)
from icefield.types.schema import Schema

ORDERED = [kind for kind in (*PLAIN_KINDS, *NEWER_KINDS) if not isinstance(kind, UnknownType)]
WITHOUT_ORDER = [UnknownType(), GeometryType(), GeographyType(), VariantType()]
ORDERS = [{"cluster_by": ["{}", "key"]}, {"order_by": ["{}"]}, {"order_by": ["{} desc nulls first"]}]


def make(lake: Lake, kind: PrimitiveType, *, inside: bool) -> tuple[Table, str]:
    """Return a table with a column of a type, and the name of that column."""
    field = NestedField(3, "c", kind)
    column = NestedField(2, "s", StructType((field,))) if inside else field
    schema = Schema((NestedField(1, "key", LongType()), column))
    return lake.create_table("a.t", schema, format_version=3), "s.c" if inside else "c"


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: next(iter(order)))
@pytest.mark.parametrize(("kind", "inside"), list(product(ORDERED, (False, True))), ids=str)
def test_no_row_is_lost(memory_lake: Lake, kind: PrimitiveType, *, inside: bool, order: dict[str, list[str]]) -> None:
    table, name = make(memory_lake, kind, inside=inside)
    random, column = Random(1), table.schema.fields[1]
    for start in (0, 6, 12):
        values = [draw_value(random, column) for _ in range(6)]
        keys = pa.array(range(start, start + 6), pa.int64())
        fields = [pa.field("key", pa.int64()), plain_field(column)]
        table.append(pa.Table.from_arrays([keys, arrow_values(values, column.type)], schema=pa.schema(fields)))
    before = read_rows(table)
    how = {key: [term.format(name) for term in terms] for key, terms in order.items()}
    assert table.compact(**how, options={"target-file-size-bytes": "700"}).files_removed == 3  # type: ignore[arg-type]
    assert read_rows(table) == before


@pytest.mark.every_case
@pytest.mark.parametrize("order", ORDERS, ids=lambda order: next(iter(order)))
@pytest.mark.parametrize("kind", WITHOUT_ORDER, ids=str)
def test_what_has_no_order_is_refused(memory_lake: Lake, kind: PrimitiveType, order: dict[str, list[str]]) -> None:
    for inside in (False, True):
        table, name = make(memory_lake, kind, inside=inside)
        how = {key: [term.format(name) for term in terms] for key, terms in order.items()}
        with pytest.raises(InvalidInput, match="cannot be applied|only primitive columns"):
            table.compact(**how, dry_run=True)  # type: ignore[arg-type]
        memory_lake.drop_table("a.t")


@pytest.mark.every_case
@pytest.mark.parametrize("name", ["d.e", "`d.e`", "a.b", "`a`.`b`", "x y", "`x y`", "BIG"])
def test_columns_are_named_as_in_filters(memory_lake: Lake, name: str) -> None:
    table = memory_lake.create_table("a.t", "id long, `d.e` long, a struct<b: long>, `x y` long, big long")
    assert table.compact(cluster_by=["id", name], dry_run=True).strategy == "cluster"
