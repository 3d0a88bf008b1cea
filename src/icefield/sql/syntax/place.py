"""A place in the text of a statement, and errors that point at it.

no table shop.nothing in the lake
  line 1: SELECT * FROM shop.nothing
                        ^^^^^^^^^^^^
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from icefield.errors import IcefieldError

_MOST_CHARACTERS = 120


@dataclass(frozen=True)
class Place:
    """A part of a text, from `start` up to, not including, `end`."""

    source: str
    start: int
    end: int

    @property
    def text(self) -> str:
        """The part itself."""
        return self.source[self.start : self.end]

    @property
    def line(self) -> int:
        """The number of its first line, from 1."""
        return self.source.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """Where it begins in its first line, from 0."""
        return self.start - (self.source.rfind("\n", 0, self.start) + 1)

    @property
    def excerpt(self) -> str:
        """The first line, and below it a caret under each character of the part."""
        begin = self.start - self.column
        end = self.source.find("\n", begin)
        line = self.source[begin : len(self.source) if end < 0 else end].rstrip("\r")
        column, width = self.column, max(1, min(self.end, begin + len(line)) - self.start)
        cut = max(0, min(column - _MOST_CHARACTERS // 2, len(line) - _MOST_CHARACTERS))
        # A tab, or a character that ends a line on a terminal, would move the carets.
        shown = "".join(each if each.isprintable() else " " for each in line[cut : cut + _MOST_CHARACTERS])
        label = f"  line {self.line}: "
        width = max(1, min(width, len(shown) - (column - cut)))
        return f"{label}{shown}\n{' ' * (len(label) + column - cut)}{'^' * width}"

    def error(self, message: str, *, hint: str | None = None, kind: type[IcefieldError]) -> IcefieldError:
        """Return an error that points here."""
        return point_at(kind(message, hint=hint), self)


def point_at(error: IcefieldError, place: Place) -> IcefieldError:
    """Let an error point at a place, unless it points at one already."""
    if error.excerpt is None:
        error.excerpt = place.excerpt
        error.position = (place.line, place.column)
    return error


@contextmanager
def pointing_at(place: Place) -> Iterator[None]:
    """Let errors that are raised in a block point at a place."""
    try:
        yield
    except IcefieldError as error:
        point_at(error, place)
        raise


@contextmanager
def as_written(source: str) -> Iterator[None]:
    """Let errors of a text in which parts are blanks, or that is cut off, show the text of the author."""
    try:
        yield
    except IcefieldError as error:
        if error.position is not None and error.excerpt is not None:
            line, column = error.position
            start = sum(len(each) for each in source.split("\n")[: line - 1]) + line - 1 + column
            error.excerpt = Place(source, start, start + error.excerpt.count("^")).excerpt
        raise
