"""A read of a metadata table: as Arrow batches, as a DataFrame, as a count.

Like a scan, it is fixed when it is made. Filters and columns are those of the metadata table.
Raises InvalidInput and InvalidFilter when made, MissingFile and CorruptFile when run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

from icefield.deferred import deferred_imports
from icefield.expr.bind.bound import TRUE, columns_of
from icefield.storage.store import StaysInProcess
from icefield.table.reading.readable import ReadableRows

with deferred_imports(__name__):
    import pyarrow as pa

    from icefield.engine.rows import SessionChoice, bind_filter, load_spark_engine
    from icefield.expr.parse.ast import Predicate
    from icefield.expr.render.arrow import arrow_filter
    from icefield.inspect.source import MetadataTable, Request
    from icefield.parquet.read.project import Projection, fields_by_id
    from icefield.types.arrow import arrow_schema
    from icefield.types.schema import Schema


class TableInspection(ReadableRows, StaysInProcess):
    """A planned read of a metadata table; `Table.inspect` returns one."""

    def __init__(
        self, table: MetadataTable, where: Predicate | str | Any = None, select: Sequence[str] | None = None
    ) -> None:
        self._table = table
        self._where = bind_filter(where, table.schema)
        self._select = table.schema.column_names if select is None else list(select)
        self._schema = table.schema.select(self._select)
        self._sessions = SessionChoice()

    def using(self, sessions: SessionChoice) -> Self:
        """Use the lake's Spark session for DataFrames."""
        self._sessions = sessions
        return self

    @property
    def schema(self) -> Schema:
        """The columns of the result."""
        return self._schema

    def to_arrow(self) -> pa.RecordBatchReader:
        """Return an Arrow batch reader. Manifests are decoded a few at a time, so memory stays bounded."""
        return pa.RecordBatchReader.from_batches(arrow_schema(self._schema), self._batches(self._select))

    def to_spark(self, session: Any | None = None) -> Any:
        """Return a Spark DataFrame. Its rows pass through this process."""
        chosen = session or self._sessions.session
        return load_spark_engine().from_arrow(self.to_arrow(), self._schema, chosen)

    def count(self) -> int:
        """Count the rows. Only the columns that the filter needs are decoded."""
        first = self._table.schema.column_names[0]
        return sum(batch.num_rows for batch in self._batches([first]))

    def __repr__(self) -> str:
        return f"TableInspection({', '.join(self._select)})"

    def _batches(self, select: Sequence[str]) -> Iterator[pa.RecordBatch]:
        schema = self._table.schema
        output = schema.select(select)
        columns = schema.select([*select, *(schema.name_of(i) for i in columns_of(self._where))])
        matches, narrow = arrow_filter(self._where), Projection(output, fields_by_id(arrow_schema(columns)))
        for table in self._table.load(Request(columns, self._where)):
            rows = table if self._where == TRUE else table.filter(matches)
            for batch in rows.to_batches():
                yield batch if output == columns else narrow.project(batch)
