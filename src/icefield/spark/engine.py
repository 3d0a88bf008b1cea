"""What the Spark room offers to tables: one object, loaded on first use."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icefield.model.metadata import TableMetadata
from icefield.parquet.write import WritePlan
from icefield.scan.plan import ScanPlan
from icefield.spark.read import FilesToRead, Rows, narrow, read_files
from icefield.spark.session import session
from icefield.spark.types import schema_from_spark
from icefield.spark.write import write_frame
from icefield.storage.store import Store
from icefield.types.schema import Schema


class Engine:
    """Rows on Spark."""

    def session(self) -> SparkSession:
        """Return the session, starting a local one if there is none."""
        return session()

    def schema(self, struct: StructType) -> Schema:
        """Read a Spark schema."""
        return schema_from_spark(struct)

    def write(
        self, frame: DataFrame, plan: WritePlan, base: TableMetadata, store: Store, replaced: Sequence[ScanPlan]
    ) -> pa.Table:
        """Write a DataFrame, and the rows that stay of files replaced in part, to data files."""
        rows = frame
        for scan in replaced:
            if scan.partial_files.num_rows:
                partial = FilesToRead(store, scan.partial_files, scan.point.schema, base.schemas)
                stay = read_files(self.session(), partial, scan.where, Rows.REST)
                rows = rows.unionByName(stay, allowMissingColumns=True)
        return write_frame(rows, plan, base.sort_order, store)

    def read(self, scan: ScanPlan, select: Schema, metadata: TableMetadata, store: Store) -> DataFrame:
        """Open a planned scan as a DataFrame with the selected columns."""
        request = FilesToRead(store, scan.files, scan.point.schema, metadata.schemas)
        return narrow(read_files(self.session(), request, scan.where), scan.point.schema, select)


ENGINE = Engine()
