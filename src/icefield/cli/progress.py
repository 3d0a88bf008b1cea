"""Report the progress of a long step: a live line if stderr is a terminal, plain lines otherwise."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from icefield.cli.output import stderr_console, talk


class Steps(Protocol):
    """Receives progress."""

    def advance(self, amount: int, note: str) -> None:
        """Count more items as done; the note names them."""
        ...


@contextmanager
def show_progress(title: str, total: int | None = None, unit: str = "rows") -> Iterator[Steps]:
    """Show how much of a total, or of an unknown amount, is done."""
    console = stderr_console()
    if not console.is_terminal:
        talk(f"{title} …")
        yield _Lines(unit)
        return
    amount = "{task.completed:,.0f}" + ("" if total is None else " of {task.total:,.0f}")
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        TextColumn(f"{amount} {unit}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", markup=False, style="dim"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Live(progress, title, total)


@contextmanager
def show_wait(title: str) -> Iterator[None]:
    """Show the elapsed time of a step that has no count."""
    console = stderr_console()
    if not console.is_terminal:
        talk(f"{title} …")
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        progress.add_task(title, total=None)
        yield


class _Live:
    def __init__(self, progress: Progress, title: str, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task(title, total=total, note="")

    def advance(self, amount: int, note: str) -> None:
        self._progress.update(self._task, advance=amount, note=note)


class _Lines:
    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._done = 0
        self._last = ""

    def advance(self, amount: int, note: str) -> None:
        self._done += amount
        if note != self._last:
            talk(f"  {note} ({self._done:,} {self._unit})")
            self._last = note
