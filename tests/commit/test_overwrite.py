"""What an overwrite replaces, and what must still hold when it lands."""

from dataclasses import replace

import pyarrow as pa
import pytest
from tests.commit.faults import RacingCatalog, RecordingStore
from tests.commit.racing import files_of, reachable
from tests.commit.test_loop import through

from icefield.commit.snapshot.manifest_filter import remove_files
from icefield.commit.validate.read_set import ReadSet
from icefield.errors import ConcurrentChange
from icefield.lake import Lake
from icefield.model.snapshot import Operation
from icefield.table.table import Table


def rows(*pairs: tuple[int, str | None]) -> pa.Table:
    return pa.table({"id": pa.array([p[0] for p in pairs], pa.int64()), "day": pa.array([p[1] for p in pairs])})


def rows_of(table: Table) -> list[tuple[int, str | None]]:
    read = table.scan().to_arrow().read_all()
    return sorted(zip(read["id"].to_pylist(), read["day"].to_pylist(), strict=True), key=str)


@pytest.fixture
def table(memory_lake: Lake) -> Table:
    made = memory_lake.create_table("a.t", "id long not null, day string", partition_by=["day"])
    made.append(rows((1, "mon"), (2, "mon"), (3, "tue"), (4, None)))
    return made


def test_overwrite_replaces_everything_in_one_snapshot(table: Table) -> None:
    snapshot = table.overwrite(rows((9, "sun")))
    assert rows_of(table) == [(9, "sun")]
    assert snapshot is not None
    assert snapshot.operation == Operation.OVERWRITE
    assert (snapshot.summary["deleted-records"], snapshot.summary["total-records"]) == ("4", "1")
    assert snapshot.summary["total-data-files"] == "1"
    assert len(table.snapshots()) == 2


def test_overwrite_by_partition_rewrites_no_other_file(memory_lake: Lake, table: Table) -> None:
    store = RecordingStore(memory_lake.store)
    through(memory_lake, store=store).overwrite(rows((9, "mon")), where="day = 'mon'")
    assert rows_of(table) == [(3, "tue"), (4, None), (9, "mon")]
    assert len([w for w in store.written if w.endswith(".parquet")]) == 1


def test_overwrite_in_part_keeps_the_rows_that_do_not_match(table: Table) -> None:
    table.overwrite(rows((9, "mon")), where="id = 1", check_rows=False)
    assert rows_of(table) == [(2, "mon"), (3, "tue"), (4, None), (9, "mon")]


def test_overwrite_keeps_rows_for_which_the_filter_is_null(table: Table) -> None:
    table.overwrite(rows((9, "sun")), where="day != 'mon'")
    assert rows_of(table) == [(1, "mon"), (2, "mon"), (4, None), (9, "sun")]


def test_overwrite_with_no_rows_deletes(table: Table) -> None:
    snapshot = table.overwrite(rows(), where="day = 'mon'")
    assert snapshot is not None
    assert snapshot.operation == Operation.DELETE
    assert rows_of(table) == [(3, "tue"), (4, None)]


def test_overwrite_that_matches_nothing_and_adds_nothing_makes_no_snapshot(table: Table) -> None:
    assert table.overwrite(rows(), where="id = 1000") is None
    assert len(table.snapshots()) == 1


def test_time_travel_still_reads_what_was_overwritten(table: Table) -> None:
    before = table.snapshots()[-1].snapshot_id
    table.overwrite(rows((9, "sun")))
    assert table.scan(as_of=before).count() == 4


def test_entries_that_stay_keep_their_sequence_numbers(table: Table) -> None:
    table.append(rows((5, "tue")))
    table.overwrite(rows((9, "mon")), where="day = 'mon'")
    files = table.scan().files().to_pylist()
    assert sorted((f["partition"], f["sequence_number"]) for f in files) == [
        ("day=mon", 3),
        ("day=null", 1),
        ("day=tue", 1),
        ("day=tue", 2),
    ]


