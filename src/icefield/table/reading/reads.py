"""Reads of a table without naming a scan: `table.to_pandas(where=…)` is `table.scan(where=…).to_pandas()`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from icefield.arguments import check_arguments
from icefield.deferred import deferred_imports
from icefield.showing import html_table
from icefield.table.reading.readable import HEAD_ROWS, LimitedRows

with deferred_imports(__name__):
    import pyarrow as pa

    from icefield.engine.choose import EngineName
    from icefield.expr.parse.ast import Predicate
    from icefield.plan.versions import AsOf
    from icefield.table.scan import TableScan
    from icefield.types.schema import Schema


@check_arguments
class TableReads(ABC):
    """The part of a table handle that reads all rows, or those of a filter."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The current schema."""

    @abstractmethod
    def scan(
        self, where: Predicate | str | Any = None, select: Sequence[str] | None = None, as_of: AsOf | None = None
    ) -> TableScan:
        """Plan a read."""

    def count(self, where: Predicate | str | Any = None, *, engine: EngineName | None = None) -> int:
        """Count all rows, or those that match a filter, from metadata where that is possible."""
        return self.scan(where).count(engine=engine)

    def to_arrow(
        self, where: Predicate | str | Any = None, select: Sequence[str] | None = None, as_of: AsOf | None = None
    ) -> pa.RecordBatchReader:
        """Return rows as an Arrow batch reader: `scan(where, select, as_of).to_arrow()`."""
        return self.scan(where, select, as_of).to_arrow()

    def to_pandas(
        self, where: Predicate | str | Any = None, select: Sequence[str] | None = None, as_of: AsOf | None = None
    ) -> Any:
        """Return rows as a pandas DataFrame: `scan(where, select, as_of).to_pandas()`."""
        return self.scan(where, select, as_of).to_pandas()

    def to_polars(
        self, where: Predicate | str | Any = None, select: Sequence[str] | None = None, as_of: AsOf | None = None
    ) -> Any:
        """Return rows as a Polars DataFrame: `scan(where, select, as_of).to_polars()`."""
        return self.scan(where, select, as_of).to_polars()

    def to_duckdb(
        self,
        where: Predicate | str | Any = None,
        select: Sequence[str] | None = None,
        as_of: AsOf | None = None,
        *,
        connection: Any | None = None,
    ) -> Any:
        """Return rows as a DuckDB relation: `scan(where, select, as_of).to_duckdb(connection)`."""
        return self.scan(where, select, as_of).to_duckdb(connection)

    def limit(self, count: int) -> LimitedRows:
        """Return the first rows in reading order, at most so many: `scan().limit(count)`."""
        return self.scan().limit(count)

    def head(self, count: int = HEAD_ROWS) -> pa.Table:
        """Return some rows as an Arrow table. Reading stops when they are read."""
        return self.scan().head(count)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as dicts; they are read in batches."""
        return iter(self.scan())

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return True  # a handle, whether or not the table has rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the rows of the newest version as a stream of batches."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.scan().__arrow_c_schema__()

    def _repr_html_(self) -> str:
        columns = [(f.field_id, f.name, str(f.type), "not null" if f.required else "") for f in self.schema.fields]
        return html_table(repr(self), ["id", "column", "type", ""], columns)
