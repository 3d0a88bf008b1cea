"""The rows of manifest lists and manifests as typed columns. (spec: Manifest Lists, Manifests)"""

from collections.abc import Iterable
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest.list_schema import MANIFEST_LIST_ARROW_SCHEMA
from icefield.codec.rows import Column, Rows


class Manifests(Rows):
    """Manifests as a manifest list describes them, one row each."""

    manifest_path: Column
    manifest_length: Column
    partition_spec_id: Column
    content: Column
    sequence_number: Column
    min_sequence_number: Column
    added_snapshot_id: Column
    added_files_count: Column
    existing_files_count: Column
    deleted_files_count: Column
    added_rows_count: Column
    existing_rows_count: Column
    deleted_rows_count: Column
    partitions: Column
    first_row_id: Column


NO_MANIFESTS = Manifests(MANIFEST_LIST_ARROW_SCHEMA.empty_table())


class Files(Rows):
    """Files of a table, with any further columns."""

    file_path: Column
    record_count: Column
    file_size_in_bytes: Column

    @property
    def paths(self) -> frozenset[str]:
        """Their locations."""
        return frozenset(self.file_path.to_pylist())

    @property
    def total_bytes(self) -> int:
        """Their total size."""
        return int(pc.sum(self.file_size_in_bytes).as_py() or 0)

    def at(self, paths: Iterable[str]) -> Self:
        """Return the files at the given locations."""
        return self.filter(pc.is_in(self.file_path, value_set=pa.array(sorted(paths), pa.string())))


class DataFiles(Files):
    """Data files or delete files with their metrics: the data_file record of a manifest entry."""

    content: Column
    file_format: Column
    referenced_data_file: Column
    content_size_in_bytes: Column


class ManifestEntries(Rows, partial=True):
    """Manifest entries: files with their status, snapshot and sequence number. Only decoded columns are present."""

    status: Column
    snapshot_id: Column
    sequence_number: Column
    content: Column
    file_path: Column
    file_format: Column
    record_count: Column
    file_size_in_bytes: Column
    first_row_id: Column
    referenced_data_file: Column
    content_offset: Column
    content_size_in_bytes: Column
    manifest_path: Column
