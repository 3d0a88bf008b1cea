"""Row ids of format version 3: no id is given twice, none ever changes, all are below the table's next."""

from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commit.faults import RacingCatalog
from tests.commit.test_loop import through
from tests.effort import effort

import icefield
from icefield.ambient import SeededAmbient
from icefield.codec.manifest.columns import ALL
from icefield.codec.manifest.decode import decode_manifest
from icefield.codec.manifest.inherit import inherit
from icefield.codec.manifest.list import decode_manifest_list
from icefield.codec.manifest.list_schema import MANIFEST_LIST_ARROW_SCHEMA
from icefield.codec.manifest.rows import Manifests
from icefield.codec.manifest.schema import ADDED, DELETED
from icefield.commit.snapshot.build import assign_row_ids
from icefield.lake import Lake
from icefield.model.snapshot import Snapshot
from icefield.table.table import Table

DAYS = ["mon", "tue", "wed"]


def rows(*pairs: tuple[int, str]) -> pa.Table:
    return pa.table({"id": pa.array([p[0] for p in pairs], pa.int64()), "day": pa.array([p[1] for p in pairs])})


def make(lake: Lake, version: int) -> Table:
    return lake.create_table("a.t", "id long, day string", partition_by=["day"], format_version=version)


def manifests_of(lake: Lake, snapshot: Snapshot) -> pa.Table:
    return decode_manifest_list(lake.store.read(snapshot.manifest_list), snapshot.manifest_list)


def entries_of(lake: Lake, snapshot: Snapshot) -> list[dict[str, Any]]:
    """All entries of a snapshot with what they inherit, and what was stored of their row ids."""
    found: list[dict[str, Any]] = []
    listed = manifests_of(lake, snapshot)
    for at in range(listed.num_rows):
        manifest = listed.slice(at, 1)
        location = manifest["manifest_path"][0].as_py()
        stored = decode_manifest(lake.store.read(location), location, ALL)
        whole = inherit(stored, manifest).extended({"stored_row_id": stored["first_row_id"]})
        found.extend(whole.to_pylist())
    return found


def live_ids(lake: Lake, snapshot: Snapshot) -> dict[str, range]:
    """The row ids of every live data file."""
    live = [e for e in entries_of(lake, snapshot) if e["status"] != DELETED]
    ids = {str(e["file_path"]): (e["first_row_id"], e["record_count"]) for e in live}
    assert len(ids) == len(live)
    return {path: range(first, first + count) for path, (first, count) in ids.items()}


def assert_lineage(lake: Lake, table: Table) -> None:
    """Check every snapshot that has row ids, from the first on."""
    given_before: dict[str, range] = {}
    taken: set[int] = set()
    for snapshot in table.snapshots():
        if snapshot.first_row_id is None:
            continue
        now = live_ids(lake, snapshot)
        for path, ids in now.items():
            if path in given_before:
                assert given_before[path] == ids, "a row id changed"
                continue
            assert taken.isdisjoint(ids), "a row id was given twice"
            assert snapshot.added_rows is not None
            assert snapshot.first_row_id <= ids.start
            assert ids.stop <= snapshot.first_row_id + snapshot.added_rows
            taken.update(ids)
        given_before |= now
    assert all(each < table.metadata.next_row_id for each in taken)


@pytest.mark.slow
@effort(12)
@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(0, 4))
def test_every_row_has_one_id_for_ever(seed: int, version: int, upgrade_after: int) -> None:
    rng = Random(seed)
    with icefield.connect("memory:", ambient=SeededAmbient(seed)) as lake:
        table = make(lake, version)
        for step in range(9):
            if step == upgrade_after:
                table.upgrade_format_version(3)
            some = rows(*((rng.randrange(50), rng.choice(DAYS)) for _ in range(rng.randint(1, 6))))
            match rng.randrange(4):
                case 0:
                    table.overwrite(
                        some.slice(0, rng.randint(0, 1)), where=f"day = '{rng.choice(DAYS)}'", check_rows=False
                    )
                case 1:
                    table.overwrite(
                        some.slice(0, rng.randint(0, 1)), where=f"id < {rng.randrange(50)}", check_rows=False
                    )
                case _:
                    table.append(some)
        assert table.snapshots()[-1].first_row_id is not None
        assert_lineage(lake, table)


