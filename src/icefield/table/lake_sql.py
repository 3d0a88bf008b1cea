"""SQL over the tables of a lake; the statements are in `icefield.sql`, which is imported on first use."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

from icefield.arguments import check_arguments
from icefield.engine.choose import EngineName

EXECUTE = "icefield.sql.execute"


@check_arguments
class LakeSql:
    """The part of a lake that runs SQL."""

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

    @cached_property
    def _statements(self) -> Any:
        return import_module(EXECUTE).Statements(self)
