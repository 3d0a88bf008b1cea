"""Expiry: snapshots go, then their files, and never a file that something needs."""

from pathlib import Path

import pyarrow as pa
import pytest
from tests.upkeep.fixtures import AT_ONCE, FUTURE, Yard, ids, make_yard, rows

import icefield
from icefield.commit.action import CommitTarget
from icefield.commit.actions.append import AppendFiles
from icefield.dml.add_files import add_files, describe_files
from icefield.dml.head import LiveHead
from icefield.errors import AlreadyExists, CatalogError, InvalidInput
from icefield.leases.folder import gc_folder
from icefield.marks.files import FileKind, table_files
from icefield.marks.mark import EXPIRED, write_mark
from icefield.model.names import parse_table_name
from icefield.model.statistics import PartitionStatisticsFile, StatisticsFile


@pytest.fixture
def yard() -> Yard:
    return make_yard()


def test_files_of_expired_snapshots_are_deleted(yard: Yard) -> None:
    table = yard.table()
    table.append(rows(1))
    table.overwrite(rows(2))
    before = yard.files()
    result = table.expire_snapshots(FUTURE)
    assert len(result.snapshot_ids) == 1
    assert result.mark is not None
    assert result.swept is not None
    # The old data file, its manifest and its list; the overwrite's own manifest of the deleted entry is kept.
    assert result.files_marked == result.swept.files_deleted == len(before - yard.files()) >= 3
    assert result.swept.bytes_deleted > 0
    assert ids(table) == [2]
    assert table.sweep().files_deleted == 0


@pytest.mark.parametrize("way", ["data file", "statistics", "mark"])
def test_a_location_that_leads_out_of_the_directories_is_not_deleted(tmp_path: Path, way: str) -> None:
    """Object stores take `..` for a name; a local disk follows it to the files of another table."""
    with icefield.connect(str(tmp_path), durable=False) as lake:
        other = lake.create_table("t.other", "id long, n long", properties={"gc.enabled": "false"})
        other.append(rows(7))
        (file,) = other.scan().files()["file_path"].to_pylist()
        table = lake.create_table("t.t", "id long, n long", properties=AT_ONCE)
        around = f"{table.location}/data/../..{file.removeprefix(table.location.rpartition('/')[0])}"
        table.append(rows(1))
        if way == "data file":
            table.add_files([around])
        if way == "statistics":
            table.set_statistics(StatisticsFile(table.snapshots()[-1].snapshot_id, around, 4, 2))
        if way == "mark":
            files = table_files([around], FileKind.DATA)
            folder = gc_folder(table.metadata)
            write_mark(lake.store, lake.backend.ambient, folder, table.metadata.table_uuid, EXPIRED, files)
        table.overwrite(rows(2))
        table.expire_snapshots(FUTURE)
        table.remove_orphans(unsafe=True)
        assert ids(other) == [7]
        assert ids(table) == [2]


def test_a_file_that_another_engine_adds_again_in_another_spelling_is_kept(tmp_path: Path) -> None:
    with icefield.connect(str(tmp_path), durable=False) as lake:
        table = lake.create_table("t.t", "id long, n long", properties=AT_ONCE)
        table.append(rows(1))
        (file,) = table.scan().files()["file_path"].to_pylist()
        again = file.replace("/data/", "/data/../data/")
        with pytest.raises(AlreadyExists):
            table.add_files([again])
        added = describe_files(lake.store, table.metadata, [file], None).columns
        path = pa.chunked_array([[again]], pa.string())
        head, base = LiveHead(lake.backend, parse_table_name("t.t")), table.metadata
        table.delete_files([file])
        head.commit([AppendFiles(added.replaced({"file_path": path}), base.spec, base.schema, CommitTarget("main"))])
        assert table.scan().files()["file_path"].to_pylist() == [again]
        table.append(rows(2))
        table.expire_snapshots(FUTURE)
        assert ids(table) == [1, 2]


