"""Fixtures that the whole suite shares: a lake of one's own, and one Spark session for all."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

import icefield
from icefield.ambient import SeededAmbient
from icefield.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# How long an example takes depends on the machine and says nothing about the code.
settings.register_profile("icefield", settings(), deadline=None)
settings.load_profile("icefield")

# Small queries on a JVM that soon ends: code compiled once, and not again for speed, takes half of the CPU time.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# Suites that search, or that run other engines and servers: `make quick` does without them.
SLOW = {"bank", "crash", "fuzz", "histories", "peers", "sim", "test_conflicts.py", "test_read_only.py"}
SLOW_NAMES = (
    "test_object_store",
    "test_postgres",
    "test_sql_model",
    "test_sharing",
    "test_rest_faults",
    "test_commit_queue_postgres",
)


# Processes that run the tests of Spark beside each other, each with one session for all of its tests.
SPARK_GROUPS = 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that use Spark in few processes, and mark those that take long."""
    groups = _spark_groups(items)
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group(groups[item.path]))
        if item.path.relative_to(Path(__file__).parent).parts[0] in SLOW or item.path.name.startswith(SLOW_NAMES):
            item.add_marker(pytest.mark.slow)


def _spark_groups(items: list[pytest.Item]) -> dict[Path, str]:
    """Divide the files with tests of Spark into groups of about as many tests."""
    files = Counter(item.path for item in items if item.get_closest_marker("spark"))
    sizes = dict.fromkeys((f"spark-{number}" for number in range(SPARK_GROUPS)), 0)
    groups = {}
    for path, tests in files.most_common():
        groups[path] = min(sizes, key=sizes.__getitem__)
        sizes[groups[path]] += tests
    return groups


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