def test_concurrent_append_into_the_overwritten_range_is_a_conflict(memory_lake: Lake, table: Table) -> None:
    racing = RacingCatalog(memory_lake.catalog, [lambda: table.append(rows((7, "mon")))])
    with pytest.raises(ConcurrentChange, match=r"concurrently added rows") as caught:
        through(memory_lake, racing).overwrite(rows((9, "mon")), where="day = 'mon'")
    assert str(table.snapshots()[-1].snapshot_id) in str(caught.value)
    assert rows_of(table) == [(1, "mon"), (2, "mon"), (3, "tue"), (4, None), (7, "mon")]
    assert files_of(memory_lake) == reachable(table)


def test_concurrent_append_elsewhere_is_no_conflict(memory_lake: Lake, table: Table) -> None:
    racing = RacingCatalog(memory_lake.catalog, [lambda: table.append(rows((7, "tue")))])
    through(memory_lake, racing).overwrite(rows((9, "mon")), where="day = 'mon'")
    assert rows_of(table) == [(3, "tue"), (4, None), (7, "tue"), (9, "mon")]


def test_r04_every_intervening_commit_is_checked_not_only_the_last(memory_lake: Lake, table: Table) -> None:
    def two_commits() -> None:
        table.append(rows((7, "mon")))
        table.append(rows((8, "tue")))

    racing = RacingCatalog(memory_lake.catalog, [two_commits])
    with pytest.raises(ConcurrentChange):
        through(memory_lake, racing).overwrite(rows((9, "mon")), where="day = 'mon'")


def test_r05_a_file_that_was_removed_concurrently_does_not_come_back(memory_lake: Lake, table: Table) -> None:
    racing = RacingCatalog(memory_lake.catalog, [lambda: table.overwrite(rows(), where="day = 'mon'")])
    with pytest.raises(ConcurrentChange, match="concurrently removed"):
        through(memory_lake, racing).overwrite(rows((9, "mon")), where="id = 1", check_rows=False)
    assert rows_of(table) == [(3, "tue"), (4, None)]
    assert files_of(memory_lake) == reachable(table)


def test_r04_without_the_guard_a_row_of_the_first_commit_survives_unseen(
    memory_lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_of_them = ReadSet.snapshots_since
    monkeypatch.setattr(ReadSet, "snapshots_since", lambda self, base: list(all_of_them(self, base))[:1])

    def two_commits() -> None:
        table.append(rows((7, "mon")))
        table.append(rows((8, "tue")))

    through(memory_lake, RacingCatalog(memory_lake.catalog, [two_commits])).overwrite(
        rows((9, "mon")), where="day = 'mon'"
    )
    assert (7, "mon") in rows_of(table)


def test_r05_without_the_guard_a_removed_row_comes_back(
    memory_lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "icefield.commit.actions.snapshot_update.remove_files",
        lambda *given: replace(remove_files(*given), missing=set()),
    )
    racing = RacingCatalog(memory_lake.catalog, [lambda: table.overwrite(rows(), where="day = 'mon'")])
    through(memory_lake, racing).overwrite(rows((9, "mon")), where="id = 1", check_rows=False)
    assert (2, "mon") in rows_of(table)


def test_the_conflict_tests_go_red_without_the_guard(
    memory_lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReadSet, "check_added_rows", lambda *_: None)
    racing = RacingCatalog(memory_lake.catalog, [lambda: table.append(rows((7, "mon")))])
    through(memory_lake, racing).overwrite(rows((9, "mon")), where="day = 'mon'")
    assert (7, "mon") in rows_of(table), "without the guard an unseen row survives the overwrite in silence"


def test_overwrite_of_an_empty_table_appends(memory_lake: Lake) -> None:
    table = memory_lake.create_table("a.u", "id long not null, day string")
    snapshot = table.overwrite(rows((1, "x")))
    assert snapshot is not None
    assert snapshot.operation == Operation.APPEND
    assert rows_of(table) == [(1, "x")]
