"""Planned files to a DataFrame: through Spark's native vectorised Parquet reader, or by tasks of ours.

Spark gets exactly the planned files with their sizes, from a file log in a directory of its own, so that it lists and
stats nothing. Columns are found by field id. One trap is avoided here: Spark pushes filters into Parquet by *name*, so
a name that ever meant another column is read under a name that no file has; such a column is filtered after reading.

Files that need more than their own columns (deletes, names for ids, partition values, lineage) go through tasks in
Python workers; the others of the same scan do not.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from pyspark.sql import types as spark_types

from icefield.codec.name_mapping import find_name_mapping
from icefield.errors import Unsupported
from icefield.expr.bound import TRUE, Bound
from icefield.expr.residual import residual
from icefield.expr.spark_sql import quoted_path, spark_sql
from icefield.model.metadata import TableMetadata
from icefield.parquet.file_task import FileTask
from icefield.scan.plan import ScanPlan
from icefield.scan.residuals import group_by_residual
from icefield.scan.splits import Split, plan_splits
from icefield.spark.file_log import BLOCK_BYTES, NativeFile, open_files
from icefield.spark.read_task import TASK_SCHEMA, ReadTask, Rows
from icefield.spark.types import presented_field, reads_natively, stored_field, stored_type
from icefield.storage.store import Store
from icefield.types.datatypes import (
    DecimalType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
    UUIDType,
    children,
    walk,
    with_children,
)
from icefield.types.metadata_columns import is_metadata_column
from icefield.types.schema import Schema

MAX_LONG_DIGITS = 18
UUID_PARTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))


@dataclass(frozen=True)
class FilesToRead:
    """Some files of a plan, and the columns to read of them: the table's, and metadata columns."""

    store: Store
    metadata: TableMetadata
    scan: ScanPlan
    files: pa.Table
    schema: Schema

    @property
    def history(self) -> Sequence[Schema]:
        """Every schema that the table ever had; a name that changed its meaning in it is read with care."""
        return self.metadata.schemas


def read_files(spark: SparkSession, request: FilesToRead, where: Bound, rows: Rows = Rows.MATCHING) -> DataFrame:
    """Read the rows that match a filter, or those that do not."""
    natively = _reads_natively(request)
    native, others = request.files.filter(natively), request.files.filter(pc.invert(natively))
    if others.num_rows == 0:
        return _read_natively(spark, replace(request, files=native), where, rows)
    by_tasks = _read_by_tasks(spark, replace(request, files=others), where, rows)
    if native.num_rows == 0:
        return by_tasks
    return _read_natively(spark, replace(request, files=native), where, rows).union(by_tasks)


def _reads_natively(request: FilesToRead) -> pa.ChunkedArray:
    """Say which files Spark's reader can read alone."""
    known = find_name_mapping(request.metadata.properties) is None and all(
        not is_metadata_column(f.field_id) and reads_natively(f, request.history) and not _has_difficult_default(f)
        for f in request.schema.fields
    )
    if not known or not _is_within_reach(request):
        return pa.chunked_array([pa.repeat(False, request.files.num_rows)])
    return pc.and_(request.files.column("delete_keys").is_null(), request.files.column("is_complete"))


def _is_within_reach(request: FilesToRead) -> bool:
    """Say whether Spark itself can open the files: their store must have a name that Spark knows."""
    if request.files.num_rows == 0:
        return True
    try:
        request.store.native_uri(request.files.column("file_path")[0].as_py())
    except Unsupported:
        return False
    return True


def _has_difficult_default(field: NestedField) -> bool:
    """Say whether a column has a default that Spark's reader cannot give: inside it, or a decimal wider than a long."""
    if any(f.initial_default is not None for _, f in walk(field.type)):
        return True
    wide = isinstance(field.type, DecimalType) and field.type.precision > MAX_LONG_DIGITS
    return field.initial_default is not None and (wide or not isinstance(field.type, PrimitiveType))


def _read_natively(spark: SparkSession, request: FilesToRead, where: Bound, rows: Rows) -> DataFrame:
    """Read with as many scans as there are residuals for many files, so that Spark does not check what is proven."""
    frames = [
        _read_group(spark, replace(request, files=files), residual(where, proven), rows)
        for proven, files in group_by_residual(request.files, BLOCK_BYTES)
    ]
    return reduce(DataFrame.union, frames)


def _read_group(spark: SparkSession, request: FilesToRead, where: Bound, rows: Rows) -> DataFrame:
    risky = find_reused_names(request.schema, request.history)
    hidden = Schema(tuple(_hide(f, risky) for f in request.schema.fields))
    frame = _open(spark, request, spark_types.StructType([stored_field(f) for f in hidden.fields]))
    if where != TRUE or rows is Rows.REST:
        matches = spark_sql(where, lambda reference: hidden.paths[reference.field_id])
        frame = frame.where(matches if rows is Rows.MATCHING else f"NOT coalesce({matches}, false)")
    return frame.select([_shown(f, risky) for f in request.schema.fields])


