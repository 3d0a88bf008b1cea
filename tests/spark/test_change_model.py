"""Random row-level changes on Spark do what a model of rows says, with Arrow data and with DataFrames as sources."""

import pytest
from pyspark.sql import SparkSession
from tests.effort import seeds
from tests.engine.merge_model import check_history

from icefield.lake import Lake
from icefield.spark.change import small_merge

pytestmark = pytest.mark.spark
HISTORIES = seeds(2, deep=100)


@pytest.mark.parametrize("seed", HISTORIES)
def test_random_changes_do_what_the_model_says(
    lake: Lake, spark: SparkSession, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (seed + seed // 2) % 2:
        monkeypatch.setattr(small_merge, "MOST_FILES", -1)  # all merges are shuffled
    check_history(lake, seed, "spark", spark.createDataFrame if seed % 2 else lambda rows: rows)