def test_a_table_whose_location_has_two_dots_is_kept_clean(tmp_path: Path) -> None:
    with icefield.connect(str(tmp_path), durable=False) as lake:
        (tmp_path / "x").mkdir()
        location = f"file://{tmp_path}/x/../t"
        table = lake.create_table("t.t", "id long, n long", location=location, properties=AT_ONCE)
        for number in range(3):
            table.overwrite(rows(number))
        table.expire_snapshots(FUTURE)
        table.remove_orphans(unsafe=True)
        assert len(list((tmp_path / "t" / "data").iterdir())) == 1
        assert ids(table) == [2]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_nothing_is_left_after_expiry_and_orphan_removal(yard: Yard, version: int) -> None:
    table = yard.table(version=version, write__delete__mode="merge-on-read" if version > 1 else "copy-on-write")
    for n in range(6):
        table.append(rows(n, 10 + n))
    if version > 1:
        table.delete("id = 3")
    table.compact()
    table.overwrite(rows(1), where="id = 1")
    table.rewrite_manifests()
    expected = ids(table)
    table.expire_snapshots(FUTURE)
    table.remove_orphans(unsafe=True)
    assert ids(table) == expected
    metadata = table.metadata
    assert len(metadata.snapshots) == 1
    assert table.remove_orphans(unsafe=True, dry_run=True).files_marked == 0
    data = [file for file in yard.files() if file.endswith((".parquet", ".puffin"))]
    assert len(data) == len(table.scan().files())


def test_a_dry_run_returns_the_same_and_changes_nothing(yard: Yard) -> None:
    table = yard.table()
    for n in range(4):
        table.overwrite(rows(n))
    before, pointer = yard.files(), table.metadata_location
    plan = table.expire_snapshots(FUTURE, keep_last=2, dry_run=True)
    assert (yard.files(), table.metadata_location) == (before, pointer)
    done = table.expire_snapshots(FUTURE, keep_last=2)
    assert plan.is_dry_run
    assert not done.is_dry_run
    for name in ("snapshot_ids", "refs", "files_marked", "bytes_marked"):
        assert getattr(plan, name) == getattr(done, name)


def test_snapshots_expire_by_id(yard: Yard) -> None:
    table = yard.table()
    for n in range(3):
        table.overwrite(rows(n))
    middle = table.snapshots()[1].snapshot_id
    assert table.expire_snapshots(snapshot_ids=[middle]).snapshot_ids == (middle,)
    first, last = table.snapshots()
    assert ids(table, first.snapshot_id) == [0]
    assert ids(table, last.snapshot_id) == [2]
    with pytest.raises(InvalidInput, match="points at it"):
        table.expire_snapshots(snapshot_ids=[last.snapshot_id])
    with pytest.raises(InvalidInput, match="not by both"):
        table.expire_snapshots(FUTURE, snapshot_ids=[first.snapshot_id])


def test_files_wait_for_the_grace_period(yard: Yard) -> None:
    table = yard.table(icefield__gc__grace_ms="60000")
    table.append(rows(1))
    table.overwrite(rows(2))
    before = yard.files()
    result = table.expire_snapshots(FUTURE)
    assert result.swept is not None
    assert result.swept.waiting[0].files == result.files_marked
    assert before - yard.files() == set()
    yard.ambient.sleep(59)
    assert table.sweep().files_deleted == 0
    yard.ambient.sleep(1)
    assert table.sweep(dry_run=True).files_deleted == result.files_marked
    assert table.sweep().files_deleted == result.files_marked
    assert table.sweep().waiting == ()


def test_every_file_counts_with_its_size(yard: Yard) -> None:
    """Data, deletes, manifests and manifest lists: what is freed is what was stored."""
    table = yard.table(write__delete__mode="merge-on-read", version=3)
    for n in range(3):
        table.append(rows(n, n + 10))
        table.delete(f"id = {n}")
    table.overwrite(rows(9))
    sizes = {file.location: file.size_bytes for file in yard.store.list("memory://lake")}
    plan = table.expire_snapshots(FUTURE, dry_run=True)
    result = table.expire_snapshots(FUTURE)
    gone = sizes.keys() - {file.location for file in yard.store.list("memory://lake")}
    assert result.swept is not None
    assert len(result.swept.kinds) >= 4
    assert plan.bytes_marked == result.bytes_marked == result.swept.bytes_deleted == sum(sizes[each] for each in gone)


