"""The text of a query for Spark: names of relations replaced in place, and positions mapped back to the author's text.

    SELECT shop.orders.id FROM shop.orders VERSION AS OF 7 WHERE id > 1
      ->  SELECT `orders`.id FROM icefield_… AS `orders` WHERE id > 1

Everything else stays as it was written, comments included. A relation without an alias gets one: the last part of its
name, so that columns still find it; or its whole name, if another relation of the same SELECT has that last part too.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from icefield.engine.queries.sql import FRAME_NAME_LENGTH
from icefield.expr.query.tokens import quoted
from icefield.sql.query.shape import Mention, Qualified, Scope, Shape
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


@dataclass(frozen=True)
class Replaced:
    """A mention that is replaced: by which name, and the full name by which columns may refer to it."""

    mention: Mention
    name: str
    full: tuple[str, ...]


def edits_of(shape: Shape, replaced: Sequence[Replaced]) -> Iterator[Edit]:
    """Yield the edits that replace relations by new names, with aliases by which columns still find them."""
    known = {id(each.mention): each for each in replaced}
    labels = _labels(shape, known)
    for each in replaced:
        mention = each.mention
        yield Edit(mention.place.start, mention.place.end, each.name)
        if mention.alias is None and mention.after is not None and id(mention) in labels:
            yield Edit(mention.after, mention.after, f" AS {quoted(labels[id(mention)])}")
    for name in shape.qualified:
        found = _owner_of(name, known)
        if found is None:
            continue
        mention, width = found
        label, first, last = labels[id(mention)], name.tokens[0], name.tokens[width - 1]
        if width > 1 or label.lower() != first.name.lower():
            yield Edit(first.start, last.end, quoted(label))


def _labels(shape: Shape, known: Mapping[int, Replaced]) -> dict[int, str]:
    """Return the aliases of relations that have none."""
    labels: dict[int, str] = {}
    for each in known.values():
        mention = each.mention
        if mention.alias is None and mention.after is not None and each.full:
            labels[id(mention)] = each.full[-1] if _is_single(each, known) else ".".join(each.full)
    for name in shape.qualified:
        found = _owner_of(name, known)
        # A closer relation may have the alias by which this name would find its table.
        if found is not None and found[1] > 1 and _is_taken(labels[id(found[0])].lower(), name.scope, found[0].scope):
            labels[id(found[0])] = ".".join(known[id(found[0])].full)
    return labels


def _is_single(each: Replaced, known: Mapping[int, Replaced]) -> bool:
    """Return whether no other relation of the same SELECT goes by the last part of a name."""
    last, scope = each.full[-1].lower(), each.mention.scope
    others = (known[id(other)] for other in scope.mentions if id(other) in known and other.alias is None)
    rivals = {other.full for other in others if other.full and other.full[-1].lower() == last}
    return len(rivals) < 2 and last not in scope.aliases


def _is_taken(label: str, inner: Scope, owner: Scope) -> bool:
    scope: Scope | None = inner
    while scope is not None and scope is not owner:
        names = {mention.parts[-1].lower() for mention in scope.mentions if mention.alias is None and mention.parts}
        if label in names | scope.aliases:
            return True
        scope = scope.outer
    return False


def _owner_of(name: Qualified, known: Mapping[int, Replaced]) -> tuple[Mention, int] | None:
    """Return the relation without an alias that a name begins with, and how many of its parts belong to it."""
    if name.is_call:
        return None
    parts = tuple(token.name.lower() for token in name.tokens)
    longest = len(parts) if name.is_star or name.is_hint else len(parts) - 1
    scope: Scope | None = name.scope
    while scope is not None:
        if parts[0] in scope.aliases:
            return None
        for width in range(longest, 0, -1):
            found = [each for each in scope.mentions if _is_named(each, parts[:width], known)]
            distinct = {known[id(each)].full for each in found}
            if len(distinct) == 1:
                return found[0], width
            if distinct:
                return None
        scope = scope.outer
    return None


def _is_named(mention: Mention, parts: tuple[str, ...], known: Mapping[int, Replaced]) -> bool:
    each = known.get(id(mention))
    if each is None or mention.alias is not None or mention.after is None or not each.full:
        return False
    full = tuple(part.lower() for part in each.full)
    return full[-len(parts) :] == parts
