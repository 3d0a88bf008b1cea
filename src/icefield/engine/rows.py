"""The seam between tables and the engines that move rows.

Tables hand rows to an engine by what they are: Arrow data stays in this process, a Spark DataFrame stays in Spark.
The Spark engine is loaded when it is first needed, so that verbs on metadata start neither pyspark nor a JVM.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import pyarrow as pa

from icefield.errors import InvalidInput
from icefield.expr.bind.bind import bind
from icefield.expr.bind.bound import Bound
from icefield.expr.parse.ast import Predicate
from icefield.expr.query.select import Parts, Query
from icefield.model.metadata import TableMetadata
from icefield.plan.plan import PlanningExecutor, ScanPlan
from icefield.storage.store import Store
from icefield.types.arrow import schema_from_arrow
from icefield.types.schema import Schema
from icefield.types.text import parse_schema

SPARK_ENGINE = "icefield.spark.engine"
SPARK_SESSION = "icefield.spark.session.session"
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


@dataclass
class SessionChoice:
    """The Spark session and the engine that a lake was told to use, shared by all its handles.

    session: None for the one that is active. engine: `auto`, `local` or `spark`.
    """

    session: Any = None
    engine: str = "auto"

    def choose(self, session: Any | None, engine: str | None = None) -> None:
        """Let the handles use a session from now on, and an engine if one is named."""
        if session is not None and not is_spark(session):
            raise InvalidInput(f"a Spark session is expected, not a {type(session).__name__}")
        self.session = session
        self.engine = engine or self.engine


class SparkEngine(Protocol):
    """What the Spark room offers to the rooms below it."""

    def session(self, chosen: Any = None) -> Any:
        """Return the session that was chosen, else the one that is active, starting one if there is none."""
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

    def has_session(self, chosen: Any = None) -> bool:
        """Return whether the session that was chosen, or the active one, can be used."""
        ...

    def row_engine(self, store: Store, base: TableMetadata, chosen: Any = None) -> Any:
        """Return the engine for the rows of one version of a table: an `icefield.engine.engine.RowEngine`."""
        ...

    def open_upsert(self, frame: Any, on: Sequence[str] | None, base: TableMetadata) -> Any:
        """Take a DataFrame to upsert: an `icefield.engine.upsert.UpsertRows`, or None if it has no rows."""
        ...

    def read(self, scan: ScanPlan, select: Schema, metadata: TableMetadata, store: Store, chosen: Any = None) -> Any:
        """Open a planned scan as a DataFrame of the session that was chosen, or of the active one."""
        ...

    def from_arrow(self, batches: pa.RecordBatchReader, schema: Schema, chosen: Any = None) -> Any:
        """Make a DataFrame of Arrow rows that this process has; the schema says what their columns are."""
        ...

    def planning_executor(self, chosen: Any = None) -> PlanningExecutor | None:
        """Return where plans can run: in the session that was chosen or is active, if there is one."""
        ...

    def query(self, query: Query, frames: Mapping[Parts, Any], scope: str, chosen: Any = None) -> Any:
        """Analyse a query in which each name stands for a DataFrame; `scope` is a word that no other query uses."""
        ...

    def conform_to_view(self, frame: Any, schema: Schema, query_columns: Sequence[str] | None) -> Any:
        """Give the result of a query the columns of a view."""
        ...


def planning_executor(chosen: Any = None) -> PlanningExecutor | None:
    """Return the cluster of the Spark session that is there; None if there is none, for planning starts none."""
    return load_spark_engine().planning_executor(chosen) if "pyspark.sql" in sys.modules else None


def has_session(chosen: Any = None) -> bool:
    """Return whether there is a Spark session that can be used, without starting one."""
    return "pyspark.sql" in sys.modules and load_spark_engine().has_session(chosen)


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
    """Read a schema from text, Arrow, Spark, icefield's own, or any frame that speaks Arrow."""
    if isinstance(value, Schema):
        return value
    if isinstance(value, str):
        return parse_schema(value)
    if is_spark(value):
        return load_spark_engine().schema(getattr(value, "schema", value))
    if isinstance(value, pa.Schema | pa.Table | pa.RecordBatch | pa.RecordBatchReader):
        return _schema_of_columns(getattr(value, "schema", value))
    if hasattr(value, "__arrow_c_schema__"):
        return _schema_of_columns(pa.schema(value))
    if hasattr(value, "__arrow_c_stream__"):
        return _schema_of_columns(_open_stream(value).schema)
    raise InvalidInput(
        f"cannot read a schema from {type(value).__name__}",
        hint=_conversion_of(value)
        or "Give a text such as 'id long not null, name string', an Arrow or Spark schema, or a frame",
    )


