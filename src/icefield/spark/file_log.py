"""Exactly the files of a plan as a DataFrame of Spark's native Parquet reader.

Spark takes the list from a file log in a directory of its own, with sizes and times, so that it lists and stats
nothing. The times are ours: each file's is its `key`, which a query gets back, cheaply, as FILE_KEY.
"""

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

BLOCK_BYTES = 128 * 1024 * 1024
# The time of a file is one of milliseconds.
FILE_KEY = "unix_millis(_metadata.file_modification_time)"


@dataclass(frozen=True)
class NativeFile:
    """A file under a name that Spark itself can open."""

    uri: str
    size_bytes: int
    key: int


def open_files(spark: SparkSession, files: Iterable[NativeFile], stored: StructType) -> DataFrame:
    """Open files with columns that are found by their field ids."""
    with tempfile.TemporaryDirectory(prefix="icefield-scan-") as folder:
        log = Path(folder) / "_spark_metadata"
        log.mkdir()
        with (log / "0").open("wb") as sink:
            sink.write(b"v1")
            sink.writelines(_lines(files))
        # The relation holds the list from here on; the directory is not looked at again.
        return spark.read.schema(stored).option("recursiveFileLookup", "true").parquet(Path(folder).as_uri())


def _lines(files: Iterable[NativeFile]) -> Iterator[bytes]:
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
