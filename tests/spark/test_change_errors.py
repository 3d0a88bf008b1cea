"""An expression of a change that fails for a row, on Spark: one clear error, and nothing is changed or left behind."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
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
