"""The rule that chooses an engine, and where its choice is reported."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import icefield
from icefield.errors import InvalidInput, Unsupported
from icefield.lake import Lake
from icefield.table.table import Table


def make(lake: Lake) -> Table:
    table = lake.create_table("a.t", "id long")
    table.append(pa.table({"id": pa.array([1, 2, 3], pa.int64())}))
    return table


def used(table: Table, **options: Any) -> str:
    result = table.delete("id = 2", **options)
    assert result.engine is not None
    return result.engine


def test_small_work_stays_in_this_process_and_says_why(lake: Lake) -> None:
    table = make(lake)
    output = str(table.scan(where="id = 2").explain())
    assert "counted by local (" in output
    assert used(table).startswith("local (")


def test_the_caller_goes_before_the_lake(lake: Lake) -> None:
    table = make(lake)
    lake.use(engine="spark")
    assert used(table, engine="local") == "local (the caller chose it)"
    lake.use(engine="local")
    assert table.scan().explain().as_dict()["engine"] == "local (the lake chose it)"


def test_an_engine_that_there_is_not_is_refused(lake: Lake, tmp_path: Path) -> None:
    table: Any = make(lake)
    for act in (
        lambda: table.delete("id = 1", engine="duckdb"),
        lambda: table.count(engine=""),
        lambda: lake.use(engine="duckdb"),  # type: ignore[arg-type]
        lambda: icefield.connect(tmp_path / "other", properties={"engine": "duckdb"}),
    ):
        with pytest.raises(InvalidInput, match="engine"):
            act()
    assert table.count() == 3


def test_a_lake_is_told_by_a_property(tmp_path: Path) -> None:
    with icefield.connect(tmp_path / "lake", properties={"engine": "local"}, durable=False) as lake:
        assert used(make(lake)) == "local (the lake chose it)"


@pytest.mark.spark
def test_large_work_goes_to_the_session_that_is_active(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(lake)
    assert used(table).startswith("local (")
    monkeypatch.setattr("icefield.engine.choose.LARGE_BYTES", 0)
    assert (table.delete("id = 3").engine or "").startswith("spark (")
    assert table.scan(where="id > 0 and id < 9").count() == 1


@pytest.mark.spark
def test_large_work_on_files_that_spark_cannot_reach_stays_in_this_process(
    memory_lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(memory_lake)
    monkeypatch.setattr("icefield.engine.choose.LARGE_BYTES", 0)
    assert "but Spark cannot reach them" in used(table)
    table.upsert(pa.table({"id": [3]}), on=["id"])
    table.overwrite(pa.table({"id": [1]}), where="id = 1")
    table.append(pa.table({"id": [4]}))
    assert table.compact().snapshot is not None
    scan = table.scan(where="id in (1, 4)")
    assert (scan.count(), scan.max("id").as_py(), "cannot reach" in str(scan.explain())) == (2, 4, True)
    with pytest.raises(Unsupported, match="lake in memory"):
        table.delete("id = 1", engine="spark")
