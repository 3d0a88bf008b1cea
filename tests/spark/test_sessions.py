"""A session can be handed in, frames are written through their own, and one that is dead is never kept."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.jvm import own_environment
from tests.spark.test_everywhere import ROOT, python_without_icefield
from tests.spark_places import SparkPlace, chosen_place

from icefield.errors import InvalidInput
from icefield.lake import Lake

OTHER_PROCESS = pytest.mark.skipif(chosen_place() is not SparkPlace.LOCAL, reason="it starts a Spark of its own")


@pytest.mark.slow
@OTHER_PROCESS
@pytest.mark.parametrize("kind", ["classic", "connect"])
def test_sessions_one_after_the_other_and_side_by_side(kind: str, tmp_path: Path) -> None:
    done = run(["-m", f"tests.spark.{kind}_sessions", str(tmp_path)], ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_a_session_can_be_handed_in(memory_lake: Lake) -> None:
    with pytest.raises(InvalidInput, match="expected a Spark session, not str"):
        memory_lake.use("local[*]")


# One session for all faults, since each takes its Python from the context when it starts workers. The first is that of
# this process, and finds another package of the name in the working directory.
USES_WORKERS = """
import os, shutil, sys
from pyspark.sql import SparkSession
import icefield
from icefield.errors import Unsupported
from icefield.spark.session.java import find_java_home
os.environ["JAVA_HOME"] = str(find_java_home().path)
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
with icefield.connect(sys.argv[1], durable=False) as lake:
    table = lake.create_table("a.t", "id long")
    for python in sys.argv[2:]:
        spark.sparkContext.pythonExec = python
        try:
            table.append(spark.range(3))
        except Unsupported as error:
            assert table.snapshots() == []
            print(f"{error} {error.hint}")
        shutil.rmtree("icefield", ignore_errors=True)
"""


@pytest.mark.slow
@OTHER_PROCESS
def test_workers_that_cannot_run_tasks_are_told_of_with_what_to_set(tmp_path: Path) -> None:
    directory = tmp_path / "here"
    (directory / "icefield").mkdir(parents=True)
    (directory / "icefield" / "__init__.py").touch()
    script = tmp_path / "script.py"
    script.write_text(USES_WORKERS)
    pythons = [sys.executable, str(python_without_icefield(tmp_path / "environment")), str(tmp_path / "nowhere")]
    # Here the script's own directory comes first in the path, in workers the working directory.
    done = run([str(script), str(tmp_path / "lake"), *pythons], directory)
    assert len(done.stdout.splitlines()) == len(pythons), done.stdout + done.stderr
    for line in done.stdout.splitlines():
        assert line.startswith("the Python of Spark's workers cannot run icefield's tasks: ")
        assert f"Set PYSPARK_PYTHON to {sys.executable}" in line


def run(arguments: list[str], directory: Path, **more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=directory,
        env=own_environment("PYSPARK_", **more),
        capture_output=True,
        text=True,
        check=False,
    )
