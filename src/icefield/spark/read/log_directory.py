"""Exactly the files of a plan as a DataFrame of Spark's native Parquet reader.

Spark takes the list from a file log in a separate directory, with sizes and times, so that it lists and stats nothing.
The times are generated: each file's time is its `key`, which a query reads back, cheaply, as FILE_KEY.

A session of this process reads the log once, when the DataFrame is created. Over Spark Connect a DataFrame is a plan
that the server reads again for each action, maybe on another machine: there the log is next to the table, where the
server finds its files too, for as long as the plan or one derived from it can run. If it cannot be written there, a
temporary directory is used for a server on this machine, and StorageError is raised for any other.
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
# File times have milliseconds.
FILE_KEY = "unix_millis(_metadata.file_modification_time)"
# Named by its class, it is the V1 source, whatever `spark.sql.sources.useV1SourceList` says: V2 supports neither row
# numbers nor file times.
PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
# Independent of the session: the format has one calendar (spec: Primitive Types, ISO 8601), and a missing or damaged
# file of a plan is an error.
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
    """A file under a URI that Spark itself can open."""

    uri: str
    size_bytes: int
    key: int


@dataclass(frozen=True)
class LogDirectory:
    """The location of a log that a server reads: at the location of a table."""

    store: Store
    location: str


def open_files(
    spark: SparkSession, files: Iterable[NativeFile], physical: StructType, log_directory: LogDirectory
) -> DataFrame:
    """Open files with columns that are found by their field ids."""
    if is_remote(spark):
        return _open_remotely(spark, files, physical, log_directory)
    with _temporary_directory() as folder:
        log = Path(folder) / _LOG
        with writing(log.as_uri()):
            log.parent.mkdir()
            with log.open("wb") as sink:
                sink.writelines(_lines(files))
        # The relation holds the list from here on; the directory is not read again.
        return _open_log(spark, Path(folder).as_uri(), physical)


def _temporary_directory() -> tempfile.TemporaryDirectory[str]:
    with writing(tempfile.gettempdir()):
        return tempfile.TemporaryDirectory(prefix="icefield-scan-")


def _open_remotely(
    spark: SparkSession, files: Iterable[NativeFile], physical: StructType, log_directory: LogDirectory
) -> DataFrame:
    data = b"".join(_lines(files))
    try:
        uri, remove = _leave_beside(log_directory, data)
    except IcefieldError as error:
        if not is_on_this_machine(spark):
            raise StorageError(
                f"cannot write the list of files where the Spark Connect server can read it: {error}",
                hint=f"Allow writing below {log_directory.location}, or use scan.to_arrow(), which does not need it",
            ) from error
        uri, remove = _leave_here(data)
    try:
        frame = _open_log(spark, uri, physical)
    except BaseException:
        remove()
        raise
    # Plans reference what they were derived from, so this one lives as long as any that needs the log.
    plan: Any = frame._plan  # noqa: SLF001 - its plan may outlive a DataFrame
    weakref.finalize(plan, remove)
    return frame


def _leave_beside(log_directory: LogDirectory, data: bytes) -> tuple[str, Callable[[], None]]:
    """Write a log next to a table; return the URI of its directory, and a function that removes it."""
    # Engines that list the files of a table ignore names with a leading dot.
    folder = join_location(log_directory.location, f".icefield-scan-{SystemAmbient().random_uuid().hex}")
    log = join_location(folder, _LOG)
    log_directory.store.put_new(log, data)
    return log_directory.store.native_uri(folder), partial(_remove, log_directory.store, log)


def _leave_here(data: bytes) -> tuple[str, Callable[[], None]]:
    """Write a log to a temporary directory."""
    with writing(tempfile.gettempdir()):
        folder = Path(tempfile.mkdtemp(prefix="icefield-scan-"))
        (folder / _LOG).parent.mkdir()
        (folder / _LOG).write_bytes(data)
    return folder.as_uri(), partial(shutil.rmtree, folder, ignore_errors=True)


def _open_log(spark: SparkSession, uri: str, physical: StructType) -> DataFrame:
    # Spark treats this as a path, in which a space is a space; in the log it reads URIs.
    frame = spark.read.format(PARQUET).schema(physical).options(**READ_OPTIONS).load(unquote(uri))
    return frame if is_remote(spark) else _always_by_field_id(spark, frame)


def _always_by_field_id(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """Return the same scan with field ids enabled by its own option, which overrides the session's setting.

    Spark converts the options of a reader to lower case, but the name of this one has a capital letter; those of a
    relation are passed unchanged.
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
    """Remove a log, and its directories on a disk; what cannot be removed does no harm."""
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
