"""WITH before a change: WITH s AS (SELECT ...) INSERT INTO t SELECT * FROM s.

The common table expressions belong to the query of INSERT, or to the query that is the source of MERGE. That query is
read as if they stood right before it: the words between are blanks, so that every position stays what it is.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from icefield.errors import IcefieldError, Unsupported
from icefield.sql.query.statements import QUERIES
from icefield.sql.rows.insert import Insert, parse_insert
from icefield.sql.rows.merge import Merge, parse_merge
from icefield.sql.session import Rows, Run, Statement
from icefield.sql.syntax.cursor import Cursor
from icefield.sql.syntax.place import Place

_CHANGES: Mapping[str, Callable[[Cursor], Insert | Merge]] = {"insert": parse_insert, "merge": parse_merge}
_OTHERS = ("delete", "update")


@dataclass(frozen=True)
class WithCommonTables:
    """A change whose query has common table expressions before the statement. source: the text as written."""

    change: Insert | Merge
    source: str

    def run(self, run: Run) -> Rows:
        """Run the change."""
        with self._as_written():
            return self.change.run(run)

    def explain(self, run: Run, mode: str) -> str:
        """Explain the change."""
        with self._as_written():
            return self.change.explain(run, mode)

    @contextmanager
    def _as_written(self) -> Iterator[None]:
        """Let errors show the text of the author, not the one with blanks."""
        try:
            yield
        except IcefieldError as error:
            if error.position is not None and error.excerpt is not None:
                line, column = error.position
                start = sum(len(each) for each in self.source.splitlines(keepends=True)[: line - 1]) + column
                error.excerpt = Place(self.source, start, start + error.excerpt.count("^")).excerpt
            raise


def parse_with(cursor: Cursor) -> Statement:
    """Parse WITH: a change with common table expressions, or else a query."""
    ahead = _end_of_common_tables(cursor)
    word = cursor.peek(ahead)
    if word in _OTHERS:
        token = cursor.token(ahead)
        assert token is not None
        raise cursor.error(
            f"WITH before {word.upper()} is not supported",
            Place(cursor.source, token.start, token.end),
            hint="Put it into the subquery: WHERE ... IN (WITH ... SELECT ...)",
            kind=Unsupported,
        )
    if word not in _CHANGES:
        return QUERIES["with"](cursor)
    start = cursor.position
    for _ in range(ahead):
        cursor.take()
    prefix = cursor.since(start)
    return WithCommonTables(_with_prefix(_CHANGES[word](cursor), prefix), cursor.source)


def _with_prefix(change: Insert | Merge, prefix: Place) -> Insert | Merge:
    if isinstance(change, Insert):
        return replace(change, query=_joined(prefix, change.query))
    if change.source.query is None:
        raise change.source.place.error(
            "after WITH the source of MERGE must be a query",
            hint="Write it as USING (SELECT * FROM ...)",
            kind=Unsupported,
        )
    return replace(change, source=replace(change.source, query=_joined(prefix, change.source.query)))


def _joined(prefix: Place, query: Place) -> Place:
    """Return a query with what is between it and the prefix as blanks."""
    between = re.sub(r"[^\n]", " ", query.source[prefix.end : query.start])
    return Place(query.source[: prefix.end] + between + query.source[query.start :], prefix.start, query.end)


def _end_of_common_tables(cursor: Cursor) -> int:
    """Return how many tokens WITH and its expressions are."""
    ahead = 1 + (cursor.peek(1) == "recursive" and cursor.peek(2) not in ("as", "("))
    while True:
        ahead += 1
        while cursor.peek(ahead) in ("(", "as"):
            ahead = _end_of_group(cursor, ahead) if cursor.peek(ahead) == "(" else ahead + 1
        if cursor.peek(ahead) != ",":
            return ahead
        ahead += 1


def _end_of_group(cursor: Cursor, ahead: int) -> int:
    depth = 0
    while (token := cursor.token(ahead)) is not None:
        depth += token.depth
        ahead += 1
        if depth == 0:
            break
    return ahead