def test_a_snapshot_takes_ids_from_where_the_last_one_ended(memory_lake: Lake) -> None:
    table = make(memory_lake, 3)
    table.append(rows((1, "mon"), (2, "mon"), (3, "tue")))
    table.append(rows((4, "mon")))
    first, second = table.snapshots()
    assert [(s.first_row_id, s.added_rows) for s in (first, second)] == [(0, 3), (3, 1)]
    assert table.metadata.next_row_id == 4
    assert manifests_of(memory_lake, second)["first_row_id"].to_pylist() == [3, 0]
    assert {e["stored_row_id"] for e in entries_of(memory_lake, second)} == {None}, "new files inherit their ids"


def test_files_that_stay_and_files_that_go_keep_their_ids_in_the_rewritten_manifest(memory_lake: Lake) -> None:
    table = make(memory_lake, 3)
    table.append(rows((1, "mon"), (2, "mon"), (3, "tue")))
    before = live_ids(memory_lake, table.snapshots()[-1])
    table.overwrite(rows((9, "sun")), where="day = 'mon'", check_rows=False)
    head = table.snapshots()[-1]
    stored = {e["file_path"]: e["stored_row_id"] for e in entries_of(memory_lake, head) if e["status"] != ADDED}
    assert stored == {path: ids.start for path, ids in before.items()}
    # As Iceberg Java: room is left for the row that stays, though it has its id.
    assert (head.first_row_id, head.added_rows, table.metadata.next_row_id) == (3, 2, 5)
    assert_lineage(memory_lake, table)


def test_the_first_commit_after_an_upgrade_gives_ids_to_old_rows_and_the_next_one_copies(memory_lake: Lake) -> None:
    table = make(memory_lake, 2)
    table.append(rows((1, "mon"), (2, "tue")))
    table.append(rows((3, "mon")))
    old = table.snapshots()[-1]
    table.upgrade_format_version(3)
    assert table.metadata.next_row_id == 0
    assert {e["first_row_id"] for e in entries_of(memory_lake, old)} == {None}
    table.append(rows((4, "mon")))
    upgraded = table.snapshots()[-1]
    assert manifests_of(memory_lake, upgraded)["first_row_id"].to_pylist() == [0, 1, 2]
    assert (upgraded.first_row_id, upgraded.added_rows, table.metadata.next_row_id) == (0, 4, 4)
    table.append(rows((5, "mon")))
    head = table.snapshots()[-1]
    assert manifests_of(memory_lake, head)["first_row_id"].to_pylist() == [4, 0, 1, 2]
    assert (head.first_row_id, head.added_rows) == (4, 1)
    assert_lineage(memory_lake, table)


def test_racing_writers_never_share_an_id(memory_lake: Lake) -> None:
    table = make(memory_lake, 3)
    racing = RacingCatalog(
        memory_lake.catalog,
        [lambda: table.append(rows((1, "mon"), (2, "mon"))), lambda: table.overwrite(rows((3, "tue")), "day = 'tue'")],
    )
    through(memory_lake, racing).append(rows((4, "wed"), (5, "wed")))
    assert racing.swaps == 3
    assert [(s.first_row_id, s.added_rows) for s in table.snapshots()] == [(0, 2), (2, 1), (3, 2)]
    assert_lineage(memory_lake, table)


def test_a_commit_that_adds_no_row_still_says_where_ids_begin(memory_lake: Lake) -> None:
    table = make(memory_lake, 3)
    table.append(rows((1, "mon")))
    table.overwrite(rows(), where="day = 'mon'")
    head = table.snapshots()[-1]
    assert (head.first_row_id, head.added_rows) == (1, 0)
    assert table.metadata.next_row_id == 1


@pytest.mark.parametrize("version", [1, 2])
def test_before_version_3_there_are_no_ids(memory_lake: Lake, version: int) -> None:
    table = make(memory_lake, version)
    table.append(rows((1, "mon")))
    head = table.snapshots()[-1]
    assert (head.first_row_id, head.added_rows, table.metadata.next_row_id) == (None, None, 0)
    assert manifests_of(memory_lake, head)["first_row_id"].to_pylist() == [None]


def test_delete_manifests_get_no_id_and_ids_once_given_stay() -> None:
    counts = {"added_rows_count": 10, "existing_rows_count": 5}
    listed = [
        counts | {"content": 0, "first_row_id": None},
        counts | {"content": 1, "first_row_id": None},
        counts | {"content": 0, "first_row_id": 7},
        counts | {"content": 0, "first_row_id": None},
    ]
    table = pa.Table.from_pylist(listed, schema=MANIFEST_LIST_ARROW_SCHEMA)
    assigned, next_row_id = assign_row_ids(Manifests.trusted(table), 100)
    assert assigned["first_row_id"].to_pylist() == [100, None, 7, 115]
    assert next_row_id == 130
    assert assign_row_ids(Manifests.trusted(table.slice(0, 0)), 100)[1] == 100
