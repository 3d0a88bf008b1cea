"""Commits through a REST catalog: what is sent, and what becomes of it when answers are lost, wrong or late."""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.commit.faults import RecordingStore
from tests.rest_server import Effect, Fault, Reply, RestServer, answer, lose_reply, lose_request, running_server, twice

from icefield.ambient import SeededAmbient
from icefield.backend import Backend
from icefield.catalog.catalog import PointerSwap
from icefield.catalog.rest.catalog import open_rest_catalog
from icefield.catalog.rest.settings import RestSettings
from icefield.errors import (
    AlreadyExists,
    CatalogError,
    CommitConflict,
    CommitStateUnknown,
    ConcurrentChange,
    IcefieldError,
    InvalidInput,
    NoSuchTable,
    Unsupported,
)
from icefield.lake import Lake
from icefield.storage.memory import MemoryStore
from icefield.table.table import Table

ROOT = "memory://lake"
COMMIT = "/tables/t"
QUIET = RestSettings(properties={"rest-metrics-reporting-enabled": "false"})


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids_of(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().read_all()["id"].to_pylist())


@pytest.fixture
def server() -> Iterator[RestServer]:
    with running_server(MemoryStore(), ROOT) as made:
        yield made


def open_lake(server: RestServer, seed: int = 1, store: Any = None, settings: RestSettings = QUIET) -> Lake:
    ambient = SeededAmbient(seed)
    catalog = open_rest_catalog(server.url, settings=settings, ambient=ambient)
    return Lake(Backend(catalog, store or server.service.store, ambient), server.url)


@pytest.fixture
def lake(server: RestServer) -> Iterator[Lake]:
    with open_lake(server) as made:
        yield made


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.create_table("a.t", "id long not null")


@pytest.mark.parametrize("lands", [True, False])
def test_a_table_is_created_with_its_rows_although_an_answer_is_lost(
    server: RestServer, lake: Lake, lands: bool
) -> None:
    made = lake.create_table_as("a.u", rows(1, 2))
    assert (ids_of(made), len(made.snapshots())) == ([1, 2], 1)
    server.fail("POST", "/tables/t", lose_reply if lands else lose_request)
    if lands:
        assert ids_of(lake.create_table_as("a.t", rows(3))) == [3]
    else:
        with pytest.raises(CommitStateUnknown):
            lake.create_table_as("a.t", rows(3))
    with pytest.raises(AlreadyExists):
        lake.create_table_as("a.u", rows(3))


def others(server: RestServer, action: Callable[[Table], object]) -> None:
    """Let somebody else change the table."""
    with open_lake(server, seed=99) as lake:
        action(lake.table("a.t"))


def then(fault: Fault, action: Callable[[], object]) -> Fault:
    """Do something after a fault, before anybody hears of it."""

    def both(effect: Effect) -> Reply | None:
        reply = fault(effect)
        action()
        return reply

    return both


def before(action: Callable[[], object]) -> Fault:
    def fault(effect: Effect) -> Reply:
        action()
        return effect()

    return fault


def lists_of(store: Any) -> set[str]:
    return {f.location for f in store.list(ROOT) if "/snap-" in f.location}


def check_only_reachable_lists(table: Table, store: Any) -> None:
    assert lists_of(store) == {snapshot.manifest_list for snapshot in table.snapshots()}


def test_a_table_is_made_where_the_server_wants_it_with_our_ids(server: RestServer, lake: Lake) -> None:
    table = lake.create_table(
        "a.t",
        "id long, p struct<x: int>, s string",
        partition_by=["bucket(4, id)"],
        order_by=["s desc"],
        format_version=3,
    )
    metadata = table.metadata
    assert metadata.location.startswith(f"{ROOT}/a/t-")
    assert [(f.name, f.field_id) for f in metadata.schema.fields] == [("id", 1), ("p", 2), ("s", 3)]
    assert (metadata.format_version, metadata.spec.fields[0].source_id) == (3, 1)
    assert metadata.sort_order.fields[0].source_id == 3
    elsewhere = lake.create_table("a.u", "id long", location=f"{ROOT}/mine", properties={"k": "v"})
    assert (elsewhere.location, elsewhere.properties) == (f"{ROOT}/mine", {"k": "v"})


