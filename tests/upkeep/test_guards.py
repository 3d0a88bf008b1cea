"""Each guard of the collector has a scenario that breaks when the guard is off."""

from collections.abc import Callable, Sequence
from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.sim import planted_collectors as planted
from tests.upkeep import doubts
from tests.upkeep.fixtures import FUTURE, Yard, ids, make_yard, rows

from icefield.catalog.catalog import PointerSwap
from icefield.commit.operations.tables import TableVersion
from icefield.dml.add_files import add_files
from icefield.dml.head import TableHead
from icefield.errors import CommitStateUnknown, IcefieldError, InvalidInput, LeaseLost
from icefield.leases.folder import store_time_ms
from icefield.leases.lease import MARGIN_S
from icefield.marks import clear, mark
from icefield.marks.files import FileKind, TableFiles, table_files
from icefield.upkeep import expire, sweep
from icefield.upkeep.checks import find_proposed
from icefield.upkeep.owned import Ownership


def commit_during_the_listing(yard: Yard) -> None:
    """A writer begins and ends while the store is listed."""
    table = yard.table()
    table.append(rows(1))
    other = yard.lake_again().table("t.t")
    real, is_done = yard.store.list, list[bool]()

    def listing(prefix: str) -> object:
        if prefix == table.location and not is_done:
            is_done.append(True)
            other.append(rows(2))
        return real(prefix)

    yard.store.list = listing  # type: ignore[method-assign, assignment]
    table.remove_orphans(unsafe=True)
    assert is_done
    assert ids(yard.lake_again().table("t.t")) == [1, 2]


def file_added_again_before_the_sweep(yard: Yard) -> None:
    table = yard.table(icefield__gc__grace_ms="60000")
    table.append(rows(1))
    (old,) = table.scan().files()["file_path"].to_pylist()
    table.append(rows(2))
    table.delete_files([old])
    table.expire_snapshots(FUTURE)
    with pytest.raises(InvalidInput, match="marked for deletion"):
        table.add_files([old])
    add_files(table._head, yard.store, table._target(), [old], None)  # as a writer that does not look at marks
    yard.ambient.sleep(60)
    table.sweep()
    assert ids(table) == [1, 2]


def reader_between_sample_and_delete(yard: Yard) -> None:
    """A reader takes its lease after the sample of a sweep, and must notice that its snapshot is gone."""
    table = yard.table()
    table.append(rows(1))
    scan = yard.lake_again().table("t.t").scan()
    table.overwrite(rows(2))
    real, found = yard.store.delete, list[object]()

    def delete(location: str) -> None:
        if location.endswith(".parquet") and "/data/" in location and not found:
            try:
                found.append(scan.files())
            except IcefieldError as error:
                found.append(error)
        real(location)

    yard.store.delete = delete  # type: ignore[method-assign]
    table.expire_snapshots(FUTURE)
    assert isinstance(found[0], IcefieldError)


def writer_stopped_past_its_lease(yard: Yard) -> None:
    table = yard.table(icefield__gc__lease_ttl_ms="60000")
    table.append(rows(1))
    collector = yard.lake_again().table("t.t")
    real, is_done = yard.store.put_new, list[bool]()

    def put_new(location: str, data: bytes) -> None:
        real(location, data)
        if location.endswith("-m0.avro") and not is_done:
            is_done.append(True)
            collector.remove_orphans(unsafe=True)
            yard.ambient.sleep(60 + MARGIN_S)
            collector.remove_orphans(unsafe=True)

    yard.store.put_new = put_new  # type: ignore[method-assign]
    with pytest.raises(LeaseLost):
        table.append(rows(2))
    assert ids(collector) == [1]


def swap_after_the_sweep(yard: Yard) -> None:
    """A writer stops between its last renewal and its swap, and its files are gone when it goes on."""
    table = yard.table(icefield__gc__lease_ttl_ms="60000")
    table.append(rows(1))
    collector, catalog = yard.lake_again().table("t.t"), yard.lake.catalog
    real = catalog.swap

    def swap(changes: Sequence[PointerSwap]) -> None:
        catalog.swap = real  # type: ignore[method-assign]
        collector.remove_orphans(unsafe=True)
        yard.ambient.sleep(60 + MARGIN_S)
        assert collector.remove_orphans(unsafe=True).swept.leases_lost == 1  # type: ignore[union-attr]
        real(changes)

    catalog.swap = swap  # type: ignore[method-assign]
    with pytest.raises(LeaseLost):
        table.append(rows(2))
    assert ids(collector) == [1]


