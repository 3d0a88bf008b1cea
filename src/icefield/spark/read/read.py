"""Planned files to a DataFrame, each in the fastest way that returns the right rows.

    by Spark's reader    files whose columns have field ids; also with deletes, if these are not too many to distribute
    by Python tasks      the others: in stores without a Spark connector, without ids, without columns whose values only
                                              the table knows, with values in units that Spark misreads, with lists that
                                              it may fail to read; they run the Arrow reader in Python workers

A DataFrame of both is a union.
"""

import pickle
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from pyspark.sql.types import StructType

from icefield.ambient import SystemAmbient
from icefield.codec.json.name_mapping import find_name_mapping
from icefield.errors import Unsupported
from icefield.expr.bind.bound import Bound, Compare, Reference, all_of, any_of
from icefield.expr.parse.ast import Operator
from icefield.expr.prune.residual import common_code, residual
from icefield.parquet.read.read import TableFiles, table_reader
from icefield.plan.manifest_list import load_manifests
from icefield.plan.plan import plan_scan
from icefield.plan.planned_files import PlannedFiles
from icefield.plan.residuals import group_by_residual
from icefield.plan.tasks import pack_tasks
from icefield.spark.read.file_names import REBASED_TYPES, Demands, Reading, group_by_names, has_refused_item
from icefield.spark.read.log_directory import BLOCK_BYTES
from icefield.spark.read.native_deletes import are_few, choose_for_spark, load_deletes
from icefield.spark.read.native_read import FilesToRead, FreeNames, read_native
from icefield.spark.read.task import TASK_SCHEMA, ReadTask, Rows, is_shown_otherwise
from icefield.spark.session.workers import check_workers
from icefield.spark.types import logical_field
from icefield.types.arrays import Mask
from icefield.types.datatypes import DateType, DecimalType, NestedField, PrimitiveType, walk
from icefield.types.metadata_columns import DELETED, PARTITION_ID, is_metadata_column
from icefield.types.schema import Schema

MAX_LONG_DIGITS = 18


def read_files(spark: SparkSession, request: FilesToRead, where: Bound, rows: Rows = Rows.MATCHING) -> DataFrame:
    """Read the rows that match a filter, or those that do not."""
    natively = _reads_natively(request)
    frames: list[DataFrame] = []
    others = [_part(request, ~natively).files]
    for reading, files in _group_by_names(_part(request, natively)):
        if not reading.is_native:
            others.append(files)
            continue
        named = replace(request, reading=reading, files=files)
        has_deletes = files.delete_keys.is_valid().to_numpy()
        frames += _read_plain(spark, _part(named, ~has_deletes), where, rows)
        if has_deletes.any():
            more, left = _read_with_deletes(spark, _part(named, has_deletes), where, rows)
            frames += more
            others.append(left)
    rest = PlannedFiles.concat(others)
    if rest.num_rows:
        frames.append(_read_by_tasks(spark, replace(request, files=rest), where, rows))
    return reduce(DataFrame.union, frames) if frames else spark.createDataFrame([], _shown_schema(request.schema))


def _group_by_names(request: FilesToRead) -> Iterator[tuple[Reading, PlannedFiles]]:
    needs_numbers = request.files.delete_keys.is_valid().to_numpy()
    if any(is_metadata_column(f.field_id) for f in request.schema.fields):
        needs_numbers = np.ones_like(needs_numbers)
    demands = Demands(needs_numbers, _may_have_old_times(request))
    return group_by_names(request.context.store, request.metadata, request.schema, request.files, demands)


def _may_have_old_times(request: FilesToRead) -> Mask:
    """Find the files that may hold a date or time before 1900, by their statistics."""
    files, scan = request.files, request.scan
    leaves = [leaf for leaf in request.schema.leaves if isinstance(leaf.type, REBASED_TYPES) and not leaf.repeated]
    listed = load_manifests(request.context, scan.version.snapshot) if leaves and files.num_rows else None
    if listed is None:
        return np.full(files.num_rows, bool(leaves))
    old = any_of(
        *(
            Compare(Reference(leaf.field.field_id, leaf.type, leaf.path), Operator.LT, _first_of_1900(leaf.type))
            for leaf in leaves
        )
    )
    found = plan_scan(request.context, request.metadata, scan.version, all_of(scan.where, old)).files
    is_old = pc.is_in(files.file_path, value_set=pc.unique(found.file_path))
    # Nothing is known about files that the version no longer lists.
    is_listed = pc.is_in(files.manifest_path, value_set=pc.unique(listed.manifest_path))
    return pc.or_(is_old, pc.invert(is_listed)).to_numpy()  # type: ignore[no-any-return]


