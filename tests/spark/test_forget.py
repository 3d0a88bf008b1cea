"""Rows that Spark wrote are forgotten, by Spark, and are gone from all files."""

import io
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col
from tests.upkeep.fixtures import AT_ONCE

from icefield.engine.choose import EngineChoice
from icefield.lake import Lake
from icefield.table.table import Table

pytestmark = pytest.mark.spark

ADA = "ada.lovelace@example.org"
PEOPLE = [("grace", 1), (ADA, 2), ("edsger", 1), ("alan", 2)]


def names(table: Table) -> list[str]:
    return sorted(table.scan().to_arrow().read_all()["name"].to_pylist())


def files_with(root: Path, text: str) -> list[Path]:
    """Which files have a text, by name, as bytes or in a column."""
    found = []
    for path in root.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        if path.suffix == ".parquet":
            data += str(pq.read_table(io.BytesIO(data)).to_pylist()).encode()
        if text in str(path) or text.encode() in data:
            found.append(path)
    return found


@pytest.mark.parametrize("version", [2, 3])
def test_rows_that_spark_wrote_are_forgotten_by_spark(
    lake: Lake, spark: SparkSession, tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = {**AT_ONCE, "write.delete.mode": "merge-on-read"}
    table = lake.create_table(
        "t.t", "name string, n long", partition_by=["n"], properties=properties, format_version=version
    )
    table.append(spark.createDataFrame(PEOPLE, "name string, n long"))
    table.create_branch("b")
    table.at("b").append(spark.createDataFrame([(ADA, 7)], "name string, n long"))
    table.append(spark.createDataFrame([(ADA, 3), ("barbara", 3)], "name string, n long"))
    table.delete(col("n") == 3, engine="spark")  # the rows stay in their file
    assert len(files_with(tmp_path, ADA)) >= 3
    used, real = list[str](), EngineChoice.use

    def use(choice: EngineChoice, *given: Any, **more: Any) -> Any:
        chosen = real(choice, *given, **more)
        used.append(str(chosen))
        return chosen

    monkeypatch.setattr(EngineChoice, "use", use)
    done = table.forget(col("name") == ADA, search=[ADA], engine="spark")
    assert done.is_finished, str(done)
    assert used
    assert all(each.startswith("spark") for each in used), used
    assert (done.rows_deleted, done.files, sorted(done.branches)) == ({"b": 2, "main": 1}, 3, ["b", "main"])
    assert names(table) == names(table.at("b")) == ["alan", "edsger", "grace"]
    assert sorted(row.name for row in table.scan().to_spark().collect()) == ["alan", "edsger", "grace"]
    assert files_with(tmp_path, ADA) == []
    assert table.fsck(deep=True).is_healthy
