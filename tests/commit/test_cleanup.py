"""Whatever fails before the catalog is asked, nothing of the change is left; what a snapshot refers to stays."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from tests.commit.faults import Around, LosesReplies, RacingCatalog, RecordingStore

import icefield
from icefield.ambient import SeededAmbient
from icefield.backend import Backend
from icefield.cache.reading import ReadContext
from icefield.catalog.catalog import PointerSwap
from icefield.commit.action import NOTHING_TO_DO, CommitTarget, ProposedChange, WriteContext
from icefield.commit.actions.append import AppendFiles
from icefield.commit.attempt import Attempt, begin_attempt
from icefield.commit.loop import OwnFiles
from icefield.commit.validate.references import find_referenced, remove_unreferenced
from icefield.dml.write import TableWrite
from icefield.errors import (
    CatalogError,
    CommitStateUnknown,
    ConcurrentChange,
    IcefieldError,
    NoSuchTable,
    StorageError,
)
from icefield.lake import Lake
from icefield.model.metadata import TableMetadata
from icefield.plan.manifest_list import load_manifests
from icefield.table.table import Table
from icefield.upkeep.dropped import DROPPED_FOLDER

NAME = "t.t"


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "p": pa.array([i % 3 for i in ids], pa.int64())})


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().read_all().column("id").to_pylist())


class FailsAt(Around):
    """A store whose nth write fails, before or after its effect; removals always work."""

    def __init__(self, real: Any, at: int, error: BaseException, *, after: bool) -> None:
        super().__init__(real)
        self.left, self.error, self.after = at, error, after
        self.written: set[str] = set()

    def put_new(self, location: str, data: bytes) -> None:
        self.written.add(location)
        self._write(lambda: self.real.put_new(location, data))

    def open_new(self, location: str) -> Any:
        self.written.add(location)
        return self._write(lambda: self.real.open_new(location))

    def _write(self, effect: Callable[[], Any]) -> Any:
        self.left -= 1
        if self.left != 0:
            return effect()
        if self.after:
            effect()
        raise self.error


def open_lake(merge: str = "copy-on-write", version: int = 2) -> Lake:
    lake = icefield.connect("memory:", ambient=SeededAmbient(1))
    properties = {
        "write.delete.mode": merge,
        "write.merge.mode": merge,
        "commit.manifest.min-count-to-merge": "2",
    }
    lake.create_table("t.u", "id long, p long")
    schema = "id long, p long"
    table = lake.create_table(NAME, schema, partition_by=["p"], properties=properties, format_version=version)
    table.append(rows(1, 2, 3))
    table.append(rows(4, 5, 6))
    return lake


def change_two_tables(lake: Lake) -> None:
    with lake.transaction() as tx:
        tx.table(NAME).append(rows(7, 8))
        tx.table("t.u").append(rows(7))
        tx.table(NAME).delete("id = 1")


OPERATIONS: dict[str, Callable[[Lake], object]] = {
    "append": lambda lake: lake.table(NAME).append(rows(7, 8, 9)),
    "append under an idempotency key": lambda lake: lake.table(NAME).append(rows(7, 8, 9), idempotency_key="x"),
    "overwrite": lambda lake: lake.table(NAME).overwrite(rows(7, 8), where="id < 3", check_rows=False),
    "overwrite partitions": lambda lake: lake.table(NAME).overwrite_partitions(rows(7, 8)),
    "delete": lambda lake: lake.table(NAME).delete("id = 1 OR id = 5"),
    "upsert": lambda lake: lake.table(NAME).upsert(rows(1, 7), on=["id"]),
    "compact": lambda lake: lake.table(NAME).compact(),
    "rewrite manifests": lambda lake: lake.table(NAME).rewrite_manifests(),
    "set properties": lambda lake: lake.table(NAME).set_properties({"a": "b"}),
    "create table": lambda lake: lake.create_table("t.new", "id long"),
    "create view": lambda lake: lake.create_view("t.view", "SELECT 1 AS id", schema="id int"),
    "transaction": change_two_tables,
}


def files(lake: Lake) -> set[str]:
    """Every file but the records of dropped tables."""
    return {f.location for f in lake.store.list(lake.warehouse) if f"/{DROPPED_FOLDER}/" not in f.location}


def state(lake: Lake) -> tuple[list[str], list[str], list[int]]:
    return lake.tables(), lake.views(), ids(lake.table(NAME))


@pytest.mark.parametrize("merge", [("copy-on-write", 2), ("merge-on-read", 2), ("merge-on-read", 3)], ids=str)
@pytest.mark.parametrize("kind", [StorageError, KeyboardInterrupt])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_nothing_is_left_of_a_change_that_could_not_be_written(
    operation: str, kind: type[BaseException], merge: tuple[str, int]
) -> None:
    lake = open_lake(*merge)
    before = files(lake), state(lake)
    error = StorageError("the disk is full") if kind is StorageError else KeyboardInterrupt()
    for at in range(1, 60):
        store: Any = FailsAt(lake.store, at, error, after=kind is StorageError or at % 2 == 0)
        try:
            OPERATIONS[operation](Lake(Backend(lake.catalog, store, lake.ambient), lake.warehouse))
        except kind:
            assert (files(lake), state(lake)) == before, f"write {at}"
            continue
        assert at > 1
        return
    raise AssertionError("it never came through")


def _met(operation: Callable[[Lake], object], lake: Lake, store: FailsAt) -> set[str] | None:
    """Run an operation that meets a concurrent delete; return the files without its own, or None if it succeeds."""
    others = set[str]()

    def let_another_land_first() -> None:
        lake.table(NAME).delete("id = 13")
        others.update(files(lake) - store.written)

    catalog: Any = RacingCatalog(lake.catalog, [let_another_land_first])
    failing: Any = store
    try:
        operation(Lake(Backend(catalog, failing, lake.ambient), lake.warehouse))
    except StorageError:
        return others
    return None


MEETING: dict[str, Callable[[Lake], object]] = {
    "delete": lambda lake: lake.table(NAME).delete("id = 10"),
    "upsert": lambda lake: lake.table(NAME).upsert(rows(10, 7), on=["id"]),
    "compact": OPERATIONS["compact"],
}


@pytest.mark.slow
@pytest.mark.parametrize(("operation", "version"), [("compact", 2), ("compact", 3), ("delete", 3), ("upsert", 2)])
def test_nothing_is_left_of_a_change_that_met_another_and_could_not_be_written(operation: str, version: int) -> None:
    # A second attempt applies the concurrent delete to its own files, which it writes for that base alone.
    for at in range(1, 60):
        lake = open_lake("merge-on-read", version)
        lake.table(NAME).append(rows(10, 13, 16))
        mine = FailsAt(lake.store, at, StorageError("the disk is full"), after=at % 2 == 0)
        met = _met(MEETING[operation], lake, mine)
        if met is None:
            return
        assert met in (set(), files(lake)), f"write {at}"
    raise AssertionError("it never came through")


@pytest.mark.parametrize("is_written", [False, True])
def test_a_file_is_recorded_before_it_is_written(lake: Lake, is_written: bool) -> None:
    store: Any = FailsAt(lake.store, 1, StorageError("no"), after=is_written)
    put, opened = f"{lake.warehouse}/put", f"{lake.warehouse}/opened"
    attempt = begin_attempt(store)
    with pytest.raises(StorageError):
        attempt.store.put_new(put, b"x")
    store.left = 1
    with pytest.raises(StorageError):
        attempt.store.open_new(opened)
    assert attempt.written == [put, opened]


def test_an_interrupt_between_two_attempts_leaves_nothing(lake: Lake) -> None:
    class Interrupted(Around):
        def sleep(self, seconds: float) -> None:
            raise KeyboardInterrupt

    others = set[str]()
    mine: Any = RecordingStore(lake.store)

    def let_another_land_first() -> None:
        lake.table(NAME).append(rows(10))
        others.update(files(lake) - set(mine.written))

    catalog: Any = RacingCatalog(lake.catalog, [let_another_land_first])
    ambient: Any = Interrupted(lake.ambient)
    with pytest.raises(KeyboardInterrupt):
        OPERATIONS["append"](Lake(Backend(catalog, mine, ambient), lake.warehouse))
    assert files(lake) == others


@pytest.mark.parametrize(
    ("sent", "landed", "error", "may_have_landed"),
    [
        (False, False, StorageError("no"), False),
        (False, False, KeyboardInterrupt(), False),
        (True, False, ConcurrentChange("no"), False),
        (True, False, CommitStateUnknown("no"), True),
        (True, False, StorageError("no"), True),
        (True, False, KeyboardInterrupt(), True),
        (True, True, ConcurrentChange("no"), True),
        (True, True, KeyboardInterrupt(), True),
    ],
)
def test_what_the_catalog_confirmed_has_landed_whatever_fails_afterwards(
    lake: Lake, sent: bool, landed: bool, error: BaseException, may_have_landed: bool
) -> None:
    attempt = Attempt(lake.store, is_sent=sent, is_landed=landed)
    assert attempt.may_have_landed(error) == may_have_landed


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_interrupt_while_the_catalog_is_asked_removes_nothing(operation: str) -> None:
    lake = open_lake()
    before, tables = files(lake), set(lake.tables())

    class Interrupted(Around):
        def swap(self, changes: Sequence[PointerSwap]) -> None:
            self.real.swap(changes)
            raise KeyboardInterrupt

    catalog: Any = Interrupted(lake.catalog)
    with pytest.raises(KeyboardInterrupt):
        OPERATIONS[operation](Lake(Backend(catalog, lake.store, lake.ambient), lake.warehouse))
    assert files(lake) > before
    for name in {*lake.tables(), *tables}:
        lake.table(name).scan().to_arrow().read_all()


def write_files(table: Table, *ids_: int, idempotency_key: str | None = None) -> tuple[TableWrite, pa.Table]:
    write = TableWrite.begin(table._head, CommitTarget(idempotency_key=idempotency_key))
    return write, write.write(rows(*ids_))


@pytest.fixture
def lake() -> Lake:
    return open_lake()


@pytest.mark.parametrize("raced", [False, True])
def test_the_same_files_committed_twice_under_one_key_stay(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, raced: bool
) -> None:
    table = lake.table(NAME)
    write, written = write_files(table, 7, 8, idempotency_key="x")
    other = TableWrite(lake.head(NAME), write.target, write.base)
    if raced:
        swap = lake.catalog.swap

        def let_the_other_land_first(changes: Sequence[PointerSwap]) -> None:
            monkeypatch.setattr(lake.catalog, "swap", swap)
            other.append_files(written)
            swap(changes)

        monkeypatch.setattr(lake.catalog, "swap", let_the_other_land_first)
    else:
        other.append_files(written)
    made = write.append_files(written)
    assert made is not None
    assert (made.snapshot_id, ids(lake.table(NAME))) == (
        lake.table(NAME).snapshots()[-1].snapshot_id,
        [1, 2, 3, 4, 5, 6, 7, 8],
    )


def test_nothing_is_left_of_the_slower_of_two_runs_under_one_key(lake: Lake) -> None:
    others = set[str]()
    mine: Any = RecordingStore(lake.store)

    def let_the_other_land_first() -> None:
        lake.table(NAME).append(rows(7, 8), idempotency_key="x")
        others.update(files(lake) - set(mine.written))

    catalog: Any = RacingCatalog(lake.catalog, [let_the_other_land_first])
    slower = Lake(Backend(catalog, mine, lake.ambient), lake.warehouse)
    made = slower.table(NAME).append(rows(7, 8), idempotency_key="x")
    assert made == lake.table(NAME).snapshots()[-1]
    assert files(lake) == others
    assert ids(lake.table(NAME)) == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("step", ["prepare", "propose"])
@pytest.mark.parametrize("is_reachable", [True, False])
def test_files_that_landed_stay_when_a_second_commit_of_them_fails(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, is_reachable: bool, step: str
) -> None:
    table = lake.table(NAME)
    write, written = write_files(table, 7, 8)
    write.append_files(written)

    def fail(*_: object) -> None:
        raise CatalogError("no answer")

    def refuse(*_: object) -> None:
        for name in () if is_reachable else ("pointer", "pointers", "find"):
            monkeypatch.setattr(lake.catalog, name, fail)
        raise ConcurrentChange("no")

    monkeypatch.setattr(AppendFiles, step, refuse)
    again = TableWrite(lake.head(NAME), write.target, write.base)
    with pytest.raises(ConcurrentChange):
        again.append_files(written)
    monkeypatch.undo()
    assert ids(lake.table(NAME)) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_nothing_is_left_of_a_change_to_a_table_that_was_dropped(lake: Lake) -> None:
    table = lake.table(NAME)
    before = files(lake)
    write, written = write_files(table, 7, 8)
    lake.drop_table(NAME)
    with pytest.raises(NoSuchTable):
        write.append_files(written)
    assert files(lake) == before


@pytest.mark.parametrize("is_taken", [False, True])
def test_files_that_another_run_committed_stay_when_the_table_is_renamed(lake: Lake, is_taken: bool) -> None:
    write, written = write_files(lake.table(NAME), 7, 8, idempotency_key="x")
    other = TableWrite(lake.head(NAME), write.target, write.base)
    other.append_files(written)
    lake.rename_table(NAME, "t.renamed")
    if is_taken:
        lake.create_table(NAME, "id long, p long")
    with pytest.raises(NoSuchTable):
        write.append_files(written)
    assert ids(lake.table("t.renamed")) == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("is_written", [False, True])
def test_nothing_is_left_of_a_registration_that_could_not_be_written(lake: Lake, is_written: bool) -> None:
    location = lake.table("t.u").metadata_location
    lake.drop_table("t.u")
    before = files(lake), lake.tables()
    store: Any = FailsAt(lake.store, 1, StorageError("the disk is full"), after=is_written)
    failing = Lake(Backend(lake.catalog, store, lake.ambient), lake.warehouse)
    with pytest.raises(StorageError):
        failing.register_table("t.u", location)
    assert (files(lake), lake.tables()) == before


def test_a_registration_whose_reply_is_lost_removes_nothing(lake: Lake) -> None:
    location = lake.table("t.u").metadata_location
    lake.drop_table("t.u")
    catalog: Any = LosesReplies(lake.catalog, times=1, lands=True)
    with pytest.raises(CommitStateUnknown):
        Lake(Backend(catalog, lake.store, lake.ambient), lake.warehouse).register_table("t.u", location)
    assert lake.table("t.u").metadata_location != location
    lake.table("t.u").append(rows(1))


def test_nothing_is_left_of_work_that_failed_after_some_of_it_was_done(lake: Lake) -> None:
    done = f"{lake.warehouse}/done.parquet"

    class FailsLater:
        def run(self, *_: object) -> Iterator[Any]:
            lake.store.put_new(done, b"x")
            yield SimpleNamespace(locations=[done])
            raise KeyboardInterrupt

    engine: Any = FailsLater()
    work: Any = None
    with pytest.raises(KeyboardInterrupt):
        TableWrite.begin(lake.head(NAME), CommitTarget()).run(engine, work, [])
    assert done not in files(lake)


def test_nothing_is_left_of_an_action_that_finds_nothing_to_do(lake: Lake) -> None:
    class WritesForNothing:
        def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
            context.store.put_new(context.metadata_location(base, "x.avro"), b"x")
            return NOTHING_TO_DO

        def reusable_files(self) -> Sequence[str]:
            return ()

    before = files(lake)
    lake.head(NAME).commit([WritesForNothing()])
    assert files(lake) == before


def test_manifests_that_an_action_committed_stay_when_the_table_is_renamed(lake: Lake) -> None:
    write, written = write_files(lake.table(NAME), 7, 8, idempotency_key="x")
    action = AppendFiles(written, write.base.spec, write.base.schema, write.target)
    own = OwnFiles(written.file_path.to_pylist(), write.base, is_optional=True)
    stale = lake.head(NAME)
    stale.load()
    lake.head(NAME).commit([action], own)
    lake.rename_table(NAME, "t.renamed")
    with pytest.raises(NoSuchTable):
        stale.commit([action], own)
    assert ids(lake.table("t.renamed")) == [1, 2, 3, 4, 5, 6, 7, 8]


def test_an_action_that_is_committed_again_is_made_once(lake: Lake) -> None:
    table = lake.table(NAME)
    write, written = write_files(table, 7)
    action = AppendFiles(written, write.base.spec, write.base.schema)
    own = OwnFiles(written["file_path"].to_pylist(), write.base)
    for _ in range(3):
        lake.head(NAME).commit([action], own)
    lake.table(NAME).append(rows(8))
    lake.head(NAME).commit([action], own)
    assert ids(lake.table(NAME)) == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("version", [2, 3])
def test_what_was_written_for_every_base_is_there_for_the_next_attempt(version: int) -> None:
    lake = open_lake("merge-on-read", version)
    rivals = [lambda: lake.table(NAME).append(rows(10)), lambda: lake.table(NAME).append(rows(13))]
    catalog: Any = RacingCatalog(lake.catalog, rivals)
    racing = Lake(Backend(catalog, lake.store, lake.ambient), lake.warehouse)
    write, written = write_files(lake.table(NAME), 7)
    racing.head(NAME).commit([AppendFiles(written, write.base.spec, write.base.schema)])
    assert ids(lake.table(NAME)) == [1, 2, 3, 4, 5, 6, 7, 10, 13]
    catalog.rivals = [lambda: lake.table(NAME).append(rows(16)), lambda: lake.table(NAME).append(rows(19))]
    racing.table(NAME).delete("id IN (1, 7)")
    assert ids(lake.table(NAME)) == [2, 3, 4, 5, 6, 10, 13, 16, 19]


def test_what_a_transaction_throws_away_was_not_committed_by_another(lake: Lake) -> None:
    table = lake.table(NAME)
    write, written = write_files(table, 7)
    with suppress(RuntimeError), lake.transaction() as tx:
        inside = TableWrite.begin(tx.table(NAME)._head, CommitTarget())
        inside.append_files(written)
        write.append_files(written)
        raise RuntimeError
    assert ids(lake.table(NAME)) == [1, 2, 3, 4, 5, 6, 7]


def test_a_change_that_fails_inside_a_transaction_leaves_nothing_even_if_the_transaction_goes_on(lake: Lake) -> None:
    before = files(lake)
    with lake.transaction() as tx:
        with pytest.raises(IcefieldError):
            tx.table(NAME).at("nowhere").append(rows(9))
        inside = tx.table(NAME)
        write = TableWrite.begin(inside._head, CommitTarget("nowhere"))
        with pytest.raises(IcefieldError):
            write.append(rows(9))
    assert files(lake) == before


def test_references_are_found_wherever_they_are(lake: Lake) -> None:
    table = lake.table(NAME)
    base = table.metadata
    write, written = write_files(table, 7)
    paths = set(written["file_path"].to_pylist())
    assert find_referenced(lake.backend.reading, paths, lake.table(NAME).metadata, base) == set()
    write.append_files(written)
    lake.table(NAME).append(rows(8))
    lake.table(NAME).rewrite_manifests()
    lake.table(NAME).remove_snapshots([s.snapshot_id for s in table.snapshots()[:-1]])
    now = lake.table(NAME).metadata
    assert find_referenced(lake.backend.reading, paths, now, base) == paths
    assert find_referenced(lake.backend.reading, paths, now) == paths
    head = now.current_snapshot
    assert head
    manifests = load_manifests(lake.backend.reading, head)
    assert manifests
    for referenced in (head.manifest_list, manifests.manifest_path[0].as_py()):
        assert find_referenced(lake.backend.reading, {referenced}, now, base) == {referenced}


def test_nothing_is_removed_while_it_cannot_be_seen_what_is_referenced(lake: Lake) -> None:
    class Unreadable(Around):
        def read(self, location: str) -> bytes:
            raise StorageError("no")

    table = lake.table(NAME)
    base = table.metadata
    write, written = write_files(table, 7)
    write.append_files(written)
    store: Any = Unreadable(lake.store)
    remove_unreferenced(ReadContext(store), written.file_path.to_pylist(), lake.table(NAME).metadata, base)
    assert ids(lake.table(NAME)) == [1, 2, 3, 4, 5, 6, 7]
