"""The interface between tables and the Spark engine, and conversions of users' rows and schemas.

The type of the rows decides where they are processed: Arrow data in this process, a Spark DataFrame on Spark. The Spark
engine is imported when it is first needed, so that metadata operations load neither pyspark nor a JVM.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput, Unsupported
from icefield.leases.open_frames import IsAlive, OpenFrames

with deferred_imports(__name__):
    import pyarrow as pa

    from icefield.cache.reading import ReadContext
    from icefield.engine.queries.probe import Probe
    from icefield.engine.queries.sql import SparkSql
    from icefield.expr.bind.bind import bind
    from icefield.expr.bind.bound import Bound
    from icefield.expr.parse.ast import Predicate
    from icefield.expr.query.select import Parts, Query
    from icefield.model.metadata import TableMetadata
    from icefield.plan.plan import PlanningExecutor, ScanPlan
    from icefield.types.arrow import arrow_schema, schema_from_arrow
    from icefield.types.schema import Schema
    from icefield.types.text import parse_schema
    from icefield.types.values.dicts import message_of, rows_of_dicts

SPARK_ENGINE = "icefield.spark.engine"
SPARK_SESSION = "icefield.spark.session.session"
INSTALL_SPARK = "Run pip install 'icefield[spark]', with jre as a second extra where there is no Java"
_FILE_FORMATS = {".parquet": "parquet", ".arrow": "ipc", ".feather": "ipc"}
_UNNAMED_INDEX = re.compile(r"__index_level_\d+__")


@dataclass
class SessionChoice:
    """The Spark session and engine of a lake, shared by all its handles.

    session: None for the active one. engine: `auto`, `local` or `spark`. frames: DataFrames that may still be read.
    """

    session: Any = None
    engine: str = "auto"
    frames: OpenFrames = field(default_factory=OpenFrames, compare=False, repr=False)

    def choose(self, session: Any | None, engine: str | None = None) -> None:
        """Set the session of all handles, and the engine if one is given."""
        if session is not None and not is_spark(session):
            raise InvalidInput(f"expected a Spark session, not {type(session).__name__}")
        self.session = session
        self.engine = engine or self.engine


@dataclass(frozen=True)
class ChangeStep:
    """The rows of the files that a snapshot changed, before it and after it; None where there are none."""

    snapshot_id: int
    before: Any | None
    after: Any | None


@dataclass(frozen=True)
class ChangelogRequest:
    """What a changelog has. identifiers: columns by which updates are found. is_net: without what was undone."""

    identifiers: tuple[str, ...] = ()
    is_net: bool = False


class SparkEngine(Protocol):
    """The interface of the Spark room to the rooms below it."""

    def session(self, chosen: Any = None) -> Any:
        """Return the chosen session, else the active one; start one if there is none."""
        ...

    def register_source(self, session: Any, lake: Any) -> None:
        """Register the format "icefield" in a session, with a default lake."""
        ...

    def schema(self, struct: Any) -> Schema:
        """Convert a Spark schema."""
        ...

    def filter_text(self, column: Any) -> str:
        """Convert a Spark Column to filter text."""
        ...

    def has_session(self, chosen: Any = None) -> bool:
        """Return whether the chosen or active session can be used."""
        ...

    def time_zone(self, chosen: Any = None) -> str:
        """Return the time zone of the chosen or active session."""
        ...

    def row_engine(self, context: ReadContext, base: TableMetadata, chosen: Any = None) -> Any:
        """Return the engine for the rows of one version of a table: an `icefield.engine.engine.RowEngine`."""
        ...

    def open_source(self, frame: Any, base: TableMetadata) -> Any:
        """Prepare a DataFrame as the source of a merge: an `icefield.engine.change.MergeSource`."""
        ...

    def source_keys(self, source: Any, merge: Any, base: TableMetadata) -> Any:
        """Find the keys of a source: an `icefield.engine.change.SourceKeys`."""
        ...

    def read(
        self, scan: ScanPlan, select: Schema, metadata: TableMetadata, context: ReadContext, chosen: Any = None
    ) -> Any:
        """Open a planned scan as a DataFrame of the chosen or active session."""
        ...

    def liveness(self, frame: Any) -> IsAlive:
        """Return a function that tells whether a DataFrame, or one derived from it, can still be read."""
        ...

    def from_arrow(self, batches: pa.RecordBatchReader, schema: Schema, chosen: Any = None) -> Any:
        """Create a DataFrame from local Arrow rows, with the given schema."""
        ...

    def to_arrow(self, frame: Any) -> pa.Table:
        """Collect the rows of a DataFrame. Raises InvalidInput for an expression that fails for a row."""
        ...

    def rows_to_insert(
        self, frame: Any, columns: Sequence[str], schema: Schema, constants: Mapping[str, str], *, by_position: bool
    ) -> Any:
        """Return the rows of a query as rows that can be appended to a table, by the rules of store assignment.

        columns: the column of the table for each column of the frame. constants: further columns, as SQL text.
        by_position: fields of structs are matched by position, not by name.
        """
        ...

    def computed_once(self, frame: Any, verb: str) -> Any:
        """Return the rows of a query as they are now: a second read of the query may give others."""
        ...

    def explained(self, verb: str) -> AbstractContextManager[None]:
        """Raise errors of expressions and values in a block as InvalidInput."""
        ...

    def attach(self, session: Any, lake: Any, namespace: str | None) -> Any:
        """Enter tables of a lake in Spark's own catalog: an `icefield.table.lake_sql.Attached`."""
        ...

    def detach(self, session: Any, lake: Any, namespace: str | None) -> list[str]:
        """Remove tables of a lake from Spark's own catalog."""
        ...

    def probe(self, chosen: Any = None) -> Probe:
        """Return what asks the chosen or active session about queries."""
        ...

    def planning_executor(self, chosen: Any = None) -> PlanningExecutor | None:
        """Return the planning executor of the chosen or active session, if there is one."""
        ...

    def query(self, query: Query, frames: Mapping[Parts, Any], scope: str, chosen: Any = None) -> Any:
        """Analyse a query in which each name refers to a DataFrame; `scope` is unique to the query."""
        ...

    def conform_to_view(self, frame: Any, schema: Schema, query_columns: Sequence[str] | None) -> Any:
        """Give the result of a query the columns of a view."""
        ...

    def changelog(self, steps: Sequence[ChangeStep], request: ChangelogRequest) -> Any:
        """Return what snapshots changed, oldest first, as a DataFrame."""
        ...

    def java_home(self) -> Any:
        """Return the Java runtime of a new session: its version, source, and why another one is not used."""
        ...

    def check_session(self, chosen: Any = None) -> str:
        """Start a session if there is none, run a task in its workers, and describe it. Raises Unsupported."""
        ...

    def sql(self, chosen: Any = None) -> SparkSql:
        """Return the SQL of the chosen or active session."""
        ...


