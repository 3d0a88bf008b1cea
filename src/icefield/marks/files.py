"""Files of a table as columns: where they are, what they are, how large, and for which snapshot.

Locations are compared after folding, because one file has several spellings:

    s3a://Bucket/t//a.parquet   s3://bucket/t/a.parquet      file:/t/a   /t/a   file:///t/a   file:///t/b/../a

Percent-encoding is not decoded: `a%2Fb` and `a/b` are two files. Folding makes more files equal than are, never fewer,
and equal to a reachable file means kept.
"""

import re
from collections.abc import Iterable, Sequence
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.rows import Column, Rows

_HASHED_AT_ONCE = 10_000


class FileKind(IntEnum):
    """What a file is, in the order of deletion: what refers to a file is deleted after it."""

    TEMPORARY = 0
    DATA = 1
    DELETES = 2
    STATISTICS = 3
    MANIFEST = 4
    MANIFEST_LIST = 5
    METADATA = 6


FILES_SCHEMA = pa.schema(
    {"location": pa.string(), "kind": pa.int8(), "size_bytes": pa.int64(), "snapshot_id": pa.int64()}
)


class TableFiles(Rows):
    """Files of a table. size_bytes and snapshot_id are null where they are not known."""

    location: Column
    kind: Column
    size_bytes: Column
    snapshot_id: Column

    @property
    def total_bytes(self) -> int:
        """The sum of the known sizes."""
        return int(pc.sum(self.size_bytes).as_py() or 0)

    def is_in(self, others: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray:
        """Return which files are among folded locations."""
        return pc.is_in(fold(self.location), value_set=others)

    def unique(self) -> "TableFiles":
        """Return every location once."""
        if _are_distinct(self.location):
            return self
        grouped = self.table.group_by("location", use_threads=False).aggregate(
            [("kind", "max"), ("size_bytes", "max"), ("snapshot_id", "max")]
        )
        return TableFiles(grouped.rename_columns(["location", "kind", "size_bytes", "snapshot_id"]).cast(FILES_SCHEMA))


def _are_distinct(locations: pa.ChunkedArray) -> bool:
    """Return whether no location is there twice; False if it is not known.

    Equal strings have equal hashes. Arrow's tables of distinct strings would take several times their memory.
    """
    hashes = np.empty(len(locations), np.int64)
    for begin in range(0, len(locations), _HASHED_AT_ONCE):
        strings = locations[begin : begin + _HASHED_AT_ONCE].to_pylist()
        hashes[begin : begin + len(strings)] = [hash(text) for text in strings]
    return len(np.unique(hashes)) == len(hashes)


NO_TABLE_FILES = TableFiles(FILES_SCHEMA.empty_table())


def table_files(
    locations: Sequence[str] | pa.Array | pa.ChunkedArray,
    kind: FileKind,
    sizes: pa.Array | pa.ChunkedArray | None = None,
    snapshots: pa.Array | pa.ChunkedArray | None = None,
) -> TableFiles:
    """Describe files of one kind."""
    count = len(locations)
    paths = locations if isinstance(locations, pa.Array | pa.ChunkedArray) else pa.array(locations, pa.string())
    columns = [
        paths,
        pa.array([int(kind)] * count, pa.int8()) if count < 64 else pa.repeat(pa.scalar(int(kind), pa.int8()), count),
        pa.nulls(count, pa.int64()) if sizes is None else sizes,
        pa.nulls(count, pa.int64()) if snapshots is None else snapshots,
    ]
    return TableFiles(pa.table(columns, schema=FILES_SCHEMA))


def concat_files(parts: Iterable[TableFiles]) -> TableFiles:
    """Concatenate parts, in order; none is an empty table."""
    return TableFiles.concat([NO_TABLE_FILES, *parts])


def fold(locations: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Return locations in one spelling each."""
    if _are_folded(locations):
        return locations
    for pattern, spelling in _FOLDS:
        locations = pc.replace_substring_regex(locations, pattern, spelling)
    while pc.any(pc.match_substring_regex(locations, _UP)).as_py():
        locations = pc.replace_substring_regex(locations, _UP, r"\1/")
    return locations


def fold_one(location: str) -> str:
    """Return one location in its spelling."""
    for pattern, spelling in _FOLDS:
        location = re.sub(pattern, spelling, location)
    while re.match(_UP, location):
        location = re.sub(_UP, r"\1/", location)
    return location


def names_of(locations: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Return the last part of locations."""
    return pc.replace_substring_regex(locations, r"^.*/", "")


def _are_folded(locations: pa.ChunkedArray | pa.Array) -> bool:
    """Return whether folding certainly changes nothing, as is usual, for an eighth of what folding costs."""
    is_usual = pc.starts_with(locations, _USUAL[0])
    for scheme in _USUAL[1:]:
        is_usual = pc.or_(is_usual, pc.starts_with(locations, scheme))
    if not pc.all(is_usual, min_count=0).as_py():
        return False
    return not pc.any(pc.match_substring_regex(locations, r"[^:/]//|/\.\.?/|:////"), min_count=0).as_py()


_USUAL = ("file:///", "s3://", "gs://", "az://")
# Schemes of one store; then local paths; then doubled slashes, but not those after the scheme.
_FOLDS = (
    (r"^(?i:s3a|s3n|s3)://", "s3://"),
    (r"^(?i:gcs|gs)://", "gs://"),
    (r"^(?i:abfss|abfs|wasbs|wasb|az)://", "az://"),
    (r"^(?i:file):/*", "/"),
    (r"^/+", "file:///"),
    (r"([^:/])/{2,}", r"\1/"),
    (r"(/\.)+/", "/"),
)
_UP = r"(?s)^(file://.*?)/[^/]+/\.\./"  # one directory up, on a local disk alone: elsewhere it is a name
