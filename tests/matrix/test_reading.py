"""Every way to read gives the rows that a plain model has, whatever the files, the columns' past and the session.

A case is drawn from its seed: run one again with ICEFIELD_SEEDS=123:124 pytest tests/matrix/test_reading.py. The normal
run has a sample of them, ICEFIELD_DEEP=1 (`make deep`) many.
"""

from random import Random

import pytest
from pyspark.sql import SparkSession
from tests.effort import seeds
from tests.matrix import reading_paths
from tests.matrix.reading_sessions import draw_settings
from tests.matrix.reading_tables import Drawing
from tests.spark_places import SparkPlace, changed, chosen_place

from icefield.lake import Lake

pytestmark = pytest.mark.spark

SEEDS = seeds(4, deep=2000)
FILTERS = 6


@pytest.mark.parametrize("seed", SEEDS)
def test_every_way_to_read_gives_the_rows_of_the_model(seed: int, lake: Lake, spark: SparkSession) -> None:
    differences = read_every_way(seed, lake, spark)
    assert not differences, "\n".join(differences)


def read_every_way(seed: int, lake: Lake, spark: SparkSession) -> list[str]:
    """Return how readers differ from the model, with what the case is; nothing if they do not."""
    random = Random(seed)
    in_process = chosen_place() is not SparkPlace.CONNECT
    case = Drawing(seed, lake, spark if in_process else None).draw()
    settings = draw_settings(random)
    readers = [reading_paths.native(spark)]
    other = random.random()
    if other < 0.2:
        readers.append(reading_paths.tasks(spark))
    elif other < 0.3:
        readers.append(reading_paths.data_source(spark, lake))
    with changed(spark, settings):
        found = list(reading_paths.compare(case, readers, random, FILTERS))
    return [f"{case}\n  settings {settings}", *found] if found else []
