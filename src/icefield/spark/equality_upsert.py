"""An upsert by equality deletes on Spark: tasks write the rows and their keys; neither passes through the driver.

source    (c0, c1, …, k0, …)   the rows to upsert and their keys, checkpointed: read more than once
check     source by k0, …      the first null or duplicate key, if any
rows      source (c0, c1, …)   data files, as any other write
deletes   source (c0, …)       the key columns: equality delete files, for each spec
"""

from dataclasses import replace
from functools import reduce
from operator import or_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows

from icefield.codec.manifest.rows import DataFiles
from icefield.engine.equality_upsert import EqualityFiles, EqualityPlan
from icefield.engine.keys import duplicate_key, null_in_key
from icefield.model.metadata import TableMetadata
from icefield.model.sort_order import UNSORTED
from icefield.parquet.write.plan import WritePlan
from icefield.spark.keyed_frame import KeyedFrame
from icefield.spark.session.worker_errors import explained_worker_errors
from icefield.spark.session.workers import check_workers
from icefield.spark.types import schema_from_spark
from icefield.spark.write.write import remove_files_of_write, write_frames
from icefield.storage.store import Store


def write_equality(frame: DataFrame, plan: EqualityPlan, base: TableMetadata, store: Store) -> EqualityFiles:
    """Write the rows of a frame, whose schema was checked. After an error, remove the files."""
    check_workers(frame.sparkSession)
    source = KeyedFrame.of(frame, schema_from_spark(frame.schema), plan.columns, base.schema)
    with explained_worker_errors():
        # An eager checkpoint: later reads use its contents, or the job fails.
        source = replace(source, frame=source.frame.localCheckpoint(eager=True))
        _check_keys(source, plan.columns)
    numbered = source.numbered
    rows = source.frame.select(*(c.name for c in numbered.columns)).toDF(*numbered.names)
    own = [f"c{numbered.names.index(name)}" for name in plan.columns]
    keys = source.frame.select(*own).toDF(*plan.columns)
    try:
        files = write_frames([rows], plan.rows, base.sort_order, store)
        return EqualityFiles(files, tuple(_write_keys(keys, settings, store) for settings in plan.deletes))
    except BaseException:
        remove_files_of_write(store, plan.rows)  # delete files, too, are named after it
        raise


def _write_keys(keys: DataFrame, settings: WritePlan, store: Store) -> DataFiles:
    together = keys if settings.spec.fields else keys.hint("rebalance")  # few files, which every scan opens
    return write_frames([together], settings, UNSORTED, store)


def _check_keys(source: KeyedFrame, columns: tuple[str, ...]) -> None:
    """Raise InvalidInput for a key that is null or occurs twice."""
    names = source.key_names
    is_null = reduce(or_, (F.col(name).isNull() for name in names))
    found = source.keys().groupBy(*names).count().where(is_null | (F.col("count") > 1)).select(*names).first()
    if found is None:
        return
    key = dict(zip(columns, found, strict=True))
    for name, value in key.items():
        if value is None:
            raise null_in_key(name)
    raise duplicate_key(key)
