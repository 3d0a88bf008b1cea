"""Files are removed from many manifests at once: small ones that lose files become one, the others stay as they are."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield
from icefield.table.table import Table

FILES = 12


@pytest.fixture
def lake(tmp_path: Path) -> icefield.Lake:
    return icefield.connect(tmp_path / "lake", durable=False)


def filled(lake: icefield.Lake, version: int, **properties: str) -> Table:
    """Make a table of twelve files with two rows each, in a manifest each."""
    given = {"write.delete.mode": "copy-on-write", **properties}
    table = lake.create_table("a.t", "id long, amount long", format_version=version, properties=given)
    for number in range(FILES):
        table.append(pa.table({"id": [2 * number, 2 * number + 1], "amount": [number, -number]}))
    return table


def manifests_of(table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.inspect("manifests").to_arrow().read_all().to_pylist()
    return found


def removed_from(table: Table) -> list[int]:
    """Return how many files each manifest lost, of those that lost any."""
    return [each["deleted_data_files_count"] for each in manifests_of(table) if each["deleted_data_files_count"]]


def rows_of(table: Table) -> list[tuple[int, int]]:
    rows = table.scan().to_arrow().read_all()
    return sorted(zip(rows["id"].to_pylist(), rows["amount"].to_pylist(), strict=True))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_small_manifests_that_lose_files_become_one(lake: icefield.Lake, version: int) -> None:
    table = filled(lake, version)
    before = {each["path"] for each in manifests_of(table)}
    table.delete("id % 2 = 0 and id < 16")
    after = manifests_of(table)
    kept = [each for each in after if each["path"] in before]
    assert len(kept) == FILES - 8
    assert removed_from(table) == [8]
    assert rows_of(table) == sorted((i, i // 2 * (-1) ** i) for i in range(2 * FILES) if i % 2 or i >= 16)


def test_without_merging_each_manifest_is_rewritten_alone(lake: icefield.Lake) -> None:
    table = filled(lake, 2, **{"commit.manifest-merge.enabled": "false"})
    table.delete("id % 2 = 0 and id < 16")
    assert removed_from(table) == [1] * 8


def test_manifests_of_the_target_size_are_not_merged(lake: icefield.Lake) -> None:
    table = filled(lake, 2)
    table.set_properties({"commit.manifest.target-size-bytes": "3000"})  # no manifest is below half of it
    table.delete("id % 2 = 0 and id < 16")
    assert removed_from(table) == [1] * 8


def test_what_is_larger_than_the_target_size_becomes_several(
    lake: icefield.Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(lake, 2)
    monkeypatch.setattr("icefield.commit.snapshot.merge_manifests.ManifestMerge.size", lambda merge, base: 40_000)
    table.delete("id % 2 = 0")
    assert removed_from(table) == [6, 6]
    assert rows_of(table) == [(i, -(i // 2)) for i in range(1, 2 * FILES, 2)]


def test_manifests_are_opened_in_bounded_batches(lake: icefield.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = filled(lake, 3)
    monkeypatch.setattr("icefield.commit.snapshot.manifest_filter.OPENED_BYTES", 1)
    table.delete("id % 2 = 0")
    assert removed_from(table) == [1] * FILES
    assert rows_of(table) == [(i, -(i // 2)) for i in range(1, 2 * FILES, 2)]


def test_row_ids_and_sequence_numbers_stay(lake: icefield.Lake) -> None:
    table = filled(lake, 3)
    columns = ["id", "_row_id", "_last_updated_sequence_number"]

    def lineage() -> dict[int, tuple[int, int]]:
        rows = table.scan(select=columns).to_arrow().read_all().to_pylist()
        return {row["id"]: (row["_row_id"], row["_last_updated_sequence_number"]) for row in rows}

    before = lineage()
    table.delete("id in (0, 2, 4, 5)")
    assert lineage() == {number: known for number, known in before.items() if number not in (0, 2, 4, 5)}