def test_every_kind_of_change_goes_through(lake: Lake, table: Table) -> None:
    table.append(rows(1, 2))
    table.overwrite(rows(3), where="id = 2", check_rows=False)
    with table.evolve() as change:
        change.add_column("s", "string")
        change.add_partition_field("id")
    table.set_properties({"a": "1", "b": "2"})
    table.set_properties({}, removals=["a"])
    table.create_tag("first", at=table.snapshots()[0].snapshot_id)
    table.upgrade_format_version(3)
    table.append(pa.table({"id": pa.array([9], pa.int64()), "s": ["x"]}))
    again = lake.table("a.t")
    assert ids_of(again) == [1, 3, 9]
    assert ids_of(again) == ids_of(table)
    assert again.properties == {"b": "2"}
    assert again.metadata.format_version == 3
    assert set(again.metadata.refs) == {"main", "first"}


def test_an_equality_upsert_adds_a_spec_that_is_not_the_default(server: RestServer, lake: Lake) -> None:
    table = lake.create_table("a.t", "id long, p string", partition_by=["p"])
    table.append(pa.table({"id": [1, 2], "p": ["a", "b"]}))
    table.upsert(pa.table({"id": [2, 3], "p": ["c", "c"]}), on=["id"], mode="equality")
    again = lake.table("a.t")
    assert ids_of(again) == [1, 2, 3]
    assert ([len(spec.fields) for spec in again.metadata.specs], again.spec.spec_id) == ([1, 0], 0)
    # Another spec gets the id that the files were written for.
    other = lake.create_table("a.u", "id long, p string", partition_by=["p"])

    def evolve() -> None:
        with lake.table("a.u").evolve() as change:
            change.add_partition_field("bucket(4, id)")

    server.fail("POST", "/tables/u", before(evolve))
    with pytest.raises(ConcurrentChange, match="partition spec 1 was concurrently changed"):
        other.upsert(pa.table({"id": [2, 3], "p": ["c", "c"]}), on=["id"], mode="equality")
    assert (ids_of(other), len(other.metadata.specs)) == ([], 2)


def test_what_was_just_added_is_meant_by_minus_one(server: RestServer, table: Table) -> None:
    with table.evolve() as change:
        change.add_column("s", "string")
    (_, _, body) = server.asked("POST", COMMIT)[-1]
    assert [u["schema-id"] for u in json.loads(body)["updates"] if u["action"] == "set-current-schema"] == [-1]


def test_a_stale_commit_is_proposed_again_and_keeps_both(server: RestServer, table: Table) -> None:
    server.fail("POST", COMMIT, before(lambda: others(server, lambda t: t.append(rows(1)))))
    table.append(rows(2))
    assert ids_of(table) == [1, 2]
    check_only_reachable_lists(table, server.service.store)


def test_giving_up_leaves_nothing_behind(server: RestServer, lake: Lake) -> None:
    table = lake.create_table("a.t", "id long not null", properties={"commit.retry.num-retries": "1"})
    files = {f.location for f in server.service.store.list(ROOT)}
    server.fail("POST", COMMIT, answer(409, "CommitFailedException"), times=2)
    with pytest.raises(CommitConflict, match="after 2 tries"):
        table.append(rows(1))
    assert {f.location for f in server.service.store.list(ROOT)} == files


@pytest.mark.parametrize("lands", [True, False], ids=["landed", "did not"])
@pytest.mark.parametrize(
    "fault",
    [500, 502, 503, 504, "cut", "400 CommitStateUnknownException"],
)
def test_r16_a_lost_answer_is_settled_by_looking(server: RestServer, table: Table, fault: object, lands: bool) -> None:
    if fault == "cut":
        server.fail("POST", COMMIT, lose_reply if lands else lose_request)
    elif isinstance(fault, int):
        server.fail("POST", COMMIT, answer(fault, lands=lands))
    else:
        server.fail("POST", COMMIT, answer(400, "CommitStateUnknownException", lands=lands))
    table.append(rows(1))
    assert ids_of(table) == [1]
    assert len(table.snapshots()) == 1
    check_only_reachable_lists(table, server.service.store)


