"""The interface of the Spark room to tables: one object, imported on first use."""

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icefield.cache.reading import ReadContext
from icefield.engine.change import Merge, MergeSource, SourceKeys
from icefield.engine.rows import ChangelogRequest, ChangeStep
from icefield.expr.bind.bound import columns_of
from icefield.expr.query.select import Parts, Query
from icefield.lake import Lake
from icefield.leases.open_frames import IsAlive
from icefield.model.metadata import TableMetadata
from icefield.plan.partition.values import readable_schema
from icefield.plan.plan import ScanPlan
from icefield.spark.arrow_rows import arrow_of_frame, frame_of_arrow
from icefield.spark.attach import attach_tables, detach_tables
from icefield.spark.change import source
from icefield.spark.change.insert import rows_to_insert
from icefield.spark.changelog import make_changelog
from icefield.spark.data_source.data_source import register
from icefield.spark.filters.filters import filter_text
from icefield.spark.planning import SparkCluster, planning_executor
from icefield.spark.read.logical_columns import narrow
from icefield.spark.read.native_read import FilesToRead
from icefield.spark.read.read import read_files
from icefield.spark.row_engine import SparkRowEngine
from icefield.spark.session.analysis_errors import explained_analysis
from icefield.spark.session.java import JavaHome, find_java_home
from icefield.spark.session.liveness import liveness_of
from icefield.spark.session.session import find_session, is_remote, session
from icefield.spark.session.worker_errors import explained_worker_errors
from icefield.spark.session.workers import check_workers
from icefield.spark.sql.probe import SessionProbe
from icefield.spark.sql.session import SessionSql
from icefield.spark.types import schema_from_spark
from icefield.spark.views.view import conform_to_view, run_query
from icefield.storage.store import check_reachable
from icefield.table.lake_sql import Attached
from icefield.types.schema import Schema


