"""Manifests are merged while appending: fewer of them, the same files, the same rows, the same row ids."""

import pyarrow as pa
import pytest

import icefield
from icefield.lake import Lake
from icefield.plan.manifest_list import load_manifests
from icefield.table.table import Table

FEW = {"commit.manifest.min-count-to-merge": "4"}
TINY = {"commit.manifest.target-size-bytes": "1"}


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


def append(table: Table, *ids: int) -> None:
    table.append(pa.table({"id": pa.array(ids, pa.int64()), "p": [str(i % 2) for i in ids]}))


def manifests(lake: Lake, table: Table) -> pa.Table:
    found = load_manifests(lake.backend.reading, table.metadata.current_snapshot)
    assert found is not None
    return found


def rows(table: Table, *more: str) -> list[tuple[object, ...]]:
    read = table.scan(select=["id", *more]).to_arrow().read_all().to_pylist()
    return sorted(tuple(row.values()) for row in read)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_many_appends_leave_few_manifests_and_every_row(lake: Lake, version: int) -> None:
    table = lake.create_table("t.t", "id long, p string", partition_by=["p"], properties=FEW, format_version=version)
    for i in range(10):
        append(table, 2 * i, 2 * i + 1)
    assert manifests(lake, table).num_rows <= 4
    assert [r[0] for r in rows(table)] == list(range(20))
    assert table.scan(where="id = 7").files().num_rows == 1
    assert table.scan(as_of=table.snapshots()[2].snapshot_id).count() == 6
    table.delete("id = 3")
    append(table, 50)
    assert [r[0] for r in rows(table)] == [*(i for i in range(20) if i != 3), 50]


def test_row_ids_and_sequence_numbers_survive_a_merge(lake: Lake) -> None:
    table = lake.create_table("t.t", "id long, p string", properties=FEW, format_version=3)
    lineage = ("_row_id", "_last_updated_sequence_number")
    known: list[tuple[object, ...]] = []
    for i in range(9):
        append(table, i)
        now = rows(table, *lineage)
        assert set(known) <= set(now)
        known = now
    assert len({row_id for _, row_id, _ in known}) == 9


def test_specs_are_not_mixed(lake: Lake) -> None:
    table = lake.create_table("t.t", "id long, p string", properties=FEW)
    for i in range(3):
        append(table, i)
    with table.evolve() as change:
        change.add_partition_field("p")
    for i in range(3, 9):
        append(table, i)
    assert [r[0] for r in rows(table)] == list(range(9))
    assert set(manifests(lake, table)["partition_spec_id"].to_pylist()) == {0, 1}
    assert table.scan(where="p = '1'").count() == 4


def test_large_manifests_are_left_alone_and_merging_can_be_switched_off(lake: Lake) -> None:
    off = lake.create_table("t.off", "id long, p string", properties=FEW | {"commit.manifest-merge.enabled": "false"})
    large = lake.create_table(
        "t.large", "id long, p string", properties=FEW | {"commit.manifest.target-size-bytes": "1"}
    )
    for table in (off, large):
        for i in range(8):
            append(table, i)
        assert manifests(lake, table).num_rows == 8


def test_a_lost_race_leaves_no_merged_manifest_behind(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.create_table("t.t", "id long, p string", properties=FEW)
    for i in range(4):
        append(table, i)
    swap = lake.catalog.swap

    def lose_once(changes: object) -> None:
        monkeypatch.setattr(lake.catalog, "swap", swap)
        append(lake.table("t.t"), 77)
        swap(changes)  # type: ignore[arg-type]

    monkeypatch.setattr(lake.catalog, "swap", lose_once)
    append(table, 5)
    assert [r[0] for r in rows(table)] == [0, 1, 2, 3, 5, 77]
    kept = set()
    for snapshot in table.snapshots():
        listed = load_manifests(lake.backend.reading, snapshot)
        assert listed is not None
        kept |= set(listed["manifest_path"].to_pylist())
    on_disk = {f.location for f in lake.store.list(table.location) if f.location.endswith("-m0.avro")}
    assert on_disk == kept
