"""Results as nested lines, to be printed as indented text or drawn as a tree."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Outline:
    """A line, and the lines below it."""

    text: str
    parts: tuple["Outline", ...] = ()

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, indent: str = "") -> Iterator[str]:
        """Yield the lines as text, each level indented by two spaces."""
        yield indent + self.text
        for part in self.parts:
            yield from part.lines(indent + "  ")
