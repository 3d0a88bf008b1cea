"""A change under an idempotency key is made once, however often it is asked for."""

import datetime
from collections.abc import Callable

import pyarrow as pa
import pytest

import icefield
from icefield import StreamBatch
from icefield.commit.validate.idempotency_key import IdempotencyKey
from icefield.commit.validate.key_history import IDEMPOTENCY_KEY
from icefield.errors import CommitStateUnknown, ConcurrentChange, InvalidInput
from icefield.lake import Lake
from icefield.model.snapshot import Snapshots
from icefield.table.table import Table


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
    first = table.append(rows(1), idempotency_key="job-7/batch-3")
    table.append(rows(2))
    before = files(lake)
    again = lake.table("t.t").append(rows(1), idempotency_key="job-7/batch-3")
    assert again == first
    assert again is not None
    assert again.summary[IDEMPOTENCY_KEY] == "job-7/batch-3"
    assert table.count() == 2
    assert files(lake) == before


def test_r18_without_the_guard_a_second_run_appends_again(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(rows(1), idempotency_key="job-7/batch-3")
    monkeypatch.setattr(Snapshots, "find_all_by_summary", lambda *_: iter(()))
    monkeypatch.setattr("icefield.commit.validate.idempotency_key.recorded_keys", lambda *_: ())
    lake.table("t.t").append(rows(1), idempotency_key="job-7/batch-3")
    assert table.count() == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.append(rows(1), idempotency_key="x"),
        lambda t: t.overwrite(rows(1), idempotency_key="x"),
        lambda t: t.delete("id = 0", idempotency_key="x"),
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
        broken.setattr("icefield.commit.retry.ResolvedSwap._look", lambda *_: unreachable())
        with pytest.raises(CommitStateUnknown):
            table.append(rows(1), idempotency_key="once")
    assert lake.catalog.pointer == pointer
    lake.table("t.t").append(rows(1), idempotency_key="once")
    assert lake.table("t.t").count() == 1


@pytest.mark.parametrize("idempotency_key", ["", "a b", 'quote"', "ü", "x" * 201, 7])
def test_what_is_not_a_valid_idempotency_key_is_refused(table: Table, idempotency_key: str) -> None:
    with pytest.raises(InvalidInput, match="not a valid idempotency key|idempotency_key takes a string"):
        table.append(rows(1), idempotency_key=idempotency_key)
    assert table.snapshots() == []


def test_an_idempotency_key_that_is_part_of_another_is_another(table: Table) -> None:
    table.append(rows(1), idempotency_key="batch-10")
    table.append(rows(2), idempotency_key="batch-1")
    assert table.count() == 2


LATER = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)
VERBS: dict[str, Callable[[Table, IdempotencyKey], object]] = {
    "append": lambda t, idempotency_key: t.append(rows(9), idempotency_key=idempotency_key),
    "overwrite": lambda t, idempotency_key: t.overwrite(
        rows(9), where="id = 1", check_rows=False, idempotency_key=idempotency_key
    ),
    "upsert": lambda t, idempotency_key: t.upsert(rows(9), on=["id"], idempotency_key=idempotency_key).snapshot,
    "delete": lambda t, idempotency_key: t.delete("id = 1", idempotency_key=idempotency_key).snapshot,
    "update": lambda t, idempotency_key: t.update({"id": "id + 8"}, "id = 1", idempotency_key=idempotency_key).snapshot,
    "merge": lambda t, idempotency_key: (
        t.merge(rows(9), on=["id"], idempotency_key=idempotency_key).when_not_matched().insert_all().execute().snapshot
    ),
}
IDEMPOTENCY_KEYS: list[IdempotencyKey] = ["job-7", StreamBatch("clicks", 7)]


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().read_all().column("id").to_pylist())


def expire(table: Table, *, by: str) -> None:
    """Remove all snapshots but the heads: with our own verb, or as any engine does that knows nothing of tokens."""
    if by == "icefield":
        table.expire_snapshots(LATER)
        return
    heads = {ref.snapshot_id for ref in table.refs().values()}
    table.remove_snapshots([s.snapshot_id for s in table.snapshots() if s.snapshot_id not in heads])


