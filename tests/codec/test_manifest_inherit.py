"""What entries inherit from the manifest list."""

from typing import Any

import pyarrow as pa
import pytest
from tests.codec.cases import entry, table

from icefield.codec.manifest.inherit import inherit
from icefield.codec.manifest.list_schema import MANIFEST_LIST_ARROW_SCHEMA
from icefield.codec.manifest.rows import ManifestEntries, Manifests
from icefield.errors import CorruptFile

EXISTING, ADDED, DELETED = 0, 1, 2


def manifest(**changes: Any) -> dict[str, Any]:
    return {"manifest_path": "m", "sequence_number": 7, "added_snapshot_id": 70, "content": 0} | changes


def rows(*manifests: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(manifests), MANIFEST_LIST_ARROW_SCHEMA)


def inherited(entries: list[dict[str, Any]], *manifests: dict[str, Any]) -> pa.Table:
    return inherit(
        ManifestEntries.trusted(table([entry(**e) for e in entries])),
        Manifests.trusted(rows(*(manifests or (manifest(),)))),
    )


def test_added_entries_have_the_numbers_of_their_manifest() -> None:
    result = inherited([{"status": ADDED}, {"status": ADDED, "sequence_number": 3, "snapshot_id": 5}])
    assert result["sequence_number"].to_pylist() == [7, 3]
    assert result["file_sequence_number"].to_pylist() == [7, 7]
    assert result["snapshot_id"].to_pylist() == [70, 5]


@pytest.mark.parametrize("status", [EXISTING, DELETED])
@pytest.mark.parametrize("missing", ["sequence_number", "file_sequence_number"])
def test_other_entries_must_have_their_own(status: int, missing: str) -> None:
    numbers = {"sequence_number": 1, "file_sequence_number": 1}
    assert inherited([{"status": status} | numbers])["sequence_number"].to_pylist() == [1]
    with pytest.raises(CorruptFile, match=f"entry 1 .* no {missing}") as error:
        inherited([{"status": ADDED}, {"status": status} | numbers | {missing: None}], manifest(manifest_path="here"))
    assert error.value.location == "here"


@pytest.mark.parametrize("status", [EXISTING, ADDED, DELETED])
def test_under_a_manifest_of_v1_every_number_is_0(status: int) -> None:
    result = inherited([{"status": status, "content": None}], manifest(sequence_number=0))
    assert result["sequence_number"].to_pylist() == result["file_sequence_number"].to_pylist() == [0]
    assert result["content"].to_pylist() == [0]


def test_each_entry_inherits_from_its_own_manifest() -> None:
    entries = table([entry(), entry(), entry()]).append_column("manifest", pa.array([0, 1, 1], pa.int32()))
    result = inherit(
        ManifestEntries.trusted(entries),
        Manifests.trusted(rows(manifest(), manifest(sequence_number=9, added_snapshot_id=90))),
    )
    assert result["sequence_number"].to_pylist() == [7, 9, 9]
    assert result["snapshot_id"].to_pylist() == [70, 90, 90]


def test_row_ids_count_on_over_entries_that_have_none() -> None:
    numbers = {"sequence_number": 1, "file_sequence_number": 1}
    entries = [
        {"record_count": 5},
        {"record_count": 100, "first_row_id": 3},
        {"record_count": 1000, "status": DELETED} | numbers,
        {"record_count": 7, "status": EXISTING} | numbers,
        {"record_count": 1},
    ]
    result = inherited(entries, manifest(first_row_id=50))
    assert result["first_row_id"].to_pylist() == [50, 3, None, 55, 62]


def test_row_ids_start_anew_with_each_manifest() -> None:
    entries = table([entry(), entry(), entry(), entry(), entry()])
    entries = entries.append_column("manifest", pa.array([0, 0, 2, 2, 3], pa.int32()))
    manifests = [manifest(first_row_id=i) for i in (100, 0, 500)] + [manifest()]
    assert inherit(ManifestEntries.trusted(entries), Manifests.trusted(rows(*manifests)))[
        "first_row_id"
    ].to_pylist() == [100, 110, 500, 510, None]


@pytest.mark.parametrize("changes", [{"first_row_id": None}, {"content": 1, "first_row_id": 3}])
def test_without_an_id_in_the_list_or_in_delete_manifests_there_are_no_row_ids(changes: dict[str, Any]) -> None:
    assert inherited([{"first_row_id": 8}, {}], manifest(**changes))["first_row_id"].to_pylist() == [None, None]


def test_columns_that_were_not_decoded_stay_away() -> None:
    entries = table([entry()]).select(["status", "file_path", "sequence_number"])
    result = inherit(ManifestEntries.trusted(entries), Manifests.trusted(rows(manifest())))
    assert result.column_names == ["status", "file_path", "sequence_number"]
    assert result["sequence_number"].to_pylist() == [7]


def test_no_entries_inherit_nothing() -> None:
    assert inherited([]).num_rows == 0
