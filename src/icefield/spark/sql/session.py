"""SQL of one session: `icefield.engine.queries.sql.SparkSql`.

The text of a query refers to DataFrames by generated names. In a session of this process they are temporary views for
as long as Spark analyses the text; over Spark Connect the DataFrames are part of the query itself, which is analysed
again for each action. Raises RefusedBySpark.
"""

import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from datetime import datetime
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import array, expr, lit

from icefield.engine.queries.sql import RefusedBySpark, SparkText
from icefield.spark.session.analysis_errors import error_of_value, explained_analysis, logged_once
from icefield.spark.session.session import active_in_jvm, is_remote
from icefield.spark.session.worker_errors import explained_worker_errors
from icefield.spark.sql.refusals import refusal_of
from icefield.spark.sql.relations import find_relations


class SessionSql:
    """Runs SQL in a session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._is_remote = is_remote(spark)

    def run(self, text: SparkText) -> DataFrame:
        """Run a statement, a query only as far as its analysis; return its DataFrame."""
        with _refusals(text.text), logged_once():
            if self._is_remote:
                return self._run_remotely(text)
            with self._views(text), active_in_jvm(self._spark):
                return self._spark.sql(text.text, self._args(text))

    def relations(self, text: str) -> list[str] | None:
        """Return the names of relations that Spark's parser finds, each as `[a, b]`; None over Spark Connect."""
        if self._is_remote:
            return None
        with _refusals(text), logged_once(), active_in_jvm(self._spark):
            return find_relations(self._spark, text)

    def evaluate(self, text: SparkText) -> object:
        """Compute the only value of a query of one row and one column."""
        frame = self.run(text)
        with _refusals(text.text), logged_once():
            value = frame.toArrow().column(0)[0]
        try:
            return value.as_py()
        except (ValueError, OverflowError) as error:
            raise RefusedBySpark("", f"the value is out of range: {error}") from error

    def has_temporary_view(self, name: str) -> bool:
        """Return whether the session has a temporary view of its own."""
        try:
            with logged_once():
                return bool(self._spark.catalog.getTable(f"`{name.replace('`', '``')}`").isTemporary)
        except PySparkException:
            return False

    def explain(self, frame: DataFrame, mode: str) -> str:
        """Return the plan of a DataFrame as text."""
        shown = io.StringIO()
        with redirect_stdout(shown):
            frame.explain(mode=mode)
        return shown.getvalue().strip()

    def keep(self, frame: DataFrame, *, is_lazy: bool) -> DataFrame:
        """Let Spark keep the rows of a DataFrame; return a DataFrame of the kept rows."""
        with explained_analysis("cache the rows"), explained_worker_errors():
            return self._keep(frame, is_lazy=is_lazy)

    def _keep(self, frame: DataFrame, *, is_lazy: bool) -> DataFrame:
        if self._is_remote:
            # The server ends the caching of each DataFrame that a text refers to.
            return frame.localCheckpoint(eager=not is_lazy)
        kept = frame.persist()
        if not is_lazy:
            kept.count()
        return kept

    def release(self, frame: DataFrame) -> None:
        """Let the rows go that `keep` kept; over Spark Connect they go with the DataFrame."""
        if not self._is_remote:
            frame.unpersist()

    def _run_remotely(self, text: SparkText) -> DataFrame:
        if not text.frames:
            return self._spark.sql(text.text, self._args(text))
        template = text.text.replace("{", "{{").replace("}", "}}")
        for name in text.frames:
            template = template.replace(name, f"{{{name}}}")
        return self._spark.sql(template, self._args(text), **dict(text.frames))

    def _args(self, text: SparkText) -> Any:
        named = {name: _argument(value) for name, value in text.named.items()}
        return named or [_argument(value) for value in text.positional] or None

    @contextmanager
    def _views(self, text: SparkText) -> Iterator[None]:
        made: list[str] = []
        try:
            for name, frame in text.frames.items():
                frame.createOrReplaceTempView(name)
                made.append(name)
            yield
        finally:
            session: Any = self._spark
            # The public call would also end the caching of what a view reads.
            catalog = session._jsparkSession.sessionState().catalog()  # noqa: SLF001
            for name in made:
                catalog.dropTempView(name)


def _argument(value: Any) -> Any:
    """Return the value of a parameter as pyspark takes it.

    It would take a datetime without a zone for the local time of this process, and not of the session.
    """
    match value:
        case datetime() if value.tzinfo is None:
            return expr(f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'")
        case list() | tuple() if any(isinstance(each, datetime) for each in value):
            return array(*(lit(_argument(each)) for each in value))
        case _:
            return value


@contextmanager
def _refusals(text: str) -> Iterator[None]:
    try:
        yield
    except PySparkException as error:
        raise refusal_of(error, text) from error
    except Exception as error:
        if "StackOverflowError" in str(error):
            raise RefusedBySpark("", "the statement is too large for Spark to parse") from error
        # Depending on the plan, Spark raises errors of values as errors of the JVM, too.
        if reason := error_of_value(error):
            raise RefusedBySpark("", reason) from error
        raise
