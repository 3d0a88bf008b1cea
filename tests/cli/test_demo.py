"""The demo from its first word to its last, with few rows."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from tests.cli.conftest import Icefield

import icefield as package
from icefield.cli.demo.directory import ORDERS, make_fresh

ROWS = 3_000
CHAPTERS = [
    "1. A table in a directory",
    "2. 3,000 orders from several writers at once",
    "3. A query that reads little",
    "4. A bad write, and the way back",
    "5. What the table is made of",
    "6. The same rows, read by DuckDB",
    "7. Try it yourself",
]


def run_shown(command: str, folder: Path) -> str:
    """Run a command that the demo shows, as its reader would."""
    scripts = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": scripts}
    return subprocess.run(
        shlex.split(command), cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.slow
@pytest.mark.spark
def test_the_demo_tells_its_story_and_leaves_a_lake(icefield: Icefield, tmp_path: Path, spark: object) -> None:
    make_fresh(tmp_path / "demo lake")
    with package.connect(tmp_path / "demo lake") as lake:  # what a demo that was killed has left
        lake.create_table(ORDERS, "id long").append(pa.table({"id": [1]}))
    ran = icefield("demo", "--rows", str(ROWS), "--dir", "demo lake", "--json")
    assert ran.code == 0, ran.err
    story = ran.err
    assert "\x1b" not in story
    assert re.findall(r"^\d\. .*$", story, re.MULTILINE) == CHAPTERS
    assert "Spark counts 3,000 rows with 3,000 distinct order ids: none lost, none duplicated." in story
    assert (ran.json["ingest"]["rows"], ran.json["ingest"]["commits"]) == (ROWS, 24)
    assert ran.json["explain"]["files-pruned-by-statistics"] > 0
    assert ran.json["peer"]["agrees"] is True
    with package.connect(tmp_path / "demo lake") as lake:
        table = lake.table(ORDERS)
        assert table.count() == ROWS
        good, bad = (int(ran.json["repair"][key]) for key in ("good-snapshot-id", "bad-snapshot-id"))
        assert [s.snapshot_id for s in table.snapshots()][-3:-1] == [good, bad]
    shown = [line.strip() for line in story.splitlines() if " --lake " in line]
    assert len(shown) == 3
    assert all(run_shown(command, tmp_path) for command in shown)
    assert make_fresh(tmp_path / "demo lake") is True  # it can run again on what it left


def test_the_demo_refuses_a_directory_that_it_did_not_make(icefield: Icefield, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    ran = icefield("demo", "--dir", "mine")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.splitlines() == [
        "error: cannot run the demo in mine: it holds other files",
        "hint: Choose another directory with --dir",
    ]
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
