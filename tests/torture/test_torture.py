"""Writers, readers, compaction, expiry and orphan removal with no grace at all, in processes that are killed at random.

Nothing that was acknowledged is lost, no reader sees half a change, and when all leases have lapsed, two rounds of the
collector leave nothing behind.

    ICEFIELD_TORTURE=600 python -m pytest tests/torture -k spark      ten minutes; `make deep` does it
"""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.effort import DEEP
from tests.postgres import running_server
from tests.s3_server import s3_server
from tests.torture.worker import TABLE, check, pairs

import icefield
from icefield.lake import Lake
from icefield.leases import sample
from icefield.upkeep.reachable import find_reachable

SECONDS = float(os.environ.get("ICEFIELD_TORTURE", "600" if DEEP else "0"))
SHORT_SECONDS = 6.0
TTL_MS = 3_000
PROPERTIES = {
    "icefield.gc.grace-ms": "0",
    "icefield.gc.foreign-readers": "false",
    "icefield.gc.orphan-age-ms": "0",
    "icefield.gc.lease-ttl-ms": str(TTL_MS),
    "write.merge.mode": "merge-on-read",
}
KILLED = -signal.SIGKILL
SPARK = "spark"


@dataclass
class Torture:
    """Processes on a lake. place: what `icefield.connect` is given."""

    place: dict[str, Any]
    folder: Path
    rng: Random = field(default_factory=lambda: Random(1))
    kills: int = 0
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _starts: int = 0

    def run(self, roles: dict[str, str], seconds: float, between_kills_s: tuple[float, float]) -> None:
        """Run a process for each name, by its role; kill one after the other, and start it again."""
        end = time.monotonic() + seconds
        try:
            for name, role in roles.items():
                self._start(name, role)
            while time.monotonic() < end:
                time.sleep(self.rng.uniform(*between_kills_s))
                # A JVM takes long to start, so that Spark is killed less often.
                (name,) = self.rng.choices(list(roles), [1 if role == SPARK else 5 for role in roles.values()])
                self._kill(name)
                self._start(name, roles[name])
        finally:
            for process in self._running.values():
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            for name in list(self._running):
                self._kill(name)

    def journal(self) -> list[list[str]]:
        """Return what all processes wrote down; the last line of one that was killed may be half a line."""
        lines = [line for path in sorted(self.folder.glob("*.journal")) for line in path.read_text().split("\n")[:-1]]
        return [line.split() for line in lines]

    def _start(self, name: str, role: str) -> None:
        self._starts += 1
        arguments = [role, json.dumps(self.place), str(self.folder / f"{name}.journal"), f"{name} {self._starts}"]
        with (self.folder / f"{name}.log").open("ab") as log:
            command = [sys.executable, "-m", "tests.torture.worker", *arguments]
            self._running[name] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def _kill(self, name: str) -> None:
        """Kill a process and whatever it started, such as a JVM; it must not have ended by itself."""
        process = self._running.pop(name)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            self.kills += 1
        log = (self.folder / f"{name}.log").read_text()
        assert process.returncode == KILLED, f"{name} ended with {process.returncode}:\n{log[-3000:]}"


def make_table(place: dict[str, Any]) -> None:
    with icefield.connect(**place) as lake:
        table = lake.create_table(TABLE, "id long, pair long, n long", properties=PROPERTIES)
        table.append(pairs(*range(20), value=1))


def check_nothing_lost(lake: Lake, journal: list[list[str]]) -> None:
    read = lake.table(TABLE).scan().to_arrow().read_all()
    check(read)
    there = set(read["pair"].to_pylist())

    def noted(*words: str) -> set[int]:
        return {int(line[2]) for line in journal if tuple(line[:2]) == words}

    lost = noted("did", "append") - noted("will", "delete") - there
    assert not lost, f"appended and acknowledged, but not there: {sorted(lost)}"
    back = noted("did", "delete") & there
    assert not back, f"deleted and acknowledged, but there: {sorted(back)}"


def check_nothing_left(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """All processes are gone, so that their leases may lapse without the margin for clocks and requests."""
    monkeypatch.setattr(sample, "MARGIN_S", 0.0)
    table = lake.table(TABLE)
    table.set_properties({"end": "here"})  # what a writer left on top of the current version is kept until a commit
    table.remove_orphans(unsafe=True)
    time.sleep(TTL_MS / 1000 + 1)
    for _ in range(2):
        table.remove_orphans(unsafe=True)
    assert table.leases() == []
    context = table._context
    needed = set(find_reachable(context, table.metadata, table.metadata_location).location.to_pylist())
    files = (file.location for file in context.store.list(table.location))
    left = {file for file in files if "/metadata/gc/" not in file} - needed
    assert not left, f"files are left behind: {sorted(left)}"


@pytest.mark.slow
def test_processes_that_are_killed_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place: dict[str, Any] = {"target": str(tmp_path / "lake"), "durable": False}
    make_table(place)
    torture = Torture(place, tmp_path)
    roles = {"writer": "writer", "keeper": "keeper", "reader": "reader"}
    torture.run(roles, SHORT_SECONDS, (1.5, 2.5))
    assert torture.kills >= len(roles)
    with icefield.connect(**place) as lake:
        check_nothing_lost(lake, torture.journal())
        check_nothing_left(lake, monkeypatch)


@pytest.mark.slow
@pytest.mark.skipif(not SECONDS, reason="takes minutes: make deep, or ICEFIELD_TORTURE=600")
def test_spark_postgres_and_s3_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_server() as server:
        s3 = s3_server()
        place: dict[str, Any] = {"target": server.new_schema(), "warehouse": s3.new_root(), "properties": s3.properties}
        make_table(place)
        torture = Torture(place, tmp_path)
        roles = {f"writer {at}": "writer" for at in range(2)}
        roles |= {"keeper 0": "keeper", "keeper 1": "keeper", "reader": "reader", "spark": SPARK}
        torture.run(roles, SECONDS, (4.0, 12.0))
        journal = torture.journal()
        print(f"{torture.kills} kills, {sum(line[0] == 'done' for line in journal)} steps done")
        with icefield.connect(**place) as lake:
            check_nothing_lost(lake, journal)
            check_nothing_left(lake, monkeypatch)
