"""Fixtures that the whole suite shares: a lake of one's own, and one Spark session for all."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import icefield
from icefield.ambient import SeededAmbient
from icefield.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Suites that search, or that run other engines and servers: `make quick` does without them.
SLOW = {"bank", "crash", "fuzz", "histories", "peers", "sim", "test_conflicts.py", "test_read_only.py"}
SLOW_NAMES = ("test_object_store", "test_postgres", "test_sql_model", "test_sharing", "test_rest_faults")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep everything that uses Spark in one process, so that there is one session whatever runs beside it."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
        if item.path.relative_to(Path(__file__).parent).parts[0] in SLOW or item.path.name.startswith(SLOW_NAMES):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """A lake on disk: real SQLite, real files."""
    with icefield.connect(tmp_path / "lake", durable=False) as made:
        yield made


@pytest.fixture
def memory_lake() -> Iterator[Lake]:
    """A lake in memory whose clock and dice can be replayed."""
    with icefield.connect("memory:", ambient=SeededAmbient(7)) as made:
        yield made


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """The one Spark session of the suite, at the place that ICEFIELD_SPARK names."""
    from tests.spark_places import chosen_place, running_spark  # noqa: PLC0415 - only tests that ask for Spark load it

    with running_spark(chosen_place()) as started:
        yield started
