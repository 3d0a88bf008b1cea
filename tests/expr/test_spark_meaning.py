"""Spark agrees: on the text we write for it, and on what the text that users write means."""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.expr.cases import ALL_TYPES, Row, all_leaves, nasty_rows, pool_of, references

from icefield.expr.bind.bind import bind
from icefield.expr.bind.bound import (
    Bound,
)
from icefield.expr.parse.ast import Operator
from icefield.expr.render.rows import matches
from icefield.expr.render.spark_sql import spark_sql
from icefield.types.arrow import arrow_array, physical_array
from icefield.types.datatypes import (
    FixedType,
    NestedField,
    PrimitiveType,
    TimestampNsType,
    TimestamptzNsType,
    TimeType,
    UUIDType,
)
from icefield.types.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = references(ALL_TYPES)
BY_WORD = {str(c.type).partition("[")[0].replace("(", "_").replace(", ", "_").rstrip(")"): c for c in COLUMNS}
SCHEMA = Schema(tuple(NestedField(c.field_id, word, c.type) for word, c in BY_WORD.items()))
ROWS = nasty_rows(COLUMNS, {c.type: pool_of(c.type) for c in COLUMNS})
# The settings of the session matter to strings, times and casts only.
SETTINGS = [(word, "true", "UTC") for word in sorted(BY_WORD)]
SETTINGS += [
    (word, "false", "America/New_York")
    for word in ("date", "timestamp", "timestamptz", "string", "double", "decimal_38_10", "long")
]


