"""Planned files through Spark's own vectorised Parquet reader.

Columns are found by field id. One trap is avoided here: Spark pushes filters into Parquet by *name*, so a name that
ever meant another column is read under a name that no file has; such a column is filtered after reading.

What rows have beside their own columns comes from their place: the reader tells a row's number in its file, and the
file's key, by which a small table of the files is joined where more is asked for than the place itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from pyspark.sql.types import ArrayType, DataType, LongType, StructField, StructType

from icefield.expr.bound import TRUE, Bound
from icefield.expr.spark_sql import quoted_path, spark_sql
from icefield.model.metadata import TableMetadata
from icefield.scan.partition_values import load_partitions
from icefield.scan.plan import ScanPlan
from icefield.spark.file_log import FILE_KEY, NativeFile, Shelf, open_files
from icefield.spark.native_deletes import WORDS, Deletes, key_name
from icefield.spark.present import ColumnOrName, holds_uuid, present, select_all
from icefield.spark.read_task import Rows
from icefield.spark.types import stored_field, stored_type
from icefield.spark.written_names import Names, find_reused_names
from icefield.storage.sizes import check_local_size
from icefield.storage.store import Store
from icefield.types.datatypes import NestedField, Type, children, with_children
from icefield.types.metadata_columns import (
    DELETED,
    FILE,
    LAST_UPDATED,
    LINEAGE,
    PARTITION_ID,
    POSITION,
    ROW_ID,
    SPEC_ID,
    is_metadata_column,
)
from icefield.types.schema import Schema

# For this, Spark makes an object of each row. The column that it is made of costs a third, but is refused beside the
# whole of `_metadata`, which is there if a file's key is selected and then nobody looks at it.
ROW_NUMBER, INNER_ROW_NUMBER = "_metadata.row_index", "_tmp_metadata_row_index"
# Columns of our own while a scan is put together.
_KEY, _ROW, _APPLIES = "icefield_file", "icefield_row", "icefield_applies"
_FIRST_ROW, _SEQUENCE = "icefield_first_row", "icefield_sequence"
_OF_FILES = (FILE.field_id, SPEC_ID.field_id, PARTITION_ID, ROW_ID.field_id, LAST_UPDATED.field_id)
_RESERVED = {"_metadata", _KEY, _ROW, _APPLIES, _FIRST_ROW, _SEQUENCE}


@dataclass(frozen=True)
class FilesToRead:
    """Some files of a plan, and the columns to read of them: the table's, and metadata columns.

    names: those that the files have for top columns under other names than today's, by field id.
    """

    store: Store
    metadata: TableMetadata
    scan: ScanPlan
    files: pa.Table
    schema: Schema
    names: Names | None = None

    @property
    def history(self) -> Sequence[Schema]:
        """Every schema that the table ever had; a name that changed its meaning in it is read with care."""
        return self.metadata.schemas


def read_native(
    spark: SparkSession, request: FilesToRead, where: Bound, rows: Rows, deletes: Deletes | None = None
) -> DataFrame:
    """Read the rows that match a filter, or those that do not, and that are not deleted."""
    return _NativeScan(spark, request, deletes).read(where, rows)


class _NativeScan:
    """One scan on its way."""

    def __init__(self, spark: SparkSession, request: FilesToRead, deletes: Deletes | None) -> None:
        self._spark = spark
        self._request = request
        self._deletes = deletes
        hidden = {field_id: _name(field_id) for field_id in _find_hidden(request.schema, request.history)}
        self._names = {**(request.names or {}), **hidden}
        self._read = Schema(tuple(_renamed(f, self._names) for f in request.schema.fields))
        self._wanted = {f.field_id for f in request.schema.fields if is_metadata_column(f.field_id)}
        self._key_fields = _key_fields(deletes)
        self._file_keys = np.arange(request.files.num_rows) if deletes is None else deletes.first_words
        self._needs_files = bool(self._wanted & set(_OF_FILES)) or bool(self._key_fields)
        self._row_number = self._choose_row_number()

    def read(self, where: Bound, rows: Rows) -> DataFrame:
        frame = self._with_metadata_columns(self._with_places(self._open()))
        if where != TRUE or rows is Rows.REST:
            matches = spark_sql(where, lambda reference: self._read.paths[reference.field_id])
            frame = frame.where(matches if rows is Rows.MATCHING else f"NOT coalesce({matches}, false)")
        frame = self._without_deleted(frame)
        return select_all(frame, [_shown(f, self._names) for f in self._request.schema.fields])

    def _choose_row_number(self) -> str | None:
        if not self._wanted and self._deletes is None:
            return None
        return ROW_NUMBER if DELETED.field_id in self._wanted else INNER_ROW_NUMBER

    def _open(self) -> DataFrame:
        own = [f for f in self._read.fields if not is_metadata_column(f.field_id)]
        lineage = [replace(f, name=_stored_name(f)) for f in LINEAGE if f.field_id in self._wanted]
        known = {f.field_id for f in own}
        keys = [replace(f, name=key_name(i)) for i, f in self._key_fields.items() if i not in known]
        stored = StructType([stored_field(f) for f in (*own, *lineage, *keys)])
        if self._row_number == INNER_ROW_NUMBER:
            stored = stored.add(INNER_ROW_NUMBER, LongType())
        shelf = Shelf(self._request.store, self._request.metadata.location)
        return open_files(self._spark, self._native_files(), stored, shelf)

    def _native_files(self) -> Iterator[NativeFile]:
        files, store = self._request.files, self._request.store
        paths, sizes = (files.column(name).to_pylist() for name in ("file_path", "file_size_in_bytes"))
        for location, size, key in zip(paths, sizes, self._file_keys.tolist(), strict=True):
            uri = store.native_uri(location)
            if uri.startswith("file:"):
                # Spark would read whatever file is there now.
                check_local_size(location, size)
            yield NativeFile(uri, size, key)

    def _with_places(self, frame: DataFrame) -> DataFrame:
        if self._row_number is None:
            return frame
        keys = [f"{FILE_KEY} AS {_KEY}"] if self._needs_files or self._deletes else []
        placed = frame.selectExpr("*", *keys, f"{self._row_number} AS {_ROW}")
        return placed.join(F.broadcast(self._files()), _KEY) if self._needs_files else placed

    def _files(self) -> DataFrame:
        """Return what rows inherit from their files, for the columns that are wanted."""
        files, request = self._request.files, self._request
        columns = {_KEY: pa.array(self._file_keys), _FIRST_ROW: files.column("first_row_id")}
        columns[_SEQUENCE] = files.column("sequence_number")
        types: dict[str, DataType] = dict.fromkeys(columns, LongType())
        inherited = {FILE.field_id: "file_path", SPEC_ID.field_id: "spec_id"}
        for field in self._read.fields:
            if field.field_id in inherited:
                columns[field.name] = files.column(inherited[field.field_id])
            elif field.field_id == PARTITION_ID:
                columns[field.name] = load_partitions(request.store, request.metadata, request.scan, files)
            else:
                continue
            types[field.name] = stored_type(field.type)
        if self._deletes is not None and self._key_fields:
            columns[_APPLIES] = pa.array(self._deletes.applies, WORDS)
            types[_APPLIES] = ArrayType(LongType(), False)
        # The types are said, for Spark takes a timestamp without a zone for one with the session's.
        fields = [StructField(name, types[name]) for name in columns]
        return self._spark.createDataFrame(pa.table(columns), StructType(fields))

    def _with_metadata_columns(self, frame: DataFrame) -> DataFrame:
        made: dict[str, Column] = {}
        if POSITION.field_id in self._wanted:
            made[_name(POSITION.field_id)] = F.col(_ROW)
        if DELETED.field_id in self._wanted:
            made[_name(DELETED.field_id)] = F.lit(False) if self._deletes is None else self._bit(self._deletes) != 0
        if ROW_ID.field_id in self._wanted:
            made[_name(ROW_ID.field_id)] = _inherited(ROW_ID, F.col(_FIRST_ROW) + F.col(_ROW))
        if LAST_UPDATED.field_id in self._wanted:
            made[_name(LAST_UPDATED.field_id)] = _inherited(LAST_UPDATED, F.col(_SEQUENCE))
        return frame.withColumns(made) if made else frame

    def _without_deleted(self, frame: DataFrame) -> DataFrame:
        if self._deletes is None or DELETED.field_id in self._wanted:
            return frame
        frame = frame.where(self._bit(self._deletes) == 0)
        if not self._key_fields:
            return frame
        own = {f.field_id: f.name for f in self._read.fields}
        names = {i: own.get(i, key_name(i)) for i in self._key_fields}
        return self._deletes.drop_keys(self._spark, frame, names, _APPLIES)

    def _bit(self, deletes: Deletes) -> Column:
        return deletes.bit(self._spark, _KEY, _ROW)


def _find_hidden(schema: Schema, history: Iterable[Schema]) -> set[int]:
    """Return the ids of columns that are read under another name than their own."""
    ours = {f.field_id for f in schema.fields if is_metadata_column(f.field_id) or f.name.lower() in _RESERVED}
    return find_reused_names(schema, history) | ours


def _key_fields(deletes: Deletes | None) -> dict[int, NestedField]:
    return {f.field_id: f for keys in (deletes.keys if deletes else ()) for f in keys.fields.fields}


def _renamed(field: NestedField, names: Names) -> NestedField:
    """Return a field as it is read: under the name that it has for its id, at any depth."""
    inner = tuple(_renamed(child, names) for child in children(field.type))
    kind: Type = with_children(field.type, inner) if inner else field.type
    return replace(field, name=names.get(field.field_id, field.name), type=kind)


def _name(field_id: int) -> str:
    """Return a name that no file has."""
    return f"icefield_column_{field_id}"


def _stored_name(lineage: NestedField) -> str:
    return f"icefield_stored_{lineage.field_id}"


def _inherited(lineage: NestedField, value: Column) -> Column:
    """Return what a file says of a row's lineage, or else what follows from its place; null before it had any."""
    return F.when(F.col(_FIRST_ROW).isNotNull(), F.coalesce(F.col(_stored_name(lineage)), value))


def _shown(field: NestedField, names: Names) -> ColumnOrName:
    read = _renamed(field, names)
    name = quoted_path([read.name])
    if read == field and not holds_uuid(field.type):
        return name
    column = F.col(name)
    if read.type != field.type:
        column = column.cast(stored_type(field.type))
    return present(column, field.type).alias(field.name)
