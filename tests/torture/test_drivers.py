"""A DataFrame whose driver is killed keeps its files until its lease lapses; one that was stopped for too long raises.

Each starts a JVM of its own: `make deep`, or ICEFIELD_TORTURE=1.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.torture.test_torture import SECONDS
from tests.upkeep.fixtures import AT_ONCE, FUTURE, rows

import icefield
from icefield.leases import sample
from icefield.table.table import Table

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SECONDS, reason="starts a JVM for each: make deep, or ICEFIELD_TORTURE=1"),
]

TTL_S = 4
DRIVER = """
import sys, icefield
frame = icefield.connect(sys.argv[1]).table("t.t").scan().to_spark()
print("ready", flush=True)
sys.stdin.readline()
try:
    print("rows", sorted(row.id for row in frame.collect()), flush=True)
except Exception as error:
    print("raised", type(error).__name__, flush=True)
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    monkeypatch.setattr(sample, "MARGIN_S", 0.0)
    with icefield.connect(tmp_path / "lake", durable=False) as lake:
        properties = {**AT_ONCE, "icefield.gc.lease-ttl-ms": str(TTL_S * 1000)}
        made = lake.create_table("t.t", "id long, n long", properties=properties)
        made.append(rows(1, 2))
        yield made


@contextmanager
def running_driver(lake: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a process that has a DataFrame and waits; whatever it started ends with it."""
    command = [sys.executable, "-c", DRIVER, str(lake)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as driver:
        try:
            assert driver.stdout is not None
            assert driver.stdout.readline() == "ready\n"
            yield driver
        finally:
            os.killpg(driver.pid, signal.SIGKILL)


def expire(table: Table) -> Path:
    """Replace all rows, and expire what the driver reads; return a file of that."""
    (location,) = table.scan().files()["file_path"].to_pylist()
    table.overwrite(rows(3))
    table.expire_snapshots(FUTURE)
    return Path(location.removeprefix("file://"))


def let_leases_lapse(table: Table) -> None:
    table.sweep()
    time.sleep(TTL_S + 1)
    table.sweep()


def test_files_of_a_killed_driver_go_when_its_lease_has_lapsed(table: Table, tmp_path: Path) -> None:
    with running_driver(tmp_path / "lake"):
        file = expire(table)
        let_leases_lapse(table)
        assert file.exists(), "the driver lives, and renews its lease"
    let_leases_lapse(table)
    assert not file.exists()
    assert table.leases() == []


def test_a_driver_that_was_stopped_past_its_lease_raises(table: Table, tmp_path: Path) -> None:
    with running_driver(tmp_path / "lake") as driver:
        os.killpg(driver.pid, signal.SIGSTOP)
        file = expire(table)
        let_leases_lapse(table)
        assert not file.exists()
        os.killpg(driver.pid, signal.SIGCONT)
        said, _ = driver.communicate("go on\n")
        assert said.startswith("raised"), said
