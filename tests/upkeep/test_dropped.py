"""Drop with purge, and undrop: nothing is lost within the window, nothing is left after it."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from tests.upkeep.fixtures import FUTURE, Yard, ids, make_yard, rows

from icefield.catalog.catalog import PointerSwap
from icefield.errors import (
    AlreadyExists,
    CommitConflict,
    CommitStateUnknown,
    CorruptFile,
    InvalidInput,
    NoSuchTable,
    NotFound,
    StorageError,
)
from icefield.model.names import parse_table_name
from icefield.upkeep.dropped import DROPPED_FOLDER, DroppedTables

WINDOW = {"icefield__gc__undrop_ms": "60000"}


@pytest.fixture
def yard() -> Yard:
    return make_yard()


def records(yard: Yard) -> list[str]:
    return [
        file.location for file in yard.store.list(f"memory://lake/{DROPPED_FOLDER}") if "parquet" not in file.location
    ]


@pytest.mark.parametrize("purge", [True, False])
def test_a_dropped_table_is_restored_by_name_or_uuid(yard: Yard, purge: bool) -> None:
    for wanted in ("name", "uuid"):
        table = yard.table(**WINDOW)
        table.append(rows(1))
        table_uuid = table.metadata.table_uuid
        yard.lake.drop_table("t.t", purge=purge)
        (found,) = yard.lake.dropped()
        assert (found.table, found.table_uuid, found.purge) == ("t.t", table_uuid, purge)
        again = yard.lake.undrop("t.t" if wanted == "name" else str(table_uuid))
        assert ids(again) == [1]
        again.append(rows(2))
        assert ids(again) == [1, 2]
        assert yard.lake.dropped() == []
        assert records(yard) == []
        yard.lake.drop_table("t.t")
        yard.lake.undrop("t.t", to=f"t.other_{wanted}_{purge}")
        assert yard.lake.dropped() == []


def test_a_record_that_is_damaged_is_named(yard: Yard) -> None:
    yard.table(**WINDOW).append(rows(1))
    yard.lake.drop_table("t.t", purge=True)
    (record,) = records(yard)
    for damaged in (b"", b"{}", b"\xff", b"[" * 100_000):
        yard.store.delete(record)
        yard.store.put_new(record, damaged)
        for verb in (yard.lake.dropped, yard.lake.purge_dropped, lambda: yard.lake.undrop("t.t")):
            with pytest.raises(CorruptFile, match="it is not the record of a drop") as refused:
                verb()
            assert refused.value.location == record


def test_files_go_when_the_window_is_over(yard: Yard) -> None:
    table = yard.table(**WINDOW)
    table.append(rows(1))
    place, other = table.location, yard.table("t.other")
    other.append(rows(5))
    yard.lake.drop_table("t.t", purge=True)
    assert yard.lake.purge_dropped() == []
    yard.ambient.sleep(60)
    (plan,) = yard.lake.purge_dropped(dry_run=True)
    assert yard.lake.dropped() != []
    (done,) = yard.lake.purge_dropped()
    assert (plan.files_deleted, plan.kinds) == (done.files_deleted, done.kinds)
    assert list(yard.store.list(place)) == []
    assert yard.lake.dropped() == []
    assert records(yard) == []
    assert ids(other) == [5]
    with pytest.raises(NotFound, match="no dropped table"):
        yard.lake.undrop("t.t")


def test_a_table_that_cannot_be_purged_does_not_keep_the_files_of_others(yard: Yard) -> None:
    for name in ("t.damaged", "t.shared", "t.good"):
        yard.table(name, **WINDOW).append(rows(1))
    places = {name: yard.lake.table(name).location for name in ("t.damaged", "t.shared", "t.good")}
    damaged = yard.lake.table("t.damaged").metadata_location
    for name in places:
        yard.lake.drop_table(name, purge=True)
    yard.store.delete(damaged)
    yard.store.put_new(damaged, b"damaged")
    inside = yard.lake.create_table("t.inside", "id long, n long", location=f"{places['t.shared']}/inside")
    inside.append(rows(7))
    yard.ambient.sleep(60)
    for dry_run in (True, False):
        done = {each.table: each for each in yard.lake.purge_dropped(dry_run=dry_run)}
        assert done.keys() == places.keys()
        assert "it is not valid table metadata" in (done["t.damaged"].unfinished or "")
        assert "t.inside is at" in (done["t.shared"].unfinished or "")
        assert "unfinished: cannot place" in str(done["t.shared"])
        assert (done["t.good"].unfinished, done["t.good"].kinds["data"]) == (None, 1)
    assert list(yard.store.list(places["t.good"])) == []
    assert {each.table for each in yard.lake.dropped()} == {"t.damaged", "t.shared"}
    assert ids(inside) == [7]
    yard.lake.drop_table("t.inside")
    assert [each.table for each in yard.lake.purge_dropped() if each.unfinished is None] == ["t.shared"]


def test_without_purge_files_are_kept(yard: Yard) -> None:
    table = yard.table(**WINDOW)
    table.append(rows(1))
    place = table.location
    yard.lake.drop_table("t.t")
    before = yard.files(place)
    yard.ambient.sleep(10**6)
    assert yard.lake.purge_dropped() == []
    assert yard.files(place) == before


def test_a_drop_that_did_not_happen_purges_nothing(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    table = yard.table(**WINDOW)
    table.append(rows(1))

    class Crash(BaseException):
        pass

    def crash(_: object) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(yard.lake.catalog, "swap", crash)
        with pytest.raises(Crash):
            yard.lake.drop_table("t.t", purge=True)
    assert yard.lake.dropped() == []
    for change in ("nothing", "append", "rename"):
        if change == "append":
            table.append(rows(2))
        if change == "rename":
            yard.lake.rename_table("t.t", "t.u")
        yard.ambient.sleep(60)
        assert yard.lake.purge_dropped() == []
    assert ids(yard.lake.table("t.u")) == [1, 2]


def test_a_purge_before_the_swap_of_a_drop_does_not_forget_the_drop(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by seed 1011562 of the simulation of collectors."""
    table = yard.table(icefield__gc__undrop_ms="0")
    table.append(rows(1))
    place, swap = table.location, yard.lake.catalog.swap

    def let_a_purge_go_first(changes: Sequence[PointerSwap]) -> None:
        monkeypatch.setattr(yard.lake.catalog, "swap", swap)
        assert yard.lake_again().purge_dropped() == []
        swap(changes)

    monkeypatch.setattr(yard.lake.catalog, "swap", let_a_purge_go_first)
    yard.lake.drop_table("t.t", purge=True)
    assert [dropped.table for dropped in yard.lake.dropped()] == ["t.t"]
    (done,) = yard.lake.purge_dropped()
    assert done.files_deleted > 0
    assert list(yard.store.list(place)) == []


