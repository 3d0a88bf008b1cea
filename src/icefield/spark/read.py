"""Planned files to a DataFrame, through Spark's native vectorised Parquet reader.

Spark gets exactly the planned files with their sizes, from a file log in a directory of its own, so that it lists and
stats nothing. Columns are found by field id. One trap is avoided here: Spark pushes filters into Parquet by *name*, so
a name that ever meant another column is read under a name that no file has; such a column is filtered after reading.
"""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import msgspec
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from pyspark.sql import types as spark_types

from icefield.expr.bound import TRUE, Bound
from icefield.expr.spark_sql import quoted_path, spark_sql
from icefield.spark.types import stored_field, stored_type
from icefield.storage.store import Store
from icefield.types.datatypes import (
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    UUIDType,
    children,
    walk,
    with_children,
)
from icefield.types.schema import Schema

BLOCK_BYTES = 128 * 1024 * 1024
UUID_PARTS = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))


class Rows(Enum):
    """Which rows of the files to read, given a filter."""

    MATCHING = "matching"
    REST = "rest"  # those for which the filter is false or null


@dataclass(frozen=True)
class FilesToRead:
    """Data files (`file_path`, `file_size_in_bytes`) and the schema to read them with.

    history: every schema that the table ever had; a name that changed its meaning in it is read with care.
    """

    store: Store
    files: pa.Table
    schema: Schema
    history: Sequence[Schema]


def read_files(spark: SparkSession, request: FilesToRead, where: Bound, rows: Rows = Rows.MATCHING) -> DataFrame:
    """Read the rows that match a filter, or those that do not."""
    risky = find_reused_names(request.schema, request.history)
    hidden = Schema(tuple(_hide(f, risky) for f in request.schema.fields))
    frame = _open(spark, request, spark_types.StructType([stored_field(f) for f in hidden.fields]))
    if where != TRUE or rows is Rows.REST:
        matches = spark_sql(where, lambda reference: hidden.paths[reference.field_id])
        frame = frame.where(matches if rows is Rows.MATCHING else f"NOT coalesce({matches}, false)")
    return frame.select([_shown(f, risky) for f in request.schema.fields])


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
    with tempfile.TemporaryDirectory(prefix="icefield-scan-") as folder:
        log = Path(folder) / "_spark_metadata"
        log.mkdir()
        with (log / "0").open("wb") as sink:
            sink.write(b"v1")
            sink.writelines(b"\n" + line for line in _log_lines(request))
        # The relation holds the list from here on; the directory is not looked at again.
        return spark.read.schema(stored).option("recursiveFileLookup", "true").parquet(Path(folder).as_uri())


def _log_lines(request: FilesToRead) -> Iterator[bytes]:
    paths = request.files.column("file_path").to_pylist()
    sizes = request.files.column("file_size_in_bytes").to_pylist()
    for ordinal, (location, size) in enumerate(zip(paths, sizes, strict=True)):
        yield msgspec.json.encode(
            {
                "path": request.store.native_uri(location),
                "size": size,
                "isDir": False,
                "modificationTime": ordinal,
                "blockReplication": 1,
                "blockSize": BLOCK_BYTES,
                "action": "add",
            }
        )


def _hide(field: NestedField, risky: set[int]) -> NestedField:
    """Rename risky fields, at any depth, to a name that no file has."""
    inner = tuple(_hide(child, risky) for child in children(field.type))
    kind: Type = with_children(field.type, inner) if inner else field.type
    name = f"icefield_column_{field.field_id}" if field.field_id in risky else field.name
    return NestedField(field.field_id, name, kind, field.required)


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
