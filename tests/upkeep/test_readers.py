"""Readers that last: a scan that began before expiry and orphan removal with no grace returns all of its rows."""

from collections.abc import Callable

import pyarrow as pa
import pytest
from tests.upkeep.fixtures import FUTURE, Yard, ids, make_yard, rows

from icefield.errors import InvalidInput, LeaseLost, MissingFile, NoSuchSnapshot, StorageError
from icefield.leases.folder import gc_folder
from icefield.leases.lease import MARGIN_S, take_lease
from icefield.leases.record import LeaseKind, first_version
from icefield.table.scan import TableScan
from icefield.table.table import Table


@pytest.fixture
def yard() -> Yard:
    return make_yard()


def filled(yard: Yard, files: int = 4, **properties: str) -> Table:
    table = yard.table(**properties)
    for n in range(files):
        table.append(rows(n))
    return table


def wipe(table: Table) -> None:
    """Do all that can take files away, at once."""
    table.compact()
    table.overwrite(rows(100))
    table.expire_snapshots(FUTURE)
    table.remove_orphans(unsafe=True)
    table.sweep()


def test_a_reader_returns_all_rows_while_its_snapshot_is_swept(yard: Yard) -> None:
    table = filled(yard)
    reader = table.scan().to_arrow()
    first = reader.read_next_batch()
    wipe(table)
    (lease,) = table.leases()
    assert (lease.kind, lease.files_held > 4, lease.bytes_held > 0) == ("reader", True, True)
    for dry_run in (True, False):
        again = table.sweep(dry_run=dry_run)
        assert (again.files_deleted, len(again.waiting)) == (0, 1), "what was deleted before is not counted again"
    rest = pa.Table.from_batches([first, *reader])
    assert sorted(rest["id"].to_pylist()) == [0, 1, 2, 3]
    assert table.leases() == []
    assert table.sweep().files_deleted > 0
    assert ids(table) == [100]
    assert table.remove_orphans(unsafe=True, dry_run=True).files_marked == 0


@pytest.mark.parametrize("swept", [["snap-"], ["-m0.avro"], ["-m0.avro", "snap-"], []], ids=str)
@pytest.mark.every_case
def test_a_lease_that_came_too_late_holds_only_what_is_left(yard: Yard, swept: list[str]) -> None:
    """Its snapshot was swept, in whole or in part, and it stays because its response was lost."""
    table = filled(yard)
    before = table.metadata
    assert before.current_snapshot is not None
    stored = {location: yard.store.read(location) for location in yard.files()}
    wipe(table)
    left = {each for each in stored.keys() - yard.files() if not any(part in each for part in swept)}
    for location in left:
        yard.store.put_new(location, stored[location])
    record = first_version(LeaseKind.READER, "f" * 32, before, [before.current_snapshot])
    take_lease(yard.store, yard.ambient, gc_folder(before), record)
    assert [each.lease for each in table.leases()] == ["f" * 32]
    table.expire_snapshots(FUTURE)
    table.remove_orphans(unsafe=True)
    table.sweep()
    data_files = {each for each in left if each.endswith(".parquet")}
    assert len(data_files) == 4
    assert (data_files <= yard.files()) is (not swept)
    yard.ambient.sleep(record.ttl_ms / 1000 + MARGIN_S + 1)
    table.remove_orphans(unsafe=True)
    assert table.leases() == []
    assert not left & yard.files()
    assert ids(table) == [100]


def test_a_plan_made_before_the_sweep_is_not_read_after_it(yard: Yard) -> None:
    table = filled(yard)
    scan = table.scan()
    assert scan.files().num_rows == 4
    wipe(table)
    with pytest.raises(NoSuchSnapshot, match="has expired since"):
        scan.to_arrow()
    with pytest.raises(NoSuchSnapshot, match="has expired since"):
        scan.min("id")
    assert table.leases() == []


