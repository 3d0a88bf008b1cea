"""Tasks that die while they write: Spark tries them again, and every row is in the table once. See test_sessions.py.

The session of the suite tries no task twice. Here the first attempt of every second task kills its daemon's workers,
which are those that write, after some rows.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext

import icefield
from icefield.spark.session.session import session

ROWS = 160_000
Batches = Iterator[pa.RecordBatch]


def children_of(parent: int) -> Iterator[int]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            process, rest = stat.parent.name, stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if rest[1] == str(parent) and process != str(os.getpid()):
            yield int(process)


def dying(attempts: Path, last_attempt: int) -> Callable[[Batches], Batches]:
    def rows(batches: Batches) -> Batches:
        context = TaskContext.get()
        assert context is not None
        for number, batch in enumerate(batches):
            yield batch
            if number == 1 and context.partitionId() % 2 == 1 and context.attemptNumber() <= last_attempt:
                (attempts / f"{context.partitionId()}-{context.attemptNumber()}").touch()
                for process in children_of(os.getppid()):
                    os.kill(process, signal.SIGKILL)
                os._exit(1)

    return rows


def main(directory: Path) -> None:
    spark = session(master="local[2,4]")
    attempts = directory / "attempts"
    attempts.mkdir()
    with icefield.connect(directory / "lake", durable=False) as lake:
        table = lake.create_table("s.t", "id long", properties={"write.target-file-size-bytes": "20000"})
        frame = spark.range(0, ROWS, 1, 4)
        table.append(frame.mapInArrow(dying(attempts, 0), "id long"))
        ids = sorted(table.scan().to_arrow().read_all()["id"].to_pylist())
        print("retried", any(attempts.iterdir()), "exact", ids == list(range(ROWS)))
        files = table.scan().files()["file_path"].to_pylist()
        print("distinct", len(set(files)) == len(files))
        try:
            table.append(frame.mapInArrow(dying(attempts, 99), "id long"))
        except Exception:  # whatever Spark makes of a dead worker
            print("failed", len(table.snapshots()) == 1, table.count() == ROWS)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
