"""Measure CPU, wall time and memory of all processes of Spark: this process, the JVM, and Python workers.

CPU is that of the whole process tree, from /proc: the CPU of a worker that ended is part of its parent's. Pieces of
work that are compared alternate. This module does not import icefield, because it also runs in the environment of
Iceberg Java.
"""

import os
import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROUNDS = 5
# Spark compiles hot code: short work is fast only after some rounds, long work after one.
WARM_UP_ROUNDS, WARM_UP_SECONDS = 6, 5
TICKS = os.sysconf("SC_CLK_TCK")
RESET_PEAK = "5"  # (proc(5): clear_refs)


@dataclass(frozen=True)
class Cost:
    """The cost of a piece of work: seconds, and the peak MiB of the JVM and of all Python processes."""

    cpu: float
    wall: float
    java_mib: float = 0
    python_mib: float = 0


def compare(works: Mapping[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, Cost]:
    """Measure alternating pieces of work, after some rounds to warm up; return the medians."""
    for work in works.values():
        warm_up(work)
    spent: dict[str, list[Cost]] = {name: [] for name in works}
    for slot in range(rounds):
        names = list(works) if slot % 2 == 0 else list(reversed(list(works)))
        for name in names:
            spent[name].append(measure(works[name]))
    return {name: _median(costs) for name, costs in spent.items()}


def measure(work: Callable[[], object]) -> Cost:
    """Run a piece of work once."""
    for pid in _tree():
        _write(pid, "clear_refs", RESET_PEAK)
    before, wall = _accounts(), time.perf_counter()
    work()
    wall = time.perf_counter() - wall
    return Cost(_spent_seconds(before, _accounts()), wall, *_peaks())


def warm_up(work: Callable[[], object], rounds: int = WARM_UP_ROUNDS, seconds: float = WARM_UP_SECONDS) -> None:
    """Run a piece of work some times, or as long as no more than some seconds have passed."""
    begin = time.perf_counter()
    for _ in range(rounds):
        work()
        if time.perf_counter() - begin > seconds:
            return


def memory_peak_mib() -> float:
    """Return the peak memory of this process; that of getrusage begins with the memory of its parent."""
    found = re.search(r"VmHWM:\s+(\d+)", _read(os.getpid(), "status"))
    return int(found[1]) / 1024 if found else 0.0


def _median(costs: Sequence[Cost]) -> Cost:
    values = zip(*((c.cpu, c.wall, c.java_mib, c.python_mib) for c in costs), strict=True)
    return Cost(*(statistics.median(each) for each in values))


def _accounts() -> dict[int, tuple[int, int]]:
    """Return the ticks of each process: its own, and those of children that ended and were waited for."""
    found = {pid: _stat(pid) for pid in _tree()}
    return {pid: (int(f[11]) + int(f[12]), int(f[13]) + int(f[14])) for pid, f in found.items() if f}


def _spent_seconds(before: dict[int, tuple[int, int]], after: dict[int, tuple[int, int]]) -> float:
    nothing = (0, 0)
    own = sum(ticks - before.get(pid, nothing)[0] for pid, (ticks, _) in after.items())
    ended = sum(ticks - before.get(pid, nothing)[1] for pid, (_, ticks) in after.items())
    # The CPU of a process that ended is now counted for its parent, if the parent waited for it.
    ended -= sum(sum(ticks) for pid, ticks in before.items() if pid not in after)
    return (own + max(0, ended)) / TICKS


def _peaks() -> tuple[float, float]:
    java = python = 0.0
    for pid in _tree():
        found = re.search(r"Name:\s+(\S+).*VmHWM:\s+(\d+)", _read(pid, "status"), re.DOTALL)
        if found and found[1] == "java":
            java += int(found[2]) / 1024
        elif found:
            python += int(found[2]) / 1024
    return java, python


def _tree() -> Iterator[int]:
    """Yield this process and all its descendants."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (fields := _stat(int(folder.name))):
            parents.setdefault(int(fields[1]), []).append(int(folder.name))
    left = [os.getpid()]
    while left:
        pid = left.pop()
        yield pid
        left.extend(parents.get(pid, []))


def _stat(pid: int) -> list[str]:
    """Return the fields after the name, which may contain any character: state, parent, …"""
    return _read(pid, "stat").rpartition(")")[2].split()


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:  # it ended
        return ""


def _write(pid: int, name: str, text: str) -> None:
    try:
        Path(f"/proc/{pid}/{name}").write_text(text)
    except OSError:  # it ended, or may not be reset: then the peak is that of its lifetime
        return
