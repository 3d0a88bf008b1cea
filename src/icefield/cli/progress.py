"""Report the progress of a long step: a live line if stderr is a terminal, plain lines otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from icefield.deferred import deferred_imports

with deferred_imports(__name__):
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
        lines = _Lines(unit)
        yield lines
        lines.finish()
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
    """A line for each note when it is done, with the amount that was counted under it."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._amount = 0
        self._note: str | None = None

    def advance(self, amount: int, note: str) -> None:
        if note != self._note:
            self.finish()
            self._note = note
        self._amount += amount

    def finish(self) -> None:
        if self._note is not None:
            unit = self._unit.removesuffix("s") if self._amount == 1 else self._unit
            talk(f"  {self._note} ({self._amount:,} {unit})")
        self._note, self._amount = None, 0
