"""One process of the torture test: it works on a lake until it is killed, and keeps a journal.

    python -m tests.torture.worker ROLE PLACE JOURNAL SEED

PLACE is JSON: what `icefield.connect` is given. Every change keeps the sum of all values at zero and the two rows of a
pair together, so that whoever reads any version can check it. The journal has a line before each change (`will`) and
one after its acknowledgement (`did`).
"""

import datetime
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import pyarrow as pa

import icefield
from icefield.errors import CommitError, IcefieldError, LeaseLost, MissingFile, NoSuchSnapshot
from icefield.lake import Lake
from icefield.table.table import Table

TABLE = "torture.pairs"
FUTURE = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)
# With which a reader or writer may fail here; whatever else is raised ends the process with an error.
EXPECTED = (CommitError, LeaseLost, NoSuchSnapshot, MissingFile)


class Broken(AssertionError):
    """A version that cannot be."""


def pairs(*numbers: int, value: int) -> pa.Table:
    """Two rows for each number, whose values add up to nothing."""
    ids = [2 * number + side for number in numbers for side in (0, 1)]
    values = [value, -value] * len(numbers)
    return pa.table({"id": pa.array(ids, pa.int64()), "pair": [i // 2 for i in ids], "n": pa.array(values, pa.int64())})


def check(read: pa.Table) -> None:
    """Check what was read of any version."""
    found: dict[int, list[int]] = {}
    for pair, value in zip(read["pair"].to_pylist(), read["n"].to_pylist(), strict=True):
        found.setdefault(pair, []).append(value)
    if wrong := {pair: values for pair, values in found.items() if len(values) != 2 or sum(values) != 0}:
        raise Broken(f"pairs that cannot be: {wrong}")


class Worker:
    """A process with its lake."""

    def __init__(self, lake: Lake, journal: Path, rng: Random) -> None:
        self.table: Table = lake.table(TABLE)
        self._journal = journal.open("a")
        self.rng = rng

    def note(self, *words: object) -> None:
        """Write down a line that outlives the process."""
        print(*words, file=self._journal, flush=True)
        os.fsync(self._journal.fileno())

    def append(self) -> None:
        number = self.rng.randrange(1, 1 << 40)
        self.table.append(pairs(number, value=self.rng.randrange(100)))
        self.note("did append", number)

    def delete(self) -> None:
        known = self._known()
        if known:
            number = self.rng.choice(known)
            self.note("will delete", number)
            self.table.delete(f"pair = {number}", mode=self.rng.choice(("merge-on-read", "copy-on-write")))
            self.note("did delete", number)

    def merge(self) -> None:
        known = self._known()
        if known:
            changes = pairs(*self.rng.sample(known, min(3, len(known))), value=self.rng.randrange(1, 100))
            merging = self.table.merge(changes, on=["id"]).when_matched().update({"n": "target.n + source.n"})
            merging.execute(retry_conflicts=3)

    def compact(self) -> None:
        self.table.compact()

    def expire(self) -> None:
        self.table.expire_snapshots(FUTURE, keep_last=1)

    def orphans(self) -> None:
        self.table.remove_orphans(unsafe=True)

    def read(self) -> None:
        check(self.table.scan().to_arrow().read_all())

    def read_by_spark(self) -> None:
        check(pa.Table.from_pandas(self.table.scan().to_spark().select("pair", "n").toPandas()))

    def append_by_spark(self) -> None:
        number = self.rng.randrange(1, 1 << 40)
        self.table.append(pairs(number, value=7), engine="spark")
        self.note("did append", number)

    def _known(self) -> list[int]:
        return sorted(set(self.table.scan(select=["pair"]).to_arrow().read_all()["pair"].to_pylist()))


ROLES: Mapping[str, tuple[Callable[[Worker], None], ...]] = {
    "writer": (Worker.append, Worker.append, Worker.delete, Worker.merge),
    "keeper": (Worker.compact, Worker.expire, Worker.orphans),
    "reader": (Worker.read,),
    "spark": (Worker.read_by_spark, Worker.append_by_spark, Worker.read_by_spark),
}


def main(role: str, place: str, journal: str, seed: str) -> None:
    rng = Random(seed)
    with icefield.connect(**json.loads(place)) as lake:
        worker = Worker(lake, Path(journal), rng)
        while True:
            step = rng.choice(ROLES[role])
            try:
                step(worker)
            except Broken:
                raise
            except IcefieldError as error:
                if not isinstance(error, EXPECTED):
                    raise
                worker.note("failed", step.__name__, type(error).__name__)
            else:
                worker.note("done", step.__name__)


if __name__ == "__main__":
    main(*sys.argv[1:])