@pytest.mark.every_case
@pytest.mark.parametrize("call", ["list", "put_new"])
def test_a_table_is_restored_as_it_was_when_it_was_dropped(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Another drop of an earlier version is recorded after it, and its request is lost; once in 35,000 histories."""
    table = yard.table()
    table.append(rows(1))
    real, other, is_done = getattr(yard.store, call), yard.lake_again(), list[bool]()

    def after_a_drop(location: str, *data: bytes) -> object:
        if DROPPED_FOLDER in location and not is_done:
            is_done.append(True)
            other.table("t.t").append(rows(2))
            other.drop_table("t.t")
            monkeypatch.setattr(yard.lake.catalog, "swap", lost)
        return real(location, *data)

    monkeypatch.setattr(yard.store, call, after_a_drop)
    with pytest.raises((CommitStateUnknown, NoSuchTable)):
        yard.lake.drop_table("t.t")
    assert is_done
    monkeypatch.undo()
    assert ids(yard.lake_again().undrop("t.t")) == [1, 2]


def test_a_drop_that_is_recorded_after_the_purge_of_another_leaves_nothing(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by seed 1056474 of the simulation of collectors: the drop did not land, and nobody knew."""
    table = yard.table(icefield__gc__undrop_ms="0")
    table.append(rows(1))
    real, other, is_done = yard.store.put_new, yard.lake_again(), list[bool]()

    def after_a_purge(location: str, data: bytes) -> None:
        if DROPPED_FOLDER in location and not is_done:
            is_done.append(True)
            other.drop_table("t.t", purge=True)
            assert len(other.purge_dropped()) == 1
            monkeypatch.setattr(yard.lake.catalog, "swap", lost)
        real(location, data)

    monkeypatch.setattr(yard.store, "put_new", after_a_purge)
    with pytest.raises(CommitStateUnknown):
        yard.lake.drop_table("t.t")
    monkeypatch.undo()
    assert len(records(yard)) == 1
    assert yard.lake.dropped() == []
    with pytest.raises(NotFound, match="no dropped table"):
        yard.lake.undrop("t.t")
    assert yard.lake.purge_dropped() == []
    assert records(yard) == []


@pytest.mark.parametrize("to", ["t.t", "t.u"])
def test_a_swap_of_the_time_before_a_drop_does_not_land_after_it(yard: Yard, to: str) -> None:
    """Found by seed 1014983 of the simulation of collectors: the swap was sent twice, and the second one was late."""
    table = yard.table()
    table.append(rows(1))
    before, uuid = table.metadata_location, str(table.metadata.table_uuid)
    table.set_properties({"a": "b"})
    yard.lake.rename_table("t.t", "t.u")
    name, pointer = parse_table_name(to), yard.lake.table("t.u").metadata_location
    yard.lake.drop_table("t.u")
    restored = yard.lake.undrop(uuid, to=to)
    with pytest.raises(CommitConflict):
        yard.lake.catalog.swap([PointerSwap(name, pointer, before)])
    assert ids(restored) == [1]


def test_the_record_of_a_drop_that_never_happened_goes_in_the_end(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.table(icefield__gc__undrop_ms="0").append(rows(1))

    def fail(_: object) -> None:
        raise CommitStateUnknown("no response")

    with monkeypatch.context() as patch:
        patch.setattr(yard.lake.catalog, "swap", fail)
        with pytest.raises(CommitStateUnknown):
            yard.lake.drop_table("t.t", purge=True)
    yard.lake.purge_dropped()
    assert len(records(yard)) == 1
    yard.ambient.sleep(3600)
    assert yard.lake.purge_dropped() == []
    assert records(yard) == []
    assert ids(yard.lake.table("t.t")) == [1]


def test_a_table_is_dropped_where_no_record_can_be_written(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = yard.table()
    table.append(rows(1))
    place = table.metadata_location

    def put_new(location: str, data: bytes) -> None:
        raise StorageError("access denied")

    with monkeypatch.context() as patch:
        patch.setattr(yard.store, "put_new", put_new)
        with pytest.raises(StorageError, match="access denied"):
            yard.lake.drop_table("t.t", purge=True)
        assert ids(yard.lake.table("t.t")) == [1]
        yard.lake.drop_table("t.t")
    assert (yard.lake.tables(), yard.lake.dropped()) == ([], [])
    assert f"register {place} to restore it" in caplog.text
    assert ids(yard.lake.register_table("t.t", place)) == [1]


def test_a_table_that_moved_is_not_dropped(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    table = yard.table(**WINDOW)
    table.append(rows(1))
    real = yard.lake.catalog.swap

    def swap(changes: object) -> None:
        monkeypatch.undo()
        yard.lake_again().table("t.t").append(rows(2))
        real(changes)  # type: ignore[arg-type]

    monkeypatch.setattr(yard.lake.catalog, "swap", swap)
    with pytest.raises(CommitConflict):
        yard.lake.drop_table("t.t", purge=True)
    assert records(yard) == []
    assert ids(table) == [1, 2]


def test_a_name_that_is_taken_keeps_the_drop(yard: Yard) -> None:
    table = yard.table(**WINDOW)
    table.append(rows(1))
    yard.lake.drop_table("t.t", purge=True)
    yard.table().append(rows(2))
    with pytest.raises(AlreadyExists):
        yard.lake.undrop("t.t")
    assert ids(yard.lake.undrop("t.t", to="t.back")) == [1]
    assert ids(yard.lake.table("t.t")) == [2]


def test_a_reader_of_a_dropped_table_reads_to_the_end(yard: Yard) -> None:
    table = yard.table(**WINDOW)
    for n in range(3):
        table.append(rows(n))
    place, reader = table.location, table.scan().to_arrow()
    reader.read_next_batch()
    yard.lake.drop_table("t.t", purge=True)
    yard.ambient.sleep(60)
    (waits,) = yard.lake.purge_dropped()
    assert (waits.files_deleted, waits.leases) == (0, 1)
    assert sum(batch.num_rows for batch in reader) == 2
    (done,) = yard.lake.purge_dropped()
    assert done.files_deleted > 0
    assert list(yard.store.list(place)) == []


def test_an_interrupted_purge_is_finished(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    table = yard.table(**WINDOW)
    for n in range(3):
        table.overwrite(rows(n))
    table.expire_snapshots(FUTURE)
    place = table.location
    yard.lake.drop_table("t.t", purge=True)
    yard.ambient.sleep(60)
    count = len(list(yard.store.list(place)))
    for stop in range(count):
        real, left = yard.store.delete, [1]

        def delete(location: str) -> None:
            left[0] -= 1  # noqa: B023
            if left[0] < 0:  # noqa: B023
                raise KeyboardInterrupt
            real(location)  # noqa: B023

        with monkeypatch.context() as patch:
            patch.setattr(yard.store, "delete", delete)
            try:
                yard.lake.purge_dropped()
            except KeyboardInterrupt:
                left[0] = count
                with pytest.raises((NotFound, InvalidInput)):
                    yard.lake.undrop("t.t")
                continue
        assert stop
        break
    yard.lake.purge_dropped()
    assert list(yard.store.list(place)) == []
    assert records(yard) == []


def purge_during(yard: Yard, monkeypatch: pytest.MonkeyPatch, store_call: str, ending: str) -> list[object]:
    """Purge while a table is restored, at a call of the store; return what the purges did."""
    done, real = list[object](), getattr(yard.store, store_call)

    def call(location: str, *rest: object) -> object:
        result = real(location, *rest)
        if location.endswith(ending) and not done:
            done.append(None)
            done.append(yard.lake_again().purge_dropped())
        return result

    monkeypatch.setattr(yard.store, store_call, call)
    return done


def test_a_rename_during_a_drop_or_a_sweep_is_not_taken_for_a_second_owner(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = yard.lake.catalog.entries

    def rename_first() -> object:
        monkeypatch.setattr(yard.lake.catalog, "entries", real)
        yard.lake_again().rename_table("t.t", "t.u")
        return real()

    table = yard.table()
    table.append(rows(1))
    for verb in (lambda: yard.lake.drop_table("t.t", purge=True), lambda: table.remove_orphans(unsafe=True)):
        monkeypatch.setattr(yard.lake.catalog, "entries", rename_first)
        with pytest.raises(NoSuchTable, match="renamed since"):
            verb()
        assert ids(yard.lake.table("t.u")) == [1]
        yard.lake.rename_table("t.u", "t.t")


@pytest.mark.every_case
@pytest.mark.parametrize(("call", "ending"), [("put_new", ".claim"), ("delete", ".json"), ("delete", ".claim")])
def test_a_purge_during_a_restore_deletes_nothing(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, call: str, ending: str
) -> None:
    yard.table(icefield__gc__undrop_ms="0").append(rows(1))
    yard.lake.drop_table("t.t", purge=True)
    done = purge_during(yard, monkeypatch, call, ending)
    assert ids(yard.lake.undrop("t.t")) == [1]
    monkeypatch.undo()
    assert done
    yard.lake.purge_dropped()
    assert ids(yard.lake.table("t.t")) == [1]


@pytest.mark.every_case
@pytest.mark.parametrize("ending", ["", ".parquet", ".claim"])
def test_a_restore_during_a_purge_is_refused_or_keeps_everything(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """At every file that a purge reads, writes or lists before it deletes."""
    yard.table(icefield__gc__undrop_ms="0").append(rows(1))
    yard.lake.drop_table("t.t", purge=True)
    outcomes = []
    for stop in range(40):
        calls = [stop]

        def step(*_: object) -> None:
            calls[0] -= 1  # noqa: B023
            if calls[0] == -1:  # noqa: B023
                try:
                    outcomes.append(ids(yard.lake_again().undrop("t.t")))
                except (InvalidInput, NotFound) as error:
                    outcomes.append(type(error))  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            for name in ("put_new", "read", "list"):
                patch.setattr(yard.store, name, before(step, getattr(yard.store, name), ending))
            yard.lake.purge_dropped()
        if yard.lake.tables():
            assert ids(yard.lake.table("t.t")) == [1]
            yard.lake.drop_table("t.t", purge=True)
        else:
            break
    assert outcomes


def before(step: Callable[..., None], real: Callable[..., object], ending: str) -> Callable[..., object]:
    def call(location: str, *rest: object) -> object:
        if location.endswith(ending):
            step()
        return real(location, *rest)

    return call


def test_a_restore_whose_outcome_is_unknown_keeps_its_files(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.table(icefield__gc__undrop_ms="0").append(rows(1))
    yard.lake.drop_table("t.t", purge=True)
    late, real = list[object](), yard.lake.catalog.swap

    def swap(changes: object) -> None:
        late.append(changes)
        raise CommitStateUnknown("lost")

    with monkeypatch.context() as patch:
        patch.setattr(yard.lake.catalog, "swap", swap)
        with pytest.raises(CommitStateUnknown):
            yard.lake.undrop("t.t")
    yard.lake.purge_dropped()
    real(late[0])  # type: ignore[arg-type]
    assert ids(yard.lake.table("t.t")) == [1]
    assert yard.lake.purge_dropped() == []
    assert ids(yard.lake.table("t.t")) == [1]


def test_only_the_newest_drop_of_a_table_counts(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restore crashes before it removes the record of the drop, and the table is dropped again, without a purge."""
    yard.table(icefield__gc__undrop_ms="0").append(rows(1))
    yard.lake.drop_table("t.t", purge=True)

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("icefield.upkeep.dropped.DroppedTables.finish", crash)
        with pytest.raises(KeyboardInterrupt):
            yard.lake.undrop("t.t")
    yard.lake.drop_table("t.t")
    yard.ambient.sleep(10**6)
    assert yard.lake.purge_dropped() == []
    assert [(found.table, found.purge) for found in yard.lake.dropped()] == [("t.t", False)]
    assert ids(yard.lake.undrop("t.t")) == [1]
    assert records(yard) == []


def test_a_drop_without_a_purge_that_comes_during_a_purge_keeps_the_files(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A drop with a purge did not arrive; the table is dropped without one, after the purge has read the records."""
    table = yard.table(icefield__gc__undrop_ms="0")
    table.append(rows(1))
    with monkeypatch.context() as patch:
        patch.setattr(yard.lake.catalog, "swap", lost)
        with pytest.raises(CommitStateUnknown):
            yard.lake.drop_table("t.t", purge=True)
    real, other, is_done = yard.store.put_new, yard.lake_again(), list[bool]()

    def put_new(location: str, data: bytes) -> None:
        if "/probes/" in location and not is_done:
            is_done.append(True)
            other.drop_table("t.t")
        real(location, data)

    monkeypatch.setattr(yard.store, "put_new", put_new)
    yard.lake.purge_dropped()
    assert is_done
    yard.lake.undrop("t.t")
    assert ids(yard.lake.table("t.t")) == [1]


def lost(_: object) -> None:
    raise CommitStateUnknown("the request was lost")


def test_gc_enabled_false_is_honoured(yard: Yard) -> None:
    yard.table(gc__enabled="false")
    with pytest.raises(InvalidInput, match="gc.enabled is false"):
        yard.lake.drop_table("t.t", purge=True)
    assert yard.lake.tables() == ["t.t"]


def test_the_record_of_a_purge_is_kept_for_as_long_as_the_table_said(yard: Yard) -> None:
    day_ms = 24 * 3600 * 1000
    yard.table("t.short", icefield__gc__undrop_ms="0", icefield__gc__audit_retention_ms=str(day_ms))
    yard.table("t.usual", icefield__gc__undrop_ms="0")
    for name in ("t.short", "t.usual"):
        yard.lake.drop_table(name, purge=True)
    assert len(yard.lake.purge_dropped()) == 2

    def audits() -> int:
        return sum("parquet" in file.location for file in yard.store.list(f"memory://lake/{DROPPED_FOLDER}"))

    for days, left in ((0, 2), (1, 1), (88, 1), (1, 0)):
        yard.ambient.sleep(days * day_ms / 1000)
        yard.lake.purge_dropped(dry_run=True)
        assert yard.lake.purge_dropped() == []
        assert audits() == left


def test_the_record_of_a_purge_that_was_interrupted_is_kept(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    yard.table(icefield__gc__undrop_ms="0", icefield__gc__audit_retention_ms="0").append(rows(1))
    yard.lake.drop_table("t.t", purge=True)
    with monkeypatch.context() as patch:
        patch.setattr(DroppedTables, "finish", refuse)
        (interrupted,) = yard.lake.purge_dropped()
    assert interrupted.unfinished == "refused"
    place = f"memory://lake/{DROPPED_FOLDER}"
    assert [file.location for file in yard.store.list(place) if "parquet" in file.location]
    yard.lake.purge_dropped()
    yard.lake.purge_dropped()
    assert list(yard.store.list(place)) == []


def refuse(*_: object) -> None:
    raise StorageError("refused")


def test_the_last_of_two_drops_in_one_tick_of_the_store_counts(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Object stores date files to the second, so two drops of a table may have the same time."""
    listed = yard.store.list
    for attempt in range(6):  # ids are random, and so is the order of the listing
        first, second = f"t.first_{attempt}", f"t.second_{attempt}"
        table = yard.table(first, **WINDOW)
        table.append(rows(1))
        location = table.metadata_location
        yard.lake.drop_table(first, purge=True)
        again = yard.lake.register_table(second, location)
        again.append(rows(2))
        yard.lake.drop_table(second)
        with monkeypatch.context() as patch:
            patch.setattr(
                yard.store,
                "list",
                lambda prefix: (replace(file, modified_ms=1) for file in listed(prefix)),
            )
            assert [(found.table, found.purge) for found in yard.lake.dropped()] == [(second, False)]
            assert ids(yard.lake.undrop(second, to=first)) == [1, 2]
            assert records(yard) == []
