"""WITH before a change: WITH s AS (SELECT ...) INSERT INTO t SELECT * FROM s.

The common table expressions belong to the queries of INSERT, and to the query that is the source of MERGE. Such a query
is read as if they stood right before it: the words between are blanks, so that every position stays what it is. In
subqueries of DELETE, UPDATE and MERGE their names are those of queries too, each with the expressions before it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from icefield.errors import Unsupported
from icefield.expr.query.tokens import quoted
from icefield.sql.query.statements import QUERIES
from icefield.sql.rows.delete import Delete, parse_delete
from icefield.sql.rows.insert import Insert, parse_insert
from icefield.sql.rows.merge import Merge, MergeSource, parse_merge
from icefield.sql.rows.multi_insert import MultiInsert, begins_multi_insert, joined, parse_from
from icefield.sql.rows.update import Update, parse_update
from icefield.sql.session import Rows, Run, Statement
from icefield.sql.syntax.cursor import Cursor
from icefield.sql.syntax.place import Place, as_written

Change = Insert | MultiInsert | Merge | Delete | Update

_CHANGES: Mapping[str, Callable[[Cursor], Change]] = {
    "insert": parse_insert,
    "merge": parse_merge,
    "delete": parse_delete,
    "update": parse_update,
}


@dataclass(frozen=True)
class WithCommonTables:
    """A change with common table expressions before the statement, by name."""

    change: Change
    common: Mapping[str, Place]

    def run(self, run: Run) -> Rows:
        """Run the change."""
        with as_written(run.text):
            return self.change.run(replace(run, common=self.common))

    def explain(self, run: Run, mode: str) -> str:
        """Explain the change."""
        with as_written(run.text):
            return self.change.explain(replace(run, common=self.common), mode)


def parse_with(cursor: Cursor) -> Statement:
    """Parse WITH: a change with common table expressions, or else a query."""
    ahead, names = _find_common_tables(cursor)
    word = cursor.peek(ahead)
    is_multiple = word == "from" and begins_multi_insert(cursor, ahead)
    if word not in _CHANGES and not is_multiple:
        return QUERIES["with"](cursor)
    start = cursor.position
    for _ in range(ahead):
        cursor.take()
    prefix = cursor.since(start)
    change = parse_from(cursor) if is_multiple else _CHANGES[word](cursor)
    assert isinstance(change, Change)
    common = {name.lower(): _selected(prefix, name) for name in names}
    if isinstance(change, Merge | Delete | Update):
        target = change.target.name
        if len(target.parts) == 1 and target.parts[0].lower() in common:
            raise target.place.error(
                f"{target} is a common table expression here, which cannot be changed",
                hint="Write the whole name of the table, or give the expression another one",
                kind=Unsupported,
            )
    return WithCommonTables(_with_prefix(change, prefix, common), common)


def _with_prefix(change: Change, prefix: Place, common: Mapping[str, Place]) -> Change:
    match change:
        case Insert():
            return replace(change, query=joined(prefix, change.query), own=change.query)
        case MultiInsert():
            return change.after(prefix)
        case Merge():
            return replace(change, source=_source(change.source, prefix, common))
        case _:
            return change


def _source(source: MergeSource, prefix: Place, common: Mapping[str, Place]) -> MergeSource:
    """Return the source of a MERGE, which may be one of the common table expressions itself."""
    if source.query is not None:
        return replace(source, query=joined(prefix, source.query))
    name = source.name
    if name is None or len(name.parts) > 1 or name.parts[0].lower() not in common:
        return source
    return replace(source, name=None, query=common[name.parts[0].lower()], alias=source.alias or name.parts[0])


def _selected(prefix: Place, name: str) -> Place:
    """Return all rows of a common table expression as a query."""
    text = f"{prefix.source[: prefix.end]} SELECT * FROM {quoted(name)}"  # noqa: S608 - it is a query that is run
    return Place(text, prefix.start, len(text))


def _find_common_tables(cursor: Cursor) -> tuple[int, list[str]]:
    """Return how many tokens WITH and its expressions are, and the names of these."""
    ahead = 1 + (cursor.peek(1) == "recursive" and cursor.peek(2) not in ("as", "("))
    names: list[str] = []
    while True:
        token = cursor.token(ahead)
        if token is not None and token.is_name:
            names.append(token.name)
        ahead += 1
        while cursor.peek(ahead) in ("(", "as", "max"):  # MAX RECURSION LEVEL 10
            if cursor.peek(ahead) == "(":
                ahead = _end_of_group(cursor, ahead)
            else:
                ahead += 4 if cursor.peek(ahead) == "max" else 1
        if cursor.peek(ahead) != ",":
            return ahead, names
        ahead += 1


def _end_of_group(cursor: Cursor, ahead: int) -> int:
    depth = 0
    while (token := cursor.token(ahead)) is not None:
        depth += token.depth
        ahead += 1
        if depth == 0:
            break
    return ahead
