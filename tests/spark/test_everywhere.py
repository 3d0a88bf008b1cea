"""The tests of rows hold wherever Spark runs: in executor processes, and behind a server of Spark Connect.

Here is the core of them for each place, in a process of its own; `make everywhere` runs all that need Spark.
`make test` has other tests in executor processes: `test_write_attempts`.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.effort import DEEP
from tests.jvm import own_environment
from tests.spark_places import VARIABLE, SparkPlace, chosen_place

from icefield.errors import Unsupported
from icefield.lake import Lake

ROOT = Path(__file__).resolve().parents[2]
# What tasks do in another process, with another directory and other credentials.
BY_TASKS = (
    "tests/spark/test_log_directory.py",
    "tests/spark/test_native_deletes.py::test_keys_and_positions_are_deleted_together",
    "tests/spark/test_rows.py::test_spark_rows_come_back_through_spark_and_arrow",
    "tests/spark/test_rows.py::test_null_in_a_required_column_is_one_clear_error_and_leaves_no_file",
    "tests/spark/test_planning.py::test_a_plan_made_by_executors_is_the_same",
    "tests/spark/test_object_store.py::test_rows_are_written_read_replaced_and_deleted",
)
# What is planned here, where Spark Connect gives no access to the JVM.
BY_PLANS = (
    "tests/spark/test_version_3.py::test_metadata_columns_can_be_selected_and_filtered",
    "tests/spark/test_rows.py::test_overwrite_by_filter_rewrites_in_spark",
    "tests/spark/test_filters.py::test_columns_filter_as_spark_does",
    "tests/test_views.py::test_views_read_tables_and_views_of_any_namespace",
    "tests/test_examples.py::test_spark_connect",
    "tests/sql/test_sql_page.py::test_spark_runs_what_the_page_says",
)
CORE = {SparkPlace.CLUSTER: BY_TASKS, SparkPlace.CONNECT: (*BY_TASKS, *BY_PLANS)}


@pytest.mark.slow
@pytest.mark.skipif(chosen_place() is not SparkPlace.LOCAL, reason="this is a run at another place already")
@pytest.mark.parametrize("place", CORE if DEEP else [SparkPlace.CONNECT])
def test_the_core_holds(place: SparkPlace) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *CORE[place]],
        cwd=ROOT,
        env=own_environment(**{VARIABLE: place}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.spark
@pytest.mark.skipif(chosen_place() is SparkPlace.CONNECT, reason="its server decides which Python the workers run")
def test_workers_without_the_package_are_told_of_in_one_line(
    lake: Lake, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.create_table("a.t", "id long")
    table.append(spark.range(3))  # with workers that are in order, and checked once for a session
    before = table.snapshots()
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python_without_icefield(tmp_path)))
    with pytest.raises(Unsupported, match="the Python of Spark's executors has no icefield") as caught:
        table.append(spark.range(3))
    assert "\n" not in str(caught.value)
    assert table.snapshots() == before


def python_without_icefield(directory: Path) -> Path:
    """Make an environment with all packages of this one but icefield."""
    packages = Path(pytest.__file__).parents[1]
    (directory / "bin").mkdir(parents=True)
    python = directory / "bin" / "python"
    python.symlink_to(Path(sys.executable).resolve())
    (directory / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    site = directory / "lib" / packages.parent.name / "site-packages"
    site.mkdir(parents=True)
    for package in packages.iterdir():
        if "icefield" not in package.name:
            (site / package.name).symlink_to(package)
    return python
