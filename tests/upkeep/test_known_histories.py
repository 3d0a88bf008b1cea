"""Histories in which collectors of other formats deleted live data, by their numbers; each is shown to fail."""

from collections.abc import Callable

import pytest
from tests.sim import planted_collectors as planted
from tests.upkeep.fixtures import FUTURE, Yard, ids, make_yard, rows
from tests.upkeep.test_guards import reader_between_sample_and_delete

from icefield.commit.actions.expire import ExpireSnapshots
from icefield.dml.head import LiveHead
from icefield.errors import CatalogError, IcefieldError
from icefield.marks import files, mark
from icefield.marks.files import NO_TABLE_FILES
from icefield.model.statistics import PartitionStatisticsFile, StatisticsFile
from icefield.storage.store import StoredFile
from icefield.table.table import Table
from icefield.upkeep import expire, reachable
from icefield.upkeep.reachable import find_reachable

Patch = pytest.MonkeyPatch


@pytest.fixture
def yard() -> Yard:
    return make_yard()


def breaks(history: Callable[[Yard], None]) -> None:
    """Check that a history does harm."""
    with pytest.raises((AssertionError, IcefieldError)):
        history(make_yard())


def rollback_after_the_mark(yard: Yard) -> None:
    """A collector has marked the files of a snapshot, and the table is rolled back to it before the sweep."""
    table = yard.table(icefield__gc__grace_ms="60000")
    table.append(rows(1))
    first, before = table.snapshots()[0], find_reachable(table._context, table.metadata, table.metadata_location)
    table.overwrite(rows(2))
    folder = f"{table.location}/metadata/gc"
    mark.write_mark(yard.store, yard.ambient, folder, table.metadata.table_uuid, mark.EXPIRED, before)
    table.rollback(first.snapshot_id)
    yard.ambient.sleep(60)
    table.sweep()
    assert ids(table) == [1]


def rollback_before_the_swap(yard: Yard) -> None:
    """The table is rolled back to a snapshot while it is about to expire."""
    table = yard.table()
    table.append(rows(1))
    first = table.snapshots()[0]
    table.overwrite(rows(2))
    real, other = yard.lake.catalog.swap, yard.lake_again().table("t.t")

    def swap(changes: object) -> None:
        yard.lake.catalog.swap = real  # type: ignore[method-assign]
        other.rollback(first.snapshot_id)
        real(changes)  # type: ignore[arg-type]

    yard.lake.catalog.swap = swap  # type: ignore[method-assign]
    table.expire_snapshots(FUTURE)
    table.remove_orphans(unsafe=True)
    assert ids(table) == [1]


@pytest.mark.parametrize("history", [rollback_after_the_mark, rollback_before_the_swap])
def test_r09_files_of_a_snapshot_that_the_table_is_rolled_back_to_are_kept(
    yard: Yard, history: Callable[[Yard], None]
) -> None:
    history(yard)


def test_r09_without_a_second_look_they_are_gone(monkeypatch: Patch) -> None:
    planted.no_second_look_at_the_sweep(monkeypatch)
    breaks(rollback_after_the_mark)


def file_that_is_added_again(yard: Yard) -> None:
    table = yard.table()
    table.append(rows(1))
    (old,) = table.scan().files()["file_path"].to_pylist()
    table.append(rows(2))
    middle = table.delete_files([old])
    table.add_files([old])
    assert middle is not None
    table.expire_snapshots(snapshot_ids=[middle.snapshot_id])
    assert ids(table) == [1, 2]
    table.expire_snapshots(FUTURE)
    assert ids(table) == [1, 2]


def test_r10_a_file_that_is_added_again_survives_the_expiry_of_a_middle_snapshot(yard: Yard) -> None:
    file_that_is_added_again(yard)


def test_r10_without_what_is_kept_it_is_gone(monkeypatch: Patch) -> None:
    real = reachable.find_reachable

    def of_the_removed(context: object, before: object, after: object) -> object:
        return real(context, before, "memory://none")  # type: ignore[arg-type]

    monkeypatch.setattr(expire, "find_expired", of_the_removed)
    planted.no_second_look_at_the_sweep(monkeypatch)
    breaks(file_that_is_added_again)


def readers_at_every_delete(yard: Yard) -> None:
    """Whoever opens the table while files go can read every version that it shows."""
    table = yard.table()
    for n in range(3):
        table.overwrite(rows(n))
    real, looks = yard.store.delete, list[str]()

    def delete(location: str) -> None:
        real(location)
        if "/metadata/gc/" not in location:
            looks.append(location)
            seen = yard.lake_again().table("t.t")
            for snapshot in seen.snapshots():
                assert len(ids(seen, snapshot.snapshot_id)) == 1

    yard.store.delete = delete  # type: ignore[method-assign]
    table.expire_snapshots(FUTURE)
    assert looks


def test_r11_no_reader_sees_half_a_snapshot(yard: Yard) -> None:
    readers_at_every_delete(yard)