def test_a_scan_that_is_dropped_ends_its_lease(yard: Yard) -> None:
    table = filled(yard)
    reader = table.scan().to_arrow()
    assert len(table.leases()) == 1
    del reader
    assert table.leases() == []


def test_an_abandoned_lease_lapses_and_its_reader_raises(yard: Yard) -> None:
    table = filled(yard, icefield__gc__lease_ttl_ms="60000")
    reader = table.scan().to_arrow()
    reader.read_next_batch()
    table.overwrite(rows(100))
    table.expire_snapshots(FUTURE)
    yard.ambient.sleep(60 + MARGIN_S)
    swept = table.sweep()
    assert (swept.leases, swept.leases_lost) == (0, 1)
    assert swept.files_deleted > 0
    with pytest.raises((LeaseLost, MissingFile)):
        list(reader)
    assert ids(table) == [100]


def test_a_reader_that_goes_on_is_never_declared_dead(yard: Yard) -> None:
    table = filled(yard, files=12, icefield__gc__lease_ttl_ms="60000")
    reader = table.scan().to_arrow()
    table.overwrite(rows(100))
    read = []
    for batch in reader:
        read += batch["id"].to_pylist()
        yard.ambient.sleep(59)
        table.expire_snapshots(FUTURE)
    assert sorted(read) == list(range(12))


def test_a_short_read_takes_no_lease_where_the_grace_is_long(yard: Yard) -> None:
    table = filled(yard, icefield__gc__grace_ms="86400000")
    before = yard.store.list(f"{table.location}/metadata/gc")
    reader = table.scan().to_arrow()
    reader.read_next_batch()
    assert table.leases() == []
    assert list(before) == []
    list(reader)


def test_a_long_read_takes_a_lease_after_a_third_of_the_grace(yard: Yard) -> None:
    table = filled(yard, icefield__gc__grace_ms="86400000")
    reader = table.scan().to_arrow()
    reader.read_next_batch()
    table.overwrite(rows(100))
    table.expire_snapshots(FUTURE)
    yard.ambient.sleep(9 * 3600)
    reader.read_next_batch()
    reader.read_next_batch()
    assert len(table.leases()) == 1
    for _ in range(40):
        yard.ambient.sleep(3600 / 2)
        table.sweep()
    # Not renewed for hours, so it is dead by now; the reader says so, whatever it has read.
    with pytest.raises((LeaseLost, MissingFile)):
        list(reader)


@pytest.mark.parametrize("grace", ["0", "86400000"])
def test_a_reader_that_may_not_write_reads_without_a_lease(yard: Yard, grace: str) -> None:
    table = filled(yard, icefield__gc__grace_ms=grace)
    real, refused = yard.store.put_new, list[str]()

    def put_new(location: str, data: bytes) -> None:
        refused.append(location)
        raise StorageError("access denied")

    yard.store.put_new = put_new  # type: ignore[method-assign]
    scan = table.scan()
    assert (scan.count(), scan.to_arrow().read_all().num_rows, scan.files().num_rows) == (4, 4, 4)
    reader = table.scan().to_arrow()
    reader.read_next_batch()
    yard.ambient.sleep(9 * 3600)
    assert sum(batch.num_rows for batch in reader) == 3
    assert 0 < len(refused) < 8, "not asked again for every batch"
    late = table.scan().to_arrow()
    yard.store.put_new = real  # type: ignore[method-assign]
    yard.ambient.sleep(1)
    wipe(table)
    yard.ambient.sleep(25 * 3600)
    table.sweep()
    with pytest.raises(MissingFile):
        list(late)


def test_a_lease_is_asked_for_again_after_a_store_failed(yard: Yard) -> None:
    table = filled(yard, files=6, icefield__gc__lease_ttl_ms="60000")
    real = yard.store.put_new

    def put_new(location: str, data: bytes) -> None:
        yard.store.put_new = real  # type: ignore[method-assign]
        raise StorageError("try later")

    yard.store.put_new = put_new  # type: ignore[method-assign]
    reader = table.scan().to_arrow()
    reader.read_next_batch()
    assert table.leases() == []
    yard.ambient.sleep(21)
    reader.read_next_batch()
    reader.read_next_batch()
    assert len(table.leases()) == 1
    wipe(table)
    assert sum(batch.num_rows for batch in reader) == 3


