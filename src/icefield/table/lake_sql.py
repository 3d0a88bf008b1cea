"""SQL over the tables of a lake; the statements are in `icefield.sql`, which is imported on first use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

from icefield.arguments import check_arguments
from icefield.deferred import deferred_imports

with deferred_imports(__name__):
    from icefield.engine.choose import EngineName
    from icefield.engine.rows import SessionChoice, load_spark_engine
    from icefield.model.names import TableName

EXECUTE = "icefield.sql.execute"


@dataclass(frozen=True)
class Attached:
    """What `lake.attach` did: the tables that Spark's catalog has now, and why it does not have the others."""

    tables: tuple[str, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)


@check_arguments
class LakeSql:
    """The part of a lake that runs SQL."""

    _sessions: SessionChoice

    def sql(
        self,
        text: str,
        args: Mapping[str, Any] | Sequence[Any] | None = None,
        *,
        engine: EngineName | None = None,
        dry_run: bool = False,
        **frames: Any,
    ) -> Any:
        """Run one SQL statement in Spark's dialect, with the statements of Iceberg's extensions.

        All tables are read at one moment. A query returns a Spark DataFrame, whose rows are read when it is used; its
        versions are fixed now. Any other statement is executed at once, and returns a DataFrame too: of what it shows,
        or one row of what it changed.

        Args:
            text: The statement.
            args: Values of its parameters: a mapping for `:name`, a list for `?`.
            engine: `local` runs without a JVM, and returns an Arrow table; queries then need the extra `duckdb`, and
                have its semantics.
            dry_run: Of a statement that changes rows, return what it would do, and change nothing.
            frames: DataFrames that the statement refers to as `{name}`.
        """
        return self._statements.execute(text, args, frames, engine, is_dry_run=dry_run)

    def sql_script(
        self, text: str, args: Mapping[str, Any] | None = None, *, engine: EngineName | None = None, **frames: Any
    ) -> list[Any]:
        """Run SQL statements that are separated by semicolons, one after another. Return the result of each.

        The first that fails ends the script; those before it are done, except in a transaction that the script began.
        The parameters are those of `sql`.
        """
        return list(self._statements.execute_script(text, args, frames, engine))

    def attach(self, spark: Any = None, namespace: str | None = None) -> Attached:
        """Enter tables of the lake in Spark's own catalog, so that plain `spark.sql` and `spark.table` find them.

        They can be read and appended to (`INSERT INTO`), no more. A query reads the newest version of each table on its
        own, and all its files: filters do not skip any. Spark refuses other statements, but not `ALTER TABLE` and
        `DROP TABLE`, which change only the entry in Spark's catalog. `sql` has none of these limits.

        Columns are those of this moment; call it again after a change of tables or schemas. Raises AlreadyExists if
        Spark's catalog has another table of such a name.

        Args:
            spark: The session; by default that of the lake.
            namespace: Only the tables of this namespace.
        """
        engine = load_spark_engine()
        attached: Attached = engine.attach(engine.session(spark or self._sessions.session), self, namespace)
        return attached

    def detach(self, spark: Any = None, namespace: str | None = None) -> list[str]:
        """Remove the entries that `attach` made from Spark's catalog, and return their names."""
        engine = load_spark_engine()
        return engine.detach(engine.session(spark or self._sessions.session), self, namespace)

    def _read_view(self, name: TableName) -> Any:
        """Open a view as a DataFrame, as a query of all its rows."""
        return self._statements.read_view(name)

    @cached_property
    def _statements(self) -> Any:
        return import_module(EXECUTE).Statements(self)