@pytest.mark.parametrize("lands", [True, False])
def test_r16_others_that_moved_on_meanwhile_tell_what_became_of_it(
    server: RestServer, table: Table, lands: bool
) -> None:
    fault = lose_reply if lands else lose_request
    server.fail("POST", COMMIT, then(fault, lambda: others(server, lambda t: t.append(rows(2)))))
    table.append(rows(1))
    assert ids_of(table) == [1, 2]
    assert len(table.snapshots()) == 2
    check_only_reachable_lists(table, server.service.store)


def test_r16_a_request_on_its_way_is_not_taken_for_lost_while_it_may_land(server: RestServer, table: Table) -> None:
    table.append(rows(1))

    def change_something_else() -> None:
        others(server, lambda t: t.set_properties({"k": "v"}))

    server.fail("POST", COMMIT, then(lose_request, change_something_else))
    table.append(rows(2))
    sent = [json.loads(body) for _, _, body in server.asked("POST", COMMIT)]
    appends = [[u for u in each["updates"] if u["action"] == "add-snapshot"] for each in sent[1:]]
    first, second = (found for found in appends[1:] if found)
    assert first == second, "the same change is sent again, so that only one of the two can land"
    assert ids_of(table) == [1, 2]


def test_r16_an_answer_that_comes_too_late_is_settled_like_a_lost_one(server: RestServer) -> None:
    late = threading.Event()

    def slow(effect: Effect) -> Reply | None:
        reply = effect()
        late.wait(30)
        return reply

    settings = RestSettings(properties={**QUIET.properties, "rest-timeout-seconds": "0.3"})
    with open_lake(server, settings=settings) as lake:
        table = lake.create_table("a.t", "id long")
        server.fail("POST", COMMIT, slow)
        table.append(rows(1))
        late.set()
        assert ids_of(table) == [1]
        check_only_reachable_lists(table, server.service.store)


@pytest.mark.parametrize("lands", [True, False])
def test_r17_an_unknown_outcome_deletes_nothing(server: RestServer, lake: Lake, table: Table, lands: bool) -> None:
    store = RecordingStore(server.service.store)
    with open_lake(server, seed=3, store=store) as recorded:
        writer = recorded.table("a.t")

        def go_silent() -> None:
            server.fail("GET", COMMIT, answer(503), times=1000)
            server.fail("POST", COMMIT, answer(503), times=1000)

        server.fail("POST", COMMIT, then(lose_reply if lands else lose_request, go_silent))
        with pytest.raises(CommitStateUnknown, match="may or may not have succeeded"):
            writer.append(rows(1))
    assert store.deleted == []
    server.faults.clear()
    assert ids_of(table) == ([1] if lands else [])


def test_r17_a_commit_that_landed_and_cannot_be_looked_at_deletes_nothing(server: RestServer, lake: Lake) -> None:
    for name in ("a.t", "a.u"):
        lake.create_table(name, "id long")
    store = RecordingStore(server.service.store)

    def transfer() -> None:
        with open_lake(server, seed=3, store=store) as recorded, recorded.transaction() as tx:
            tx.table("a.t").append(rows(1))
            tx.table("a.u").append(rows(2))
            server.fail(
                "POST", "/transactions", then(lambda e: e(), lambda: server.fail("GET", "/tables/", answer(500), 1000))
            )

    with pytest.raises(CommitStateUnknown, match="may or may not have succeeded"):
        transfer()
    server.faults.clear()
    assert (ids_of(lake.table("a.t")), ids_of(lake.table("a.u"))) == ([1], [2])
    assert not [location for location in store.deleted if location in lists_of(store)]


def test_a_change_without_snapshots_is_settled_by_what_shows(server: RestServer, table: Table) -> None:
    server.fail("POST", COMMIT, lose_reply)
    table.set_properties({"k": "v"})
    assert table.properties == {"k": "v"}
    server.fail("POST", COMMIT, then(lose_request, lambda: others(server, lambda t: t.append(rows(1)))))
    with pytest.raises(CommitStateUnknown):
        table.set_properties({"k": "w"})
    server.fail("POST", COMMIT, then(lose_request, lambda: others(server, _add_column("x"))))
    _add_column("y")(table)
    assert [f.name for f in table.schema.fields] == ["id", "x", "y"]


def _add_column(name: str) -> Callable[[Table], None]:
    def add(table: Table) -> None:
        with table.evolve() as change:
            change.add_column(name, "int")

    return add


