"""Manifests and manifest lists on disk, compared with what PyIceberg writes and with what the files hold."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal

import pytest
from pyiceberg.manifest import (
    MANIFEST_LIST_FILE_SCHEMAS,
    ManifestEntryStatus,
    ManifestFile,
    construct_partition_summaries,
    data_file_with_partition,
    manifest_entry_schema_with_data_file,
)
from pyiceberg.partitioning import PartitionField
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.types import StructType
from pyiceberg.utils.schema_conversion import AvroSchemaConversion
from tests.peers.avro_files import flat_schema, read_avro
from tests.peers.case import TableCase
from tests.peers.gallery import Gallery
from tests.peers.tables import all_tables, odd_names, overwritten, partitioned_tables, primitives, several_fields

WRITTEN = [case for case in all_tables() if case.steps]
VERSION: Literal[2] = 2
AVRO_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
# PyIceberg has the element of equality_ids as a long, where the spec has an int, and does not know a newer field.
DIFFERS_FROM_PYICEBERG = {
    "/data_file/equality_ids?[]": "int",
    "/data_file/referenced_data_file?": "string",
    "/data_file/referenced_data_file@": {"default": None, "field-id": 143},
}


@pytest.mark.parametrize("case", [c for c in WRITTEN if c.name != "odd_names"], ids=lambda case: case.name)
def test_a_manifest_has_the_avro_schema_that_pyiceberg_writes(case: TableCase, gallery: Gallery) -> None:
    table = _static(gallery, case)
    # PyIceberg takes over `required` from the source column; in Iceberg Java a partition value may always be null.
    fields = [f.model_copy(update={"required": False}) for f in table.spec().partition_type(table.schema()).fields]
    entry = manifest_entry_schema_with_data_file(VERSION, data_file_with_partition(StructType(*fields), VERSION))
    expected = AvroSchemaConversion().iceberg_to_avro(entry, schema_name="manifest_entry")
    for manifest in _manifests(table):
        found = flat_schema(read_avro(manifest.manifest_path).schema)
        assert found == flat_schema(expected) | DIFFERS_FROM_PYICEBERG


def test_partition_fields_have_names_that_avro_allows_and_remember_their_own(gallery: Gallery) -> None:
    case = odd_names()
    for manifest in _manifests(_static(gallery, case)):
        (data_file,) = (
            f["type"] for f in read_avro(manifest.manifest_path).schema["fields"] if f["name"] == "data_file"
        )
        (partition,) = (f["type"] for f in data_file["fields"] if f["name"] == "partition")
        assert all(AVRO_NAME.fullmatch(field["name"]) for field in partition["fields"])
        own = [field["iceberg-field-name"] for field in partition["fields"]]
        assert own == [name.strip("`") for name in case.partition_by]


def test_a_manifest_list_has_the_avro_schema_that_pyiceberg_writes(gallery: Gallery) -> None:
    expected = AvroSchemaConversion().iceberg_to_avro(MANIFEST_LIST_FILE_SCHEMAS[VERSION], schema_name="manifest_file")
    for snapshot in _static(gallery, overwritten()).metadata.snapshots:
        assert flat_schema(read_avro(snapshot.manifest_list).schema) == flat_schema(expected)


@pytest.mark.parametrize("case", [primitives(), several_fields(), overwritten()], ids=lambda case: case.name)
def test_a_manifest_says_in_its_header_what_it_holds(case: TableCase, gallery: Gallery) -> None:
    table = _static(gallery, case)
    for manifest in _manifests(table):
        header = read_avro(manifest.manifest_path).header
        assert Schema.model_validate_json(header["schema"]) == table.schema()
        fields = tuple(PartitionField.model_validate(field) for field in json.loads(header["partition-spec"]))
        assert fields == table.spec().fields
        stored = {key: header[key] for key in ("schema-id", "partition-spec-id", "format-version", "content")}
        assert stored == {"schema-id": "0", "partition-spec-id": "0", "format-version": "2", "content": "data"}


def test_a_manifest_list_says_in_its_header_whose_it_is(gallery: Gallery) -> None:
    snapshots = _snapshots(_static(gallery, overwritten()))
    for parent, snapshot in pairwise([None, *snapshots]):
        assert snapshot
        header = read_avro(snapshot.manifest_list).header
        assert header["snapshot-id"] == str(snapshot.snapshot_id)
        assert header["parent-snapshot-id"] == ("null" if parent is None else str(parent.snapshot_id))
        assert header["sequence-number"] == str(snapshot.sequence_number)
        assert header["format-version"] == "2"


@pytest.mark.parametrize("case", WRITTEN, ids=lambda case: case.name)
def test_a_manifest_list_counts_what_its_manifests_hold(case: TableCase, gallery: Gallery) -> None:
    table = _static(gallery, case)
    for manifest in _manifests(table):
        files: Counter[ManifestEntryStatus] = Counter()
        rows: Counter[ManifestEntryStatus] = Counter()
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
            files[entry.status] += 1
            rows[entry.status] += entry.data_file.record_count
        statuses = (ManifestEntryStatus.ADDED, ManifestEntryStatus.EXISTING, ManifestEntryStatus.DELETED)
        stored = (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count)
        assert stored == tuple(files[status] for status in statuses)
        told_rows = (manifest.added_rows_count, manifest.existing_rows_count, manifest.deleted_rows_count)
        assert told_rows == tuple(rows[status] for status in statuses)
        assert manifest.manifest_length == len(table.io.new_input(manifest.manifest_path))


# Not of doubles: PyIceberg reads their partition values with the precision of floats, and zeros without their sign.
SUMMARISED = [
    c for c in (*partitioned_tables(), several_fields()) if c.name not in ("identity_double", "identity_float")
]


@pytest.mark.parametrize("case", SUMMARISED, ids=lambda case: case.name)
def test_partition_summaries_are_those_that_pyiceberg_computes(case: TableCase, gallery: Gallery) -> None:
    table = _static(gallery, case)
    for manifest in _manifests(table):
        partitions = [entry.data_file.partition for entry in manifest.fetch_manifest_entry(table.io)]
        expected = construct_partition_summaries(table.spec(), table.schema(), partitions)
        assert [_said(summary) for summary in manifest.partitions or []] == [_said(summary) for summary in expected]


def test_added_entries_inherit_their_numbers_and_others_carry_them(gallery: Gallery) -> None:
    table = _static(gallery, overwritten())
    numbers = {s.snapshot_id: s.sequence_number for s in table.metadata.snapshots}
    seen: set[ManifestEntryStatus] = set()
    for snapshot in _snapshots(table):
        for manifest in snapshot.manifests(table.io):
            raw = read_avro(manifest.manifest_path).records
            inherited = manifest.fetch_manifest_entry(table.io, discard_deleted=False)
            for record, entry in zip(raw, inherited, strict=True):
                seen.add(entry.status)
                stored = [record[name] for name in ("snapshot_id", "sequence_number", "file_sequence_number")]
                is_added = entry.status is ManifestEntryStatus.ADDED
                assert [value is None for value in stored] == [is_added] * 3
                assert entry.snapshot_id in numbers
                if entry.status is not ManifestEntryStatus.DELETED:
                    assert entry.sequence_number == numbers[entry.snapshot_id]
    assert seen == {ManifestEntryStatus.ADDED, ManifestEntryStatus.EXISTING, ManifestEntryStatus.DELETED}


def test_least_sequence_numbers_are_those_of_the_live_entries(gallery: Gallery) -> None:
    table = _static(gallery, overwritten())
    for snapshot in _snapshots(table):
        for manifest in snapshot.manifests(table.io):
            live = [entry.sequence_number or 0 for entry in manifest.fetch_manifest_entry(table.io)]
            assert manifest.min_sequence_number == min(live, default=manifest.sequence_number)


def _field_type(record: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = (field["type"] for field in record["fields"] if field["name"] == name)
    return found  # type: ignore[no-any-return]


def _said(summary: object) -> tuple[object, ...]:
    return tuple(getattr(summary, name) for name in ("contains_null", "contains_nan", "lower_bound", "upper_bound"))


def _static(gallery: Gallery, case: TableCase) -> StaticTable:
    return StaticTable.from_metadata(gallery.table(case).metadata_location)


def _snapshots(table: StaticTable) -> list[Snapshot]:
    return sorted(table.metadata.snapshots, key=lambda snapshot: snapshot.sequence_number or 0)


def _manifests(table: StaticTable) -> Iterator[ManifestFile]:
    snapshot = table.current_snapshot()
    assert snapshot
    yield from snapshot.manifests(table.io)
