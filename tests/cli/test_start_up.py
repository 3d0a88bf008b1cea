"""Start-up: the modules that a command loads."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pytest

import icefield

HEAVY = {"duckdb", "numpy", "pandas", "pyarrow", "pyspark", "sqlglot"}
SHOW = "import json, sys; from icefield.cli.main import run; run(sys.argv[1:]); print(json.dumps(list(sys.modules)))"


def modules_of(code: str, *arguments: str, folder: Path) -> set[str]:
    """Return the modules that a Python process has loaded at its end; it prints them last."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("start-up")
    icefield.connect(place / "lake").create_table("t.a", "id long").append(pa.table({"id": [1]}))
    return place


@pytest.mark.parametrize(
    ("command", "most"),
    [
        ("--help", 25),
        ("tables", 90),
        ("views", 90),
        *((f"{verb} t.a", 135) for verb in ("snapshots", "history", "log", "refs", "describe", "properties")),
    ],
)
def test_a_metadata_command_loads_no_engine(command: str, most: int, folder: Path) -> None:
    loaded = modules_of(SHOW, *command.split(), folder=folder)
    assert HEAVY & loaded == set()
    assert "http.client" not in loaded, "of REST catalogs"
    assert sum(name.startswith("icefield.") for name in loaded) <= most


def test_a_count_without_a_filter_parses_no_sql(folder: Path) -> None:
    assert {"sqlglot", "pyspark", "duckdb"} & modules_of(SHOW, "count", "t.a", folder=folder) == set()


def test_importing_connect_loads_little(folder: Path) -> None:
    loaded = modules_of(
        "import json, sys; from icefield import connect; print(json.dumps(list(sys.modules)))", folder=folder
    )
    assert (HEAVY | {"msgspec", "click", "rich", "http.client"}) & loaded == set()
    assert sum(name.startswith("icefield.") for name in loaded) <= 25


def test_the_version_is_that_of_the_package() -> None:
    assert icefield.__version__ == version("icefield")