def planning_executor(chosen: Any = None) -> PlanningExecutor | None:
    """Return the planning executor of the active Spark session, or None; planning starts no session."""
    return load_spark_engine().planning_executor(chosen) if "pyspark.sql" in sys.modules else None


def has_session(chosen: Any = None) -> bool:
    """Return whether there is a usable Spark session, without starting one."""
    return "pyspark.sql" in sys.modules and load_spark_engine().has_session(chosen)


def load_spark_engine() -> SparkEngine:
    """Import the Spark engine. Raises Unsupported without pyspark, which is an extra."""
    try:
        # Checked first, because the engine cannot be imported with an old Spark.
        import_module(SPARK_SESSION).check_version()
        engine: SparkEngine = import_module(SPARK_ENGINE).ENGINE
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "icefield":
            raise
        raise Unsupported(f"this needs Spark, which cannot be imported: {error}", hint=INSTALL_SPARK) from error
    return engine


def register(spark: Any, lake: Any = None) -> None:
    """Register the Spark format `icefield` with a session.

    Args:
        spark: The session.
        lake: The lake that the format reads if no option names another: a `Lake`, or a target of `connect`. By default
            the lake that `connect()` opens in the Spark driver.
    """
    load_spark_engine().register_source(spark, lake)


def is_spark(value: object) -> bool:
    """Return whether a value is a Spark DataFrame or schema, without importing pyspark."""
    return type(value).__module__.split(".")[0] == "pyspark"


def filter_text(column: Any) -> str:
    """Convert a Spark Column to filter text. Raises InvalidFilter if it is more than a filter can say."""
    return load_spark_engine().filter_text(column)


