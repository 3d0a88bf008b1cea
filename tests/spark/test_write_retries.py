"""Tasks that die while they write: Spark tries them again, and every row is in the table once.

The session of the suite tries no task twice, so these run in a process of their own.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.jvm import own_environment

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# The first attempt of every second task kills its daemon's workers, which are those that write, after some rows.
SCRIPT = """
import os, signal, sys
from pathlib import Path
from pyspark import TaskContext
import icefield
from icefield.spark.session.session import session

spark = session(master="local[2,4]")
ATTEMPTS = Path(sys.argv[1], "attempts")
ATTEMPTS.mkdir()


def children_of(parent):
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            process, rest = stat.parent.name, stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if rest[1] == str(parent) and process != str(os.getpid()):
            yield int(process)


def dying(last_attempt):
    def rows(batches):
        context = TaskContext.get()
        for number, batch in enumerate(batches):
            yield batch
            if number == 1 and context.partitionId() % 2 == 1 and context.attemptNumber() <= last_attempt:
                (ATTEMPTS / f"{context.partitionId()}-{context.attemptNumber()}").touch()
                for process in children_of(os.getppid()):
                    os.kill(process, signal.SIGKILL)
                os._exit(1)
    return rows


with icefield.connect(Path(sys.argv[1], "lake"), durable=False) as lake:
    table = lake.create_table("s.t", "id long", properties={"write.target-file-size-bytes": "20000"})
    frame = spark.range(0, 160_000, 1, 4)
    table.append(frame.mapInArrow(dying(0), "id long"))
    retried = any(ATTEMPTS.iterdir())
    ids = sorted(table.scan().to_arrow().read_all()["id"].to_pylist())
    print("retried", retried, "exact", ids == list(range(160_000)))
    files = table.scan().files()["file_path"].to_pylist()
    print("distinct", len(set(files)) == len(files))

    try:
        table.append(frame.mapInArrow(dying(99), "id long"))
    except Exception:  # whatever Spark makes of a dead worker
        print("failed", len(table.snapshots()) == 1, table.count() == 160_000)
spark.stop()
"""


def test_a_task_that_died_is_written_once_and_a_job_that_failed_not_at_all(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(command, env=own_environment(), capture_output=True, text=True, timeout=500, check=False)
    expected = ["retried True exact True", "distinct True", "failed True True"]
    assert done.stdout.splitlines() == expected, done.stderr[-4000:]