def test_r11_files_that_go_before_the_pointer_moves_are_missed(monkeypatch: Patch) -> None:
    real = LiveHead.commit

    def commit(head: LiveHead, actions: list[object], *rest: object) -> object:
        before = head.load().metadata
        if len(before.snapshots) == 3 and isinstance(actions[0], ExpireSnapshots):
            after = expire._preview(head, before, actions[0])
            for location in reachable.find_expired(head.backend.reading, before, after).location.to_pylist():
                head.backend.store.delete(location)
        return real(head, actions, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(LiveHead, "commit", commit)
    breaks(readers_at_every_delete)


def commit_in_flight(yard: Yard, change: Callable[[Table], object], left: list[int]) -> None:
    """Orphan files are removed after a writer has written all of its files, immediately before its swap."""
    table = yard.table()
    table.append(rows(1, 2))
    real, collector = yard.lake.catalog.swap, yard.lake_again().table("t.t")

    def swap(changes: object) -> None:
        yard.lake.catalog.swap = real  # type: ignore[method-assign]
        collector.remove_orphans(unsafe=True)
        real(changes)  # type: ignore[arg-type]

    yard.lake.catalog.swap = swap  # type: ignore[method-assign]
    change(table)
    assert ids(yard.lake_again().table("t.t")) == left


def append_in_flight(yard: Yard) -> None:
    commit_in_flight(yard, lambda table: table.append(rows(3)), [1, 2, 3])


def delete_in_flight(yard: Yard) -> None:
    commit_in_flight(yard, lambda table: table.delete("id = 1", mode="merge-on-read"), [2])


@pytest.mark.parametrize("history", [append_in_flight, delete_in_flight])
def test_r12_files_of_a_commit_in_flight_are_not_orphan_files(yard: Yard, history: Callable[[Yard], None]) -> None:
    history(yard)


@pytest.mark.parametrize("history", [append_in_flight, delete_in_flight])
def test_r12_without_the_leases_of_writers_they_are_gone(monkeypatch: Patch, history: Callable[[Yard], None]) -> None:
    planted.open_writes_that_are_not_asked(monkeypatch)
    planted.proposed_versions_that_are_not_kept(monkeypatch)
    breaks(history)


def listing_with_other_spellings(yard: Yard) -> None:
    """The store lists the files of a table with doubled slashes."""
    table = yard.table()
    table.append(rows(1))
    real = yard.store.list

    def listing(prefix: str) -> object:
        for found in real(prefix):
            spelled = found.location.replace("/data/", "//data///")
            yield StoredFile(spelled, found.size_bytes, found.modified_ms)

    yard.store.list = listing  # type: ignore[method-assign, assignment]
    assert table.remove_orphans(unsafe=True).files_marked == 0
    assert ids(table) == [1]


def test_r13_other_spellings_of_a_location_are_the_same_file(yard: Yard) -> None:
    listing_with_other_spellings(yard)


def test_r13_without_folding_they_are_others_and_the_listing_is_refused(yard: Yard, monkeypatch: Patch) -> None:
    monkeypatch.setattr(files, "_FOLDS", ())
    with pytest.raises(CatalogError, match="are not in the listing"):
        listing_with_other_spellings(yard)


def every_kind_of_file(yard: Yard) -> None:
    """Statistics, vectors, deletes, manifests and lists of a table are all kept."""
    for version in (2, 3):
        table = yard.table(f"t.v{version}", version=version, write__delete__mode="merge-on-read")
        table.append(rows(1, 2, 3))
        table.delete("id = 2")
        snapshot_id = table.snapshots()[-1].snapshot_id
        folder = f"{table.location}/metadata"
        some = yard.ambient.random_uuid()
        for name in (f"{snapshot_id}-{some}.stats", f"partition-stats-{snapshot_id}-{some}.parquet"):
            yard.store.put_new(f"{folder}/{name}", b"1234")
            is_partition = name.startswith("partition")
            table.set_statistics(
                PartitionStatisticsFile(snapshot_id, f"{folder}/{name}", 4)
                if is_partition
                else StatisticsFile(snapshot_id, f"{folder}/{name}", 4, 2)
            )
        before = yard.files(table.location)
        table.remove_orphans(unsafe=True)
        assert yard.files(table.location) == before
        assert ids(table) == [1, 3]


def test_r14_no_kind_of_file_is_forgotten(yard: Yard) -> None:
    every_kind_of_file(yard)


@pytest.mark.parametrize("kind", ["_statistics", "_live_files", "_lists", "_describe_manifests"])
def test_r14_a_forgotten_kind_is_lost(monkeypatch: Patch, kind: str) -> None:
    monkeypatch.setattr(reachable, kind, lambda *_: NO_TABLE_FILES)
    breaks(every_kind_of_file)


def rename_before_the_purge(yard: Yard) -> None:
    """A drop crashes after its record was written, and the table is renamed before records are worked off."""
    table = yard.table(icefield__gc__undrop_ms="0")
    table.append(rows(1))
    real = yard.lake.catalog.swap

    def crash(_: object) -> None:
        raise KeyboardInterrupt

    yard.lake.catalog.swap = crash  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        yard.lake.drop_table("t.t", purge=True)
    yard.lake.catalog.swap = real  # type: ignore[method-assign]
    yard.lake.rename_table("t.t", "t.u")
    yard.lake.purge_dropped()
    assert ids(yard.lake.table("t.u")) == [1]


def test_r15_a_renamed_table_is_not_purged(yard: Yard) -> None:
    rename_before_the_purge(yard)


def test_r15_by_name_it_is_lost(monkeypatch: Patch) -> None:
    planted.dropped_tables_known_by_name(monkeypatch)
    breaks(rename_before_the_purge)


def test_r25_a_lease_that_comes_after_the_sample_does_not_read_what_is_deleted(yard: Yard) -> None:
    reader_between_sample_and_delete(yard)


def test_r25_without_a_second_look_at_the_pointer_it_does(monkeypatch: Patch) -> None:
    planted.readers_that_do_not_look_again(monkeypatch)
    breaks(reader_between_sample_and_delete)
