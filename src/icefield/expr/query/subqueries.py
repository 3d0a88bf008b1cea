"""Subqueries in an SQL expression: where they are, and which tables they read.

    qty > (SELECT avg(n) FROM shop.returns)  ->  qty > (SELECT avg(n) FROM `t0` AS `returns`)

Unlike the query of a view, the text is the caller's own: it stays as it is, except for the names of tables. Common
table expressions hide tables as they do in Spark.
Raises InvalidInput for a subquery that cannot be parsed, Unsupported for a table at an older version.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from icefield.errors import InvalidInput, Unsupported
from icefield.expr.query.functions import words
from icefield.expr.query.select import Parts, RelationNames, is_versioned, parse_shape, shape_of
from icefield.expr.query.tokens import PlacedToken, Token, find_end, tokenize_with_places
from icefield.expr.query.words import KEYWORDS

# A string, a quoted name, or a comment.
_QUOTED = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL)
_MAYBE = re.compile(r"\(\s*(?:select|with|from|table)\b", re.IGNORECASE)
# After a column that has the name of a keyword: (select > 1), (from IS NULL).
AFTER_COLUMN = words("is in between like ilike rlike regexp and or not div as end then when else")
OPERATORS_AFTER_COLUMN = words(") ] , . = == < > <= >= <> != <=> % / || | & ^ [ : ::")


@dataclass(frozen=True)
class Subquery:
    """A subquery in the text of an expression: its tokens, and its text from `start` up to `end`, in parentheses.

    is_scalar: it is a value, not the operand of IN or EXISTS.
    """

    placed: Sequence[PlacedToken]
    start: int
    end: int
    is_scalar: bool

    @cached_property
    def names(self) -> RelationNames:
        """Its relations."""
        tokens = [each.token for each in self.placed]
        calls = {at for at, token in enumerate(tokens[:-1]) if token.is_name and tokens[at + 1].text == "("}
        calls = {at for at in calls if tokens[at].word not in KEYWORDS}
        tree = parse_shape(shape_of(tokens, calls))
        if tree is None:
            raise InvalidInput("it does not begin with SELECT or WITH", hint="Write it as a SELECT")
        names = RelationNames(tokens, calls, tree)
        for table in names.references:
            if is_versioned(table):
                raise Unsupported(f"cannot read {table.name} at an older version inside a subquery")
        return names


class Subqueries:
    """The outermost subqueries of an expression, in order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found = _find(text)

    def __bool__(self) -> bool:
        return bool(self._found)

    @property
    def are_scalar(self) -> list[bool]:
        """Whether each is a value, not the operand of IN or EXISTS."""
        return [each.is_scalar for each in self._found]

    @property
    def tables(self) -> list[Parts]:
        """The distinct names of tables as written, each as its parts."""
        return list(dict.fromkeys(parts for each in self._found for parts in self._names(each).tables))

    @property
    def queries(self) -> list[str]:
        """The text of each subquery, without its parentheses."""
        return [self._text[each.start : each.end] for each in self._found]

    def rename(self, name: Callable[[Parts], str | None]) -> str:
        """Return the expression with new names for tables; a table without one keeps its name."""
        return self._replaced(
            [
                (each.placed[span.first].start, each.placed[span.last].end, span.text)
                for each in self._found
                for _, span in sorted(self._names(each).spans(name).items())
            ]
        )

    def replace(self, instead: Sequence[str]) -> str:
        """Return the expression with other text inside the parentheses of each subquery."""
        pairs = zip(self._found, instead, strict=True)
        return self._replaced([(each.start, each.end, text) for each, text in pairs])

    def _names(self, subquery: Subquery) -> RelationNames:
        try:
            return subquery.names
        except InvalidInput as error:
            raise InvalidInput(f"cannot read the subquery in {self._text!r}: {error}", hint=error.hint) from error

    def _replaced(self, pieces: Sequence[tuple[int, int, str]]) -> str:
        written, at = [], 0
        for start, end, text in pieces:
            written += [self._text[at:start], text]
            at = end
        return "".join([*written, self._text[at:]])


def has_subquery(expression: object) -> bool:
    """Return whether an expression is SQL text with a subquery."""
    return isinstance(expression, str) and bool(Subqueries(expression))


def without_subqueries(text: str) -> str:
    """Return an expression in which each subquery is the call of a function that does not exist."""
    found = Subqueries(text)
    return found.replace(["icefield_subquery()"] * len(found.queries))


def _find(text: str) -> list[Subquery]:
    if not _MAYBE.search(_QUOTED.sub(" ", text)):
        return []
    try:
        placed = tokenize_with_places(text)
    except InvalidInput as error:
        raise InvalidInput(f"cannot read the subquery in {text!r}: {error}", hint=error.hint) from error
    tokens = [each.token for each in placed]
    found, at = list[Subquery](), 0
    while at < len(tokens):
        if tokens[at].text != "(" or not _begins_query(tokens, at + 1):
            at += 1
            continue
        end = find_end(tokens, at)
        if end == len(tokens):
            raise InvalidInput(f"cannot read the subquery in {text!r}: a parenthesis is not closed")
        is_scalar = not at or tokens[at - 1].word not in ("in", "exists")
        found.append(Subquery(placed[at + 1 : end], placed[at + 1].start, placed[end - 1].end, is_scalar))
        at = end + 1
    return found


def _begins_query(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a query begins here, and not an expression with a column that has the name of a keyword."""
    if at + 1 >= len(tokens):
        return False
    following = tokens[at + 1]
    is_column = following.text in OPERATORS_AFTER_COLUMN or following.word in AFTER_COLUMN
    match tokens[at].word:
        case "select":
            return following.text == ":" or not is_column  # a parameter
        case "with" | "from" | "table":
            return not is_column and (following.is_name or following.text == "(")
        case _:
            return False
