"""metadata.json on disk, as PyIceberg parses it: nothing lost, and its history whole."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table.metadata import TableMetadataUtil, TableMetadataV2
from tests.peers.case import TableCase
from tests.peers.gallery import Gallery
from tests.peers.tables import all_tables, assorted_tables, empty, overwritten

from icefield.codec.json.metadata_owner import ENTRY_KEY


@pytest.mark.parametrize("case", all_tables(), ids=lambda case: case.name)
def test_pyiceberg_parses_it_and_loses_nothing(case: TableCase, gallery: Gallery) -> None:
    text = _path(gallery.table(case).metadata_location).read_text()
    parsed = TableMetadataUtil.parse_raw(text)
    assert isinstance(parsed, TableMetadataV2)
    written = json.loads(text)
    assert written.pop(ENTRY_KEY), "our own key, which others leave out"
    assert _without_empty(json.loads(parsed.model_dump_json())) == _without_empty(written)


@pytest.mark.parametrize("case", assorted_tables(), ids=lambda case: case.name)
def test_history_is_whole(case: TableCase, gallery: Gallery) -> None:
    metadata = _parse(gallery.table(case).metadata_location)
    snapshots = sorted(metadata.snapshots, key=lambda s: s.sequence_number or 0)
    assert len(snapshots) == len(case.steps)
    assert [s.sequence_number for s in snapshots] == list(range(1, len(snapshots) + 1))
    assert [s.parent_snapshot_id for s in snapshots] == [None, *(s.snapshot_id for s in snapshots)][: len(snapshots)]
    assert [(e.snapshot_id, e.timestamp_ms) for e in metadata.snapshot_log] == [
        (s.snapshot_id, s.timestamp_ms) for s in snapshots
    ]
    assert metadata.last_sequence_number == len(snapshots)
    assert metadata.current_snapshot_id == (snapshots[-1].snapshot_id if snapshots else None)
    assert {name: ref.snapshot_id for name, ref in metadata.refs.items()} == (
        {"main": snapshots[-1].snapshot_id} if snapshots else {}
    )


def test_the_metadata_log_leads_back_to_the_first_version(gallery: Gallery) -> None:
    case = overwritten()
    metadata = _parse(gallery.table(case).metadata_location)
    assert len(metadata.metadata_log) == len(case.steps)
    for version, entry in enumerate(metadata.metadata_log):
        earlier = _parse(entry.metadata_file)
        assert _path(entry.metadata_file).name.startswith(f"{version:05d}-")
        assert earlier.table_uuid == metadata.table_uuid
        assert earlier.last_updated_ms == entry.timestamp_ms
        assert earlier.metadata_log == metadata.metadata_log[:version]


def test_every_summary_has_the_totals_of_its_snapshot(gallery: Gallery) -> None:
    case = overwritten()
    metadata = _parse(gallery.table(case).metadata_location)
    snapshots = sorted(metadata.snapshots, key=lambda s: s.sequence_number or 0)
    for snapshot, rows in zip(snapshots, case.versions(), strict=True):
        summary = snapshot.summary
        assert summary
        assert summary["total-records"] == str(rows.num_rows)
        none = ("total-delete-files", "total-position-deletes", "total-equality-deletes")
        assert [summary[key] for key in none] == ["0", "0", "0"]
        assert int(summary["total-data-files"] or 0) > 0
        assert int(summary["total-files-size"] or 0) > 0
    operations = [s.summary and s.summary.operation.value for s in snapshots]
    assert operations == [
        "append",
        "overwrite",
        "overwrite",
        "append",
        "overwrite",
        "append",
        "overwrite",
        "overwrite",
    ]


def test_a_new_table_has_no_snapshot_and_says_so(gallery: Gallery) -> None:
    metadata = _parse(gallery.table(empty()).metadata_location)
    assert metadata.current_snapshot_id is None
    assert (metadata.snapshots, metadata.snapshot_log, metadata.metadata_log, metadata.refs) == ([], [], [], {})
    assert (metadata.last_sequence_number, metadata.last_column_id, metadata.last_partition_id) == (0, 2, 1000)


def _path(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def _parse(location: str) -> TableMetadataV2:
    parsed = TableMetadataUtil.parse_raw(_path(location).read_text())
    assert isinstance(parsed, TableMetadataV2)
    return parsed


def _without_empty(value: Any) -> Any:
    """Leave out what is null or empty: PyIceberg prints it where we write no key."""
    if isinstance(value, dict):
        return {key: _without_empty(inner) for key, inner in value.items() if inner not in (None, [], {})}
    return [_without_empty(inner) for inner in value] if isinstance(value, list) else value
