"""A change under a token is made once, however often it is asked for."""

from collections.abc import Callable

import pyarrow as pa
import pytest

import icefield
from icefield.commit.token import TOKEN_KEY
from icefield.errors import CommitStateUnknown, InvalidInput
from icefield.lake import Lake
from icefield.model.snapshot import Snapshots
from icefield.table import Table


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.create_table("t.t", "id long")


def files(lake: Lake) -> set[str]:
    return {f.location for f in lake.store.list(lake.warehouse)}


def test_r18_an_append_that_is_made_again_returns_the_first_result(lake: Lake, table: Table) -> None:
    first = table.append(rows(1), token="job-7/batch-3")
    table.append(rows(2))
    before = files(lake)
    again = lake.table("t.t").append(rows(1), token="job-7/batch-3")
    assert again == first
    assert again is not None
    assert again.summary[TOKEN_KEY] == "job-7/batch-3"
    assert table.count() == 2
    assert files(lake) == before


def test_r18_without_the_guard_a_second_run_appends_again(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(rows(1), token="job-7/batch-3")
    monkeypatch.setattr(Snapshots, "find_by_summary", lambda *_: None)
    lake.table("t.t").append(rows(1), token="job-7/batch-3")
    assert table.count() == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.append(rows(1), token="x"),
        lambda t: t.overwrite(rows(1), token="x"),
        lambda t: t.delete("id = 0", token="x"),
    ],
    ids=["append", "overwrite", "delete"],
)
def test_two_runs_at_once_land_once_and_leave_nothing(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch, change: Callable[[Table], object]
) -> None:
    table.append(rows(0, 5))
    swap = lake.catalog.swap
    first: list[object] = []

    def let_the_other_run_first(changes: object) -> None:
        monkeypatch.setattr(lake.catalog, "swap", swap)
        first.append(change(lake.table("t.t")))
        swap(changes)  # type: ignore[arg-type]

    monkeypatch.setattr(lake.catalog, "swap", let_the_other_run_first)
    assert change(table) == first[0]
    assert len(table.snapshots()) == 2
    named = {f["file_path"] for s in table.snapshots() for f in table.scan(as_of=s.snapshot_id).files().to_pylist()}
    assert {f for f in files(lake) if f.endswith(".parquet")} == named


def test_a_lost_answer_and_a_second_try_append_once(lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    swap = lake.catalog.swap

    def land_and_lose_the_answer(changes: object) -> None:
        swap(changes)  # type: ignore[arg-type]
        raise CommitStateUnknown("the line went dead")

    def unreachable(*_: object) -> str:
        raise CommitStateUnknown("the line is dead")

    pointer = lake.catalog.pointer
    with monkeypatch.context() as broken:
        broken.setattr(lake.catalog, "swap", land_and_lose_the_answer)
        broken.setattr(lake.ambient, "sleep", lambda _: broken.setattr(lake.catalog, "pointer", unreachable))
        broken.setattr("icefield.commit.retry.SettledSwap._look", lambda *_: unreachable())
        with pytest.raises(CommitStateUnknown):
            table.append(rows(1), token="once")
    assert lake.catalog.pointer == pointer
    lake.table("t.t").append(rows(1), token="once")
    assert lake.table("t.t").count() == 1


@pytest.mark.parametrize("token", ["", "a b", 'quote"', "ü", "x" * 201, 7])
def test_what_is_no_token_is_refused(table: Table, token: str) -> None:
    with pytest.raises(InvalidInput, match="token"):
        table.append(rows(1), token=token)
    assert table.snapshots() == []


def test_a_token_that_is_part_of_another_is_another(table: Table) -> None:
    table.append(rows(1), token="batch-10")
    table.append(rows(2), token="batch-1")
    assert table.count() == 2
