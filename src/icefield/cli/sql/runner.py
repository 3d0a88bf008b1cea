"""Run SQL statements on the engine that suits them, and return their rows as Arrow data.

With the engine `auto`, queries and statements that contain one run on Spark, and all others in this process, unless
only Spark can evaluate them. Spark is started once, by the first statement that needs it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from icefield.cli.output import stderr_console
from icefield.cli.progress import show_wait
from icefield.engine.choose import AUTO, LOCAL, SPARK, EngineName
from icefield.engine.rows import has_session, load_spark_engine
from icefield.errors import IcefieldError, NeedsSpark
from icefield.expr.query.lexer import lex
from icefield.lake import Lake
from icefield.sql.execute import Statements, is_query
from icefield.sql.session import Rows


class StatementRunner:
    """Runs statements of one lake, one after another; a transaction that one of them began stays open."""

    def __init__(
        self, lake: Lake, engine: EngineName, parameters: Mapping[str, object], *, is_dry_run: bool = False
    ) -> None:
        self.lake = lake
        self._is_dry_run = is_dry_run
        self._engine = engine
        self._parameters = dict(parameters)
        self._statements = Statements(lake)

    def run(self, text: str, most: int = 0) -> pa.RecordBatchReader | None:
        """Run a statement and return its rows; of a query at most so many and one more. None: it returns no columns."""
        result = self._open(text)
        if isinstance(result, Rows):
            table = result.table
        elif isinstance(result, pa.Table):
            table = result
        else:
            table = load_spark_engine().to_arrow(result.limit(most + 1) if most else result)
        return table.to_reader() if table.num_columns else None

    def roll_back(self) -> bool:
        """Roll back the transaction that is open; return whether there was one."""
        return self._statements.roll_back()

    def _open(self, text: str) -> Any:
        if self._engine != AUTO:
            with _hints_of_options():
                return self._on(text, self._engine)
        if is_query(text) or any(token.word == "select" for token in lex(text)):
            return self._on(text, SPARK)
        try:
            return self._on(text, LOCAL)
        except NeedsSpark:
            return self._on(text, SPARK)

    def _on(self, text: str, engine: EngineName) -> Any:
        if engine == SPARK and not has_session() and stderr_console().is_terminal:
            with show_wait("Starting Spark"):
                _ = self.lake.spark
        return self._statements.open(text, self._parameters, engine, is_dry_run=self._is_dry_run)


@contextmanager
def _hints_of_options() -> Iterator[None]:
    """Let hints that name an argument of Python name the option instead."""
    try:
        yield
    except IcefieldError as error:
        if error.hint is not None and "engine='" in error.hint:
            error.hint = "Leave out --engine local"
        raise
