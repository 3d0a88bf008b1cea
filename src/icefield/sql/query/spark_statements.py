"""Statements about the Spark session itself, which Spark runs: SET, RESET, variables, functions, jars.

    SET VAR newest = (SELECT max(id) FROM shop.orders)

Their subqueries may read tables of the lake. Raises Unsupported without Spark, and what Spark says, at its place.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from icefield.engine.choose import LOCAL
from icefield.errors import Unsupported
from icefield.sql.query.names import Given, Temporary
from icefield.sql.query.read import Opening
from icefield.sql.query.references import Reference
from icefield.sql.session import Run, Statement
from icefield.sql.syntax.cursor import Cursor
from icefield.sql.syntax.place import Place
from icefield.sql.text.mentions import Part
from icefield.sql.text.shape import BEGIN_QUERIES


@dataclass(frozen=True)
class SparkStatement:
    """A statement that Spark runs as it is written, except for the tables that its subqueries read."""

    place: Place

    def run(self, run: Run) -> Any:
        """Run it in the lake's session."""
        if run.engine == LOCAL:
            raise self.place.error("only Spark can run this statement", kind=Unsupported, hint="Leave out the engine")
        opening = Opening(run)
        return opening.open(opening.names(self.place, Part.EXPRESSION))


@dataclass(frozen=True)
class CreateFunction:
    """CREATE FUNCTION. body: what follows RETURN, which Spark keeps as text, and reads again in other statements."""

    place: Place
    body: Place | None

    def run(self, run: Run) -> Any:
        """Create it, unless it reads what is known in statements of the lake only."""
        if self.body is not None and run.engine != LOCAL:
            is_query = Cursor(self.body.source, self.body.start, self.body.end).peek() in BEGIN_QUERIES
            names = Opening(run).names(self.body, Part.QUERY if is_query else Part.EXPRESSION)
            read: list[Reference | Temporary | Given] = [*names.references, *names.temporary, *names.given]
            if read:
                raise read[0].mention.place.error(
                    "a function of Spark cannot read the lake: its text is read again by Spark alone",
                    hint="Write the query where it is used, or create a view",
                    kind=Unsupported,
                )
        return SparkStatement(self.place).run(run)


def parse_left_to_spark(cursor: Cursor, start: int | None = None) -> SparkStatement:
    """Leave a statement to Spark. start: where it begins, if a part of it was read."""
    begin = cursor.position if start is None else start
    cursor.rest()
    return SparkStatement(cursor.since(begin))


def parse_create_function(cursor: Cursor, start: int) -> CreateFunction:
    """Parse what follows CREATE FUNCTION. start: where the statement begins."""
    while not cursor.is_at_end and not cursor.accept("return"):
        cursor.take()
    body = None if cursor.is_at_end else cursor.rest("what the function returns")
    return CreateFunction(cursor.since(start), body)


def parse_execute(cursor: Cursor) -> Statement:
    """Refuse EXECUTE IMMEDIATE, whose text may name any table."""
    raise cursor.error(
        "EXECUTE IMMEDIATE is not supported: which tables its text reads is not known",
        hint="Give the text to sql() itself, with parameters",
        kind=Unsupported,
    )


SPARK_STATEMENTS: Mapping[str, Callable[[Cursor], Statement]] = {
    **dict.fromkeys(("set", "reset", "declare", "add", "list"), parse_left_to_spark),
    "execute": parse_execute,
}