@pytest.fixture(scope="module")
def nasty(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> "DataFrame":
    """The nasty rows in a Parquet file, so that Spark's own filter pushdown takes part."""
    path: Path = tmp_path_factory.mktemp("nasty") / "rows.parquet"
    arrays = {name: _as_spark_reads([row[c.field_id] for row in ROWS], c.type) for name, c in BY_WORD.items()}
    pq.write_table(pa.table({**arrays, "at": range(len(ROWS))}), path, row_group_size=7)
    return spark.read.parquet(str(path))


def _as_spark_reads(values: list[object], kind: PrimitiveType) -> pa.Array:
    array = arrow_array(values, kind)  # type: ignore[arg-type]
    if isinstance(kind, UUIDType | FixedType):
        return physical_array(array).cast(pa.binary())
    return physical_array(array) if isinstance(kind, TimeType | TimestampNsType | TimestamptzNsType) else array


@contextmanager
def session_settings(spark: "SparkSession", ansi: str, zone: str) -> Iterator[None]:
    names = {"spark.sql.ansi.enabled": ansi, "spark.sql.session.timeZone": zone}
    before = {name: spark.conf.get(name) or "" for name in names}
    try:
        for name, value in names.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def spark_answers(frame: "DataFrame", strings: list[str]) -> list[list[int]]:
    """Return for each condition the rows for which it is true."""
    answers: list[list[int]] = []
    for start in range(0, len(strings), 100):
        some = strings[start : start + 100]
        columns = [f"coalesce({text}, false) AS c{i}" for i, text in enumerate(some)]
        rows = frame.selectExpr("at", *columns).collect()
        answers += [sorted(row["at"] for row in rows if row[f"c{i}"]) for i in range(len(some))]
    return answers


def our_answer(expression: Bound) -> list[int]:
    return [place for place, row in enumerate(ROWS) if matches(expression, row)]


def _named(expression: Bound) -> str:
    words = {c.field_id: word for word, c in BY_WORD.items()}
    return spark_sql(expression, lambda reference: [words[reference.field_id]])


@pytest.mark.spark
@pytest.mark.parametrize(("word", "ansi", "zone"), SETTINGS)
def test_spark_reads_our_text_as_we_mean_it(
    spark: "SparkSession", nasty: "DataFrame", word: str, ansi: str, zone: str
) -> None:
    expressions = all_leaves(BY_WORD[word])
    with session_settings(spark, ansi, zone):
        answers = spark_answers(nasty, [_named(e) for e in expressions])
    wrong = [_named(e) for e, answer in zip(expressions, answers, strict=True) if answer != our_answer(e)]
    assert not wrong


@pytest.mark.spark
@pytest.mark.parametrize("word", sorted(BY_WORD))
def test_spark_filters_parquet_as_we_mean_it(nasty: "DataFrame", word: str) -> None:
    # Spark cannot push a date outside the years 1 to 9999 down: its own arithmetic overflows.
    expressions = [e for e in all_leaves(BY_WORD[word])[::13] if not re.search(r"DATE '[+-]", _named(e))]
    # A scan with a filter of its own for each, in one job.
    scans = [nasty.filter(_named(e)).selectExpr(f"{i} AS c", "at") for i, e in enumerate(expressions)]
    found: list[list[int]] = [[] for _ in expressions]
    for row in reduce(lambda some, scan: some.union(scan), scans).collect():
        found[row["c"]].append(row["at"])
    wrong = [_named(e) for e, answer in zip(expressions, found, strict=True) if sorted(answer) != our_answer(e)]
    assert not wrong


NUMBERS = ["int", "long", "float", "double", "decimal_9_2", "decimal_38_10", "decimal_18_0"]
NUMBER_STRINGS = [
    "3.5", "-3.5D", "3000000000", "-3000000000", "'10'", "0.1", "0.1F", "0.1D", "CAST('NaN' AS DOUBLE)",
    "CAST('-Infinity' AS DOUBLE)", "9007199254740993", "9007199254740992D", "16777217", "-0.0D", "1e300", "-1e-300",
    "99999999999999999999", "0.005", "-10.005", "CAST(0.1 AS FLOAT)", "10L", "1.5BD", "NULL", "9223372036854775807D",
]  # fmt: skip
OTHER_TEXTS = [
    "date = '2024-02-29'", "date < '1970'", "date >= DATE '1969-12-31'", "date < TIMESTAMP '1970-01-01 10:00:00'",
    "date <= TIMESTAMP_NTZ '1970-01-01 00:00:00'", "timestamp = '1970-01-01 01:00:00'", "timestamp < DATE '1970-01-01'",
    "timestamp >= TIMESTAMP '1969-12-31 23:59:59.999999'", "timestamptz = '1970-01-01 01:00:00'",
    "timestamptz > '1970-01-01 02:00:00+01:00'", "timestamptz <= TIMESTAMP '1969-12-31 19:00:00 America/New_York'",
    "timestamptz < DATE '1970-01-01'",
    "string = 'it''s'", "string = 'it\\'s'", "string = \"a\"", "string LIKE 'a\\%b'", "string LIKE 'a\\_b'",
    "string LIKE '%\\\\%'", "string LIKE 'a%' ESCAPE '!'", "string = 'back\\\\slash'", "string IN ('a', 'b', NULL)",
    "string NOT IN ('a', NULL)", "string >= 'b'", "string < '\uffff'", "string = 'new\\nline'",
    "startswith(string, 'a')",
    "string LIKE '_'", "string NOT LIKE 'a%'", "string LIKE NULL", "string = 'a' 'b'", "string = r'back\\slash'",
    "binary = X'ff'", "binary > X'7f'", "binary = 'a'", "boolean", "NOT boolean", "boolean = 'true'", "boolean < TRUE",
    "boolean IS NOT TRUE", "isnan(double)", "NOT isnan(float)", "isnan(int)", "int <=> NULL", "NOT (int <=> 10)",
    "int BETWEEN -10 AND 10.5", "int NOT BETWEEN -10 AND NULL", "int IN (10, 2.5, NULL)",
    "long IN (9007199254740993, 0.5D)",
    "decimal_9_2 IN (0.1D, 1)", "NOT (int > 0 AND long > 0)", "NOT (int > 0 OR double > 0)",
    "NOT (int = NULL OR long = 10)",
    "NULL OR int = 10", "float IN (0.1, 1)", "double NOT IN (1, CAST('NaN' AS DOUBLE))", "3 < int", "10.5 >= long",
    "CAST('1970-01-01' AS DATE) > date", "int IS NULL OR NOT int IS NULL", "decimal_3_3 > 0.0005", "int == 10",
    "decimal_18_0 = '10'", "double = 'Infinity'", "double = '-inf'", "1 = 1", "1 = 2", "true", "int <> 10",
]  # fmt: skip


@pytest.mark.spark
@pytest.mark.parametrize("word", NUMBERS)
def test_numbers_compare_as_in_spark(spark: "SparkSession", nasty: "DataFrame", word: str) -> None:
    operators = [*(operator.value for operator in Operator), "<=>"]
    strings = [f"{word} {operator} {text}" for operator in operators for text in NUMBER_STRINGS]
    check_meaning(spark, nasty, [text for text in strings if text not in _SPARK_MATCHES_NULL])


# Spark folds these to TRUE for null too.
_SPARK_MATCHES_NULL = [f"{word} {sign} 99999999999999999999" for word in ("int", "long") for sign in ("<", "<=")]


@pytest.mark.spark
def test_filters_mean_what_they_mean_in_spark(spark: "SparkSession", nasty: "DataFrame") -> None:
    check_meaning(spark, nasty, OTHER_TEXTS)


def check_meaning(spark: "SparkSession", frame: "DataFrame", strings: list[str]) -> None:
    """Ours is the meaning of ANSI mode with the session in UTC."""
    with session_settings(spark, "true", "UTC"):
        answers = spark_answers(frame, [f"({text})" for text in strings])
    wrong = [text for text, answer in zip(strings, answers, strict=True) if answer != our_answer(bind(text, SCHEMA))]
    assert not wrong


@pytest.mark.spark
def test_the_comparison_with_spark_can_fail(spark: "SparkSession", nasty: "DataFrame") -> None:
    (answer,) = spark_answers(nasty, ["double > 1"])
    assert answer != our_answer(bind("double > 1 AND NOT isnan(double)", SCHEMA))
    rows: list[Row] = [row for row in ROWS if matches(bind("isnan(double)", SCHEMA), row)]
    assert rows


@pytest.mark.spark
def test_spark_s_pushdown_loses_nan_but_not_through_our_text(spark: "SparkSession", tmp_path: Path) -> None:
    pq.write_table(pa.table({"double": [1.0, math.nan]}), tmp_path / "x.parquet")
    frame = spark.read.parquet(str(tmp_path / "x.parquet"))
    assert frame.filter(spark_sql(bind("double > 5", SCHEMA))).count() == 1
    # The day this fails, the text needs no guard.
    assert frame.filter("double > 5D").count() == 0
