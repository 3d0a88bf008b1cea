"""Literals in columns of every type on Spark: as SQL, as Python values and as Columns, they are as the model says."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from tests.engine.literal_cases import LITERALS, REFUSED, TYPES, stored

from icefield import lit
from icefield.errors import IcefieldError
from icefield.lake import Lake
from icefield.table.table import Table

pytestmark = pytest.mark.spark
# What only Spark can evaluate, so that rows are changed by Spark's own plan.
NATIVE = "length(repeat('a', 2)) = 2"
NUMBERS_TO_SPARK = ("time", "timestamp_ns", "timestamptz_ns")
GIVEN = {
    "sql": [name for name, (_, sql) in LITERALS.items() if sql is not None],
    "lit": list(LITERALS),
    "Column": [name for name, (_, sql) in LITERALS.items() if sql is not None],
}


def given(how: str, literal: str) -> Any:
    value, sql = LITERALS[literal]
    return {"sql": sql, "lit": lit(value), "Column": F.expr(sql or "NULL")}[how]


@pytest.fixture
def table(lake: Lake, spark: SparkSession) -> Table:
    columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(TYPES))
    made = lake.create_table("a.t", f"id long, {columns}", format_version=3)
    made.append(pa.table({"id": pa.array([1], pa.int64())}))
    return made


@pytest.mark.parametrize(("how", "literal"), [(how, literal) for how, names in GIVEN.items() for literal in names])
def test_a_literal_is_stored_as_the_model_says(table: Table, how: str, literal: str) -> None:
    expected = {f"c{at}": stored(literal, kind) for at, kind in enumerate(TYPES)}
    fitting = {name: value for name, value in expected.items() if value is not REFUSED}
    if fitting:
        table.update({name: given(how, literal) for name in fitting}, NATIVE, engine="spark")
        rows = table.scan(select=list(fitting)).to_arrow().read_all()
        for at, kind in enumerate(TYPES):
            if f"c{at}" in fitting:
                column = rows.column(f"c{at}")
                found = column.cast(pa.int64()) if kind.endswith("_ns") else column
                assert found.to_pylist() == [fitting[f"c{at}"]], (kind, how, literal)
    for name in expected.keys() - fitting.keys():
        if (how, literal) == ("Column", "large") and TYPES[int(name[1:])] in NUMBERS_TO_SPARK:
            continue  # a long, as such a column itself is to Spark
        with pytest.raises(IcefieldError):
            table.update({name: given(how, literal)}, NATIVE, engine="spark")
