"""The Spark format "icefield": `spark.read.format("icefield").load("shop.orders")`, and the same for writing.

`icefield.register(spark)` registers it in a session; `lake.spark` does so by itself. Sources run in Python workers of
Spark's driver: names of lakes and relative directories are resolved there. A DataFrame keeps the version that was the
newest when it was loaded. Errors reach the user through Spark, with their message unchanged.
"""

import os
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import SparkSession
from pyspark.sql import types as spark_types
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter

from icefield.commit.load import load_table_metadata
from icefield.config.connect import connect
from icefield.errors import MissingFile, StorageError
from icefield.expr.bind.bind import bind
from icefield.lake import Lake, LakeOpener
from icefield.model.metadata import TableMetadata
from icefield.plan.versions import ResolvedVersion
from icefield.spark.data_source.options import TO_READ, TO_WRITE, SourceOptions
from icefield.spark.data_source.read import TAKES_FILTERS, SourceTable, logical_schema, make_reader
from icefield.spark.data_source.write import begin_write
from icefield.spark.session.session import active_in_jvm

# Without it, Spark rejects a source that accepts filters.
PUSH_FILTERS = "spark.sql.python.filterPushdown.enabled"


@dataclass(frozen=True)
class PinnedVersion:
    """The version that a DataFrame was loaded with, by its metadata file: later metadata may no longer have it."""

    metadata_location: str
    version: ResolvedVersion

    def load(self, lake: Lake, table: str) -> TableMetadata:
        """Load the metadata of the version; the newest if the file was removed and the version has not expired."""
        try:
            return load_table_metadata(lake.backend.reading, self.metadata_location)
        except (MissingFile, StorageError):
            return lake.table(table).metadata


class IcefieldSource(DataSource):
    """A table of a lake."""

    default_lake: ClassVar[LakeOpener | None] = None
    # The version to read, set when the source is loaded.
    pinned: "PinnedVersion | None" = None

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "icefield"

    def schema(self) -> spark_types.StructType:
        """Return the table's columns, or those that the option `columns` names."""
        options = self._options(TO_READ)
        with options.open_lake() as lake:
            loaded = lake.head(options.table).load()
            table = SourceTable(lake.backend.reading, loaded.metadata, options.resolve_version(loaded.metadata))
        bind(options.where, table.readable)  # raises early
        self.pinned = PinnedVersion(loaded.location, table.version)
        return logical_schema(table.select(options.columns))

    def reader(self, schema: spark_types.StructType) -> DataSourceReader:
        """Return a reader for the columns of a schema."""
        return make_reader(self._open(), schema, self._options(TO_READ).where, self._load_newest)

    def writer(self, schema: spark_types.StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001 - Spark's
        """Return a writer that appends rows, or replaces the table's rows."""
        return begin_write(self._options(TO_WRITE), schema, overwrite=overwrite)

    def _open(self) -> SourceTable:
        options = self._options(TO_READ)
        with options.open_lake() as lake:
            if self.pinned is not None:
                return SourceTable(lake.backend.reading, self.pinned.load(lake, options.table), self.pinned.version)
            metadata = lake.table(options.table).metadata
            return SourceTable(lake.backend.reading, metadata, options.resolve_version(metadata))

    def _load_newest(self) -> TableMetadata:
        options = self._options(TO_READ)
        with options.open_lake() as lake:
            return lake.table(options.table).metadata

    def _options(self, known: tuple[str, ...]) -> SourceOptions:
        options = SourceOptions(dict(self.options), type(self).default_lake)
        options.check(known)
        return options


def register(spark: SparkSession, lake: Lake | str | os.PathLike[str] | None = None) -> None:
    """Register the Spark format `icefield` with a session.

    Args:
        spark: The session.
        lake: The lake that the format reads if no option names another: a `Lake`, or a target of `connect`. By default
            the lake that `connect()` opens in the Spark driver.
    """
    if isinstance(lake, str | os.PathLike):
        with connect(lake) as opened:
            opener = opened.opener
    else:
        opener = lake.opener if lake is not None else None
    # A class created here, which Spark pickles by value, is the only way to pass more than options to a source.
    source = type(IcefieldSource.__name__, (IcefieldSource,), {"default_lake": opener})
    if TAKES_FILTERS:
        spark.conf.set(PUSH_FILTERS, "true")
    with active_in_jvm(spark):  # Spark looks the name up there, though it registers it in the session
        spark.dataSource.register(source)
