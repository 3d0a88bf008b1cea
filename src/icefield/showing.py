"""How values show themselves in a shell and in a notebook, and rows in messages.

Names and values may come from others, so HTML is escaped.
"""

import datetime
import html
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from textwrap import shorten
from uuid import UUID

LONGEST_ROW = 200  # characters
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


class ShownAsText:
    """A value whose `str` is for people: a shell shows it as its `repr`, and a notebook as a block of text."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def text_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as lines of text, each column as wide as its widest cell."""
    lines = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.rjust, line, widths)) for line in lines)


def html_table(title: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a titled table as HTML."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    shown = f"<b>{html.escape(title)}</b>" if title else ""
    return f"{shown}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def row_text(row: Mapping[str, object]) -> str:
    """Show a row in a message, a long one cut."""
    return shorten(", ".join(f"{name} = {_value_text(value)}" for name, value in row.items()), LONGEST_ROW)


def _value_text(value: object) -> str:
    """Show times and decimals without the names of their Python types."""
    if value is None:
        return "NULL"
    is_literal = isinstance(value, datetime.date | datetime.time | Decimal | UUID)
    return str(value) if is_literal else repr(value)


def format_bytes(count: float) -> str:
    """Write a size with a unit."""
    for unit in UNITS[:-1]:
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} {UNITS[-1]}"