def test_a_short_grace_needs_the_promise_that_nobody_else_reads(yard: Yard) -> None:
    table = yard.table(icefield__gc__foreign_readers="true")
    table.append(rows(1))
    for verb in (table.sweep, table.expire_snapshots, table.remove_orphans):
        with pytest.raises(InvalidInput, match="other engines may read"):
            verb()


def test_what_is_needed_again_at_the_sweep_is_kept(yard: Yard) -> None:
    """A file that is deleted from the table, marked, and added again before the sweep."""
    table = yard.table(icefield__gc__grace_ms="60000")
    table.append(rows(1))
    (old,) = table.scan().files()["file_path"].to_pylist()
    table.append(rows(2))
    table.delete_files([old])
    assert old in read_marked(table, table.expire_snapshots(FUTURE).mark)
    add_files(table._head, yard.store, table._target(), [old], None)  # as a writer that does not look at marks
    yard.ambient.sleep(60)
    table.sweep()
    assert ids(table) == [1, 2]
    assert list(yard.store.list(f"{table.location}/metadata/gc/marks")) == []


def test_branches_and_tags_keep_their_files(yard: Yard) -> None:
    table = yard.table()
    table.append(rows(1))
    table.create_tag("first")
    table.overwrite(rows(2))
    table.create_branch("b")
    table.at("b").append(rows(3))
    table.overwrite(rows(4))
    table.expire_snapshots(FUTURE)
    assert ids(table, "first") == [1]
    assert ids(table, "b") == [2, 3]
    assert ids(table) == [4]


def test_rollback_keeps_the_files_of_its_snapshot(yard: Yard) -> None:
    table = yard.table()
    table.append(rows(1))
    first = table.snapshots()[0].snapshot_id
    table.overwrite(rows(2))
    table.rollback(first)
    table.expire_snapshots(FUTURE)
    table.remove_orphans(unsafe=True)
    assert ids(table) == [1]


def test_rename_before_the_sweep_deletes_nothing_of_the_new_name(yard: Yard) -> None:
    table = yard.table(icefield__gc__grace_ms="60000")
    table.append(rows(1))
    table.overwrite(rows(2))
    table.expire_snapshots(FUTURE)
    yard.lake.rename_table("t.t", "t.u")
    other = yard.table("t.t")
    other.append(rows(7))
    yard.ambient.sleep(60)
    other.sweep()
    assert yard.lake.table("t.u").sweep().files_deleted > 0
    assert ids(other) == [7]
    assert ids(yard.lake.table("t.u")) == [2]


def test_statistics_files_of_expired_snapshots_are_deleted_and_others_kept(yard: Yard) -> None:
    table = yard.table()
    for n in range(2):
        table.overwrite(rows(n))
    old, new = (snapshot.snapshot_id for snapshot in table.snapshots())
    folder = f"{table.location}/metadata"
    for snapshot_id in (old, new):
        for name in (f"{snapshot_id}-x.stats", f"partition-stats-{snapshot_id}-{yard.ambient.random_uuid()}.parquet"):
            place = f"{folder}/{name}"
            yard.store.put_new(place, b"1234")
            is_partition = name.startswith("partition")
            table.set_statistics(
                PartitionStatisticsFile(snapshot_id, place, 4)
                if is_partition
                else StatisticsFile(snapshot_id, place, 4, 2)
            )
    table.expire_snapshots(FUTURE)
    table.remove_orphans(unsafe=True)
    left = {file.rpartition("/")[2] for file in yard.files(folder) if "stats" in file}
    assert len(left) == 2
    assert all(str(new) in name for name in left)


