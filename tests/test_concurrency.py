"""Many processes on one table: everything lands once with default settings, and nothing is left over."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import icefield
from icefield.lake import Lake
from icefield.plan.manifest_list import load_manifests
from icefield.table.table import Table
from tests.effort import DEEP
from tests.postgres import running_server

pytestmark = pytest.mark.slow

WRITERS, APPENDS = 16, 20 if DEEP else 3
# Processes of one that has loaded all that they need, and has opened nothing.
WRITER = """
import os, sys
import pyarrow as pa
import icefield, icefield.lake, icefield.catalog.sql.postgres, icefield.catalog.commit_queue.postgres

target, warehouse, writers, appends = sys.argv[1], sys.argv[2] or None, int(sys.argv[3]), int(sys.argv[4])

def write(writer):
    with icefield.connect(target, warehouse=warehouse) as lake:
        table = lake.table("a.t")
        for n in range(appends):
            table.append(pa.table({"id": [writer * 1000 + n], "writer": [writer]}))

started = []
for writer in range(writers):
    if (process := os.fork()) == 0:
        try:
            write(writer)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    started.append(process)
sys.exit(any([os.waitpid(process, 0)[1] for process in started]))
"""


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """A target and its warehouse, if it has one."""
    if request.param == "sqlite":
        yield str(tmp_path / "lake"), ""
        return
    with running_server() as server:
        yield server.new_schema(), str(tmp_path / "warehouse")


def run_writers(place: tuple[str, str]) -> None:
    command = [sys.executable, "-c", WRITER, *place, str(WRITERS), str(APPENDS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def reachable(lake: Lake, table: Table) -> set[str]:
    """Every file that the table's metadata leads to; nothing was removed, so that the last scan has all data files."""
    found = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
    for snapshot in table.snapshots():
        manifests = load_manifests(lake.backend.reading, snapshot)
        assert manifests is not None
        found |= {str(snapshot.manifest_list), *manifests["manifest_path"].to_pylist()}
    return found | set(table.scan().files()["file_path"].to_pylist())


def test_appends_of_sixteen_processes_all_land_and_leave_no_orphan(place: tuple[str, str]) -> None:
    commits = WRITERS * APPENDS
    with icefield.connect(place[0], warehouse=place[1] or None) as lake:
        table = lake.create_table("a.t", "id long not null, writer long")
        run_writers(place)
        table.refresh()
        ids = table.scan().to_arrow().read_all()["id"].to_pylist()
        assert sorted(ids) == sorted(w * 1000 + n for w in range(WRITERS) for n in range(APPENDS))
        snapshots = table.snapshots()
        assert [s.sequence_number for s in snapshots] == list(range(1, commits + 1))
        assert [s.parent_snapshot_id for s in snapshots[1:]] == [s.snapshot_id for s in snapshots[:-1]]
        assert snapshots[-1].summary["total-records"] == str(commits)
        assert {file.location for file in lake.store.list(table.location)} == reachable(lake, table)
