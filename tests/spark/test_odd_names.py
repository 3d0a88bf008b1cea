"""Names and strings reach Spark as they are: it replaces variables in SQL text, and reads quotes by its settings."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.equality_deletes import delete_keys

from icefield.expr.parse.builder import col
from icefield.lake import Lake
from icefield.table.table import Table

pytestmark = pytest.mark.spark
NAMES = ["${y}", "a.b", "tick`s", 'quo"te', "it's", "two words", "back\\slash", "🧊", "$$", "new\nline", "${env:HOME}"]
NAMES.append("_FILE")
STRINGS = [*NAMES, "${", "plain", "", "-- no comment", "a%b_c", "\t\x00", "\\'", "é"]
SETTINGS = [
    {},
    {"spark.sql.variable.substitute": "true", "y": "id", "spark.sql.parser.escapedStringLiterals": "true"},
    {"spark.sql.variable.substitute": "false", "spark.sql.ansi.doubleQuotedIdentifiers": "true"},
    {"spark.sql.caseSensitive": "true", "spark.sql.ansi.enabled": "false"},
]


@pytest.fixture(params=SETTINGS, ids=str)
def settings(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[None]:
    for key, value in request.param.items():
        spark.conf.set(key, value)
    yield
    for key in request.param:
        spark.conf.unset(key)


@pytest.fixture
def table(lake: Lake) -> Table:
    inner = pa.struct([(name, pa.string()) for name in NAMES])
    kinds = [("id", pa.int64()), *((name, pa.string()) for name in NAMES), ("s", inner)]
    made = lake.create_table("a.odd", pa.schema(kinds), properties={"write.delete.mode": "merge-on-read"})
    rows = [
        {"id": at, "s": dict.fromkeys(NAMES, text), **dict.fromkeys(NAMES, text)} for at, text in enumerate(STRINGS)
    ]
    made.append(pa.Table.from_pylist(rows, pa.schema(kinds)))
    return made


@pytest.mark.filterwarnings("ignore:The SQL config 'spark.sql.parser.escapedStringLiterals':UserWarning")
def test_names_and_texts_come_through(table: Table, settings: None) -> None:
    frame = table.scan().to_spark()
    assert frame.columns == ["id", *NAMES, "s"]
    rows = sorted(frame.collect())
    assert [row[0] for row in rows] == list(range(len(STRINGS)))
    assert all(set(row[1:-1]) == {text} == set(row[-1]) for row, text in zip(rows, STRINGS, strict=True))
    assert frame.schema["s"].dataType.names == NAMES
    part = table.scan(select=["${y}", "🧊"]).to_spark()
    assert part.columns == ["${y}", "🧊"]
    for at, (name, text) in enumerate(zip(NAMES, reversed(STRINGS), strict=False)):
        given = table.scan(col(name) == text, select=["id", "_file", "_pos"]).to_spark()
        assert [row.id for row in given.collect()] == [len(STRINGS) - 1 - at]
    nested = table.scan((col("s.${y}") == "${y}") & (col("s.$$") == "${y}"), select=["id"]).to_spark()
    assert [row.id for row in nested.collect()] == [0]


def test_deleted_rows_and_parts_of_structs(table: Table) -> None:
    delete_keys(table, {"a.b": [STRINGS[1]], "${y}": [STRINGS[1]]})
    table.delete("id = 3")
    ids = [at for at in range(len(STRINGS)) if at not in (1, 3)]
    assert sorted(row.id for row in table.scan(select=["id"]).to_spark().collect()) == ids
    some = table.scan(col("id") < 3, select=["s.${y}", "s.two words"]).to_spark()
    assert sorted(tuple(row.s) for row in some.collect()) == sorted((STRINGS[at], STRINGS[at]) for at in (0, 2))