def swap_that_is_late(yard: Yard) -> None:
    """The answer of a swap is lost, and it arrives after a collector has looked for orphan files."""
    table = yard.table(icefield__gc__lease_ttl_ms="60000", commit__retry__num_retries="0")
    table.append(rows(1))
    catalog, late = yard.lake.catalog, list[Sequence[PointerSwap]]()
    real = catalog.swap

    def swap(changes: Sequence[PointerSwap]) -> None:
        late.append(changes)
        raise CommitStateUnknown("lost")

    catalog.swap = swap  # type: ignore[method-assign]
    with pytest.raises(CommitStateUnknown):
        table.append(rows(2))
    catalog.swap = real  # type: ignore[method-assign]
    collector = yard.lake_again().table("t.t")
    collector.remove_orphans(unsafe=True)
    real(late[0])
    assert ids(yard.lake_again().table("t.t")) == [1, 2]


def order_of_deletion(yard: Yard) -> None:
    """Crashing anywhere in a sweep leaves what tells about a file as long as the file."""
    table = yard.table()
    for n in range(3):
        table.overwrite(rows(n))
    owned, gone = Ownership(table.metadata), list[str]()
    table.expire_snapshots(FUTURE, progress=gone.append)
    kinds = [owned.kind(location) for location in gone]
    assert len(set(kinds)) >= 3
    assert kinds == sorted(kinds)  # type: ignore[type-var]


def audit_before_the_first_delete(yard: Yard) -> None:
    table = yard.table()
    for n in range(3):
        table.overwrite(rows(n))
    real = yard.store.delete

    def delete(location: str) -> None:
        if "/gc/" not in location:
            audits = list(yard.store.list(f"{table.location}/metadata/gc/audit"))
            listed = [mark._decode(yard.store.read(f.location), f.location, table.metadata.table_uuid) for f in audits]
            assert any(location in files.location.to_pylist() for files in listed), location
        real(location)

    yard.store.delete = delete  # type: ignore[method-assign]
    result = table.expire_snapshots(FUTURE)
    assert result.unfinished is None


def mark_of_another_table(yard: Yard) -> None:
    """A mark goes by the uuid of its table, not by where it is."""
    one, two = yard.table("t.one"), yard.table("t.two")
    one.append(rows(1))
    two.append(rows(2))
    (victim,) = two.scan().files()["file_path"].to_pylist()
    folder, files = f"{two.location}/metadata/gc", table_files([victim], FileKind.DATA)
    mark.write_mark(yard.store, yard.ambient, folder, one.metadata.table_uuid, mark.ORPHAN, files)
    with pytest.raises(IcefieldError, match="another table"):
        two.sweep()
    assert ids(two) == [2]


def file_added_again_during_the_sweep(yard: Yard) -> None:
    """A file is added between the sample of a sweep and its deletes: it is refused, or kept."""
    table = yard.table()
    table.append(rows(1))
    (old,) = table.scan().files()["file_path"].to_pylist()
    table.append(rows(2))
    table.delete_files([old])
    other = yard.lake_again().table("t.t")
    real, is_done = yard.store.put_new, list[bool]()

    def put_new(location: str, data: bytes) -> None:
        real(location, data)
        if "/gc/audit/" in location and not is_done:
            is_done.append(True)
            with suppress(InvalidInput):
                other.add_files([old])

    yard.store.put_new = put_new  # type: ignore[method-assign]
    table.expire_snapshots(FUTURE)
    assert is_done
    assert ids(yard.lake_again().table("t.t")) in ([2], [1, 2])


def lease_renewed_during_the_sweep(yard: Yard) -> None:
    """A reader comes back after its lease has lapsed, and renews it before a sweep has declared it dead."""
    table = yard.table(icefield__gc__lease_ttl_ms="60000")
    table.append(rows(1))
    (old,) = table.scan().files()["file_path"].to_pylist()
    scan = yard.lake_again().table("t.t").scan()
    scan._lease.begin()  # type: ignore[union-attr]
    table.overwrite(rows(2))
    table.expire_snapshots(FUTURE)
    yard.ambient.sleep(60 + MARGIN_S)
    real, is_done = yard.store.list, list[bool]()

    def listing(prefix: str) -> object:
        if prefix.endswith("/gc/sightings") and not is_done:
            is_done.append(True)
            scan._lease.check()  # type: ignore[union-attr]
        return real(prefix)

    yard.store.list = listing  # type: ignore[method-assign, assignment]
    table.sweep()
    assert is_done
    assert old in yard.files()