def test_a_gateway_that_sends_twice_does_not_make_us_remove_what_landed(server: RestServer, table: Table) -> None:
    server.fail("POST", COMMIT, twice)
    table.append(rows(1))
    assert ids_of(table) == [1]
    assert len(server.asked("POST", COMMIT)) == 2, "one for the creation, one for the append"
    check_only_reachable_lists(table, server.service.store)


def test_r23_success_without_the_change_is_not_believed(server: RestServer, table: Table) -> None:
    def pretend(effect: Effect) -> Reply:
        loaded = server.service.load_table(table_name(table))
        return Reply(200, loaded.encode())

    server.fail("POST", COMMIT, pretend, times=99)
    store = server.service.store
    with pytest.raises(CommitStateUnknown):
        table.append(rows(1))
    with pytest.raises(CommitStateUnknown):
        table.set_properties({"k": "v"})
    assert len(lists_of(store)) == 1, "nothing is removed"
    server.faults.clear()
    assert (ids_of(table), table.properties) == ([], {})


def test_r23_success_that_comes_true_at_the_second_asking_is_believed(server: RestServer, table: Table) -> None:
    server.fail("POST", COMMIT, lambda effect: Reply(200, server.service.load_table(table_name(table)).encode()))
    table.append(rows(1))
    assert ids_of(table) == [1]


def table_name(table: Table) -> Any:
    return table._head.name


def test_a_success_that_does_not_decode_is_looked_at(server: RestServer, table: Table) -> None:
    server.fail("POST", COMMIT, lambda effect: (effect(), Reply(200, {"odd": 1}))[1])
    table.append(rows(1))
    assert len(table.snapshots()) == 1


def test_what_is_refused_although_nothing_moved_is_refused(server: RestServer, table: Table) -> None:
    server.fail("POST", COMMIT, answer(400, "BadRequestException"))
    with pytest.raises(CatalogError, match="cannot commit to a.t: the catalog responded with 400: failed on purpose"):
        table.append(rows(1))
    assert lists_of(server.service.store) == set()


def test_what_is_refused_for_being_stale_is_proposed_again(server: RestServer, table: Table) -> None:
    """Another branch took the sequence number; Iceberg's own server says 400 to that."""
    table.append(rows(1))
    table.create_branch("other")
    server.fail("POST", COMMIT, before(lambda: others(server, lambda t: t.at("other").append(rows(2)))))
    table.append(rows(3))
    assert ids_of(table) == [1, 3]
    assert [s.sequence_number for s in table.snapshots()] == [1, 2, 3]


def test_keys_stay_the_same_when_a_change_is_sent_again(server: RestServer) -> None:
    server.takes_keys = True
    with open_lake(server) as lake:
        table = lake.create_table("a.t", "id long")
        server.fail("POST", COMMIT, lose_request)
        table.append(rows(1))
        table.append(rows(2))
    keys = [headers["idempotency-key"] for _, headers, _ in server.asked("POST", COMMIT)]
    assert (keys[1] == keys[2], len(set(keys))) == (True, 3)
    assert all(key[14] == "7" and key[19] in "89ab" for key in keys), "version 7, as the protocol demands"


def test_no_key_is_sent_to_a_server_that_does_not_know_them(server: RestServer, table: Table) -> None:
    assert not any("idempotency-key" in headers for _, headers, _ in server.asked("POST", COMMIT))


def test_a_lost_answer_to_a_creation_is_settled(server: RestServer, lake: Lake) -> None:
    server.fail("POST", COMMIT, lose_reply)
    made = lake.create_table("a.t", "id long")
    assert ids_of(made) == []
    server.fail("POST", "/tables/u", twice)
    lake.create_table("a.u", "id long")


@pytest.mark.parametrize("takes_keys", [True, False])
def test_a_creation_is_sent_again_only_to_a_server_that_knows_its_key(server: RestServer, takes_keys: bool) -> None:
    server.takes_keys = takes_keys
    server.fail("POST", COMMIT, lose_request)
    with open_lake(server) as lake:
        if takes_keys:
            assert ids_of(lake.create_table("a.t", "id long")) == []
        else:
            with pytest.raises(CommitStateUnknown):
                lake.create_table("a.t", "id long")
        assert lake.has_table("a.t") is takes_keys


