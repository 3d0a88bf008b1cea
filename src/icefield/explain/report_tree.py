"""Findings as lines below lines, for whoever draws them: indented text, or a tree."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Outline:
    """A line, and what belongs below it."""

    text: str
    parts: tuple["Outline", ...] = ()

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, indent: str = "") -> Iterator[str]:
        """Yield the lines as text, each level two blanks further in."""
        yield indent + self.text
        for part in self.parts:
            yield from part.lines(indent + "  ")
