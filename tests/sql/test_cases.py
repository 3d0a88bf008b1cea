"""Every case of tests/sql/cases through `lake.sql`, on Spark: see case_file.py for their format.

A run without names has a sample of each file; `-k merge-05`, `-k merge` and ICEFIELD_DEEP=1 run those cases, or all.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import icefield
from tests.effort import is_sampled, sample
from tests.sql.case_file import Case, all_cases
from tests.sql.case_run import run_case

pytestmark = [pytest.mark.spark, pytest.mark.every_case]

SAMPLE = 2


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    cases = all_cases()
    chosen = sample(cases, SAMPLE, lambda case: case.section) if is_sampled(metafunc.config) else cases
    metafunc.parametrize("case", chosen, ids=[case.name for case in chosen])


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, whose settings, temporary views and cache are those of before when the case ends."""
    before = dict(spark.conf.getAll)
    yield spark
    for key, value in spark.conf.getAll.items():
        if before.get(key) != value:
            spark.conf.set(key, before[key]) if key in before else spark.conf.unset(key)
    for row in spark.sql("SHOW TABLES").collect():
        if row.isTemporary:
            spark.catalog.dropTempView(row.tableName)
    spark.catalog.clearCache()


def test_a_case(case: Case, session: SparkSession, tmp_path: Path) -> None:
    with icefield.connect(tmp_path / "lake", catalog="lake", durable=False) as lake:
        lake.use(session)
        run_case(case, lake)
