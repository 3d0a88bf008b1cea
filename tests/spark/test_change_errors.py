"""An expression of a change that fails for a row, on Spark: one clear error, and nothing is changed or left behind."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from tests.effort import DEEP, sample
from tests.spark.test_change import files_below, rows_of

from icefield.errors import InvalidInput
from icefield.lake import Lake
from icefield.table.table import Table

pytestmark = pytest.mark.spark
FAILING = [
    ("raise_error('too late')", "too late"),
    ("CAST(name AS INT)", "CAST_INVALID_INPUT"),
    ("element_at(array(1, 2), 5)", "INVALID_ARRAY_INDEX"),
    ("bit_count(id) / (id - id)", "DIVIDE_BY_ZERO"),
    ("CAST(bit_count(id) + 9999999999 AS INT)", "CAST_OVERFLOW"),
    ("make_date(2026, 13, 1)", "month|Month|DATETIME"),
]


def _make(lake: Lake) -> Table:
    table = lake.create_table("a.t", "id long, name string, note string")
    table.append(pa.table({"id": [1, 2], "name": ["x", "y"], "note": ["", ""]}))
    return table


@pytest.mark.parametrize(("expression", "reason"), FAILING if DEEP else sample(FAILING, 3))
def test_a_value_that_fails(
    lake: Lake, spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str], expression: str, reason: str
) -> None:
    table = _make(lake)
    before, files = rows_of(table), files_below(tmp_path)
    source = spark.sql("SELECT 1L AS id, 'z' AS other")
    merge = table.merge(source, on=["id"])
    changes: list[Callable[[], object]] = [
        lambda: table.update({"note": expression}, engine="spark"),
        lambda: table.delete(f"CAST(({expression}) AS STRING) = note", engine="spark"),
        lambda: merge.when_matched().update({"note": f"({expression})".replace("id", "target.id")}).execute(),
    ]
    for change in changes:
        with pytest.raises(InvalidInput, match=reason) as raised:
            change()
        assert "an expression fails" in str(raised.value)
        assert len(str(raised.value).splitlines()) == 1
    assert rows_of(table) == before
    assert files_below(tmp_path) == files
    assert "QueryContextLogger" not in capfd.readouterr().err


def test_an_exception_of_a_function_of_the_user(lake: Lake, spark: SparkSession, tmp_path: Path) -> None:
    def fail(value: object) -> str:
        try:
            raise KeyError(value)
        except KeyError:
            raise ValueError(f"no name for {value}\nand more") from None

    name = F.udf(fail, "string", useArrow=False)
    spark.udf.register("name_of", name)
    table = _make(lake)
    before, files = rows_of(table), files_below(tmp_path)
    source = spark.createDataFrame([(1, "z")], "id long, other string")
    changes: list[Callable[[], object]] = [
        lambda: table.update({"note": name("id")}),
        lambda: table.update({"note": "name_of(id)"}, "id > 0", engine="spark"),
        lambda: table.delete(name("id") == "x"),
        lambda: table.delete("EXISTS (SELECT 1 FROM t WHERE name_of(id) = 'x')", engine="spark"),
        lambda: table.merge(source, on=["id"]).when_matched().update({"note": name("other")}).execute(),
        lambda: table.merge(source, on=name("other") == "z").when_matched().delete().execute(),
        lambda: table.merge(source, on=["id"]).when_matched("name_of(other) = 'x'").delete().execute(),
    ]
    for change in changes:
        with pytest.raises(InvalidInput, match="an expression fails: ValueError: no name for (1|2|z)$") as raised:
            change()
        assert "fail" in str(raised.value.__cause__), "the traceback"
    assert rows_of(table) == before
    assert files_below(tmp_path) == files


def test_a_source_that_fails_raises_what_spark_raises(lake: Lake, spark: SparkSession, tmp_path: Path) -> None:
    def fail(value: object) -> str:
        raise ValueError(f"no name for {value}")

    table = _make(lake)
    before, files = rows_of(table), files_below(tmp_path)
    source = spark.range(1, 3).select("id", F.udf(fail, "string", useArrow=False)("id").alias("name"))
    for change in (lambda: table.append(source), lambda: table.upsert(source, on=["id"])):
        with pytest.raises(PythonException, match="ValueError: no name for"):
            change()
    assert rows_of(table) == before
    assert files_below(tmp_path) == files


def test_a_streaming_frame_is_refused(lake: Lake, spark: SparkSession) -> None:
    table = _make(lake)
    before = rows_of(table)
    stream = spark.readStream.format("rate").load().selectExpr("value AS id", "'a' AS name", "'' AS note")
    changes: list[Callable[[], object]] = [
        lambda: table.append(stream),
        lambda: table.upsert(stream, on=["id"]),
        lambda: table.upsert(stream, on=["id"], mode="equality"),
        lambda: table.merge(stream, on=["id"]).when_matched().delete().execute(),
    ]
    for change in changes:
        with pytest.raises(InvalidInput, match="a streaming DataFrame has no end"):
            change()
    assert rows_of(table) == before
