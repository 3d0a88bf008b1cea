"""Fixtures that the whole suite shares: a lake of one's own, and one Spark session for all."""

import ast
import gc
import os
import re
import sys
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import pytest
from hypothesis import settings
from scripts.compile_kernel import NotCompiled, find_or_compile
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

import icefield
from icefield.ambient import SeededAmbient
from icefield.lake import Lake
from tests import jvm
from tests.effort import EFFORT, effort, is_sampled, sample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# How long an example takes depends on the machine and says nothing about the code.
settings.register_profile("icefield", effort(), deadline=None)
settings.load_profile("icefield")

HERE = Path(__file__).parent

# Suites that search, or that run other engines and servers: `make quick` does without them.
SLOW = {
    "bank",
    "crash",
    "forget",
    "fuzz",
    "histories",
    "peers",
    "policy",
    "sim",
    "torture",
    "test_conflicts.py",
    "test_read_only.py",
}
SLOW_NAMES = (
    "test_cluster_manifests",
    "test_commit_queue_postgres",
    "test_compile_kernel",
    "test_connections",
    "test_convert_deletes",
    "test_delete_granularity",
    "test_equality",
    "test_giving_way",
    "test_local_queries",
    "test_merge_model",
    "test_object_store",
    "test_ownership",
    "test_plans",
    "test_postgres",
    "test_put_race",
    "test_random_histories",
    "test_reference",
    "test_relocate",
    "test_report",
    "test_rest_faults",
    "test_rewrite",
    "test_row_order",
    "test_secrets",
    "test_sharing",
    "test_sql_merge_model",
    "test_sql_model",
    "test_sql_page",
    "test_zookeeper",
)


# A test with parameters runs at most so many of its cases in `make test`, one in `make quick` and all in `make deep`.
# The mark `every_case` is for lists that must be whole: planted bugs, stored tables, one case for each rule.
CASES_OF_A_TEST = 6
CASES_ON_SPARK = 2
CASES_OF_INTEROP = 20  # which is a run of its own

# A JVM takes half a minute of CPU time until it is warm, so that not every process starts one for the fixture `spark`.
PROCESSES_WITH_SPARK = 2

# What takes longest comes first, and then the other tests of Spark, so that all processes end at about the same time.
LONGEST = (
    "test_everywhere.py",
    "test_sessions.py",
    "test_write_attempts.py",
    "test_examples.py",
    "test_concurrency.py",
    "test_bank.py",
    "test_demo.py",
    "test_readme.py",
)


def pytest_configure(config: pytest.Config) -> None:
    """Have JVMs start quickly; the archive of their classes is made before there are other processes.

    The Avro kernels are compiled if their source has changed, so that no run tests plain Python twice by mistake.
    """
    try:
        find_or_compile()
    except NotCompiled as error:
        print(f"the Avro kernels are not compiled: {error}", file=sys.stderr)
    if config.option.numprocesses and "spark" not in _excluded_marks(config):
        jvm.make_archive()
    os.environ.setdefault(jvm.SUBMIT_OPTIONS, jvm.options())


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> Generator[None, int, int]:
    """Run one process more than there are cores where tests of Spark run: half of their time is waiting for the JVM."""
    cores = yield
    return cores + ("spark" not in _excluded_marks(config))


class FileScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Give a process a file at a time, whose tests share what they load, and all files that one JVM serves.

    Tests of slow suites go one by one.
    """

    def _split_scope(self, nodeid: str) -> str:
        path = HERE.parent / nodeid.partition("::")[0]
        if _needs_spark(path, nodeid):
            return f"spark {crc32(path.name.encode()) % PROCESSES_WITH_SPARK}"
        return nodeid if "slow" in _marks_of_file(path) else str(path)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> FileScheduling:
    """Distribute files, not tests."""
    return FileScheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None]:
    """Keep the garbage collector away from what lives as long as the process: modules and tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files that -m 'not … and not …' excludes as a whole, before they are imported."""
    excluded = _excluded_marks(config)
    if excluded and collection_path.name.startswith("test_") and collection_path.suffix == ".py":
        return not excluded.isdisjoint(_marks_of_file(collection_path)) or None
    return None


def _excluded_marks(config: pytest.Config) -> set[str]:
    """Return the markers that -m excludes, if that is all that it does."""
    expression = re.fullmatch(r"not \w+(?: and not \w+)*", str(config.getoption("markexpr")))
    return set(re.findall(r"not (\w+)", expression.group())) if expression else set()


@cache
def _marks_of_file(path: Path) -> set[str]:
    """Return the markers that every test of a file has, without importing it."""
    own = re.search(r"^pytestmark = (?:pytest\.mark\.\S+$|\[[^\]]*\])", path.read_text(), re.MULTILINE)
    marks = set(re.findall(r"pytest\.mark\.(\w+)", own.group())) if own else set()
    return marks | {"slow"} if _is_slow(path) else marks


def _needs_spark(path: Path, nodeid: str) -> bool:
    """Tell by its name whether a test takes the fixture `spark`, itself or for its case."""
    name, _, case = nodeid.partition("[")
    marked = _spark_tests_of_file(path).intersection(name.split("::"))
    return "spark" in _marks_of_file(path) or "spark" in re.split(r"\W", case) or bool(marked)


@cache
def _spark_tests_of_file(path: Path) -> set[str]:
    """Return the names of the tests and classes of a file that have the marker `spark` themselves."""
    tests = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return {test.name for test in tests if any("mark.spark" in ast.unparse(each) for each in test.decorator_list)}


def _is_slow(path: Path) -> bool:
    return path.relative_to(HERE).parts[0] in SLOW or path.name.startswith(SLOW_NAMES)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that take long, and put the longest first."""
    for item in items:
        if _is_slow(item.path):
            item.add_marker(pytest.mark.slow)
    items.sort(key=_place)


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None]:
    """Make a sample of the cases of a test, drawn by its name."""
    yield
    test, calls = metafunc.definition, metafunc._calls
    if len(calls) > 1 and is_sampled(metafunc.config):
        excluded = _excluded_marks(metafunc.config)
        possible = [call for call in calls if excluded.isdisjoint(mark.name for mark in call.marks)]
        metafunc._calls = sample(possible, _most_of(test, len(possible)), lambda _: test.nodeid) or calls


def pytest_report_header(config: pytest.Config) -> str:
    """Say how much of the suite runs."""
    most = "one" if EFFORT < 1 else f"at most {CASES_OF_A_TEST}, on Spark {CASES_ON_SPARK}"
    return f"cases of a test: {most if is_sampled(config) else 'all'}"


def _most_of(test: pytest.Item, count: int) -> int:
    """Return how many of so many cases of a test may run."""
    if EFFORT < 1:
        return 1
    if test.get_closest_marker("every_case"):
        return count
    if test.get_closest_marker("interop"):
        return CASES_OF_INTEROP
    return CASES_ON_SPARK if test.get_closest_marker("spark") else CASES_OF_A_TEST


def _place(item: pytest.Item) -> int:
    """Return the place of a test in the order of the run."""
    places = [place for place, name in enumerate(LONGEST) if name == item.path.name]
    return min(places, default=len(LONGEST) + (item.get_closest_marker("spark") is None))


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """A lake on disk: real SQLite, real files."""
    with icefield.connect(tmp_path / "lake", durable=False) as made:
        yield made


@pytest.fixture
def memory_lake() -> Iterator[Lake]:
    """A lake in memory whose clock and rng can be replayed."""
    with icefield.connect("memory:", ambient=SeededAmbient(7)) as made:
        yield made


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """The one Spark session of the suite, at the place that ICEFIELD_SPARK names."""
    from tests.spark_places import chosen_place, running_spark  # noqa: PLC0415 - only tests that ask for Spark load it

    with running_spark(chosen_place()) as started:
        yield started


@pytest.fixture
def generated_code(spark: "SparkSession") -> Iterator[None]:
    """Spark compiles its plans, as those of users are compiled."""
    from tests.spark_places import GENERATED, changed  # noqa: PLC0415 - only tests that ask for Spark load it

    with changed(spark, GENERATED):
        yield