def hold_rows(rows: object) -> object:
    """Return rows whose schema can be looked at before they are taken: of a stream of Arrow data that is once."""
    return rows if is_spark(rows) else pa.RecordBatchReader.from_batches(*arrow_batches(rows))


def arrow_batches(rows: object) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Take Arrow data in any form as a stream of batches, without the row labels of pandas."""
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    if not isinstance(rows, pa.RecordBatchReader) and hasattr(rows, "__arrow_c_stream__"):
        rows = _open_stream(rows)
    if isinstance(rows, pa.RecordBatchReader):
        columns = _without_row_labels(rows.schema)
        if len(columns) == len(rows.schema):
            return rows.schema, iter(rows)
        return columns, (batch.select(columns.names) for batch in rows)
    raise InvalidInput(
        f"cannot write rows from {type(rows).__name__}",
        hint=_conversion_of(rows)
        or "Give a Spark DataFrame, or Arrow data: a table, a batch, a reader, or what has Arrow's stream protocol",
    )


def _open_stream(rows: Any) -> pa.RecordBatchReader:
    """Ask a frame for its rows as Arrow data; libraries raise errors of many kinds where they cannot convert them."""
    try:
        return pa.RecordBatchReader.from_stream(rows)
    except Exception as error:
        raise InvalidInput(
            f"cannot take the {type(rows).__name__} as Arrow data: {_message_of(error)}",
            hint="Give each column a name of its own and values of one type that Arrow has, or convert it to an Arrow "
            "table first",
        ) from error


def _message_of(error: Exception) -> str:
    """Return what an error says; those of Arrow about a pandas column have their text in several arguments."""
    texts = [argument for argument in error.args if isinstance(argument, str)]
    return "; ".join(texts) if len(texts) == len(error.args) and texts else str(error) or type(error).__name__


def _conversion_of(rows: object) -> str | None:
    """Return how to turn common values that hold rows, but are no Arrow data, into such."""
    if type(rows).__module__.split(".")[0] == "polars" and hasattr(rows, "collect"):
        return "Give rows.collect()"
    if isinstance(rows, Mapping):
        return "Give pyarrow.table(rows)"
    if isinstance(rows, list | tuple | Iterator):
        return "Give pyarrow.Table.from_pylist(rows), or pyarrow.Table.from_batches(rows) for batches"
    return None


def _schema_of_columns(columns: pa.Schema) -> Schema:
    return schema_from_arrow(_without_row_labels(columns))


def _without_row_labels(columns: pa.Schema) -> pa.Schema:
    """Return a schema without the unnamed index of a pandas frame: numbers of rows, which are not data.

    A frame that was filtered has such an index, and pandas hands it to Arrow as a column. An index with a name is one
    that its user set, and stays.
    """
    names = set(_pandas_index_columns(columns))
    labels = [name for name in columns.names if name in names and _UNNAMED_INDEX.fullmatch(name)]
    for label in labels:
        columns = columns.remove(columns.get_field_index(label))
    return columns


def _pandas_index_columns(columns: pa.Schema) -> list[str]:
    try:
        listed = json.loads((columns.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
    except (ValueError, AttributeError):
        return []  # not what pandas writes
    return [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
