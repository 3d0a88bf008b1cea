"""Queries as checks: run by DuckDB over tables of a lake, some of them at branches. Nothing else is in its reach."""

from collections.abc import Mapping

from icefield.backend import Backend
from icefield.engine.choose import LOCAL
from icefield.history.checks import Sample
from icefield.lake import Lake
from icefield.model.names import TableName
from icefield.sql.local import run_locally
from icefield.sql.session import Rows, Run, SqlSession
from icefield.sql.syntax.place import Place
from icefield.sql.syntax.script import check_single
from icefield.table.table import Table


def run_check(backend: Backend, pinned: Mapping[TableName, Table], text: str, count: int) -> tuple[int, Sample]:
    """Run a query; return the number of its rows, and some of them. pinned: tables at the versions to read."""
    query = text[: check_single(text)]
    session = SqlSession(Lake(backend, "the lake"), pinned=pinned)
    # Any text is only a query here, over tables of the lake.
    sample = _run(session, f"SELECT * FROM (\n{query}\n) LIMIT {count}").table.to_pylist()  # noqa: S608
    if not sample:
        return 0, []
    (row,) = _run(session, f"SELECT count(*) AS rows FROM (\n{query}\n)").table.to_pylist()  # noqa: S608
    # Further tables may have changed between the two.
    return max(row["rows"], len(sample)), sample


def _run(session: SqlSession, text: str) -> Rows:
    return run_locally(Run(session, engine=LOCAL), Place(text, 0, len(text)))