def bind_filter(where: Predicate | str | Any, schema: Schema) -> Bound:
    """Bind a filter, which may be a Spark Column; one that is bound stays as it is."""
    if isinstance(where, Bound):
        return where
    return bind(filter_text(where) if is_spark(where) else where, schema)


def as_schema(value: object) -> Schema:
    """Convert a schema from text, Arrow, Spark, an Icefield schema, or a frame that supports Arrow."""
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
        or "Give text such as 'id long not null, name string', an Arrow or Spark schema, or a frame",
    )


def hold_rows(rows: object) -> object:
    """Return rows whose schema can be read before the rows: a stream of Arrow data can be opened only once."""
    return rows if is_spark(rows) else pa.RecordBatchReader.from_batches(*arrow_batches(rows))


def hold_table(rows: object) -> pa.Table:
    """Return Arrow data in any form as a table, which can be read again."""
    columns, batches = arrow_batches(rows)
    return pa.Table.from_batches(batches, columns)


def given_rows(rows: object, schema: Callable[[], Schema] | None = None) -> object:
    """Return rows that are not Arrow data yet as such: lists of dicts, Datasets, lazy frames of Polars, files.

    schema: loads the table's; values of dicts are read as the types of its columns.
    """
    if isinstance(rows, list | tuple) and rows and all(isinstance(row, Mapping) for row in rows):
        return rows_of_dicts(rows, None if schema is None else schema())
    if isinstance(rows, list | tuple) and not rows and schema is not None:
        return arrow_schema(schema()).empty_table()
    found: Any = rows
    module = type(rows).__module__
    if module == "pyarrow._dataset":  # a Dataset or a Scanner; the module is not imported for other rows
        return (found.scanner() if hasattr(rows, "scanner") else found).to_reader()
    if module.split(".")[0] == "polars" and hasattr(rows, "collect"):
        return found.collect()
    if isinstance(rows, PathLike) and (form := _FILE_FORMATS.get(Path(rows).suffix.lower())):
        return _open_file(Path(rows), form)
    return rows


def arrow_batches(rows: object) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return Arrow data in any form as a stream of batches, without the index of pandas."""
    rows = given_rows(rows)
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
        or "Give a Spark DataFrame, or Arrow data: a table, a batch, a reader, or an object with `__arrow_c_stream__`",
    )


def _open_file(path: Path, form: str) -> pa.RecordBatchReader:
    """Open a file of rows, which are read in batches."""
    try:
        return import_module("pyarrow.dataset").dataset(path, format=form).scanner().to_reader()
    except (OSError, pa.ArrowException) as error:
        raise InvalidInput(f"cannot read {path}: {message_of(error)}", hint=f"Give a {form} file") from error


def _open_stream(rows: Any) -> pa.RecordBatchReader:
    """Convert a frame to Arrow data; libraries raise various errors if they cannot."""
    try:
        return pa.RecordBatchReader.from_stream(rows)
    except Exception as error:
        raise InvalidInput(
            f"cannot convert the {type(rows).__name__} to Arrow data: {message_of(error)}",
            hint="Give each column a unique name and values of one Arrow type, or convert it to an Arrow table first",
        ) from error


def _conversion_of(rows: object) -> str | None:
    """Return how to convert common values that hold rows, but are not Arrow data."""
    if isinstance(rows, Mapping):
        return "Give pyarrow.table(rows)"
    if isinstance(rows, list | tuple | Iterator):
        return "Give pyarrow.Table.from_pylist(rows), or pyarrow.Table.from_batches(rows) for batches"
    if isinstance(rows, str | PathLike):
        return "Give the pathlib.Path of a Parquet or Arrow file, or a Dataset; `icefield ingest` reads CSV and JSON"
    return None


def _schema_of_columns(columns: pa.Schema) -> Schema:
    return schema_from_arrow(_without_row_labels(columns))


def _without_row_labels(columns: pa.Schema) -> pa.Schema:
    """Return a schema without the unnamed index of a pandas frame: row numbers, which are not data.

    A filtered frame has such an index, and pandas exports it to Arrow as a column. A named index was set by the user,
    and is kept.
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
        return []  # not written by pandas
    return [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
