"""Planned files through Spark's own vectorised Parquet reader.

Columns are found by field id. But Spark pushes filters into Parquet by *name*. So a column is read under a name that no
file has, and filtered after reading, unless `file_names` proves that the files have it under that same name and type;
then it is found by that name. Generated names have a random part: no file and no table has them. The columns of the
result have no field ids, which Spark would write to the user's files.

Metadata columns are derived from the row's position: the reader returns its number in the file, and the file's key, by
which a small table of the files is joined if more than the position is needed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from pyspark.sql.types import ArrayType, DataType, LongType, StructField, StructType

from icefield.ambient import SystemAmbient
from icefield.cache.reading import ReadContext
from icefield.expr.bind.bound import TRUE, Bound, columns_of
from icefield.expr.render.spark_sql import is_identifier, quoted_path, spark_sql
from icefield.model.metadata import TableMetadata
from icefield.plan.partition.values import load_partitions
from icefield.plan.plan import ScanPlan
from icefield.plan.planned_files import PlannedFiles
from icefield.spark.read.file_literals import are_literals, with_literals
from icefield.spark.read.file_names import INNER_ROW_NUMBER, UNKNOWN, Reading
from icefield.spark.read.log_directory import FILE_KEY, LogDirectory, NativeFile, open_files
from icefield.spark.read.logical_columns import select_all, to_logical_as
from icefield.spark.read.native_deletes import WORDS, Deletes
from icefield.spark.read.task import Rows
from icefield.spark.session.arrow_frame import create_frame
from icefield.spark.types import NO_ID, physical_field, plain_field, plain_type
from icefield.storage.sizes import check_local_size
from icefield.types.datatypes import NestedField, Type, children, with_children
from icefield.types.datatypes import StructType as StructOfTable
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

# For this, Spark builds an object for each row. The underlying column costs a third, but cannot be used together with
# the whole of `_metadata`, which is present if a file's key is selected but not used.
ROW_NUMBER = "_metadata.row_index"
_OF_FILES = (FILE.field_id, SPEC_ID.field_id, PARTITION_ID, ROW_ID.field_id, LAST_UPDATED.field_id)


@dataclass(frozen=True)
class FilesToRead:
    """Some files of a plan, and the columns to read from them: the table's, and metadata columns.

    reading: which names of the files Spark may use. restrict: keeps some rows before they get metadata columns: it is
    passed a DataFrame and the names that the other columns have in it, and may add columns. kept: those of its columns
    that the result has too, after the others.
    """

    context: ReadContext
    metadata: TableMetadata
    scan: ScanPlan
    files: PlannedFiles
    schema: Schema
    reading: Reading = UNKNOWN
    restrict: "Callable[[DataFrame, Sequence[str]], DataFrame] | None" = None
    kept: tuple[str, ...] = ()


def read_native(
    spark: SparkSession, request: FilesToRead, where: Bound, rows: Rows, deletes: Deletes | None = None
) -> DataFrame:
    """Read the live rows that match a filter, or those that do not."""
    return _NativeScan(spark, request, deletes).read(where, rows)


class _NativeScan:
    """One scan in progress."""

    def __init__(self, spark: SparkSession, request: FilesToRead, deletes: Deletes | None) -> None:
        self._spark = spark
        self._request = request
        self._deletes = deletes
        self._names = dict(request.reading.names)
        self._free = FreeNames(SystemAmbient().random_uuid().hex)
        self._physical = Schema(tuple(map(self._physical_field, request.schema.fields)))
        pairs = zip(self._physical.fields, request.schema.fields, strict=True)
        self._read = Schema(tuple(self._read_field(physical, f) for physical, f in pairs))
        self._wanted = {f.field_id for f in request.schema.fields if is_metadata_column(f.field_id)}
        self._key_fields = _key_fields(deletes)
        self._file_keys = np.arange(request.files.num_rows) if deletes is None else deletes.first_words
        self._needs_files = bool(self._wanted & set(_OF_FILES)) or bool(self._key_fields)
        self._row_number = self._choose_row_number()

    def read(self, where: Bound, rows: Rows) -> DataFrame:
        frame = self._with_own_insides(self._with_positions(self._open()))
        is_late = self._request.restrict is not None and not self._key_fields
        if not is_late:
            frame = self._with_metadata_columns(self._with_files(frame))
        if where != TRUE or rows is Rows.NON_MATCHING:
            frame, paths = self._with_plain_paths(frame, where)
            matches = spark_sql(where, lambda reference: paths[reference.field_id])
            frame = frame.where(matches if rows is Rows.MATCHING else f"NOT coalesce({matches}, false)")
        frame = self._without_deleted(frame)
        logical: dict[int, str] = {}
        if self._request.restrict is not None:
            frame, logical = self._restricted(frame, self._request.restrict)
        if is_late:
            frame = self._with_metadata_columns(self._with_files(frame))
        pairs = zip(self._read.fields, self._request.schema.fields, strict=True)
        return select_all(
            frame,
            [
                F.col(logical[f.field_id]).alias(f.name, metadata=NO_ID)
                if f.field_id in logical
                else to_logical_as(read.name, f, metadata=self._logical_metadata(read))
                for read, f in pairs
            ]
            + list(self._request.kept),
        )

    def _restricted(
        self, frame: DataFrame, restrict: "Callable[[DataFrame, Sequence[str]], DataFrame]"
    ) -> tuple[DataFrame, dict[int, str]]:
        """Keep some rows; return the names of the logical columns too. All names in the frame are generated ones."""
        own = [read for read in self._read.fields if not is_metadata_column(read.field_id)]
        names = {read.field_id: self._free.of("logical", read.field_id) for read in own}
        logical = [
            to_logical_as(read.name, replace(read, name=names[read.field_id]), metadata=self._logical_metadata(read))
            for read in own
        ]
        hidden = [self._physical_name(f) for f in LINEAGE if f.field_id in self._wanted]
        if self._row_number is not None:
            hidden += [self._free.row, *([self._free.key] if self._has_key else [])]
        if self._key_fields:  # the files were joined before
            hidden += [self._free.first_row, self._free.sequence]
            hidden += [read.name for read in self._read.fields if is_metadata_column(read.field_id)]
        return restrict(select_all(frame, [*logical, *hidden]), list(names.values())), names

    def _logical_metadata(self, read: NestedField) -> Mapping[str, str] | None:
        """Return the metadata of a column without the id that it was found by."""
        is_found_by_id = read.name == self._free.of(read.field_id) and not is_metadata_column(read.field_id)
        return NO_ID if is_found_by_id else None

    def _physical_field(self, column: NestedField) -> NestedField:
        """Return a column as read: under its name in the file, or under a generated one, with its nested fields."""
        field_id, reading = column.field_id, self._request.reading
        # If only a part is needed, Spark drops the ids of the column and of the part, and uses their names.
        known = is_metadata_column(field_id) or (field_id in reading.known and field_id in self._names)
        kind = column.type if known else _renamed(column.type, self._free)
        return replace(column, name=self._names.get(field_id, self._free.of(field_id)), type=kind)

    def _read_field(self, physical: NestedField, column: NestedField) -> NestedField:
        name = physical.name if physical.type == column.type else self._free.of("inside", column.field_id)
        return replace(column, name=name)

    def _with_own_insides(self, frame: DataFrame) -> DataFrame:
        """Restore the names of nested fields.

        Spark reads only the required parts of structs, and then drops their ids. Through a cast it reads the whole
        struct.
        """
        both = zip(self._physical.fields, self._read.fields, strict=True)
        casts = {
            read.name: F.col(physical.name).cast(plain_type(read.type)) for physical, read in both if physical != read
        }
        return frame.withColumns(casts) if casts else frame

    def _with_plain_paths(self, frame: DataFrame, where: Bound) -> tuple[DataFrame, Mapping[int, tuple[str, ...]]]:
        """Return the paths of the filter's columns; those that cannot be used in SQL text are renamed first."""
        paths = {i: self._read.paths[i] for i in columns_of(where)}
        odd = {i: path for i, path in paths.items() if not all(map(is_identifier, path))}
        if not odd:
            return frame, paths
        named = {i: self._free.of("part", i) for i in odd}
        made = frame.withColumns({named[i]: F.col(quoted_path(path)) for i, path in odd.items()})
        return made, paths | {i: (name,) for i, name in named.items()}

    def _choose_row_number(self) -> str | None:
        if not self._wanted and self._deletes is None:
            return None
        return ROW_NUMBER if DELETED.field_id in self._wanted else INNER_ROW_NUMBER

    def _open(self) -> DataFrame:
        own = [f for f in self._physical.fields if not is_metadata_column(f.field_id)]
        lineage = [replace(f, name=self._physical_name(f)) for f in LINEAGE if f.field_id in self._wanted]
        known = {f.field_id for f in own}
        keys = [replace(f, name=self._free.of(i)) for i, f in self._key_fields.items() if i not in known]
        physical = StructType([self._opened_field(f) for f in (*own, *lineage, *keys)])
        if self._row_number == INNER_ROW_NUMBER:
            physical = physical.add(INNER_ROW_NUMBER, LongType())
        log_directory = LogDirectory(self._request.context.store, self._request.metadata.location)
        return open_files(self._spark, self._native_files(), physical, log_directory)

    def _opened_field(self, field: NestedField) -> StructField:
        """Return a column as Spark looks it up: by its known name in the files, or by its id."""
        return plain_field(field) if self._names.get(field.field_id) == field.name else physical_field(field)

    def _native_files(self) -> Iterator[NativeFile]:
        files, store = self._request.files, self._request.context.store
        paths, sizes = (files[name].to_pylist() for name in ("file_path", "file_size_in_bytes"))
        uris = store.native_uris(paths)
        for location, uri, size, key in zip(paths, uris, sizes, self._file_keys.tolist(), strict=True):
            if uri.startswith("file:"):
                # Otherwise Spark would read whatever file is there now.
                check_local_size(location, uri, size)
            yield NativeFile(uri, size, key)

    @property
    def _shows_positions(self) -> bool:
        """Return whether positions are columns: not if only the bit of a row is looked up by them."""
        return bool(self._wanted or self._key_fields) or self._request.restrict is not None

    def _with_positions(self, frame: DataFrame) -> DataFrame:
        if self._row_number is None or not self._shows_positions:
            return frame
        keys = [f"{FILE_KEY} AS {self._free.key}"] if self._has_key else []
        return frame.selectExpr("*", *keys, f"{self._row_number} AS {self._free.row}")

    @property
    def _has_key(self) -> bool:
        return self._needs_files or self._deletes is not None

    def _with_files(self, frame: DataFrame) -> DataFrame:
        if not self._needs_files:
            return frame
        columns, schema = self._files()
        if self._request.restrict is not None and are_literals(columns, schema):
            # Few rows are left, and a broadcast is a job of its own.
            return with_literals(frame, self._free.key, columns, schema)
        return frame.join(F.broadcast(create_frame(self._spark, columns, schema)), self._free.key)

    def _files(self) -> tuple[pa.Table, StructType]:
        """Return what rows inherit from their files, for the wanted columns; the key comes first."""
        files, request = self._request.files, self._request
        free = self._free
        columns = {free.key: pa.array(self._file_keys), free.first_row: files.first_row_id}
        columns[free.sequence] = files.sequence_number
        types: dict[str, DataType] = dict.fromkeys(columns, LongType())
        inherited = {FILE.field_id: "file_path", SPEC_ID.field_id: "spec_id"}
        for column in self._read.fields:
            if column.field_id in inherited:
                columns[column.name] = files[inherited[column.field_id]]
            elif column.field_id == PARTITION_ID:
                columns[column.name] = load_partitions(request.context, request.metadata, request.scan, files)
            else:
                continue
            types[column.name] = plain_type(column.type)
        if self._deletes is not None and self._key_fields:
            columns[free.applies] = pa.array(self._deletes.applies, WORDS)
            types[free.applies] = ArrayType(LongType(), False)
        # Types are explicit, because Spark would infer a timestamp with the session's zone.
        fields = [StructField(name, types[name]) for name in columns]
        return pa.table(columns), StructType(fields)

    def _with_metadata_columns(self, frame: DataFrame) -> DataFrame:
        free = self._free
        made: dict[str, Column] = {}
        if POSITION.field_id in self._wanted:
            made[free.of(POSITION.field_id)] = F.col(free.row)
        if DELETED.field_id in self._wanted:
            made[free.of(DELETED.field_id)] = F.lit(False) if self._deletes is None else self._bit(self._deletes) != 0
        if ROW_ID.field_id in self._wanted:
            made[free.of(ROW_ID.field_id)] = self._inherited(ROW_ID, F.col(free.first_row) + F.col(free.row))
        if LAST_UPDATED.field_id in self._wanted:
            made[free.of(LAST_UPDATED.field_id)] = self._inherited(LAST_UPDATED, F.col(free.sequence))
        return frame.withColumns(made) if made else frame

    def _without_deleted(self, frame: DataFrame) -> DataFrame:
        if self._deletes is None or DELETED.field_id in self._wanted:
            return frame
        frame = frame.where(self._bit(self._deletes) == 0)
        if not self._key_fields:
            return frame
        own = {f.field_id: f.name for f in self._read.fields}
        names = {i: own.get(i, self._free.of(i)) for i in self._key_fields}
        return self._deletes.drop_keys(self._spark, frame, names, self._free.applies)

    def _bit(self, deletes: Deletes) -> Column:
        if not self._shows_positions:
            return deletes.bit(self._spark, FILE_KEY, INNER_ROW_NUMBER)
        return deletes.bit(self._spark, self._free.key, self._free.row)

    def _physical_name(self, lineage: NestedField) -> str:
        return self._free.of("physical", lineage.field_id)

    def _inherited(self, lineage: NestedField, value: Column) -> Column:
        """Return a row's lineage from the file, or derived from its position; null before it was assigned."""
        physical = F.col(self._physical_name(lineage))
        return F.when(F.col(self._free.first_row).isNotNull(), F.coalesce(physical, value))


@dataclass(frozen=True)
class FreeNames:
    """Generated names that no file, table or user has, and that need no quotes."""

    random: str

    def of(self, *parts: object) -> str:
        return "_".join(("icefield", self.random, *map(str, parts)))

    @property
    def key(self) -> str:
        return self.of("file")

    @property
    def row(self) -> str:
        return self.of("row")

    @property
    def applies(self) -> str:
        return self.of("applies")

    @property
    def first_row(self) -> str:
        return self.of("first_row")

    @property
    def sequence(self) -> str:
        return self.of("sequence")


def _renamed(kind: Type, free: FreeNames) -> Type:
    """Return a type with generated names inside structs, at any depth."""
    inner = tuple(
        replace(f, name=free.of(f.field_id) if isinstance(kind, StructOfTable) else f.name, type=_renamed(f.type, free))
        for f in children(kind)
    )
    return with_children(kind, inner) if inner else kind


def _key_fields(deletes: Deletes | None) -> dict[int, NestedField]:
    return {f.field_id: f for keys in (deletes.keys if deletes else ()) for f in keys.fields.fields}