def test_hostile_statistics_paths_delete_nothing_else(yard: Yard) -> None:
    other = yard.table("t.other")
    other.append(rows(1))
    (victim,) = other.scan().files()["file_path"].to_pylist()
    table = yard.table()
    for n in range(2):
        table.overwrite(rows(n))
    old = table.snapshots()[0].snapshot_id
    table.set_statistics(StatisticsFile(old, victim, 4, 2))
    table.expire_snapshots(FUTURE)
    table.sweep()
    assert ids(other) == [1]


def test_a_table_that_forbids_it_keeps_everything(yard: Yard) -> None:
    table = yard.table(gc__enabled="false")
    table.overwrite(rows(1))
    for verb in (table.sweep, table.expire_snapshots, table.remove_orphans):
        with pytest.raises(InvalidInput, match="gc.enabled is false"):
            verb()


def test_an_interrupted_sweep_is_finished_by_the_next(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    table = yard.table()
    for n in range(4):
        table.overwrite(rows(n))
    plan = table.expire_snapshots(FUTURE, dry_run=True)
    real, left = yard.store.delete, [3]

    def delete(location: str) -> None:
        if "/gc/" not in location:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
        real(location)

    monkeypatch.setattr(yard.store, "delete", delete)
    with pytest.raises(KeyboardInterrupt):
        table.expire_snapshots(FUTURE)
    monkeypatch.undo()
    audits = [file.location for file in yard.store.list(f"{table.location}/metadata/gc/audit")]
    assert len(audits) == 1
    assert table.sweep().marks_done == 1
    assert table.remove_orphans(unsafe=True, dry_run=True).files_marked == 0
    assert plan.files_marked > 3
    assert ids(table) == [3]


def test_an_older_catalog_is_refused(yard: Yard) -> None:
    table = yard.table()
    for n in range(3):
        table.overwrite(rows(n))
    old = table.metadata_location
    for n in range(3):
        table.overwrite(rows(n))
    now = yard.lake.catalog.pointer(table._head.name)
    yard.lake.catalog._entries[table._head.name] = _entry(old)  # type: ignore[attr-defined]
    before = yard.files()
    again = yard.lake_again().table("t.t")
    for verb in (lambda: again.remove_orphans(unsafe=True), lambda: again.expire_snapshots(FUTURE)):
        with pytest.raises(CatalogError, match="is newer than the metadata"):
            verb()
    assert before - yard.files() == set()
    assert now in before


def test_a_catalog_that_lost_one_commit_keeps_what_it_lost(yard: Yard) -> None:
    """G9: one lost commit looks like a writer that crashed before its swap, so nothing of it is deleted."""
    table = yard.table()
    for n in range(3):
        table.overwrite(rows(n))
    old = table.metadata_location
    table.append(rows(7))
    now = table.metadata_location
    yard.lake.catalog._entries[table._head.name] = _entry(old)  # type: ignore[attr-defined]
    again = yard.lake_again().table("t.t")
    assert again.remove_orphans(unsafe=True).files_marked == 0
    again.sweep()
    yard.lake.catalog._entries[table._head.name] = _entry(now)  # type: ignore[attr-defined]
    assert ids(yard.lake_again().table("t.t")) == [2, 7]


def _entry(pointer: str) -> object:
    from icefield.catalog.catalog import Entry, Kind  # noqa: PLC0415

    return Entry(Kind.TABLE, pointer)


def read_marked(table: object, mark: str | None) -> set[str]:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    data = table._context.store.read(f"{table.location}/metadata/gc/marks/{mark}.parquet")  # type: ignore[attr-defined]
    return set(pq.read_table(pa.BufferReader(data))["location"].to_pylist())


@pytest.mark.parametrize("keep_last", [0, -1])
def test_an_expiry_that_keeps_no_snapshot_is_refused(yard: Yard, keep_last: int) -> None:
    table = yard.table()
    for key in range(2):
        table.append(rows(key))
    with pytest.raises(InvalidInput, match=f"keep_last must be at least one, not {keep_last}"):
        table.expire_snapshots(FUTURE, keep_last=keep_last)
    assert len(table.snapshots()) == 2
