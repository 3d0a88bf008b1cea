"""Print results: text or JSON to stdout, messages to stderr.

Text has colour codes only on a terminal, and never if NO_COLOR is set. Control characters are escaped, because names
and values may come from an untrusted source.
"""

from __future__ import annotations

import datetime
import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from icefield.cli.fitting import cut_text, fitted_widths, row_blocks
from icefield.deferred import deferred_imports
from icefield.types.calendar import EPOCH

with deferred_imports(__name__):
    from rich.console import Console, RenderableType
    from rich.padding import Padding
    from rich.table import Table as Grid
    from rich.text import Text

WIDTH = 100_000  # wide enough for every line; a narrower terminal wraps


@dataclass(frozen=True)
class Column:
    """A column of a printed table."""

    title: str
    align: Literal["left", "right"] = "left"


def print_json(value: object) -> None:
    """Write one JSON document to stdout, with control characters escaped."""
    sys.stdout.write(json_text(value, indent=2) + "\n")


def json_text(value: object, indent: int | None = None) -> str:
    """Encode a value as JSON, with control characters escaped."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def print_text(text: str) -> None:
    """Write lines to stdout."""
    sys.stdout.write(safe(text, keep_lines=True) + "\n")


def print_names(what: str, names: Sequence[str], lake: str, *, as_json: bool) -> None:
    """Write the names of what a lake has, one on each line, such as its tables."""
    if as_json:
        print_json({"lake": lake, what: names})
        return
    for name in names:
        print_text(name)
    if not names:
        talk(f"There are no {what}.")


def print_grid(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
    """Write a table to stdout: a header, then one line per row, with two spaces between columns.

    On a terminal that is too narrow, columns are cut, but not cells that are set to the right; or each row is a block
    of lines.
    """
    titles = [safe(column.title) for column in columns]
    cells = [[cell_text(value) for value in row] for row in rows]
    right = [at for at, column in enumerate(columns) if column.align == "right"]
    widths = fitted_widths(titles, cells, terminal_width(), right)
    if widths is None:
        print_text(row_blocks(titles, cells))
        return
    cut = [replace(column, title=cut_text(column.title, most)) for column, most in zip(columns, widths, strict=True)]
    render(grid(cut, [[cut_text(cell, most) for cell, most in zip(row, widths, strict=True)] for row in cells]))


def terminal_width() -> int | None:
    """Return how many characters a line of stdout has; None if it is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def print_section(title: str, rows: Iterable[Sequence[str]]) -> None:
    """Write a title and indented rows below it to stdout, or nothing if there is no row."""
    cells = [["", *row] for row in rows]
    if not cells:
        return
    if title:
        print_text(f"\n{title}")
    render(grid([Column("")] * len(cells[0]), cells, header=False), plain=True)


def grid(columns: Sequence[Column], rows: Iterable[Sequence[object]], *, header: bool = True) -> Grid:
    """Lay out a table."""
    table = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_header=header)
    for column in columns:
        table.add_column(Text(safe(column.title)), justify=column.align, no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell_text(value)) for value in row))
    return table


def render(what: RenderableType, *, to_stderr: bool = False, plain: bool = False) -> None:
    """Print a rich renderable; lines are not wrapped or cut, and not padded when piped or plain, without a style."""
    stream = sys.stderr if to_stderr else sys.stdout
    console = _console(stderr=to_stderr, width=WIDTH)
    if console.is_terminal and not plain:
        console.print(what)
        return
    with console.capture() as captured:
        console.print(what)
    stream.writelines(line.rstrip() + "\n" for line in captured.get().splitlines())


class Narrator:
    """Narrates the demo in chapters, on stdout, or on stderr if stdout is for data."""

    def __init__(self, *, to_stderr: bool = False) -> None:
        self._to_stderr = to_stderr
        self._chapter = 0

    def chapter(self, title: str) -> None:
        """Start the next chapter."""
        self._chapter += 1
        self._write(Text(f"\n{self._chapter}. {title}", style="bold"))

    def say(self, text: str) -> None:
        """Print a sentence."""
        self._write(Text(safe(text, keep_lines=True)))

    def show(self, what: RenderableType) -> None:
        """Print a table, a tree or a text verbatim, set apart from the narration."""
        self._write(Padding(what, (0, 0, 0, 3), expand=False))

    def _write(self, what: RenderableType) -> None:
        render(what, to_stderr=self._to_stderr)


def talk(text: str) -> None:
    """Print a message for the user to stderr."""
    stderr_console().print(Text(safe(text, keep_lines=True)), soft_wrap=True)


def print_error(message: str, hint: str | None = None, excerpt: str | None = None) -> None:
    """Print an error, the part of a statement that it points at, and its hint to stderr."""
    console = stderr_console()
    console.print(Text.assemble(("error:", "bold red"), " ", safe(message, keep_lines=True)), soft_wrap=True)
    if excerpt:
        console.print(Text(safe(excerpt, keep_lines=True)), soft_wrap=True)
    if hint:
        console.print(Text.assemble(("hint:", "bold cyan"), " ", safe(hint, keep_lines=True)), soft_wrap=True)


def print_warning(message: str) -> None:
    """Print a warning to stderr."""
    stderr_console().print(
        Text.assemble(("warning:", "bold yellow"), " ", safe(message, keep_lines=True)), soft_wrap=True
    )


def stderr_console() -> Console:
    """Return a console on stderr."""
    return _console(stderr=True)


def cell_text(value: object) -> str:
    """Format a value for people: numbers with digit grouping, null as a dash."""
    if value is None:
        return "-"
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return f"{value:,}"
    return safe(str(value))


def moment(timestamp_ms: int) -> str:
    """Format a time so that --as-of accepts it."""
    try:
        at = EPOCH + datetime.timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms} ms"
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def counted(count: int, noun: str, plural: str | None = None) -> str:
    """Format a number with its noun: 1 file, 2 files."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def short_location(location: str, base: str) -> str:
    """Return a location relative to a directory, if it is inside it."""
    prefix = base.rstrip("/") + "/"
    return location.removeprefix(prefix)


def colour_system() -> Literal["auto"] | None:
    """Return whether text may have colour codes. Under NO_COLOR, rich by itself would still write bold."""
    return None if os.environ.get("NO_COLOR") else "auto"


def kebab(value: object) -> object:
    """Return the same values with `-` for `_` in every key, as all commands print them."""
    if isinstance(value, dict):
        return {str(key).replace("_", "-"): kebab(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [kebab(inner) for inner in value]
    return value


def safe(text: str, *, keep_lines: bool = False) -> str:
    """Escape control characters."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or (keep_lines and c in "\n\t") else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def _console(*, stderr: bool = False, width: int | None = None) -> Console:
    return Console(stderr=stderr, width=width, color_system=colour_system(), highlight=False, markup=False, emoji=False)
