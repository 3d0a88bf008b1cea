"""Expressions of a statement as text for the row-level engine, and errors that point into them.

    DELETE FROM shop.orders AS o WHERE shop.orders.id = :x      the expression: `o`.id = 7
    DELETE FROM shop.orders WHERE orders.day > ?                day > DATE '2026-01-01'

The text stays the author's, except for markers, which become literals, and for the names of the changed table and of
the source. A column that is qualified with the full name of a table gets its label. Where only the changed table is in
scope, the label is left out, because filters on plain columns are those that prune files. Raises InvalidInput.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from itertools import pairwise

from icefield.errors import IcefieldError, NeedsSpark
from icefield.expr.query.lexer import Lexeme, LexemeKind, lex
from icefield.expr.query.tokens import quoted
from icefield.sql.syntax.cursor import Cursor
from icefield.sql.syntax.place import Place, point_at
from icefield.sql.syntax.strings import literal_of, string_value
from icefield.sql.text.rewrite import Edit, rewrite

# Names in messages: 'amout', `o`.`amout`, `amout`.
_QUOTED = re.compile(r"'([^'\n]+)'|((?:`(?:[^`]|``)+`\.)*`(?:[^`]|``)+`)|\"(\w+)\(")
# Errors of subqueries, which Spark raises without saying of which.
_OF_SUBQUERY = "a subquery that is used as a value"
# Errors of MERGE that show rows, whose columns may be anywhere; the first place is that of ON.
_TWO_MATCH = "two source rows match"
# Errors of values that do not fit a column.
_ASSIGNS = re.compile(r"\b(?:assign|hold|null|range)\b")
# After these a name is that of a relation, not of a column.
_BEFORE_RELATIONS = frozenset({"from", "join", "table", "using"})
_BEGIN_QUERIES = frozenset({"select", "with", "from", "table", "values"})
_ZONED_LITERALS = frozenset({"timestamp", "timestamp_ltz"})
_LOCAL_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?")
_OPERANDS = frozenset({")", "]"})


@dataclass(frozen=True)
class Label:
    """What expressions call a table, and the other names that mean it, longest first."""

    name: str
    qualifiers: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Wording:
    """How expressions are written for the engine.

    bare: the columns that need no label, in lower case. zone: that of times without one; None if only Spark knows it.
    """

    labels: tuple[Label, ...]
    bare: frozenset[str] = frozenset()
    zone: tzinfo | None = UTC

    def text(self, cursor: Cursor, place: Place, relations: Sequence[Edit] = ()) -> str:
        """Return an expression for the engine.

        cursor: the reader of the statement, for its parameters. relations: the edits of the relations of subqueries.
        """
        own = [edit for edit in (*self._names(place), *self._times(place)) if not _overlaps(edit, relations)]
        return rewrite(place, [*_markers(cursor, place), *own, *relations]).text

    def _names(self, place: Place) -> Iterator[Edit]:
        tokens = tokens_of(place)
        depths = _subquery_depths(tokens)
        for first, run in names_in(tokens):
            if first and tokens[first - 1].word in _BEFORE_RELATIONS:
                continue
            for label in self.labels:
                width = _qualifier_width(run, label)
                if width == 0:
                    continue
                if self._needs_no_label(run[width:], label, tokens) and not depths[first]:
                    yield Edit(run[0].start, run[width].start, "")
                elif width > 1 or run[0].name.lower() != label.name.lower():
                    yield Edit(run[0].start, run[width - 1].end, quoted(label.name))
                break

    def _times(self, place: Place) -> Iterator[Edit]:
        """Write literals of times in UTC, which mean the same to every engine."""
        tokens = tokens_of(place)
        for word, text in pairwise(tokens):
            if self.zone is not None and word.word in _ZONED_LITERALS and text.kind is LexemeKind.STRING:
                moment = _moment(string_value(text), self.zone)
                if moment is not None:
                    yield Edit(word.start, text.end, literal_of(moment))

    def _needs_no_label(self, rest: Sequence[Lexeme], label: Label, tokens: Sequence[Lexeme]) -> bool:
        """Return whether a column is found without the label; one of a lambda function may have its name."""
        if rest[0].name.lower() not in self.bare:
            return False
        has_lambda = any(token.text == "->" for token in tokens)
        alone = (run for _, run in names_in(tokens) if len(run) == 1)
        return not has_lambda or all(run[0].name.lower() != label.name.lower() for run in alone)


def tokens_of(place: Place) -> list[Lexeme]:
    """Return the tokens of a place, with their positions in the whole text."""
    return [token for token in lex(place.source[: place.end]) if token.start >= place.start]


def names_in(tokens: Sequence[Lexeme]) -> Iterator[tuple[int, list[Lexeme]]]:
    """Yield the names in an expression, words of SQL included: the index of the first token, and the parts."""
    at = 0
    while at < len(tokens):
        if not tokens[at].is_name:
            at += 1
            continue
        first, run = at, [tokens[at]]
        while at + 2 < len(tokens) and tokens[at + 1].text == "." and tokens[at + 2].is_name:
            at += 2
            run.append(tokens[at])
        yield first, run
        at += 1


@contextmanager
def pointing_into(
    *places: Place, values: Mapping[str, Place] | None = None, written: Mapping[str, Place] | None = None
) -> Iterator[None]:
    """Let errors that are raised in a block point at the name in these places that they are about, else at the first.

    A place of its own in an error is kept. values: what is assigned to a column, for errors that name only the column.
    written: places by the text of expressions, for errors that say which expression they are about.
    """
    try:
        yield
    except IcefieldError as error:
        if places:
            point_at(error, _find_place(error, places, values or {}, written or {}))
        raise


def _find_place(
    error: IcefieldError, places: Sequence[Place], values: Mapping[str, Place], written: Mapping[str, Place]
) -> Place:
    message = error.message
    if message.startswith(_TWO_MATCH):
        return places[0]
    place = written.get(error.expression or "")
    if place is None and isinstance(error, NeedsSpark):
        place = _find_calling(error.part, places)
    if place is not None:
        return _find_named(message, (place,), {}) or place
    if _OF_SUBQUERY in message:
        return next(filter(None, map(find_subquery, places)), places[0])
    return _find_named(message, places, values) or places[0]


def _find_named(message: str, places: Sequence[Place], values: Mapping[str, Place]) -> Place | None:
    """Return the first name of a message that occurs in one of the places."""
    for found in _QUOTED.finditer(message):
        wanted = _parts(found)
        if not wanted:
            continue
        value = values.get(".".join(wanted))
        if value is not None and _ASSIGNS.search(message):
            return value
        for matches in (list.__eq__, _ends_with):
            # The first place is that of errors without a name; of a MERGE it is ON, whose names are in clauses, too.
            for place in (*places[1:], places[0]):
                for _, run in names_in(tokens_of(place)):
                    if matches([token.name.lower() for token in run], wanted):
                        return Place(place.source, run[0].start, run[-1].end)
    return None


def _find_calling(part: str, places: Sequence[Place]) -> Place | None:
    """Return the first place with a call of a function that is named in a text."""
    words = frozenset(re.findall(r"\w+", part.lower()))
    for place in places:
        if any(token.word in words and after.text == "(" for token, after in pairwise(tokens_of(place))):
            return place
    return None


def _parts(found: re.Match[str]) -> list[str]:
    """Return the parts of a name in quotes; none if it is more than a name."""
    tokens = list(lex(found[1] or found[2] or found[3]))
    is_name = all(token.is_name if at % 2 == 0 else token.text == "." for at, token in enumerate(tokens))
    return [token.name.lower() for token in tokens[::2]] if is_name else []


def _ends_with(run: list[str], wanted: list[str]) -> bool:
    """Return whether a name is the wanted one; either may have a qualifier that the other lacks."""
    shared = min(len(run), len(wanted))
    return shared > 0 and run[-shared:] == wanted[-shared:]


def _moment(text: str, zone: tzinfo) -> datetime | None:
    """Read a time without a zone; None for any other form, which is left as it is."""
    if not _LOCAL_TIME.fullmatch(text):
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=zone)
    except ValueError:
        return None


def _overlaps(edit: Edit, others: Sequence[Edit]) -> bool:
    return any(edit.start < other.end and other.start < edit.end for other in others)


def _markers(cursor: Cursor, place: Place) -> Iterator[Edit]:
    """Find the markers of parameters; `a:b` is a path into a variant."""
    inside = cursor.inside(place)
    before: Lexeme | None = None
    while (token := inside.token()) is not None:
        follows = before is not None and before.end == token.start and (before.is_name or before.text in _OPERANDS)
        if inside.is_at_parameter and not (token.text == ":" and follows):
            value = inside.parameter()
            here = inside.since(token.start)
            with pointing_into(here):
                yield Edit(here.start, here.end, literal_of(value))
            before = None
        else:
            before = inside.take()


def find_subquery(place: Place) -> Place | None:
    """Return the place of the first subquery of an expression."""
    tokens = tokens_of(place)
    inside = [token for token, depth in zip(tokens, _subquery_depths(tokens), strict=True) if depth]
    return Place(place.source, inside[0].start, inside[-1].end) if inside else None


def _subquery_depths(tokens: Sequence[Lexeme]) -> list[int]:
    """Return how many subqueries each token is in."""
    opened: list[bool] = []
    depths = []
    for at, token in enumerate(tokens):
        if token.depth > 0:
            after = tokens[at + 1].word if at + 1 < len(tokens) else ""
            opened.append(token.text == "(" and after in _BEGIN_QUERIES)
        elif token.depth < 0 and opened:
            opened.pop()
        depths.append(sum(opened))
    return depths


def _qualifier_width(run: Sequence[Lexeme], label: Label) -> int:
    """Return how many parts of a name refer to a table; 0 if it is not a column of that table."""
    parts = tuple(token.name.lower() for token in run)
    for qualifier in (*label.qualifiers, (label.name,)):
        width = len(qualifier)
        if len(parts) > width and parts[:width] == tuple(part.lower() for part in qualifier):
            return width
    return 0
