"""What the chapters of the demo share: a lake, processes that work on it at the same time, claims that are checked."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

from icefield.cli.demo.actors import actor
from icefield.cli.demo.processes import DemoProcess, Event, perform
from icefield.cli.output import Column, Narrator, counted, grid
from icefield.cli.progress import show_progress
from icefield.errors import IcefieldError
from icefield.lake import Lake

Events = dict[str, list[Event]]


@dataclass(frozen=True)
class Stage:
    """Where a chapter plays."""

    tell: Narrator
    lake: Lake
    directory: Path
    rows: int

    def actor(self, name: str, role: str, **given: object) -> DemoProcess:
        """Start a process on the lake, which waits."""
        return actor(name, role, str(self.directory), **given)

    def run(self, title: str, workers: Sequence[DemoProcess], watchers: Sequence[DemoProcess]) -> Events:
        """Let all processes work at the same time until the workers have ended; return what each reported."""
        events: Events = {process.name: [] for process in (*workers, *watchers)}
        working = {process.name for process in workers}
        with ExitStack() as stack:
            for process in (*workers, *watchers):
                stack.enter_context(process)
            with show_progress(title, unit="commits") as steps:
                for name, event in perform(workers, watchers):
                    events[name].append(event)
                    if name in working:
                        steps.advance(1, "of all writers together")
        return events

    def show_reads(self, reads: Sequence[Event], what: str) -> dict[str, Any]:
        """Tell what a reader saw, and fail if the total was ever another one."""
        versions, totals = {read["snapshot"] for read in reads}, {read["total"] for read in reads}
        require(len(totals) == 1, f"a reader saw several totals of {what}: {', '.join(sorted(totals))}")
        self.tell.say(
            f"A reader read the table {counted(len(reads), 'time')} at the same time, in "
            f"{counted(len(versions), 'version')}; the total of {what} was always {Decimal(totals.pop()):,}."
        )
        return {"reads": len(reads), "versions": len(versions)}

    def table(self, titles: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Show a table; numbers are in all columns but the first."""
        self.tell.show(grid([Column(titles[0]), *(Column(title, "right") for title in titles[1:])], rows))


def require(holds: bool, otherwise: str) -> None:  # noqa: FBT001 - a condition, as in assert
    """Fail if a claim does not hold."""
    if not holds:
        raise IcefieldError(f"the demo found a fault: {otherwise}", hint="Please report it, with the lake that it left")


def cut(start: int, stop: int, pieces: int) -> list[tuple[int, int]]:
    """Cut a range into pieces of about one size."""
    edges = [start + (stop - start) * at // pieces for at in range(pieces + 1)]
    return list(pairwise(edges))


def total(events: Sequence[Event], key: str) -> int:
    """Add up one number of some reports."""
    return sum(event[key] for event in events)
