"""Exactly the files of a plan as a DataFrame of Spark's native Parquet reader.

Spark takes the list from a file log in a directory of its own, with sizes and times, so that it lists and stats
nothing. The times are ours: each file's is its `key`, which a query gets back, cheaply, as FILE_KEY.

A session of this process reads the log once, when the DataFrame is made. Over Spark Connect a DataFrame is a plan that
the server reads anew for each action, maybe on another machine: there the log stands beside the table, where the server
finds its files too, for as long as the plan or one made of it can run. Where nothing can be written there, a temporary
directory does for a server on this machine, and StorageError is raised for any other.
"""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from icefield.ambient import SystemAmbient
from icefield.errors import IcefieldError, StorageError
from icefield.spark.session.session import READ_BY_FIELD_ID, is_on_this_machine, is_remote
from icefield.storage.disk import writing
from icefield.storage.location import join_location, local_path
from icefield.storage.store import Store

BLOCK_BYTES = 128 * 1024 * 1024
# The time of a file is one of milliseconds.
FILE_KEY = "unix_millis(_metadata.file_modification_time)"
# By its class it is Spark's first version of the format, whatever `spark.sql.sources.useV1SourceList` says: the second
# knows neither the numbers of rows nor the times of files.
PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
# What must not depend on the session: the format has one calendar (spec: Primitive Types, ISO 8601), and a file of a
# plan that is missing or damaged is an error.
READ_OPTIONS = {
    "recursiveFileLookup": "true",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
}
_LOG = "_spark_metadata/0"


@dataclass(frozen=True)
class NativeFile:
    """A file under a name that Spark itself can open."""

    uri: str
    size_bytes: int
    key: int


@dataclass(frozen=True)
class LogDirectory:
    """Where a log is left that a server reads: at the location of a table."""

    store: Store
    location: str


def open_files(
    spark: SparkSession, files: Iterable[NativeFile], stored: StructType, log_directory: LogDirectory
) -> DataFrame:
    """Open files with columns that are found by their field ids."""
    if is_remote(spark):
        return _open_remotely(spark, files, stored, log_directory)
    with _temporary_directory() as folder:
        log = Path(folder) / _LOG
        with writing(log.as_uri()):
            log.parent.mkdir()
            with log.open("wb") as sink:
                sink.writelines(_lines(files))
        # The relation holds the list from here on; the directory is not looked at again.
        return _open_log(spark, Path(folder).as_uri(), stored)


def _temporary_directory() -> tempfile.TemporaryDirectory[str]:
    with writing(tempfile.gettempdir()):
        return tempfile.TemporaryDirectory(prefix="icefield-scan-")


def _open_remotely(
    spark: SparkSession, files: Iterable[NativeFile], stored: StructType, log_directory: LogDirectory
) -> DataFrame:
    data = b"".join(_lines(files))
    try:
        uri, remove = _leave_beside(log_directory, data)
    except IcefieldError as error:
        if not is_on_this_machine(spark):
            raise StorageError(
                f"cannot leave the list of files to read where the Spark Connect server finds it: {error}",
                hint=f"Spark Connect needs leave to write below {log_directory.location}; scan.to_arrow() does not",
            ) from error
        uri, remove = _leave_here(data)
    try:
        frame = _open_log(spark, uri, stored)
    except BaseException:
        remove()
        raise
    # Plans hold what they were made of, so this one lives as long as any that needs the log.
    plan: Any = frame._plan  # noqa: SLF001 - a DataFrame may go, and its plan be used on
    weakref.finalize(plan, remove)
    return frame


def _leave_beside(log_directory: LogDirectory, data: bytes) -> tuple[str, Callable[[], None]]:
    """Leave a log beside a table; return the URI of its directory, and what removes it."""
    # Names that begin with a dot are no part of a table to anybody who lists its files.
    folder = join_location(log_directory.location, f".icefield-scan-{SystemAmbient().random_uuid().hex}")
    log = join_location(folder, _LOG)
    log_directory.store.put_new(log, data)
    return log_directory.store.native_uri(folder), partial(_remove, log_directory.store, log)


def _leave_here(data: bytes) -> tuple[str, Callable[[], None]]:
    """Leave a log in a temporary directory."""
    with writing(tempfile.gettempdir()):
        folder = Path(tempfile.mkdtemp(prefix="icefield-scan-"))
        (folder / _LOG).parent.mkdir()
        (folder / _LOG).write_bytes(data)
    return folder.as_uri(), partial(shutil.rmtree, folder, ignore_errors=True)


def _open_log(spark: SparkSession, uri: str, stored: StructType) -> DataFrame:
    # Spark takes this for a path, in which a blank is a blank; in the log it reads URIs.
    frame = spark.read.format(PARQUET).schema(stored).options(**READ_OPTIONS).load(unquote(uri))
    return frame if is_remote(spark) else _always_by_field_id(spark, frame)


def _always_by_field_id(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """Return the same scan with field ids switched on by an option of its own, which goes before the session's setting.

    Spark makes the options of a reader lower case, and the name of this one has a capital letter; those of a relation
    are handed on as they are.
    """
    classic: Any = spark
    opened: Any = frame
    jvm, own_session = classic._jvm, classic._jsparkSession  # noqa: SLF001 - pyspark has no such call
    relation = opened._jdf.queryExecution().analyzed().relation()  # noqa: SLF001
    by_field_id = jvm.org.apache.spark.sql.execution.datasources.HadoopFsRelation(
        relation.location(),
        relation.partitionSchema(),
        relation.dataSchema(),
        relation.bucketSpec(),
        relation.fileFormat(),
        jvm.PythonUtils.toScalaMap({**READ_OPTIONS, READ_BY_FIELD_ID: "true"}),
        own_session,
    )
    return DataFrame(own_session.baseRelationToDataFrame(by_field_id), spark)


def _remove(store: Store, log: str) -> None:
    """Remove a log, and on a disk the directories that were made for it; what cannot be removed is in nobody's way."""
    with suppress(IcefieldError, OSError):
        store.delete(log)
        if store.native_uri(log).startswith("file:"):
            for made in Path(local_path(log)).parents[:2]:
                made.rmdir()


def _lines(files: Iterable[NativeFile]) -> Iterator[bytes]:
    yield b"v1"
    for file in files:
        yield b"\n"
        yield msgspec.json.encode(
            {
                "path": file.uri,
                "size": file.size_bytes,
                "isDir": False,
                "modificationTime": file.key,
                "blockReplication": 1,
                "blockSize": BLOCK_BYTES,
                "action": "add",
            }
        )