def test_a_transaction_reads_and_writes_what_it_opened(yard: Yard) -> None:
    table, other = filled(yard), yard.table("t.other")
    other.append(rows(7))
    with yard.lake.transaction(isolation="snapshot") as tx:
        tx.pin(["t.t", "t.other"])
        inside = tx.table("t.t")
        wipe(table)
        assert sorted(lease.kind for lease in table.leases()) == ["writer"]
        assert ids(inside) == [0, 1, 2, 3]
        tx.table("t.other").append(rows(8))
        tx.table("t.other").delete("id = 7")
        other.remove_orphans(unsafe=True)
        assert ids(tx.table("t.other")) == [8]
        other.remove_orphans(unsafe=True)
    assert ids(other) == [8]
    assert (table.leases(), other.leases()) == ([], [])
    for each in (table, other):
        each.sweep()
        each.remove_orphans(unsafe=True)
    assert (ids(table), ids(other)) == ([100], [8])
    assert table.remove_orphans(unsafe=True, dry_run=True).files_marked == 0


def test_a_transaction_that_lasts_longer_than_the_grace_takes_leases(yard: Yard) -> None:
    table = filled(yard, icefield__gc__grace_ms="86400000", icefield__gc__orphan_age_ms="259200000")
    with yard.lake.transaction(isolation="snapshot") as tx:
        inside = tx.table("t.t")
        inside.append(rows(9))
        wipe(table)
        yard.ambient.sleep(9 * 3600)
        reader = inside.scan().to_arrow()
        assert len(table.leases()) == 1
        assert sum(batch.num_rows for batch in reader) == 5
        yard.ambient.sleep(20 * 3600)
        table.sweep()
        with pytest.raises(NoSuchSnapshot):
            inside.scan().to_arrow()
    assert ids(table) == [9, 100]


READS: dict[str, Callable[[TableScan], object]] = {
    "count": lambda scan: scan.count(),
    "count by partition": lambda scan: scan.count_by_partition(),
    "min": lambda scan: scan.min("id"),
    "files": lambda scan: scan.files(),
    "splits": lambda scan: scan.splits(),
    "explain": lambda scan: scan.explain(),
    "to_arrow": lambda scan: scan.to_arrow().read_all(),
}


@pytest.mark.parametrize("read", READS)
def test_every_read_of_an_expired_snapshot_fails(yard: Yard, read: str) -> None:
    table = filled(yard)
    table.delete("id = 1")
    scan = table.scan("id > 0")
    wipe(table)
    with pytest.raises(NoSuchSnapshot, match="has expired since"):
        READS[read](scan)
    assert table.leases() == []


def test_appended_rows_are_read_to_the_end(yard: Yard) -> None:
    table = filled(yard)
    reader = table.scan_appends(None).to_arrow()
    first = reader.read_next_batch()
    wipe(table)
    read = pa.Table.from_batches([first, *reader])
    assert sorted(read["id"].to_pylist()) == [0, 1, 2, 3]


def test_a_pin_keeps_a_snapshot_for_every_engine(yard: Yard) -> None:
    table = filled(yard)
    scan = table.scan()
    tag = scan.pin()
    wipe(table)
    assert ids(table, tag) == [0, 1, 2, 3]
    assert scan.to_arrow().read_all().num_rows == 4
    assert table.scan().pin("kept") == "kept"
    table.drop_tag(tag)
    table.expire_snapshots(FUTURE)
    with pytest.raises(NoSuchSnapshot):
        scan.to_arrow()
    with pytest.raises(InvalidInput, match="cannot pin"):
        yard.table("t.empty").scan().pin()
