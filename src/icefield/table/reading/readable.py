"""The forms in which rows can be read, for scans of every kind: frames of other libraries, dicts, Arrow streams.

    scan.to_pandas(), scan.to_polars(), scan.to_duckdb()     frames of libraries that are imported here and now
    scan.to_daft(), scan.to_ray()
    for row in scan: ...                                     dicts, read in batches
    duckdb.sql("from scan"), pl.DataFrame(scan)              by the Arrow C stream protocol, in bounded memory

Raises Unsupported if a library is not installed.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput, Unsupported
from icefield.showing import html_table

with deferred_imports(__name__):
    import pyarrow as pa

    from icefield.types.arrow import arrow_schema
    from icefield.types.schema import Schema

HEAD_ROWS = 5
_DICTS_AT_ONCE = 1024
_INSTALL = {
    "pandas": "pandas",
    "polars": "polars",
    "duckdb": "'icefield[duckdb]'",
    "daft": "daft",
    "ray.data": "'ray[data]'",
}


class ReadableRows(ABC):
    """Rows with a schema, which can be read as often as wanted."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The columns."""

    @abstractmethod
    def to_arrow(self) -> pa.RecordBatchReader:
        """Return an Arrow batch reader."""

    @abstractmethod
    def count(self) -> int:
        """Count the rows."""

    def to_pandas(self, **options: Any) -> Any:
        """Return all rows as a pandas DataFrame.

        Args:
            options: Those of `pyarrow.Table.to_pandas`, such as `types_mapper`.
        """
        load_package("pandas", "to_pandas")
        return self.to_arrow().read_pandas(**options)

    def to_polars(self) -> Any:
        """Return all rows as a Polars DataFrame."""
        return load_package("polars", "to_polars").from_arrow(self.to_arrow().read_all())

    def to_duckdb(self, connection: Any | None = None) -> Any:
        """Return a DuckDB relation. Its rows are read when it is run, each time, and in bounded memory.

        Args:
            connection: The DuckDB connection. By default DuckDB's own.
        """
        duckdb = load_package("duckdb", "to_duckdb")
        used = duckdb if connection is None else connection
        if not hasattr(used, "from_arrow"):
            raise InvalidInput(f"expected a DuckDB connection, not {type(connection).__name__}")
        if not self.schema.fields:
            raise InvalidInput("DuckDB has no relations without columns", hint="Select a column, or count the rows")
        return used.from_arrow(self)

    def to_daft(self) -> Any:
        """Return all rows as a DataFrame of Daft."""
        return load_package("daft", "to_daft").from_arrow(self.to_arrow().read_all())

    def to_ray(self) -> Any:
        """Return all rows as a Dataset of Ray."""
        return load_package("ray.data", "to_ray").from_arrow(self.to_arrow().read_all())

    def limit(self, count: int) -> LimitedRows:
        """Return the first rows in reading order, at most so many. Reading stops when they are read."""
        return LimitedRows(self, count)

    def head(self, count: int = HEAD_ROWS) -> pa.Table:
        """Return the first rows in reading order as an Arrow table. Reading stops when they are read."""
        return self.limit(count).to_arrow().read_all()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows as dicts; they are read in batches."""
        for batch in self.to_arrow():
            for start in range(0, batch.num_rows, _DICTS_AT_ONCE):
                yield from python_values(batch.slice(start, _DICTS_AT_ONCE))

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return True  # a planned read, whether or not it has rows: to count them, files may be opened

    def __arrow_c_schema__(self) -> object:
        return arrow_schema(self.schema).__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export the rows as a stream of batches; they are read while it is consumed."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        columns = [(f.name, str(f.type), "" if not f.required else "not null") for f in self.schema.fields]
        return html_table(repr(self), ["column", "type", ""], columns)


class LimitedRows(ReadableRows):
    """The first rows of a scan; `limit` of a scan returns them."""

    def __init__(self, rows: ReadableRows, count: int) -> None:
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise InvalidInput(f"limit: count takes a whole number from 0 on, not {repr(count)[:80]}")
        self._rows = rows
        self._count = count

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self._rows.schema

    def to_arrow(self) -> pa.RecordBatchReader:
        """Return an Arrow batch reader, which stops reading when there are enough rows."""
        return pa.RecordBatchReader.from_batches(arrow_schema(self.schema), self._batches())

    def to_spark(self, session: Any | None = None) -> Any:
        """Return a Spark DataFrame of at most so many rows."""
        rows: Any = self._rows
        return rows.to_spark(session).limit(self._count)

    def count(self) -> int:
        """Count the rows: from metadata where that is possible, and at most so many."""
        return min(self._count, self._rows.count())

    def __repr__(self) -> str:
        return f"{self._rows!r}.limit({self._count})"

    def _batches(self) -> Iterator[pa.RecordBatch]:
        left = self._count
        if not left:
            return
        for batch in self._rows.to_arrow():
            taken = batch.slice(0, min(left, batch.num_rows))
            left -= taken.num_rows
            yield taken
            if not left:
                return


def python_values(values: pa.Array | pa.ChunkedArray | pa.RecordBatch) -> list[Any]:
    """Return a column as values of Python, or a batch as dicts.

    Times with nanoseconds are timestamps of pandas, as Python has none of its own; raises Unsupported without pandas.
    """
    with nanoseconds_explained():
        return list(values.to_pylist())


@contextmanager
def nanoseconds_explained() -> Iterator[None]:
    """Raise Unsupported where a block makes values of Python from nanoseconds without pandas."""
    try:
        yield
    except ValueError as error:
        if "pandas" in sys.modules:
            raise
        raise Unsupported(
            "times with nanoseconds need the package pandas as values of Python, and it is not installed",
            hint="Run pip install pandas, cast the column to microseconds, or read it as Arrow data",
        ) from error


def load_package(name: str, verb: str) -> Any:
    """Import a package that only some verbs need."""
    try:
        return import_module(name)
    except ImportError as error:
        raise Unsupported(
            f"{verb} needs the package {name}, which is not installed", hint=f"Run pip install {_INSTALL[name]}"
        ) from error
