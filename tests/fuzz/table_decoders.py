"""Decoders that are foreign code: Parquet through Arrow, and the catalog's file through SQLite."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyarrow as pa
from tests.fuzz.corpus import File
from tests.fuzz.harness import Decoder
from tests.fuzz.mutate import mutate_bytes
from tests.golden.reading import EXPECTED, load
from tests.golden.store import GoldenStore

from icefield.cache.reading import ReadContext
from icefield.catalog.catalog import Kind, PointerSwap
from icefield.catalog.sql.sqlite import SqliteSettings, open_sqlite_catalog
from icefield.expr.bind.bound import TRUE
from icefield.model.metadata import TableMetadata
from icefield.model.names import TableName
from icefield.parquet.read.read import table_reader
from icefield.parquet.read.task import DeleteType, FileTask
from icefield.plan.plan import plan_scan
from icefield.plan.versions import resolve_version
from icefield.types.metadata_columns import with_metadata_columns

DATA_TABLES = (
    *("java_types", "java_nested", "java_parquet_codecs", "java_variants", "java_defaults"),
    *("java_name_mapping", "java_nested_evolution", "java_row_lineage_compacted", "pyiceberg_types"),
)
POSITION_TABLES = ("java_position_deletes", "java_partition_position_deletes", "java_position_deletes_upgraded")
EQUALITY_TABLES = (
    *("java_equality_deletes", "java_equality_deletes_of_types", "java_equality_deletes_on_two"),
    *("java_equality_deletes_everywhere", "java_v3_equality_deletes"),
)
TABLE, VIEW = TableName(("shop",), "orders"), TableName(("shop",), "busy")


class DamagedStore(GoldenStore):
    """The golden tables with other bytes at one location."""

    def __init__(self, location: str, data: bytes) -> None:
        super().__init__()
        self._location = location
        self._data = data

    def open_input(self, location: str) -> pa.NativeFile:
        return pa.BufferReader(self._data) if location == self._location else super().open_input(location)


@cache
def _tasks(table: str) -> tuple[TableMetadata, tuple[FileTask, ...]]:
    (expected,) = (e for e in EXPECTED if e["name"] == table)
    metadata = load(expected["metadata"])
    plan = plan_scan(ReadContext(GoldenStore()), metadata, resolve_version(metadata, None), TRUE)
    # Damaged files have other sizes, and are to be decoded all the same.
    return metadata, tuple(replace(task, file_size_bytes=None) for task in plan.tasks(plan.files))


def data_files() -> Sequence[File]:
    """Return data files; the name is the table and the location."""
    return tuple(_files(DATA_TABLES, None))


def position_delete_files() -> Sequence[File]:
    return tuple(_files(POSITION_TABLES, DeleteType.POSITIONS))


def equality_delete_files() -> Sequence[File]:
    return tuple(_files(EQUALITY_TABLES, DeleteType.EQUALITY))


def _files(tables: Sequence[str], kind: DeleteType | None) -> Iterator[File]:
    for table in tables:
        found = {
            location: None
            for task in _tasks(table)[1]
            for location in ([task.location] if kind is None else [d.location for d in task.deletes if d.kind is kind])
        }
        assert found, f"{table} has no such file"
        for location in found:
            yield File(f"{table} {location}", GoldenStore().read(location))


def read_rows(file: File) -> None:
    """Read the table's rows that the file has a part in, with this file as it is given."""
    table, location = file.name.split(" ", 1)
    metadata, tasks = _tasks(table)
    reader = table_reader(DamagedStore(location, file.data), metadata)
    schema = with_metadata_columns(metadata.schema)
    columns = [field.name for field in schema.fields]
    for task in tasks:
        if location in (task.location, *(delete.location for delete in task.deletes)):
            for batch in reader.read(task, schema, columns, TRUE):
                # Not in full: there are no checksums, and Arrow does not look whether strings are UTF-8.
                batch.validate()


@cache
def catalog_files() -> Sequence[File]:
    """Return the file of a catalog with a few names in it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "catalog.db"
        catalog = open_sqlite_catalog(path, settings=SqliteSettings(durable=False))
        catalog.create_namespace(("shop",), {"owner": "me"})
        catalog.create_namespace(("shop", "inner"))
        catalog.swap([PointerSwap(TABLE, None, "s3://lake/a"), PointerSwap(VIEW, None, "s3://lake/b", Kind.VIEW)])
        catalog.close()
        return (File("catalog.db", path.read_bytes()),)


def use_catalog(file: File) -> None:
    """Ask everything that reads, then write."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "catalog.db"
        path.write_bytes(file.data)
        settings = SqliteSettings(durable=False, create=False, busy_timeout_s=0)
        catalog = open_sqlite_catalog(path, settings=settings)
        try:
            for namespace in catalog.list_namespaces():
                catalog.namespace_properties(namespace)
                catalog.list_tables(namespace)
                catalog.list_views(namespace)
            pointer = catalog.pointer(TABLE)
            catalog.create_namespace(("other",))
            catalog.swap([PointerSwap(TABLE, pointer, "s3://lake/c")])
            catalog.drop_namespace(("other",))
        finally:
            catalog.close()


TABLE_DECODERS = (
    Decoder("parquet", data_files, read_rows, mutate_bytes, normal=120, many=375, child=True),
    Decoder("position-deletes", position_delete_files, read_rows, mutate_bytes, normal=60, many=175, child=True),
    Decoder("equality-deletes", equality_delete_files, read_rows, mutate_bytes, normal=60, many=175, child=True),
    Decoder("catalog", catalog_files, use_catalog, mutate_bytes, normal=80, many=250),
)
