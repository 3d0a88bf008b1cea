"""icefield reads tables that DuckDB wrote: a filter, ours or the user's own, finds the rows that DuckDB finds itself.

Columns are renamed, swapped, widened and added again afterwards, by both. Run one case again with
ICEFIELD_SEEDS=123:124 pytest tests/peers/test_we_read_duckdbs.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.effort import seeds
from tests.matrix.reading_filters import Filter, draw_filter, places, where_text
from tests.matrix.reading_paths import compare_filters, native
from tests.matrix.reading_values import ColumnValues
from tests.peers.duckdb_reader import DuckDBReader
from tests.peers.duckdb_writer import NAMES, condition, copy_table, create_own, declare, name_of
from tests.peers.normal import normal_rows

from icefield.lake import Lake
from icefield.table.table import Table
from icefield.types.arrow import arrow_schema
from icefield.types.datatypes import DoubleType, IntegerType, LongType, NestedField, StringType, StructType, Type
from icefield.types.text import parse_type

SEEDS = seeds(3, deep=200)
FILTERS = 12
DECIMALS = ("decimal(4,0)", "decimal(9,2)", "decimal(18,4)", "decimal(38,10)")
KINDS: list[Type] = [*(kind() for kind in NAMES), *map(parse_type, DECIMALS)]
WIDER = {"int": "long", "float": "double", "decimal(4, 0)": "decimal(12, 0)", "decimal(9, 2)": "decimal(18, 2)"}
KEY = NestedField(1, "id", LongType())

Ids = list[int]
Row = dict[int, Any]


@dataclass
class Case:
    """A table of DuckDB's: its copy, as we read it, and its own."""

    table: Table
    rows: Sequence[Row]
    duckdb: DuckDBReader

    def filters(self, random: Random) -> Iterator[tuple[Filter, Ids]]:
        """Draw filters, each with the rows that DuckDB finds in its own table."""
        fields = self.table.schema.fields
        rows = [{f.field_id: row.get(f.field_id) for f in fields} for row in self.rows]
        for _ in range(FILTERS):
            drawn = draw_filter(random, list(places(fields)), rows)
            yield drawn, _ids(self.duckdb.query(f"SELECT id FROM own WHERE {condition(drawn)}"))


@pytest.mark.parametrize("seed", SEEDS)
def test_arrow_finds_the_rows_that_duckdb_finds(seed: int, lake: Lake, duckdb_reader: DuckDBReader) -> None:
    case, random = _drawn(seed, lake, duckdb_reader), Random(seed)
    schema = arrow_schema(case.table.schema)
    rows = case.table.scan().to_arrow().read_all()
    assert normal_rows(rows, schema) == normal_rows(duckdb_reader.query("SELECT * FROM own"), schema)
    for drawn, ids in case.filters(random):
        found = case.table.scan(where_text(drawn), ["id"]).to_arrow().read_all()
        assert _ids(found) == ids, where_text(drawn)


@pytest.mark.spark
@pytest.mark.parametrize("seed", SEEDS)
def test_spark_finds_the_rows_that_duckdb_finds(
    seed: int, lake: Lake, duckdb_reader: DuckDBReader, spark: SparkSession
) -> None:
    case, random = _drawn(seed, lake, duckdb_reader), Random(seed)
    expected = list(case.filters(random))
    schema = arrow_schema(case.table.schema)
    rows = case.table.scan().to_spark().toArrow()
    assert normal_rows(rows, schema) == normal_rows(duckdb_reader.query("SELECT * FROM own"), schema)
    for ours in (False, True):
        assert not list(compare_filters(native(spark), case.table, expected, ours=ours))


def _drawn(seed: int, lake: Lake, duckdb: DuckDBReader) -> Case:
    random = Random(seed)
    kinds = random.sample(KINDS, 7)
    fields = [KEY, *(NestedField(2 + at, f"c{at}", kind) for at, kind in enumerate(kinds))]
    inner = [("a", IntegerType()), ("b", StringType()), ("d", DoubleType())]
    struct = StructType(tuple(NestedField(10 + at, name, kind) for at, (name, kind) in enumerate(inner)))
    fields.append(NestedField(9, "st", struct))
    columns = {f.field_id: ColumnValues(random, f) for f in fields[1:]}
    rows = [{1: key, **{i: column.draw() for i, column in columns.items()}} for key in range(random.randrange(4, 24))]
    create_own(duckdb, fields, rows)
    location = copy_table(duckdb, Path(lake.warehouse.removeprefix("file://"), "duckdb", f"t{seed}"))
    table = lake.register_table("duckdb.t", location)
    assert list(table.schema.fields) == fields
    for _ in range(random.randrange(5)):
        _evolve(random, table, duckdb)
    return Case(table, rows, duckdb)


def _evolve(random: Random, table: Table, duckdb: DuckDBReader) -> None:
    """Change the columns of a table and of DuckDB's own."""
    one, other = random.sample([f for f in table.schema.fields if f.name not in ("id", "st")], 2)
    statements = []
    with table.evolve() as change:
        match random.choice(["rename", "swap", "widen", "add again"]):
            case "rename":
                renames = [(one.name, f"{one.name}x")]
            case "swap":
                renames = [(one.name, "between"), (other.name, one.name), ("between", other.name)]
            case "widen" if str(one.type) in WIDER:
                renames, wider = [], parse_type(WIDER[str(one.type)])
                change.update_column_type(one.name, wider)
                statements.append(f'ALTER "{one.name}" TYPE {name_of(wider)}')
            case _:
                renames, added = [], replace(one, type=random.choice(KINDS))
                change.drop_column(one.name)
                change.add_column(one.name, added.type)
                statements += [f'DROP "{one.name}"', f"ADD {declare(added)}"]
        for old, new in renames:
            change.rename_column(old, new)
            statements.append(f'RENAME "{old}" TO "{new}"')
    for statement in statements:
        duckdb.query(f"ALTER TABLE own {statement}")


def _ids(rows: Any) -> Ids:
    return sorted(rows["id"].to_pylist())