@pytest.mark.parametrize("takes_keys", [True, False])
@pytest.mark.parametrize("since", ["drop", "rename", "rename and create"])
def test_a_table_that_moved_on_before_its_creation_was_settled_is_left_alone(
    server: RestServer, since: str, takes_keys: bool
) -> None:
    server.takes_keys = takes_keys

    def move_on() -> None:
        with open_lake(server, seed=7) as other:
            if since == "drop":
                other.drop_table("a.t")
            else:
                other.rename_table("a.t", "a.u")
            if since == "rename and create":
                other.create_table("a.t", "x int")

    server.fail("POST", COMMIT, then(lose_reply, move_on))
    with open_lake(server) as lake:
        with pytest.raises(CommitStateUnknown):
            lake.create_table("a.t", "id long")
        left = {name: lake.table(name).schema.fields[0].name for name in lake.tables()}
    assert left == {"drop": {}, "rename": {"a.u": "id"}, "rename and create": {"a.u": "id", "a.t": "x"}}[since]


def test_files_stay_when_the_table_was_renamed_and_another_took_its_name(server: RestServer, table: Table) -> None:
    def move_on() -> None:
        with open_lake(server, seed=7) as other:
            other.rename_table("a.t", "a.u")
            other.create_table("a.t", "id long")

    server.fail("POST", COMMIT, then(lose_reply, move_on))
    with pytest.raises(CommitStateUnknown):
        table.append(rows(1))
    with open_lake(server, seed=8) as lake:
        assert (ids_of(lake.table("a.u")), ids_of(lake.table("a.t"))) == ([1], [])


def test_of_two_that_create_a_table_one_does(server: RestServer, lake: Lake) -> None:
    def make_first() -> None:
        with open_lake(server, seed=5) as other:
            other.create_table("a.t", "x int")

    server.fail("POST", COMMIT, before(make_first))
    with pytest.raises(AlreadyExists):
        lake.create_table("a.t", "id long")
    with pytest.raises(AlreadyExists):
        lake.create_table("a.t", "id long")
    assert [f.name for f in lake.table("a.t").schema.fields] == ["x"]


def test_a_table_made_anew_is_another_one(server: RestServer, lake: Lake, table: Table) -> None:
    lake.drop_table("a.t")
    lake.create_table("a.t", "id long")
    with pytest.raises(NoSuchTable, match="recreated"):
        table.append(rows(1))


@pytest.fixture
def pair(lake: Lake) -> Lake:
    for name in ("a.t", "a.u"):
        lake.create_table(name, "id long").append(rows(1))
    return lake


def test_a_transaction_is_one_request(server: RestServer, pair: Lake) -> None:
    with pair.transaction() as tx:
        tx.table("a.t").append(rows(2))
        tx.table("a.u").append(rows(3))
        assert ids_of(pair.table("a.t")) == [1]
    assert (ids_of(pair.table("a.t")), ids_of(pair.table("a.u"))) == ([1, 2], [1, 3])
    (only,) = server.asked("POST", "/transactions/commit")
    assert len(json.loads(only[2])["table-changes"]) == 2


@pytest.mark.parametrize("lands", [True, False])
@pytest.mark.parametrize("moved", [True, False])
def test_r16_a_lost_answer_to_a_transaction_is_settled_for_all(
    server: RestServer, pair: Lake, lands: bool, moved: bool
) -> None:
    fault = lose_reply if lands else lose_request
    later = (lambda: others(server, lambda t: t.append(rows(7)))) if moved else (lambda: None)
    server.fail("POST", "/transactions", then(fault, later))
    with pair.transaction() as tx:
        tx.table("a.t").append(rows(2))
        tx.table("a.u").append(rows(3))
    assert ids_of(pair.table("a.t")) == [1, 2] + ([7] if moved else [])
    assert ids_of(pair.table("a.u")) == [1, 3]


def test_a_table_that_was_only_read_must_not_move(server: RestServer, pair: Lake) -> None:
    def copy() -> None:
        with pair.transaction() as tx:
            known = ids_of(tx.table("a.t"))
            tx.table("a.u").append(rows(*known))

    copy()
    server.fail("POST", "/transactions", before(lambda: others(server, lambda t: t.append(rows(9)))))
    with pytest.raises(ConcurrentChange, match=r"a\.t, which the transaction read"):
        copy()
    assert ids_of(pair.table("a.u")) == [1, 1]
    assert pair.table("a.t").metadata.snapshots, "and what was only read has no version of its own"


