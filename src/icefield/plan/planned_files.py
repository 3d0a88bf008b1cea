"""Planned files as typed columns: what a reader needs to know of each."""

import pyarrow as pa

from icefield.codec.manifest.rows import Files
from icefield.codec.rows import Column
from icefield.plan.delete_index import DELETE_KEYS
from icefield.plan.partition.constants import CONSTANTS
from icefield.plan.partition.keys import PARTITION_KEY, Partition

DESCRIBED_FILE_SCHEMA = pa.schema(
    [
        ("file_path", pa.string()),
        ("record_count", pa.int64()),
        ("file_size_in_bytes", pa.int64()),
        ("sequence_number", pa.int64()),
        ("snapshot_id", pa.int64()),
        ("spec_id", pa.int32()),
        ("partition", pa.string()),  # for display only
        (PARTITION_KEY, pa.binary()),
        ("manifest_path", pa.string()),
        ("first_row_id", pa.int64()),
        ("constants", CONSTANTS),
        ("is_complete", pa.bool_()),
        ("delete_keys", DELETE_KEYS),
        ("deleted_rows", pa.int64()),
    ]
)
PLANNED_FILE_SCHEMA = pa.schema([*DESCRIBED_FILE_SCHEMA, ("must_match", pa.bool_()), ("residual_code", pa.int64())])


class DescribedFiles(Files):
    """Files with what depends on their own metadata alone, whatever the filter."""

    sequence_number: Column
    snapshot_id: Column
    spec_id: Column
    partition: Column
    partition_key: Column
    manifest_path: Column
    first_row_id: Column
    constants: Column
    is_complete: Column
    delete_keys: Column
    deleted_rows: Column

    @property
    def partitions(self) -> frozenset[Partition]:
        """The distinct partitions that they are in."""
        return frozenset(zip(self.spec_id.to_pylist(), self.partition_key.to_pylist(), strict=True))


class PlannedFiles(DescribedFiles):
    """Files that a filter needs to read: whether all rows match, and the code of their residual."""

    must_match: Column
    residual_code: Column


NO_FILES = PlannedFiles(PLANNED_FILE_SCHEMA.empty_table())
