"""Tasks that run twice at a time, and stages that run again: every row is in the table once, and changed once.

Spark decides on the first when it starts, and only for executors on different hosts, so this is a cluster of its own.
"""

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from tests.effort import DEEP
from tests.jvm import executor_options, own_environment
from tests.spark.change_attempts import FAULTS, VERBS

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "250",
    "spark.speculation": "true",
    "spark.speculation.minTaskRuntime": "1s",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
}
SCRIPT = """
import os, signal, sys, time
from pathlib import Path
from pyspark import TaskContext
from tests.spark_places import running_hosts
import icefield
from icefield.spark.session.session import session
from tests.spark.change_attempts import check_changes

MARKS = Path(sys.argv[1], "marks")
MARKS.mkdir()
ROWS = 6_000


def mark(name):
    # Says whether it is the first to do so.
    try:
        (MARKS / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def slow(batches):
    # The first attempt of one task stops amid its rows, until Spark kills it because the second has ended.
    # The second waits at the same row for the first, which may have started late.
    context = TaskContext.get()
    for number, batch in enumerate(batches):
        yield batch
        if number == 4 and context.partitionId() == 1:
            mark(f"attempt-{context.attemptNumber()}")
            while context.attemptNumber() == 0 or not (MARKS / "attempt-0").exists():
                time.sleep(0.1)


def made(batches):
    mark(f"made-{TaskContext.get().partitionId()}-{TaskContext.get().taskAttemptId()}")
    yield from batches


def parent_of(process):
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def dying(batches):
    # An executor is killed while it writes, and with it the shuffled rows that other tasks read.
    for number, batch in enumerate(batches):
        yield batch
        if number == 2 and mark("killed"):
            os.kill(parent_of(parent_of(os.getpid())), signal.SIGKILL)


def show(table):
    files = table.scan().files()["file_path"].to_pylist()
    ids = sorted(table.scan().to_arrow().read_all()["id"].to_pylist())
    print("exact", ids == list(range(ROWS)), "distinct", len(files) == len(set(files)), flush=True)


with running_hosts() as master, icefield.connect(Path(sys.argv[1], "lake"), durable=False) as lake:
    spark = session(master=master)
    rows = spark.range(0, ROWS, 1, 4)
    for name in ("twice", "again"):
        lake.create_table(f"s.{name}", "id long", properties={"write.target-file-size-bytes": "2000"})

    lake.table("s.twice").append(rows.mapInArrow(slow, "id long"))
    print("attempts", sorted(path.name for path in MARKS.glob("attempt-*")), flush=True)
    show(lake.table("s.twice"))

    lake.table("s.again").append(rows.mapInArrow(made, "id long").repartition(4).mapInArrow(dying, "id long"))
    print("killed", (MARKS / "killed").exists(), "made again", len(list(MARKS.glob("made-*"))) > 4, flush=True)
    show(lake.table("s.again"))
    check_changes(lake, spark, Path(sys.argv[1]), [case.split() for case in sys.argv[2:]])
    spark.stop()
"""


# Of one task only, as small files are rewritten in, Spark starts no second attempt.
CHANGES = [
    f"{verb} {mode} {fault}"
    for verb, mode, fault in product(VERBS, ("merge-on-read", "copy-on-write"), FAULTS)
    if (mode, fault) != ("copy-on-write", "slow")
]
IN_EVERY_RUN = ("delete copy-on-write fail", "upsert merge-on-read kill")


def test_rows_are_written_once_whatever_runs_twice(tmp_path: Path) -> None:
    environment = own_environment()
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), environment.get("PYTHONPATH", "")]))
    settings = [f"--conf {key}={value}" for key, value in SETTINGS.items()]
    environment["PYSPARK_SUBMIT_ARGS"] = " ".join([*settings, executor_options(), "pyspark-shell"])
    changes, most_seconds = (CHANGES, 3_000) if DEEP else (IN_EVERY_RUN, 500)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path), *changes]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=most_seconds, check=False)
    assert done.stdout.splitlines() == [
        "attempts ['attempt-0', 'attempt-1']",
        "exact True distinct True",
        "killed True made again True",
        "exact True distinct True",
        *(f"{change} disturbed []" for change in changes),
    ], done.stderr[-4000:]