def test_tables_are_read_as_of_one_moment_although_the_protocol_has_no_such_request(
    server: RestServer, pair: Lake
) -> None:
    server.fail("GET", "/tables/u", before(lambda: others(server, lambda t: t.append(rows(9)))))
    with pair.transaction() as tx:
        tx.pin(["a.t", "a.u"])
        assert ids_of(tx.table("a.t")) == [1, 9], "the first look was overtaken, and made again"


def test_a_server_without_transactions_says_so_before_any_work(server: RestServer) -> None:
    server.endpoints = [e for e in server.endpoints or [] if "transactions" not in e]
    with open_lake(server) as lake, pytest.raises(Unsupported):
        lake.transaction()


def test_commits_are_reported_and_a_report_that_fails_is_no_failure(server: RestServer) -> None:
    with open_lake(server, settings=RestSettings()) as lake:
        table = lake.create_table("a.t", "id long")
        table.append(rows(1, 2))
        server.fail("POST", "/metrics", answer(500))
        table.append(rows(3))
    (report,) = server.service.reports
    assert (report["report-type"], report["table-name"], report["operation"]) == ("commit-report", "a.t", "append")
    assert report["metrics"]["added-records"] == {"unit": "count", "value": 2}


def test_register_takes_a_table_that_is_there(server: RestServer, lake: Lake, table: Table) -> None:
    table.append(rows(1))
    location = table.metadata_location
    lake.drop_table("a.t")
    assert ids_of(lake.register_table("b.again", location)) == [1]
    with pytest.raises(AlreadyExists):
        lake.register_table("b.again", location)
    with pytest.raises(IcefieldError):
        lake.register_table("b.none", f"{ROOT}/nowhere.metadata.json")


def test_an_unchanged_table_is_not_sent_again(server: RestServer, table: Table) -> None:
    table.append(rows(1))
    server.requests.clear()
    for _ in range(3):
        assert table.metadata.current_snapshot is not None
    tags = [headers.get("if-none-match") for _, headers, _ in server.asked("GET", COMMIT)]
    assert len(tags) == 3
    assert None not in tags


def test_pointers_are_not_moved_from_outside(lake: Lake, table: Table) -> None:
    with pytest.raises(Unsupported, match="moves no pointers"):
        lake.catalog.swap([PointerSwap(table_name(table), table.metadata_location, "elsewhere")])
    with pytest.raises(InvalidInput):
        lake.catalog.swap([PointerSwap(table_name(table), None, None)])


@pytest.mark.slow
def test_racing_writers_lose_nothing(server: RestServer, table: Table) -> None:
    failures: list[BaseException] = []

    def write(writer: int) -> None:
        try:
            with open_lake(server, seed=writer) as lake:
                for number in range(5):
                    lake.table("a.t").append(rows(writer * 10 + number))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert ids_of(table) == sorted(writer * 10 + number for writer in range(1, 5) for number in range(5))
    check_only_reachable_lists(table, server.service.store)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.append(rows(7)),
        lambda table: table.delete("id = 1"),
        lambda table: table.upsert(rows(1), on=["id"]),
        lambda table: table.overwrite(rows(9)),
    ],
    ids=["append", "delete", "upsert", "overwrite"],
)
def test_a_change_on_an_open_handle_is_one_load_and_one_commit(
    server: RestServer, table: Table, change: Callable[[Table], object]
) -> None:
    table.append(rows(1, 2))
    server.requests.clear()
    change(table)
    assert [method for method, *_ in server.requests] == ["GET", "POST"]


def test_a_version_that_is_not_the_newest_any_more_is_loaded_again(server: RestServer, table: Table) -> None:
    table.append(rows(1))
    server.fail("POST", COMMIT, _after(lambda: others(server, lambda other: other.append(rows(2)))))
    server.requests.clear()
    table.append(rows(3))
    assert ids_of(table) == [1, 2, 3]


def _after(act: Callable[[], object]) -> Fault:
    """Let somebody else come first."""

    def fault(effect: Effect) -> Any:
        act()
        return effect()

    return fault