def _first_of_1900(kind: PrimitiveType) -> int:
    days = (date(1900, 1, 1) - date(1970, 1, 1)).days
    return days if isinstance(kind, DateType) else days * 86_400_000_000


def _reads_natively(request: FilesToRead) -> Mask:
    """Return for which files Spark's reader can read the columns."""
    known = find_name_mapping(request.metadata.properties) is None and all(map(_is_native, request.schema.fields))
    if not known or not _is_within_reach(request):
        return np.zeros(request.files.num_rows, np.bool_)
    return request.files.is_complete.to_numpy()  # type: ignore[no-any-return]


def _is_native(field: NestedField) -> bool:
    if is_metadata_column(field.field_id):
        return field.field_id != PARTITION_ID or not is_shown_otherwise(field.type)
    return not _has_difficult_default(field) and not has_refused_item(field.type)


def _is_within_reach(request: FilesToRead) -> bool:
    """Return whether Spark itself can open the files: their store must have a URI scheme that Spark supports."""
    if request.files.num_rows == 0:
        return True
    try:
        request.context.store.native_uri(request.files.file_path[0].as_py())
    except Unsupported:
        return False
    return True


def _has_difficult_default(field: NestedField) -> bool:
    """Return whether Spark's reader cannot apply the default of a column: nested, or a decimal wider than a long."""
    if any(f.initial_default is not None for _, f in walk(field.type)):
        return True
    wide = isinstance(field.type, DecimalType) and field.type.precision > MAX_LONG_DIGITS
    return field.initial_default is not None and (wide or not isinstance(field.type, PrimitiveType))


def _read_plain(spark: SparkSession, request: FilesToRead, where: Bound, rows: Rows) -> Iterator[DataFrame]:
    """Read with one scan for each residual of many files, so that Spark does not evaluate satisfied conditions."""
    if request.files.num_rows:
        for code, files in group_by_residual(request.files, BLOCK_BYTES):
            yield read_native(spark, replace(request, files=files), residual(where, code), rows)


def _read_with_deletes(
    spark: SparkSession, request: FilesToRead, where: Bound, rows: Rows
) -> tuple[list[DataFrame], PlannedFiles]:
    """Read files whose deletes Spark can apply; return the remaining files too."""
    if not are_few(request.files):
        return [], request.files
    reader = table_reader(request.context.store, request.metadata)
    tasks = list(request.scan.tasks(request.files))
    chosen = choose_for_spark(tasks, reader)
    if DELETED.field_id in request.schema.by_id:
        # A row's position shows whether it is deleted; for its key, an anti join would have to keep it.
        chosen &= [not task.has_key_deletes for task in tasks]
    native = [task for task, mine in zip(tasks, chosen, strict=True) if mine]
    files = _part(request, chosen).files
    left = residual(where, common_code(files.residual_code.to_numpy()))
    frames = [
        read_native(spark, replace(request, files=files.slice(of.start, of.stop - of.start)), left, rows, deletes)
        for of, deletes in (load_deletes(native, reader) if native else ())
    ]
    return frames, _part(request, ~chosen).files


def _read_by_tasks(spark: SparkSession, request: FilesToRead, where: Bound, rows: Rows) -> DataFrame:
    check_workers(spark)
    task = ReadTask(request.context.store, TableFiles.of(request.metadata), request.schema, where, rows)
    packs = pack_tasks(request.context, request.metadata, request.scan, request.files, request.schema)
    packed = [(pickle.dumps(tasks),) for tasks in packs]
    frame = spark.createDataFrame(packed, TASK_SCHEMA).repartition(len(packed))
    read = frame.mapInArrow(task, _shown_schema(request.schema))
    return read if request.restrict is None else _restricted(read, request)


def _restricted(frame: DataFrame, request: FilesToRead) -> DataFrame:
    # By position: Spark does not distinguish names that differ only by case.
    free, fields = FreeNames(SystemAmbient().random_uuid().hex), request.schema.fields
    names = [free.of(f.field_id) for f in fields]
    own = [name for name, f in zip(names, fields, strict=True) if not is_metadata_column(f.field_id)]
    assert request.restrict is not None
    kept = request.restrict(frame.toDF(*names), own)
    own_names = [F.col(name).alias(f.name) for name, f in zip(names, fields, strict=True)]
    return kept.select(*own_names, *request.kept)


def _part(request: FilesToRead, chosen: Mask) -> FilesToRead:
    return replace(request, files=request.files.filter(pa.array(chosen)))


def _shown_schema(schema: Schema) -> StructType:
    return StructType([logical_field(f) for f in schema.fields])
