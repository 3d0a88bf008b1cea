"""A session can be handed in, frames are written through their own, and one that is dead is never kept.

What needs sessions of its own runs in another process.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.effort import DEEP
from tests.jvm import own_environment
from tests.spark.test_everywhere import ROOT
from tests.spark_places import SparkPlace, chosen_place

from icefield.errors import InvalidInput
from icefield.lake import Lake

SCRIPTS = ("dying_tasks", "classic_sessions", "faulty_workers")
OTHER_PROCESS = pytest.mark.skipif(chosen_place() is not SparkPlace.LOCAL, reason="it starts a Spark of its own")


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each of the scripts prints, one after the other in a process in an empty directory."""
    directory, here = tmp_path_factory.mktemp("scripts"), Path(__file__).parent
    scripts = [str(here / f"{name}.py") for name in SCRIPTS]
    run([str(here / "one_jvm.py"), str(directory), *scripts], tmp_path_factory.mktemp("empty"))
    return {name: (directory / f"{name}.txt").read_text() for name in SCRIPTS}


@pytest.mark.slow
@OTHER_PROCESS
def test_a_task_that_died_is_written_once_and_a_job_that_failed_not_at_all(printed: dict[str, str]) -> None:
    assert printed["dying_tasks"].splitlines() == ["retried True exact True", "distinct True", "failed True True"]


@pytest.mark.slow
@OTHER_PROCESS
def test_sessions_one_after_the_other_and_side_by_side(printed: dict[str, str]) -> None:
    assert printed["classic_sessions"] == ""


@pytest.mark.slow
@OTHER_PROCESS
def test_workers_that_cannot_run_tasks_are_told_of_with_what_to_set(printed: dict[str, str]) -> None:
    lines = printed["faulty_workers"].splitlines()
    assert len(lines) == 3, lines
    for line in lines:
        assert line.startswith("the Python of Spark's workers cannot run icefield's tasks: ")
        assert f"Set PYSPARK_PYTHON to {sys.executable}" in line


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.skipif(
    not DEEP and chosen_place() is not SparkPlace.CONNECT,
    reason="two servers take long to start: make everywhere, make deep",
)
def test_sessions_of_connect_one_after_the_other_and_side_by_side(tmp_path: Path) -> None:
    run(["-m", "tests.spark.connect_sessions", str(tmp_path)], ROOT)


def test_only_a_session_can_be_handed_in(memory_lake: Lake) -> None:
    with pytest.raises(InvalidInput, match="expected a Spark session, not str"):
        memory_lake.use("local[*]")


def run(arguments: list[str], directory: Path) -> None:
    """Run Python in a directory, with this package in its path, and have it succeed."""
    environment = own_environment("PYSPARK_")
    path = os.pathsep.join(filter(None, [str(ROOT), environment.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        env={**environment, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
