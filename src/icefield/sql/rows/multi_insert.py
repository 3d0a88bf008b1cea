"""Several INSERTs of one FROM clause: FROM shop.orders INSERT INTO a SELECT id INSERT INTO b SELECT id WHERE id > 9.

Each of them is an INSERT whose query begins with the FROM clause. All queries are opened before any row is written, at
one moment, and all tables are committed together: if one cannot be written, none is. Raises Unsupported if the catalog
cannot commit several tables together, before anything is read.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa

from icefield.dml.verbs import OVERWRITE
from icefield.engine.choose import LOCAL
from icefield.errors import NeedsSpark, Unsupported
from icefield.properties.table import SERIALIZABLE, SNAPSHOT
from icefield.sql.query.statements import QUERIES
from icefield.sql.rows.insert import Insert, parse_insert
from icefield.sql.rows.replace import Replaces
from icefield.sql.session import Rows, Run, Statement
from icefield.sql.syntax.cursor import Cursor
from icefield.sql.syntax.place import Place, as_written
from icefield.table.transaction import Transaction

_BEGIN_QUERIES = ("select", "map", "reduce")


@dataclass(frozen=True)
class MultiInsert:
    """INSERTs that read the same FROM clause."""

    place: Place
    inserts: tuple[Insert, ...]

    def run(self, run: Run) -> Rows:
        """Write all rows; return one row of counts for each INSERT, in their order."""
        if run.engine == LOCAL:
            raise self.place.error("a query", kind=NeedsSpark)
        with as_written(run.text), self._transaction(run) as inside:
            opened = [each.open(inside) for each in self.inserts]
            done = [each.write(new) for each, new in zip(self.inserts, opened, strict=True)]
        return Rows(pa.concat_tables([each.table for each in done]))

    def explain(self, run: Run, mode: str) -> str:
        """Explain each INSERT."""
        return "\n\n".join(each.explain(run, mode) for each in self.inserts)

    def after(self, prefix: Place) -> "MultiInsert":
        """Return the statement after common table expressions."""
        inserts = [replace(each, query=joined(prefix, each.query)) for each in self.inserts]
        return replace(self, inserts=tuple(inserts))

    @contextmanager
    def _transaction(self, run: Run) -> Iterator[Run]:
        """Return the statement in a transaction, which is committed at the end of the block.

        Appends do not depend on what was read; if rows are replaced, the isolation of their tables decides.
        """
        if run.session.transaction is not None:
            yield run
            return
        tables = [(each, run.table(each.name, "insert into")) for each in self.inserts]
        if len({table.name for _, table in tables}) > 1 and not run.lake.catalog.swaps_many:
            raise self.place.error(
                "this catalog swaps one pointer at a time, so one statement cannot insert into several tables",
                hint="Write one INSERT for each table, or use a catalog in a database",
                kind=Unsupported,
            )
        assert OVERWRITE.isolation is not None
        replaced = [table for each, table in tables if each.replaces is not Replaces.NONE]
        levels = {OVERWRITE.isolation.read(table.properties) for table in replaced}
        isolation = SERIALIZABLE if SERIALIZABLE in levels else SNAPSHOT
        transaction = Transaction(run.lake.backend, isolation=isolation, checks_sources=False)
        transaction.sessions = run.lake.source.sessions
        with transaction:
            transaction.pin(sorted({table.name for _, table in tables}))
            yield replace(run, session=replace(run.session, transaction=transaction))


def begins_multi_insert(cursor: Cursor, ahead: int = 0) -> bool:
    """Return whether an INSERT follows FROM, outside parentheses."""
    depth = 0
    while (token := cursor.token(ahead)) is not None:
        if depth == 0 and _begins_insert(cursor, ahead):
            return True
        depth += token.depth
        ahead += 1
    return False


def parse_from(cursor: Cursor) -> Statement:
    """Parse FROM: a query, or INSERTs of what follows."""
    if not begins_multi_insert(cursor):
        return QUERIES["from"](cursor)
    source = _read_until_insert(cursor)
    inserts: list[Insert] = []
    while not cursor.is_at_end:
        place = _read_until_insert(cursor)
        # The tokens of one INSERT, with the parameters of the statement.
        insert = parse_insert(cursor.inside(place))
        begin = cursor.inside(insert.query)
        if begin.peek() not in _BEGIN_QUERIES:
            raise begin.error("after FROM, the rows of INSERT are a SELECT", hint="Write SELECT ... here")
        inserts.append(replace(insert, query=joined(source, insert.query), own=insert.query))
    return MultiInsert(source, tuple(inserts))


def joined(prefix: Place, query: Place) -> Place:
    """Return a query that begins with a part of the statement before it; what is between are blanks."""
    between = re.sub(r"[^\n]", " ", query.source[prefix.end : query.start])
    return Place(query.source[: prefix.end] + between + query.source[query.start :], prefix.start, query.end)


def _read_until_insert(cursor: Cursor) -> Place:
    """Read up to the next INSERT, or to the end."""
    start, depth = cursor.position, 0
    while not cursor.is_at_end:
        depth += cursor.take().depth
        if depth == 0 and _begins_insert(cursor, 0):
            break
    return cursor.since(start)


def _begins_insert(cursor: Cursor, ahead: int) -> bool:
    if cursor.peek(ahead) != "insert" or cursor.peek(ahead - 1) in (".", ":", "as", "select", ","):
        return False
    return cursor.peek(ahead + 1) in ("into", "overwrite") or [cursor.peek(ahead + n) for n in (1, 2, 3)] == [
        "with",
        "schema",
        "evolution",
    ]
