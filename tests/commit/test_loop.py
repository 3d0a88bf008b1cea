"""What a commit does when others come first, when replies are lost, and when it must give up."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pytest
from tests.commit.faults import LosesReplies, RacingCatalog, RecordingStore
from tests.commit.racing import files_of, reachable

from icefield.backend import Backend
from icefield.catalog.catalog import PointerSwap
from icefield.errors import (
    CatalogError,
    CommitConflict,
    CommitStateUnknown,
    IcefieldError,
    MissingFile,
    NoSuchTable,
)
from icefield.lake import Lake
from icefield.table.table import Table


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids_of(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().read_all()["id"].to_pylist())


@pytest.fixture
def table(memory_lake: Lake) -> Table:
    return memory_lake.create_table("a.t", "id long not null")


def through(lake: Lake, catalog: object = None, store: object = None) -> Table:
    """Open the table through another catalog or store."""
    other = Lake(Backend(catalog or lake.catalog, store or lake.store, lake.ambient), lake.warehouse)  # type: ignore[arg-type]
    return other.table("a.t")


def test_append_retries_after_conflict_and_keeps_both_rows(memory_lake: Lake, table: Table) -> None:
    racing = RacingCatalog(memory_lake.catalog, [lambda: table.append(rows(1)), lambda: table.append(rows(2))])
    store = RecordingStore(memory_lake.store)
    through(memory_lake, racing, store).append(rows(3))
    assert ids_of(table) == [1, 2, 3]
    assert racing.swaps == 3
    kinds = _kinds(store.written)
    assert kinds["data"] == 1, "the data file is written once"
    assert kinds["manifest"] == 1, "the manifest is written once"
    assert kinds["list"] == kinds["metadata"] == 3, "list and metadata are written for each base"
    assert files_of(memory_lake) == reachable(table), "lost attempts leave nothing behind"


def test_history_is_one_line_after_races(memory_lake: Lake, table: Table) -> None:
    racing = RacingCatalog(memory_lake.catalog, [lambda: table.append(rows(1))])
    through(memory_lake, racing).append(rows(2))
    first, second = table.snapshots()
    assert (first.parent_snapshot_id, second.parent_snapshot_id) == (None, first.snapshot_id)
    assert [s.sequence_number for s in (first, second)] == [1, 2]
    assert [e.snapshot_id for e in table.history()] == [first.snapshot_id, second.snapshot_id]


def test_giving_up_after_all_retries_removes_every_file(memory_lake: Lake) -> None:
    table = memory_lake.create_table("a.t", "id long not null", properties={"commit.retry.num-retries": "2"})
    rivals = [lambda n=n: table.append(rows(n)) for n in range(9)]
    before = len(rivals)
    racing = RacingCatalog(memory_lake.catalog, rivals)
    with pytest.raises(CommitConflict, match="after 3 tries"):
        through(memory_lake, racing).append(rows(99))
    assert racing.swaps == 3
    assert len(racing.rivals) == before - 3
    assert ids_of(table) == [0, 1, 2]
    assert files_of(memory_lake) == reachable(table)


def test_r16_lost_reply_of_a_swap_that_landed_is_success_and_removes_nothing(memory_lake: Lake, table: Table) -> None:
    lost = LosesReplies(memory_lake.catalog, times=1, lands=True)
    through(memory_lake, lost).append(rows(1))
    assert ids_of(table) == [1]
    assert files_of(memory_lake) == reachable(table)


class TakesUnknownForFailed(LosesReplies):
    """Loses the reply, and says that nothing happened."""

    def swap(self, changes: Sequence[PointerSwap]) -> None:
        try:
            super().swap(changes)
        except CommitStateUnknown as unknown:
            raise CatalogError("it failed") from unknown


def test_r16_without_the_guard_the_files_of_a_commit_that_landed_are_removed(memory_lake: Lake, table: Table) -> None:
    with pytest.raises(CatalogError):
        through(memory_lake, TakesUnknownForFailed(memory_lake.catalog, times=1, lands=True)).append(rows(1))
    with pytest.raises(MissingFile):
        table.refresh()


def test_r18_lost_reply_is_not_appended_twice_when_others_moved_on(memory_lake: Lake, table: Table) -> None:
    lost = LosesReplies(memory_lake.catalog, times=1, lands=True, then=lambda: table.append(rows(2)))
    through(memory_lake, lost).append(rows(1))
    assert ids_of(table) == [1, 2]
    assert files_of(memory_lake) == reachable(table)


def test_lost_request_is_sent_again(memory_lake: Lake, table: Table) -> None:
    lost = LosesReplies(memory_lake.catalog, times=1, lands=False)
    through(memory_lake, lost).append(rows(1))
    assert ids_of(table) == [1]


def test_lost_request_overtaken_by_others_is_retried_on_the_new_base(memory_lake: Lake, table: Table) -> None:
    lost = LosesReplies(memory_lake.catalog, times=1, lands=False, then=lambda: table.append(rows(2)))
    through(memory_lake, lost).append(rows(1))
    assert ids_of(table) == [1, 2]
    assert files_of(memory_lake) == reachable(table)


@pytest.mark.parametrize("lands", [True, False])
def test_r17_unknown_outcome_deletes_nothing(memory_lake: Lake, table: Table, lands: bool) -> None:
    store = RecordingStore(memory_lake.store)
    lost = LosesReplies(memory_lake.catalog, times=99, lands=lands)
    lost.then = lambda: setattr(lost, "silent", True)
    with pytest.raises(CommitStateUnknown, match="may or may not have succeeded"):
        through(memory_lake, lost, store).append(rows(1))
    assert store.deleted == []
    assert ids_of(table) == ([1] if lands else [])
    assert files_of(memory_lake) >= set(store.written)


def test_r17_without_the_guard_a_table_loses_what_landed(
    memory_lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CommitStateUnknown, "cleanable", True)
    lost = LosesReplies(memory_lake.catalog, times=99, lands=True)
    lost.then = lambda: setattr(lost, "silent", True)
    with pytest.raises(CommitStateUnknown):
        through(memory_lake, lost).append(rows(1))
    with pytest.raises(MissingFile):
        table.refresh()


def test_unknown_outcome_stays_unknown_when_the_log_no_longer_reaches_back(memory_lake: Lake) -> None:
    table = memory_lake.create_table("a.t", "id long", properties={"write.metadata.previous-versions-max": "1"})
    table.append(rows(0))

    def others() -> None:
        for n in (1, 2, 3):
            table.append(rows(n))

    store = RecordingStore(memory_lake.store)
    lost = LosesReplies(memory_lake.catalog, times=1, lands=True, then=others)
    with pytest.raises(CommitStateUnknown):
        through(memory_lake, lost, store).append(rows(9))
    assert ids_of(table) == [0, 1, 2, 3, 9]
    assert store.deleted == []


def test_commit_to_a_table_recreated_is_refused(memory_lake: Lake, table: Table) -> None:
    memory_lake.drop_table("a.t")
    memory_lake.create_table("a.t", "id long not null")
    with pytest.raises(NoSuchTable, match="recreated"):
        table.append(rows(1))
    assert ids_of(memory_lake.table("a.t")) == []


class _Crash(BaseException):
    """The process dies here: no handler of ours runs."""


def _crashing(store: RecordingStore, at: int) -> None:
    real_put = store.put_new

    def put_new(location: str, data: bytes) -> None:
        if len(store.written) == at:
            raise _Crash
        real_put(location, data)

    store.put_new = put_new  # type: ignore[method-assign]


@pytest.mark.parametrize("at", [1, 2, 3])
def test_crash_at_any_file_leaves_the_table_as_it_was(memory_lake: Lake, table: Table, at: int) -> None:
    table.append(rows(1))
    pointer = table.metadata_location
    store = RecordingStore(memory_lake.store)
    _crashing(store, at)
    with pytest.raises(_Crash):
        through(memory_lake, store=store).append(rows(2))
    assert table.metadata_location == pointer
    assert ids_of(table) == [1]
    table.append(rows(3))
    assert ids_of(table) == [1, 3]


def test_every_error_of_the_tree_says_whether_to_retry_and_to_clean() -> None:
    assert [(e.retryable, e.cleanable) for e in (CommitConflict, CommitStateUnknown)] == [(True, True), (False, False)]
    assert (IcefieldError.retryable, IcefieldError.cleanable) == (False, True)


def _kinds(locations: Iterable[str]) -> dict[str, int]:
    counts = {"data": 0, "manifest": 0, "list": 0, "metadata": 0}
    for location in locations:
        name = location.rsplit("/", 1)[-1]
        if name.endswith(".parquet"):
            counts["data"] += 1
        elif name.startswith("snap-"):
            counts["list"] += 1
        elif name.endswith(".avro"):
            counts["manifest"] += 1
        else:
            counts["metadata"] += 1
    return counts