def _read_by_tasks(spark: SparkSession, request: FilesToRead, where: Bound, rows: Rows) -> DataFrame:
    metadata = request.metadata
    history = metadata.schemas_newest_first
    mapping = find_name_mapping(metadata.properties)
    task = ReadTask(request.store, history, mapping, request.schema, where, rows)
    packed = [(pickle.dumps(tasks),) for tasks in _packed(request)]
    frame = spark.createDataFrame(packed, TASK_SCHEMA).repartition(len(packed))
    shown = spark_types.StructType([presented_field(f) for f in request.schema.fields])
    return frame.mapInArrow(task, shown)


def _packed(request: FilesToRead) -> Iterator[list[FileTask]]:
    """Yield tasks in lists of about one size; large files are cut at their row groups."""
    sizes = request.files.column("file_size_in_bytes").to_pylist()
    tasks = {task.location: (task, size) for task, size in zip(request.scan.tasks(request.files), sizes, strict=True)}
    for splits in plan_splits(request.store, request.metadata, request.scan, request.files):
        yield [_part(*tasks[split.location], split) for split in splits]


def _part(task: FileTask, size: int, split: Split) -> FileTask:
    # The last part has no end: should the recorded size be wrong, no row group is lost.
    return replace(task, start=split.start, end=split.end if split.end < size else task.end)


def narrow(frame: DataFrame, full: Schema, select: Schema) -> DataFrame:
    """Keep the selected columns; of a struct that was selected in part, keep that part."""
    return frame.select(
        [
            _narrowed(F.col(quoted_path([f.name])), full.by_id[f.field_id].type, f.type).alias(f.name)
            for f in select.fields
        ]
    )


def find_reused_names(schema: Schema, history: Iterable[Schema]) -> set[int]:
    """Return the ids of columns whose name, at any depth, also stood for another column of the table."""
    names: dict[str, set[int]] = {}
    for version in (schema, *history):
        for path, field in walk(version.struct):
            names.setdefault(".".join(path).lower(), set()).add(field.field_id)
    return {i for i, path in schema.paths.items() if len(names[".".join(path).lower()]) > 1}


def _open(spark: SparkSession, request: FilesToRead, stored: spark_types.StructType) -> DataFrame:
    if request.files.num_rows == 0:
        return spark.createDataFrame([], stored)
    return open_files(spark, _native_files(request), stored)


def _native_files(request: FilesToRead) -> Iterator[NativeFile]:
    paths = request.files.column("file_path").to_pylist()
    sizes = request.files.column("file_size_in_bytes").to_pylist()
    for ordinal, (location, size) in enumerate(zip(paths, sizes, strict=True)):
        yield NativeFile(request.store.native_uri(location), size, ordinal)


def _hide(field: NestedField, risky: set[int]) -> NestedField:
    """Rename risky fields, at any depth, to a name that no file has."""
    inner = tuple(_hide(child, risky) for child in children(field.type))
    kind: Type = with_children(field.type, inner) if inner else field.type
    name = f"icefield_column_{field.field_id}" if field.field_id in risky else field.name
    return replace(field, name=name, type=kind)


def _shown(field: NestedField, risky: set[int]) -> Column:
    column = F.col(quoted_path([_hide(field, risky).name]))
    if any(f.field_id in risky for _, f in walk(field.type)):
        column = column.cast(stored_type(field.type))
    return _present(column, field.type).alias(field.name)


def _present(column: Column, kind: Type) -> Column:
    """Turn stored values into what users see: uuids, at any depth, become text."""
    if not _holds_uuid(kind):
        return column
    match kind:
        case UUIDType():
            digits = F.lower(F.hex(column))
            text = F.concat_ws("-", *(F.substring(digits, start, length) for start, length in UUID_PARTS))
            return F.when(column.isNotNull(), text)
        case StructType(fields):
            parts = [_present(column.getField(f.name), f.type).alias(f.name) for f in fields]
            return F.when(column.isNotNull(), F.struct(*parts))
        case ListType():
            return F.transform(column, lambda item: _present(item, kind.element_type))
        case MapType():
            return F.transform_values(
                F.transform_keys(column, lambda key, _: _present(key, kind.key_type)),
                lambda _, value: _present(value, kind.value_type),
            )
        case _:
            return column


def _narrowed(column: Column, full: Type, kept: Type) -> Column:
    if full == kept:
        return column
    match full, kept:
        case StructType(), StructType():
            inner = {f.field_id: f.type for f in full.fields}
            parts = [_narrowed(column.getField(f.name), inner[f.field_id], f.type).alias(f.name) for f in kept.fields]
            return F.when(column.isNotNull(), F.struct(*parts))
        case ListType(), ListType():
            return F.transform(column, lambda item: _narrowed(item, full.element_type, kept.element_type))
        case MapType(), MapType():
            return F.transform_values(column, lambda _, value: _narrowed(value, full.value_type, kept.value_type))
        case _:
            return column


def _holds_uuid(kind: Type) -> bool:
    return isinstance(kind, UUIDType) or any(_holds_uuid(f.type) for f in children(kind))