def files_added_without_a_look(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("icefield.table.table.check_addable", lambda *_: None)


def together(*plants: planted.Plant) -> planted.Plant:
    """Switch off a guard and those behind it; the simulation finds each of them alone."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        for each in plants:
            each(patch)

    return plant


def mark_finished_by_another_sweep(yard: Yard) -> None:
    """Another sweep works off a mark between the listing of marks and the reading of this one."""
    table = yard.table(icefield__gc__grace_ms="60000")
    for n in range(2):
        table.overwrite(rows(n))
    table.expire_snapshots(FUTURE)
    yard.ambient.sleep(60)
    other, real = yard.lake_again().table("t.t"), yard.store.read
    is_done: list[bool] = []

    def read(location: str) -> bytes:
        if "/gc/marks/" in location and not is_done:
            is_done.append(True)
            assert other.sweep().files_deleted
        return real(location)

    yard.store.read = read  # type: ignore[method-assign]
    assert table.sweep().files_deleted == 0
    assert is_done


def commits_during_the_look(yard: Yard) -> None:
    """Others commit twice while an expiry compares the catalog with the metadata files; it is not an older catalog."""
    table = yard.table()
    for n in range(2):
        table.overwrite(rows(n))
    other, real = yard.lake_again().table("t.t"), yard.store.put_new
    is_done: list[bool] = []

    def put_new(location: str, data: bytes) -> None:
        if "/gc/probes/" in location and not is_done:
            is_done.append(True)
            for n in range(2):
                other.append(rows(n + 10))
        real(location, data)

    yard.store.put_new = put_new  # type: ignore[method-assign]
    table.expire_snapshots(FUTURE)
    assert is_done
    assert ids(table) == [1, 10, 11]


def marks_that_must_be_there(patch: pytest.MonkeyPatch) -> None:
    for module in (clear, sweep):
        patch.setattr(module, "read_unless_done", mark.read_mark)


def version_loaded_first(patch: pytest.MonkeyPatch) -> None:
    def check_first(head: TableHead, base: TableVersion) -> None:
        store, folder = head.backend.store, f"{base.metadata.location}/metadata"
        now_ms = store_time_ms(store, f"{folder}/gc", head.backend.ambient)
        find_proposed(head.backend.reading, base, store.list(folder), [], now_ms)

    patch.setattr(expire, "_check_first", check_first)


def marks_by_place(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(mark, "_decode", lambda data, *_: TableFiles(pq.read_table(pa.BufferReader(data))))


GUARDS: dict[Callable[[Yard], None], Callable[[pytest.MonkeyPatch], None]] = {
    commit_during_the_listing: together(
        planted.metadata_loaded_before_the_listing,
        planted.no_second_look_at_the_sweep,
        planted.proposed_versions_that_are_not_kept,
    ),
    file_added_again_before_the_sweep: planted.no_second_look_at_the_sweep,
    reader_between_sample_and_delete: planted.readers_that_do_not_look_again,
    writer_stopped_past_its_lease: together(
        planted.writers_that_do_not_renew_before_the_swap,
        planted.swaps_that_are_not_fenced,
        planted.proposed_versions_that_are_not_kept,
    ),
    swap_after_the_sweep: together(planted.swaps_that_are_not_fenced, planted.proposed_versions_that_are_not_kept),
    swap_that_is_late: together(
        planted.leases_that_end_with_an_unknown_outcome, planted.proposed_versions_that_are_not_kept
    ),
    file_added_again_during_the_sweep: files_added_without_a_look,
    order_of_deletion: planted.lists_deleted_before_data,
    audit_before_the_first_delete: planted.audits_that_are_not_written,
    mark_finished_by_another_sweep: marks_that_must_be_there,
    commits_during_the_look: version_loaded_first,
    mark_of_another_table: marks_by_place,
    lease_renewed_during_the_sweep: planted.death_without_winning,  # G14
    doubts.catalog_restored_from_a_copy: planted.proposed_versions_that_are_not_kept,  # G9
    doubts.catalog_deleted: planted.proposed_versions_that_are_not_kept,  # G9
    doubts.two_names_for_one_table: doubts.one_owner_taken_for_granted,  # G12
    doubts.table_inside_another: doubts.one_owner_taken_for_granted,  # G12
    doubts.hostile_statistics: doubts.ownership_by_what_metadata_says,  # G16
}


@pytest.mark.every_case
@pytest.mark.parametrize("scenario", GUARDS, ids=lambda scenario: scenario.__name__)
def test_the_guard_holds(scenario: Callable[[Yard], None]) -> None:
    scenario(make_yard())


@pytest.mark.every_case
@pytest.mark.parametrize("scenario", GUARDS, ids=lambda scenario: scenario.__name__)
def test_the_scenario_breaks_without_the_guard(
    scenario: Callable[[Yard], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    GUARDS[scenario](monkeypatch)
    with pytest.raises((AssertionError, IcefieldError, pytest.fail.Exception)):
        scenario(make_yard())
