"""Many processes on one table: everything lands once, and nothing is left over."""

import subprocess
import sys
from pathlib import Path

import pytest

import icefield

pytestmark = pytest.mark.slow

WRITER = """
import sys
import pyarrow as pa
import icefield

folder, writer, appends = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with icefield.connect(folder) as lake:
    table = lake.table("a.t")
    for n in range(appends):
        table.append(pa.table({"id": [writer * 1000 + n], "writer": [writer]}))
"""


def run_writers(folder: Path, writers: int, appends: int) -> None:
    running = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(folder), str(w), str(appends)], stderr=subprocess.PIPE)
        for w in range(writers)
    ]
    for process in running:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors.decode()


def test_eight_processes_times_ten_appends_all_land_and_leave_no_orphan(tmp_path: Path) -> None:
    with icefield.connect(tmp_path) as lake:
        table = lake.create_table("a.t", "id long not null, writer long")
        run_writers(tmp_path, writers=8, appends=10)
        ids = table.scan().to_arrow().read_all()["id"].to_pylist()
        assert sorted(ids) == sorted(w * 1000 + n for w in range(8) for n in range(10))
        snapshots = table.snapshots()
        assert [s.sequence_number for s in snapshots] == list(range(1, 81))
        assert [s.parent_snapshot_id for s in snapshots[1:]] == [s.snapshot_id for s in snapshots[:-1]]
        assert snapshots[-1].summary["total-records"] == "80"

        plan = table.scan()._plan
        known = {table.metadata_location, *(e.metadata_file for e in table.metadata.metadata_log)}
        known |= {s.manifest_list for s in snapshots}
        known |= set(plan.files.column("file_path").to_pylist()) | set(plan.files.column("manifest_path").to_pylist())
        assert {f.location for f in lake.store.list(table.location)} == known