class Engine:
    """Rows on Spark."""

    def session(self, chosen: SparkSession | None = None) -> SparkSession:
        """Return the chosen session, else the active one; start a local one if there is none."""
        return session(chosen)

    def java_home(self) -> JavaHome:
        """Return the Java runtime of a new session."""
        return find_java_home()

    def check_session(self, chosen: SparkSession | None = None) -> str:
        """Start a session if there is none, run a task in its workers, and describe it."""
        spark = session(chosen)
        check_workers(spark)
        kind = "Spark Connect" if is_remote(spark) else spark.sparkContext.master
        return f"Spark {spark.version}, {kind}, workers run icefield's tasks"

    def register_source(self, session: SparkSession, lake: Lake | str | os.PathLike[str] | None) -> None:
        """Register the format "icefield" in a session, with a default lake."""
        register(session, lake)

    def schema(self, struct: StructType) -> Schema:
        """Convert a Spark schema."""
        return schema_from_spark(struct)

    def filter_text(self, column: object) -> str:
        """Convert a Spark Column to filter text."""
        return filter_text(column)

    def has_session(self, chosen: SparkSession | None = None) -> bool:
        """Return whether the chosen or active session can be used."""
        return find_session(chosen) is not None

    def time_zone(self, chosen: SparkSession | None = None) -> str:
        """Return the time zone of the chosen or active session."""
        return str(session(chosen).conf.get("spark.sql.session.timeZone"))

    def row_engine(
        self, context: ReadContext, base: TableMetadata, chosen: SparkSession | None = None
    ) -> SparkRowEngine:
        """Return the engine for the rows of one version of a table."""
        check_reachable(context.store)
        return SparkRowEngine(session(chosen), context, base)

    def open_source(self, frame: DataFrame, base: TableMetadata) -> MergeSource:
        """Prepare a DataFrame as the source of a merge."""
        session(frame.sparkSession)
        return source.open_frame(frame)

    def source_keys(self, opened: MergeSource, merge: Merge, base: TableMetadata) -> SourceKeys:
        """Find the keys of a source."""
        return source.frame_source_keys(opened, merge, base.schema)

    def read(
        self,
        scan: ScanPlan,
        select: Schema,
        metadata: TableMetadata,
        context: ReadContext,
        chosen: SparkSession | None = None,
    ) -> DataFrame:
        """Open a planned scan as a DataFrame with the selected columns."""
        check_reachable(context.store)
        readable = readable_schema(metadata, scan.version.schema)
        tops = {readable.paths[i][0] for i in (*select.by_id, *columns_of(scan.where))}
        columns = Schema(tuple(f for f in readable.fields if f.name in tops))
        request = FilesToRead(context, metadata, scan, scan.files, columns)
        return narrow(read_files(self.session(chosen), request, scan.where), columns, select)

    def liveness(self, frame: DataFrame) -> IsAlive:
        """Return a function that tells whether a DataFrame, or one derived from it, can still be read."""
        return liveness_of(frame)

    def from_arrow(
        self, batches: pa.RecordBatchReader, schema: Schema, chosen: SparkSession | None = None
    ) -> DataFrame:
        """Create a DataFrame from local Arrow rows."""
        return frame_of_arrow(self.session(chosen), batches, schema)

    def to_arrow(self, frame: DataFrame) -> pa.Table:
        """Collect the rows of a DataFrame."""
        return arrow_of_frame(frame)

    def rows_to_insert(
        self,
        frame: DataFrame,
        columns: Sequence[str],
        schema: Schema,
        constants: Mapping[str, str],
        *,
        by_position: bool,
    ) -> DataFrame:
        """Return the rows of a query as rows that can be appended to a table."""
        with explained_analysis("insert"):
            return rows_to_insert(frame, columns, schema, constants, by_position=by_position)

    def computed_once(self, frame: DataFrame, verb: str) -> DataFrame:
        """Return the rows of a query as they are now: a second read of the query may give others."""
        with explained_analysis(verb), explained_worker_errors():
            return frame.localCheckpoint(eager=True)

    def explained(self, verb: str) -> AbstractContextManager[None]:
        """Raise errors of expressions and values in a block as InvalidInput."""
        return explained_analysis(verb)

    def attach(self, session: SparkSession, lake: Lake, namespace: str | None) -> Attached:
        """Enter tables of a lake in Spark's own catalog."""
        return attach_tables(session, lake, namespace)

    def detach(self, session: SparkSession, lake: Lake, namespace: str | None) -> list[str]:
        """Remove tables of a lake from Spark's own catalog."""
        return detach_tables(session, lake, namespace)

    def probe(self, chosen: SparkSession | None = None) -> SessionProbe:
        """Return what asks the chosen or active session about queries."""
        return SessionProbe(self.session(chosen))

    def planning_executor(self, chosen: SparkSession | None = None) -> SparkCluster | None:
        """Return the planning executor of the chosen or active session, if there is one."""
        return planning_executor() if chosen is None else SparkCluster(chosen)

    def query(
        self, query: Query, frames: Mapping[Parts, DataFrame], scope: str, chosen: SparkSession | None = None
    ) -> DataFrame:
        """Analyse a query in which each name refers to a DataFrame."""
        return run_query(self.session(chosen), query, frames, scope)

    def conform_to_view(self, frame: DataFrame, schema: Schema, query_columns: Sequence[str] | None) -> DataFrame:
        """Give the result of a query the columns of a view."""
        return conform_to_view(frame, schema, query_columns)

    def changelog(self, steps: Sequence[ChangeStep], request: ChangelogRequest) -> DataFrame:
        """Return what snapshots changed, oldest first, as a DataFrame."""
        return make_changelog(steps, request)

    def sql(self, chosen: SparkSession | None = None) -> SessionSql:
        """Return the SQL of the chosen or active session."""
        return SessionSql(self.session(chosen))


ENGINE = Engine()
