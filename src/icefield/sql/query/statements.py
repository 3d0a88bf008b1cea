"""The parsers of queries, by the first word of a statement."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from icefield.engine.choose import LOCAL
from icefield.sql.local import explain_locally, run_locally
from icefield.sql.query.read import Opening, open_query
from icefield.sql.query.spark_statements import SPARK_STATEMENTS
from icefield.sql.query.temporary_views import CACHE_STATEMENTS
from icefield.sql.session import Run, Statement
from icefield.sql.syntax.cursor import Cursor
from icefield.sql.syntax.place import Place


@dataclass(frozen=True)
class Query:
    """A query, which Spark reads, or DuckDB where Spark may not be started."""

    place: Place

    def run(self, run: Run) -> Any:
        """Open it as a DataFrame, whose rows are read when it is used."""
        return run_locally(run, self.place) if run.engine == LOCAL else open_query(run, self.place)

    def explain(self, run: Run, mode: str) -> str:
        """Return the engine's plan; of Spark's also what is read of each table."""
        if run.engine == LOCAL:
            return explain_locally(run, self.place)
        opening = Opening(run)
        return opening.explain(opening.names(self.place), mode)


def parse_query(cursor: Cursor) -> Query:
    """Parse a query: all that follows."""
    return Query(cursor.rest())


QUERIES: Mapping[str, Callable[[Cursor], Statement]] = {
    **dict.fromkeys(("select", "with", "values", "table", "from", "("), parse_query),
    **SPARK_STATEMENTS,
    **CACHE_STATEMENTS,
}
