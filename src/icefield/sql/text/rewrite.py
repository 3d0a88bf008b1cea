"""The text of a query for Spark: names of relations replaced in place, and positions mapped back to the author's text.

    SELECT shop.orders.id FROM shop.orders VERSION AS OF 7 WHERE id > 1
      ->  SELECT `orders`.id FROM icefield_… AS `orders` WHERE id > 1

Everything else stays as it was written, comments included. `labels` has the edits.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from icefield.engine.queries.sql import FRAME_NAME_LENGTH
from icefield.sql.syntax.place import Place


@dataclass(frozen=True)
class Edit:
    """A part of the author's text, from `start` up to `end`, and what replaces it."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Rewritten:
    """A text made from a part of another one by edits."""

    origin: Place
    edits: tuple[Edit, ...]

    @property
    def text(self) -> str:
        """The new text."""
        pieces, at = [], self.origin.start
        for edit in self.edits:
            pieces += [self.origin.source[at : edit.start], edit.text]
            at = edit.end
        return "".join([*pieces, self.origin.source[at : self.origin.end]])

    def place(self, start: int, stop: int) -> Place:
        """Return where a part of the new text comes from; of a replaced part, all that it replaced."""
        first = self._original(start)[0]
        last = self._original(max(start, stop - 1))[1] if stop > start else first
        return Place(self.origin.source, first, max(first, last))

    def _original(self, index: int) -> tuple[int, int]:
        """Return the first position of the author's text that a character comes from, and the one after the last."""
        starts, shift = [], -self.origin.start
        for edit in self.edits:
            starts.append(edit.start + shift)
            shift += len(edit.text) - (edit.end - edit.start)
        found = bisect_right(starts, index) - 1
        if found < 0:
            return self._inside(index + self.origin.start)
        edit, past = self.edits[found], index - starts[found]
        if past < len(edit.text):
            return edit.start, max(edit.end, edit.start)
        return self._inside(edit.end + past - len(edit.text))

    def _inside(self, index: int) -> tuple[int, int]:
        at = min(index, self.origin.end)
        return at, min(at + 1, self.origin.end)


def rewrite(origin: Place, edits: Sequence[Edit]) -> Rewritten:
    """Apply edits, which must not overlap, to a part of a text."""
    ordered = tuple(sorted(edits, key=lambda edit: (edit.start, edit.end)))
    assert all(a.end <= b.start for a, b in pairwise(ordered)), "edits overlap"
    return Rewritten(origin, ordered)


def frame_name(scope: str, index: int) -> str:
    """Return the name of a DataFrame in the text for Spark: unique, and of the length that all have."""
    return f"icefield_{scope}_{index}_".ljust(FRAME_NAME_LENGTH, "x")
