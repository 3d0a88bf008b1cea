"""The seam between tables and the engines that move rows.

Tables hand rows to an engine by what they are: Arrow data stays in this process, a Spark DataFrame stays in Spark.
The Spark engine is loaded when it is first needed, so that verbs on metadata start neither pyspark nor a JVM.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

import pyarrow as pa

from icefield.errors import InvalidInput
from icefield.expr.ast import Predicate
from icefield.expr.bind import bind
from icefield.expr.bound import Bound
from icefield.expr.select import Parts, Query
from icefield.model.metadata import TableMetadata
from icefield.parquet.write import WritePlan
from icefield.scan.plan import Cluster, ScanPlan
from icefield.storage.store import Store
from icefield.types.arrow import schema_from_arrow
from icefield.types.schema import Schema
from icefield.types.text import parse_schema

SPARK_ENGINE = "icefield.spark.engine"
SPARK_SESSION = "icefield.spark.session"


class SparkEngine(Protocol):
    """What the Spark room offers to the rooms below it."""

    def session(self) -> Any:
        """Return the Spark session, starting one if there is none."""
        ...

    def register_source(self, session: Any, lake: Any) -> None:
        """Make the format "icefield" known to a session, with the lake that is meant where none is named."""
        ...

    def schema(self, struct: Any) -> Schema:
        """Read a Spark schema."""
        ...

    def filter_text(self, column: Any) -> str:
        """Write a Spark Column as the text of a filter."""
        ...

    def write(
        self, frame: Any, plan: WritePlan, base: TableMetadata, store: Store, replaced: Sequence[ScanPlan]
    ) -> pa.Table:
        """Write a DataFrame, and the rows that stay of files replaced in part, to data files."""
        ...

    def read(self, scan: ScanPlan, select: Schema, metadata: TableMetadata, store: Store) -> Any:
        """Open a planned scan as a DataFrame."""
        ...

    def from_arrow(self, batches: pa.RecordBatchReader, schema: Schema) -> Any:
        """Make a DataFrame of Arrow rows that this process has; the schema says what their columns are."""
        ...

    def cluster(self) -> Cluster | None:
        """Return where plans can run: in the session that is there, if there is one."""
        ...

    def query(self, query: Query, frames: Mapping[Parts, Any], scope: str) -> Any:
        """Analyse a query in which each name stands for a DataFrame; `scope` is a word that no other query uses."""
        ...

    def conform_to_view(self, frame: Any, schema: Schema, query_columns: Sequence[str] | None) -> Any:
        """Give the result of a query the columns of a view."""
        ...


def active_cluster() -> Cluster | None:
    """Return the cluster of the Spark session that is there; None if there is none, for planning starts none."""
    return load_spark_engine().cluster() if "pyspark.sql" in sys.modules else None


def load_spark_engine() -> SparkEngine:
    """Load the Spark engine."""
    # First, because with too old a Spark the engine cannot even be imported.
    import_module(SPARK_SESSION).check_version()
    engine: SparkEngine = import_module(SPARK_ENGINE).ENGINE
    return engine


def is_spark(value: object) -> bool:
    """Say whether a value is Spark's (a DataFrame or a schema), without importing pyspark."""
    return type(value).__module__.split(".")[0] == "pyspark"


def bind_filter(where: Predicate | str | Any, schema: Schema) -> Bound:
    """Bind a filter, which may be a Column of Spark too."""
    return bind(load_spark_engine().filter_text(where) if is_spark(where) else where, schema)


def as_schema(value: object) -> Schema:
    """Read a schema from text, Arrow, Spark, or icefield's own."""
    if isinstance(value, Schema):
        return value
    if isinstance(value, str):
        return parse_schema(value)
    if isinstance(value, pa.Schema):
        return schema_from_arrow(value)
    if isinstance(value, pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return schema_from_arrow(value.schema)
    if is_spark(value):
        return load_spark_engine().schema(getattr(value, "schema", value))
    raise InvalidInput(
        f"cannot read a schema from {type(value).__name__}",
        hint="Give a text such as 'id long not null, name string', an Arrow schema or a Spark schema",
    )


def arrow_batches(rows: object) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Take Arrow data in any form as a stream of batches."""
    if isinstance(rows, pa.RecordBatch):
        return rows.schema, iter([rows])
    if isinstance(rows, pa.Table):
        return rows.schema, iter(rows.to_batches())
    if not isinstance(rows, pa.RecordBatchReader) and hasattr(rows, "__arrow_c_stream__"):
        rows = pa.RecordBatchReader.from_stream(rows)
    if isinstance(rows, pa.RecordBatchReader):
        return rows.schema, iter(rows)
    raise InvalidInput(
        f"cannot write rows from {type(rows).__name__}",
        hint="Give a Spark DataFrame, or Arrow data: a table, a batch, a reader, or what has Arrow's stream protocol",
    )
