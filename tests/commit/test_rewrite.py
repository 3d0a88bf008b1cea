"""Compaction and the rewriting of manifests: no row changes, whatever others do concurrently."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commit.racing import files_of, race, reachable

import icefield
from icefield.commit.actions.rewrite import RewriteFiles
from icefield.commit.snapshot.moved_rows import MovedRows, decode_row_map, encode_row_map
from icefield.commit.validate.read_set import StartingSnapshot
from icefield.compaction.result import CompactionResult
from icefield.errors import CommitError
from icefield.lake import Lake
from icefield.model.snapshot import Operation
from icefield.table.table import Table

IN_PLACE = {"write.delete.mode": "merge-on-read", "write.merge.mode": "merge-on-read"}


def rows(*pairs: tuple[int, str]) -> pa.Table:
    return pa.table({"id": pa.array([p[0] for p in pairs], pa.int64()), "p": [p[1] for p in pairs]})


def data_files(lake: Lake) -> set[str]:
    return {path for path in files_of(lake) if "/data/" in path}


def data_files_of_history(table: Table) -> set[str]:
    return {path for path in reachable(table) if "/data/" in path}


def ids_of(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().read_all()["id"].to_pylist())


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


@pytest.fixture(params=[2, 3])
def table(lake: Lake, request: pytest.FixtureRequest) -> Table:
    made = lake.create_table(
        "t.t", "id long, p string", partition_by=["p"], properties=IN_PLACE, format_version=request.param
    )
    made.append(rows((1, "a"), (2, "a"), (3, "a"), (21, "b")))
    made.append(rows((4, "a"), (5, "a"), (6, "a")))
    made.append(rows((7, "a")))
    return made


def test_small_files_of_a_partition_become_one(lake: Lake, table: Table) -> None:
    snapshot = table.compact().snapshot
    assert snapshot is not None
    assert snapshot.operation == Operation.REPLACE
    assert table.scan().files().num_rows == 2
    assert ids_of(table) == [1, 2, 3, 4, 5, 6, 7, 21]
    assert table.compact().snapshot is None
    assert files_of(lake) >= reachable(table)


def test_deleted_rows_are_left_out_and_their_deletes_go(lake: Lake, table: Table) -> None:
    table.delete("id = 2 or id = 4 or id = 7")
    snapshot = table.compact().snapshot
    assert snapshot is not None
    assert ids_of(table) == [1, 3, 5, 6, 21]
    assert (snapshot.summary["total-delete-files"], snapshot.summary["total-position-deletes"]) == ("0", "0")
    assert snapshot.summary["total-records"] == "5"


def test_compaction_goes_by_a_filter(lake: Lake, table: Table) -> None:
    table.append(rows((22, "b")))
    table.compact("p = 'b'")
    files = table.scan().files()["partition"].to_pylist()
    assert sorted(files) == ["p=a", "p=a", "p=a", "p=b"]


def test_large_files_become_several_and_rows_are_found_again(lake: Lake, table: Table) -> None:
    table.set_properties({"write.target-file-size-bytes": "10000"})
    many = rows(*((1000 + n, "a") for n in range(20_000)))
    for start in range(0, 20_000, 5_000):
        table.append(many.slice(start, 5_000))
    race(lake, lambda: lake.table("t.t").delete("id in (1000, 8123, 20999)"), table.compact)
    assert table.scan(where="p = 'a'").files().num_rows > 1
    gone = {1000, 8123, 20_999}
    assert set(ids_of(table)) == {1, 2, 3, 4, 5, 6, 7, 21} | set(range(1000, 21_000)) - gone


def test_row_ids_stay(lake: Lake) -> None:
    table = lake.create_table("t.v3", "id long, p string", properties=IN_PLACE, format_version=3)
    table.append(rows((1, "a"), (2, "a")))
    table.append(rows((3, "a")))
    before = table.scan(select=["id", "_row_id"]).to_arrow().read_all().to_pylist()
    race(lake, lambda: lake.table("t.v3").delete("id = 2"), table.compact)
    after = table.scan(select=["id", "_row_id"]).to_arrow().read_all().to_pylist()
    assert sorted(r["id"] for r in after) == [1, 3]
    assert all(row in before for row in after)


def test_r02_rows_that_are_deleted_while_files_are_compacted_stay_deleted(lake: Lake, table: Table) -> None:
    table.delete("id = 1")
    race(lake, lambda: lake.table("t.t").delete("id in (3, 5)"), table.compact)
    assert ids_of(table) == [2, 4, 6, 7, 21]
    assert table.scan(where="p = 'a'").files().num_rows == 1
    assert files_of(lake) >= reachable(table)


def test_r02_goes_red_without_the_guard(lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RewriteFiles, "_moved_positions", lambda *_: {})
    race(lake, lambda: lake.table("t.t").delete("id in (3, 5)"), table.compact)
    assert {3, 5} <= set(ids_of(table)), "deleted rows come back with the compacted file"


def test_r02_where_it_is_not_known_where_rows_went_files_are_compacted_again(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icefield.compaction.compact._moved_rows", lambda *_: None)
    done: list[CompactionResult] = []
    race(lake, lambda: lake.table("t.t").delete("id = 3"), lambda: done.append(table.compact()))
    assert ids_of(table) == [1, 2, 4, 5, 6, 7, 21]
    assert (done[0].groups_done, done[0].groups_left_out) == (1, 0)
    assert table.scan(where="p = 'a'").files().num_rows == 1
    assert data_files(lake) == data_files_of_history(table), "files of the first try are left"


def test_r07_a_file_that_comes_while_others_are_compacted_is_not_removed_unread(lake: Lake, table: Table) -> None:
    race(lake, lambda: lake.table("t.t").append(rows((8, "a"))), table.compact)
    assert ids_of(table) == [1, 2, 3, 4, 5, 6, 7, 8, 21]
    assert table.scan(where="p = 'a'").files().num_rows == 2


def test_r07_a_list_that_is_made_from_the_newest_version_is_refused_by_its_rows(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    propose = RewriteFiles.propose

    def from_the_newest(self: RewriteFiles, base: object, context: object) -> object:
        files = lake.table("t.t").scan(where="p = 'a'")._plan
        assert files.version.snapshot is not None
        self.read_set = replace(self.read_set, plan=files, start=StartingSnapshot(files.version.snapshot.snapshot_id))
        self.groups = [replace(group, replaced=files.files) for group in self.groups]
        return propose(self, base, context)  # type: ignore[arg-type]

    monkeypatch.setattr(RewriteFiles, "propose", from_the_newest)
    with pytest.raises(CommitError, match="a rewrite must not change rows"):
        race(lake, lambda: lake.table("t.t").append(rows((8, "a"))), table.compact)
    assert 8 in ids_of(table), "the new file would have been removed though nobody read it"


def test_two_compactions_do_not_both_land(lake: Lake, table: Table) -> None:
    done: list[CompactionResult] = []
    race(lake, lambda: lake.table("t.t").compact(), lambda: done.append(table.compact()))
    assert ids_of(table) == [1, 2, 3, 4, 5, 6, 7, 21]
    assert (done[0].snapshot, done[0].groups_done) == (None, 0)
    assert data_files(lake) == data_files_of_history(table), "files of the second one are left"


def test_files_of_an_old_spec_are_brought_to_the_new_one(lake: Lake, table: Table) -> None:
    with table.evolve() as change:
        change.drop_partition_field("p")
        change.add_partition_field("bucket(2, id)")
    table.compact()
    assert set(table.scan().files()["spec_id"].to_pylist()) == {table.spec.spec_id}
    assert ids_of(table) == [1, 2, 3, 4, 5, 6, 7, 21]


@given(st.lists(st.integers(1, 30), min_size=1, max_size=5), st.data())
def test_rows_are_found_where_they_went(sizes: list[int], data: st.DataObject) -> None:
    left_out = [sorted(data.draw(st.sets(st.integers(0, size - 1)))) for size in sizes]
    kept = [(f, at) for f, size in enumerate(sizes) for at in range(size) if at not in left_out[f]]
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(kept) - 1))))) if kept else []
    ends = np.array([*(c for c in cuts if c < len(kept)), len(kept)])
    starts = {str(f): sum(1 for g, _ in kept if g < f) for f in range(len(sizes))}
    gone = {str(f): np.array(left, np.int64) for f, left in enumerate(left_out)}
    moved = MovedRows(starts, gone, [f"t{n}" for n in range(len(ends))], ends)
    text = encode_row_map([moved])
    assert text is not None
    (moved,) = decode_row_map(text)
    for number, (file, at) in enumerate(kept):
        target = int(np.searchsorted(ends, number, "right"))
        begin = 0 if target == 0 else int(ends[target - 1])
        found = moved.find(str(file), np.array([at]))
        assert {k: v.tolist() for k, v in found.items()} == {f"t{target}": [number - begin]}
    for file, left in enumerate(left_out):
        assert moved.find(str(file), np.array(left, np.int64)) == {}


def test_manifests_are_written_together(lake: Lake, table: Table) -> None:
    table.delete("id = 1")
    table.delete("id = 4")
    snapshot = table.rewrite_manifests()
    assert snapshot is not None
    assert snapshot.operation == Operation.REPLACE
    assert snapshot.summary["manifests-created"] == "2"
    assert int(snapshot.summary["manifests-replaced"]) >= 4
    assert ids_of(table) == [2, 3, 5, 6, 7, 21]
    assert table.rewrite_manifests() is None


def test_manifests_are_written_together_whatever_others_do(lake: Lake, table: Table) -> None:
    race(lake, lambda: lake.table("t.t").overwrite(rows((9, "a")), where="p = 'a'"), table.rewrite_manifests)
    assert ids_of(table) == [9, 21]
    assert files_of(lake) >= reachable(table)