@pytest.mark.parametrize("idempotency_key", IDEMPOTENCY_KEYS, ids=str)
@pytest.mark.parametrize("by", ["icefield", "another engine"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_key_outlives_its_snapshot(table: Table, verb: str, by: str, idempotency_key: IdempotencyKey) -> None:
    table.append(rows(1, 2))
    VERBS[verb](table, idempotency_key)
    table.append(rows(3))
    expire(table, by=by)
    before = ids(table), len(table.snapshots())
    assert VERBS[verb](table, idempotency_key) is None
    assert (ids(table), len(table.snapshots())) == before


@pytest.mark.parametrize("expired", [False, True])
def test_an_idempotency_key_of_another_branch_is_refused_and_not_swallowed(table: Table, expired: bool) -> None:
    table.append(rows(0))
    table.create_branch("staging")
    table.at("staging").append(rows(1), idempotency_key="x")
    if expired:
        table.at("staging").append(rows(2))
        table.expire_snapshots(LATER)
    with pytest.raises(InvalidInput, match="another branch|on branch 'staging'"):
        table.append(rows(1), idempotency_key="x")
    assert ids(table) == [0]
    table.drop_branch("staging")
    if expired:
        table.expire_snapshots(LATER)
        table.append(rows(1), idempotency_key="x")
        assert ids(table) == [0, 1]
    else:
        with pytest.raises(InvalidInput, match="not in the history of main"):
            table.append(rows(1), idempotency_key="x")
        assert ids(table) == [0]


@pytest.mark.parametrize("expired", [False, True])
def test_an_idempotency_key_that_was_rolled_back_has_not_landed(table: Table, expired: bool) -> None:
    first = table.append(rows(0))
    assert first is not None
    table.append(rows(1), idempotency_key="x")
    table.rollback(first.snapshot_id)
    if expired:
        table.expire_snapshots(LATER)
        table.append(rows(1), idempotency_key="x")
        assert ids(table) == [0, 1]
    else:
        with pytest.raises(InvalidInput, match="was rolled back"):
            table.append(rows(1), idempotency_key="x")
        assert ids(table) == [0]


@pytest.mark.parametrize("idempotency_key", IDEMPOTENCY_KEYS, ids=str)
@pytest.mark.parametrize("expired", [False, True])
def test_what_is_published_has_landed(table: Table, idempotency_key: IdempotencyKey, expired: bool) -> None:
    table.append(rows(0))
    table.create_branch("staging")
    staging = table.at("staging")
    staging.append(rows(1), idempotency_key=idempotency_key)
    staging.append(rows(2))
    table.publish("staging")
    table.drop_branch("staging")
    if expired:
        table.expire_snapshots(LATER)
    table.append(rows(1), idempotency_key=idempotency_key)
    assert ids(table) == [0, 1, 2]


@pytest.mark.parametrize("idempotency_key", IDEMPOTENCY_KEYS, ids=str)
def test_a_new_branch_has_what_landed_before_it(table: Table, idempotency_key: IdempotencyKey) -> None:
    table.append(rows(1), idempotency_key=idempotency_key)
    head = table.append(rows(2))
    assert head is not None
    table.append(rows(3), idempotency_key="later")
    table.create_branch("b", at=head.snapshot_id)
    table.at("b").append(rows(4))
    table.expire_snapshots(LATER)
    table.at("b").append(rows(1), idempotency_key=idempotency_key)
    assert ids(table.at("b")) == [1, 2, 4]
    with pytest.raises(InvalidInput, match="not in the history of b"):
        table.at("b").append(rows(3), idempotency_key="later")


def test_the_window_of_plain_keys_is_bounded(table: Table) -> None:
    table.set_properties({"icefield.idempotency-keys.kept": "3"})
    for number in range(5):
        table.append(rows(number), idempotency_key=f"job-{number}")
    table.append(rows(9))
    expire(table, by="icefield")
    assert table.properties["icefield.idempotency-keys@main"] == "job-2 job-3 job-4"
    for number in range(2, 5):
        table.append(rows(number), idempotency_key=f"job-{number}")
    assert ids(table) == [0, 1, 2, 3, 4, 9]


def test_a_stream_has_one_mark_however_long_it_runs(table: Table) -> None:
    for number in (1, 2, 4):
        table.append(rows(number), idempotency_key=StreamBatch("clicks", number))
    marks = {key: value for key, value in table.properties.items() if key.startswith("icefield.")}
    assert marks == {"icefield.stream.clicks@main": "4"}
    assert (
        table.append(rows(3), idempotency_key=StreamBatch("clicks", 3)) is None
    )  # passed: a gap cannot be filled later
    found = table.append(rows(2), idempotency_key=StreamBatch("clicks", 2))
    assert found is not None
    assert found.snapshot_id == table.snapshots()[1].snapshot_id
    table.append(rows(3), idempotency_key=StreamBatch("views", 3))
    assert ids(table) == [1, 2, 3, 4]


def test_a_stream_that_is_rolled_back_goes_on_from_there(table: Table) -> None:
    table.append(rows(1), idempotency_key=StreamBatch("clicks", 10))
    kept = table.append(rows(2), idempotency_key=StreamBatch("clicks", 20))
    assert kept is not None
    table.append(rows(3), idempotency_key=StreamBatch("clicks", 30))
    table.append(rows(7), idempotency_key=StreamBatch("views", 1))
    table.rollback(kept.snapshot_id)
    table.append(rows(4), idempotency_key=StreamBatch("clicks", 30))
    table.append(rows(8), idempotency_key=StreamBatch("views", 1))
    table.append(rows(9), idempotency_key=StreamBatch("clicks", 20))
    assert ids(table) == [1, 2, 4, 8]


def test_a_mark_that_another_engine_left_behind_a_roll_back_is_refused(table: Table) -> None:
    first = table.append(rows(0))
    assert first is not None
    table.append(rows(1), idempotency_key=StreamBatch("clicks", 1))
    mark = {"icefield.stream.clicks@main": "1"}
    table.rollback(first.snapshot_id)
    table.set_properties(mark)
    with pytest.raises(InvalidInput, match="batch 1 of stream 'clicks'.*was rolled back"):
        table.append(rows(0), idempotency_key=StreamBatch("clicks", 0))
    assert ids(table) == [0]


def test_two_writers_of_one_stream_lose_no_batch_in_silence(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap = lake.catalog.swap

    def let_the_next_batch_land_first(changes: object) -> None:
        monkeypatch.setattr(lake.catalog, "swap", swap)
        lake.table("t.t").append(rows(2), idempotency_key=StreamBatch("clicks", 2))
        swap(changes)  # type: ignore[arg-type]

    before = files(lake)
    monkeypatch.setattr(lake.catalog, "swap", let_the_next_batch_land_first)
    with pytest.raises(ConcurrentChange, match="another writer concurrently wrote batch 2"):
        table.append(rows(1), idempotency_key=StreamBatch("clicks", 1))
    assert ids(table) == [2]
    assert len([f for f in files(lake) - before if f.endswith(".parquet")]) == 1


def test_streams_are_bounded_in_number(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icefield.commit.validate.key_history.MAX_STREAMS", 2)
    for name in ("a", "b"):
        table.append(rows(1), idempotency_key=StreamBatch(name, 1))
    with pytest.raises(InvalidInput, match="already has 2 streams"):
        table.append(rows(1), idempotency_key=StreamBatch("c", 1))
    table.append(rows(2), idempotency_key=StreamBatch("b", 2))
    table.set_properties({}, removals=["icefield.stream.a@main"])
    table.append(rows(3), idempotency_key=StreamBatch("c", 1))


@pytest.mark.parametrize("idempotency_key", IDEMPOTENCY_KEYS, ids=str)
def test_a_transaction_over_two_tables_is_made_once(lake: Lake, table: Table, idempotency_key: IdempotencyKey) -> None:
    lake.create_table("t.u", "id long")

    def run() -> None:
        with lake.transaction() as tx:
            tx.table("t.t").append(rows(1), idempotency_key=idempotency_key)
            tx.table("t.u").append(rows(2), idempotency_key=idempotency_key)

    run()
    for name in ("t.t", "t.u"):
        lake.table(name).append(rows(5))
        lake.table(name).expire_snapshots(LATER)
    run()
    assert (ids(lake.table("t.t")), ids(lake.table("t.u"))) == ([1, 5], [2, 5])


def test_a_replaced_table_has_not_what_landed_before(lake: Lake, table: Table) -> None:
    table.append(rows(1), idempotency_key=StreamBatch("clicks", 5))
    lake.create_table("t.t", "id long", replace=True)
    table.append(rows(2), idempotency_key=StreamBatch("clicks", 1))
    assert ids(table) == [2]


@pytest.mark.parametrize(
    "idempotency_key",
    [
        StreamBatch("", 1),
        StreamBatch("a@b", 1),
        StreamBatch("a", -1),
        StreamBatch("a", True),
        StreamBatch("a", 1 << 63),
    ],
)
def test_what_is_no_batch_of_a_stream_is_refused(table: Table, idempotency_key: StreamBatch) -> None:
    with pytest.raises(InvalidInput, match="stream"):
        table.append(rows(1), idempotency_key=idempotency_key)
    assert table.snapshots() == []


def test_a_branch_from_a_tag_whose_way_to_main_expired_knows_its_batches(table: Table) -> None:
    for batch in (1, 2, 3, 4, 5):
        table.append(rows(batch), idempotency_key=StreamBatch("clicks", batch))
        if batch == 3:
            table.create_tag("q1")
    table.expire_snapshots(datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC), keep_last=1)
    table.create_branch("fix", at="q1")
    fix = table.at("fix")
    for batch in (1, 2, 3):
        fix.append(rows(batch), idempotency_key=StreamBatch("clicks", batch))
    assert fix.count() == 3
    fix.append(rows(4), idempotency_key=StreamBatch("clicks", 4))
    assert fix.count() == 4


def test_a_mark_that_no_batch_can_have_is_refused(table: Table) -> None:
    table.set_properties({"icefield.stream.clicks@main": "9" * 5000})
    with pytest.raises(InvalidInput, match="must be a batch number"):
        table.append(rows(1), idempotency_key=StreamBatch("clicks", 3))


@pytest.mark.parametrize("idempotency_key", IDEMPOTENCY_KEYS, ids=str)
def test_a_new_branch_has_what_landed_and_expired_before_it(table: Table, idempotency_key: IdempotencyKey) -> None:
    table.append(rows(1), idempotency_key=idempotency_key)
    table.append(rows(2))
    table.expire_snapshots(LATER)
    table.create_branch("b")
    assert table.at("b").append(rows(1), idempotency_key=idempotency_key) is None
    assert ids(table.at("b")) == [1, 2]


def test_a_roll_back_goes_back_to_the_mark_of_a_batch_that_has_expired(table: Table) -> None:
    table.append(rows(1), idempotency_key=StreamBatch("clicks", 1))
    kept = table.append(rows(2))
    assert kept is not None
    table.append(rows(3), idempotency_key=StreamBatch("clicks", 2))
    table.expire_snapshots(LATER, keep_last=2)
    table.rollback(kept.snapshot_id)
    assert table.append(rows(1), idempotency_key=StreamBatch("clicks", 1)) is None
    table.append(rows(3), idempotency_key=StreamBatch("clicks", 2))
    assert ids(table) == [1, 2, 3]


def test_a_batch_in_the_history_has_landed_whatever_the_mark_says(table: Table) -> None:
    made = table.append(rows(1), idempotency_key=StreamBatch("clicks", 1))
    table.set_properties({}, removals=["icefield.stream.clicks@main"])
    assert table.append(rows(1), idempotency_key=StreamBatch("clicks", 1)) == made
    assert ids(table) == [1]


def test_an_idempotency_key_that_another_engine_rolled_back_has_not_landed_whatever_expired_below(table: Table) -> None:
    first, second = (table.append(rows(number)) for number in (0, 1))
    assert first is not None
    assert second is not None
    table.append(rows(2), idempotency_key="once")
    table.create_tag("undone")
    remembered = {"icefield.idempotency-keys@main": table.properties["icefield.idempotency-keys@main"]}
    table.rollback(second.snapshot_id)
    table.set_properties(remembered)  # which other engines do not know of
    table.remove_snapshots([first.snapshot_id])
    with pytest.raises(InvalidInput, match="was used by snapshot .* not in the history of main"):
        table.append(rows(2), idempotency_key="once")
    assert ids(table) == [0, 1]


@pytest.mark.parametrize("rolls_back", [True, False])
def test_undo_of_an_undo_knows_keys_whose_snapshots_have_expired(table: Table, rolls_back: bool) -> None:
    for number in (1, 2, 3):
        table.append(rows(number), idempotency_key=f"load-{number}")
    table.expire_snapshots(LATER, keep_last=2)
    if rolls_back:
        table.rollback(table.snapshots()[0].snapshot_id)
    else:
        table.undo()
    table.undo()
    for number in (1, 2, 3):
        table.append(rows(number), idempotency_key=f"load-{number}")
    assert ids(table) == [1, 2, 3]


def test_undo_of_the_undo_of_a_publish_knows_the_keys_of_the_branch(table: Table) -> None:
    table.append(rows(1))
    table.create_branch("b")
    table.at("b").append(rows(2), idempotency_key="once")
    table.append(rows(3))
    table.publish("b")
    table.undo()
    table.undo()
    table.drop_branch("b")
    table.expire_snapshots(LATER, keep_last=1)
    assert table.append(rows(2), idempotency_key="once") is None
    assert ids(table) == [1, 2, 3]


def test_a_branch_of_what_was_rolled_back_knows_keys_whose_snapshots_have_expired(table: Table) -> None:
    for number in (1, 2, 3):
        table.append(rows(number), idempotency_key=f"load-{number}")
    table.expire_snapshots(LATER, keep_last=2)
    kept, undone = table.snapshots()
    table.rollback(kept.snapshot_id)
    table.create_branch("b", at=undone.snapshot_id)
    branch = table.at("b")
    for number in (1, 2, 3):
        branch.append(rows(number), idempotency_key=f"load-{number}")
    assert ids(branch) == [1, 2, 3]
