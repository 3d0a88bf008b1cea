"""What a reader needs for one data file: its location, what its rows inherit, and which deletes apply to it.

Tasks are small, immutable and picklable: they are sent to Spark's workers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from icefield.types.datatypes import Value

MAX_BYTE = (1 << 63) - 1


class DeleteType(StrEnum):
    """How a delete file identifies deleted rows. (spec: Delete Formats)"""

    POSITIONS = "positions"  # a Parquet file of (file_path, pos)
    VECTOR = "vector"  # a deletion vector: a blob in a Puffin file
    EQUALITY = "equality"  # a Parquet file of key values


@dataclass(frozen=True)
class DeleteFile:
    """A delete file or a deletion vector; `record_count` is its number of rows, or of deleted positions.

    file_size_bytes: the size of the whole file, if metadata has it.
    """

    kind: DeleteType
    location: str
    equality_ids: tuple[int, ...] = ()
    content_offset: int = 0
    content_size_bytes: int = 0
    record_count: int = 0
    file_size_bytes: int | None = None


@dataclass(frozen=True)
class FileTask:
    """One data file to read.

    constants: values of identity partitions by source field id, for columns that may be missing from the file.
    start, end: the byte range to read (`end` is exclusive): the row groups that start in it.
    residual_code: which conditions of the scan's filter metadata decides, for `icefield.expr.prune.residual.residual`.
    partition: the values of its partition, by name, if a reader needs them.
    file_size_bytes: the size of the whole file, if metadata has it; a file of another size is another file.
    partition_key: the same for all files of its spec in the same partition.
    """

    location: str
    record_count: int
    sequence_number: int
    spec_id: int
    first_row_id: int | None = None
    constants: Mapping[int, Value | None] = field(default_factory=dict)
    deletes: tuple[DeleteFile, ...] = ()
    residual_code: int = 0
    start: int = 0
    end: int = MAX_BYTE
    partition: Mapping[str, Value | None] = field(default_factory=dict)
    file_size_bytes: int | None = None
    partition_key: bytes = b""

    @property
    def partition_identity(self) -> tuple[int, bytes]:
        """What distinguishes its partition from others: the spec, and the key of the values."""
        return self.spec_id, self.partition_key

    @property
    def is_part(self) -> bool:
        """Return whether only a part of the file is read."""
        return self.start > 0 or self.end < MAX_BYTE

    @property
    def has_key_deletes(self) -> bool:
        """Return whether rows of the file are deleted by their keys."""
        return any(delete.kind is DeleteType.EQUALITY for delete in self.deletes)
