"""Random row-level changes on Spark do what a model of rows says, with Arrow data and with DataFrames as sources."""

import pytest
from pyspark.sql import SparkSession
from tests.effort import seeds
from tests.engine.merge_model import check_history
from tests.spark.merge_paths import MergePath, take_path

from icefield.lake import Lake

pytestmark = pytest.mark.spark
HISTORIES = seeds(3, deep=150)


@pytest.mark.parametrize("seed", HISTORIES)
def test_random_changes_do_what_the_model_says(
    lake: Lake, spark: SparkSession, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_path(monkeypatch, list(MergePath)[(seed + seed // 2) % 3])
    check_history(lake, seed, "spark", spark.createDataFrame if seed % 2 else lambda rows: rows)
