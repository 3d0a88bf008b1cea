"""Commit queues in PostgreSQL: slots in the order of arrival; a dead writer or a missing slot stops no commit."""

import os
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from tests.catalog.dropping_proxy import DroppingProxy
from tests.postgres import PostgresServer, free_port

import icefield
from icefield.catalog.commit_queue import postgres as postgres_queue
from icefield.catalog.commit_queue.postgres import PostgresQueue, queue_key
from icefield.model.names import parse_table_name

TABLE, OTHER = parse_table_name("shop.orders"), parse_table_name("shop.stock")
DIES = """
import os, sys
from icefield.catalog.commit_queue.postgres import PostgresQueue
from icefield.model.names import parse_table_name
with PostgresQueue(sys.argv[1], "c").slot(parse_table_name("shop.orders")):
    os._exit(0)
"""


def waiting(server: PostgresServer, granted: bool = False) -> int:
    """Count who waits for a queue's lock, or holds one."""
    (found,) = server.query(f"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted = {granted}")
    return int(str(found[0]))


def wait_until(server: PostgresServer, count: int, granted: bool = False) -> None:
    deadline = time.monotonic() + 30
    while waiting(server, granted) != count:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_turns_come_one_after_the_other_and_in_order(postgres_server: PostgresServer, postgres_url: str) -> None:
    order: list[int] = []

    def take(number: int) -> None:
        with closing(PostgresQueue(postgres_url, "c")) as queue, queue.slot(TABLE):
            order.append(number)

    writers = [threading.Thread(target=take, args=(number,)) for number in range(4)]
    with closing(PostgresQueue(postgres_url, "c")) as queue, queue.slot(TABLE):
        for number, writer in enumerate(writers):
            writer.start()
            wait_until(postgres_server, number + 1)
        assert order == []
    for writer in writers:
        writer.join()
    assert order == [0, 1, 2, 3]
    assert waiting(postgres_server, granted=True) == 0


def test_the_threads_of_a_process_share_one_connection(postgres_server: PostgresServer, postgres_url: str) -> None:
    inside: list[int] = []
    with closing(PostgresQueue(postgres_url, "c")) as queue:

        def take(number: int) -> None:
            with queue.slot(TABLE):
                assert not inside
                inside.append(number)
                assert waiting(postgres_server) == 0
                inside.remove(number)

        threads = [threading.Thread(target=take, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'icefield'"
        assert postgres_server.query(sessions) == [(1,)]


def test_tables_and_catalogs_have_lanes_of_their_own(postgres_url: str) -> None:
    assert len({queue_key("c", TABLE), queue_key("c", OTHER), queue_key("d", TABLE)}) == 3
    with (
        closing(PostgresQueue(postgres_url, "c")) as queue,
        closing(PostgresQueue(postgres_url, "d")) as others,
        queue.slot(TABLE),
        queue.slot(OTHER),
        others.slot(TABLE),
    ):
        pass


def test_a_writer_that_died_in_its_turn_is_passed(postgres_url: str) -> None:
    subprocess.run([sys.executable, "-c", DIES, postgres_url], check=True)
    with closing(PostgresQueue(postgres_url, "c")) as queue, queue.slot(TABLE):
        pass


def test_a_writer_that_sleeps_in_its_turn_is_passed(
    postgres_server: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_queue, "LONGEST_SLOT_S", 0.05)
    with closing(PostgresQueue(postgres_url, "c")) as sleeper, closing(PostgresQueue(postgres_url, "c")) as next_one:
        with sleeper.slot(TABLE), next_one.slot(TABLE):
            wait_until(postgres_server, 0)
        monkeypatch.undo()
        with sleeper.slot(TABLE):  # it was put out, and can come again
            wait_until(postgres_server, 1, granted=True)


def test_who_waited_too_long_goes_on_without(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_queue, "PATIENCE_S", 0.05)
    with closing(PostgresQueue(postgres_url, "c")) as first, closing(PostgresQueue(postgres_url, "c")) as second:
        with first.slot(TABLE), second.slot(TABLE):
            pass
        with first.slot(TABLE):
            thread = threading.Thread(target=lambda: first.slot(TABLE).__enter__())
            thread.start()
            thread.join(10)
            assert not thread.is_alive()


def test_behind_a_pooler_nobody_waits_and_nobody_holds_a_connection(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    proxy = DroppingProxy(postgres_server.port, pools=True)
    url = postgres_server.url(port=proxy.port)
    in_transaction = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'icefield' AND xact_start IS NOT NULL"
    )
    with (
        closing(proxy),
        closing(PostgresQueue(postgres_url, "c")) as direct,
        closing(PostgresQueue(url, "c")) as first,
        closing(PostgresQueue(url, "c")) as second,
    ):
        with first.slot(TABLE), second.slot(TABLE):
            assert waiting(postgres_server, granted=True) == 0
            assert postgres_server.query(in_transaction) == [(0,)]
        with direct.slot(TABLE):
            assert waiting(postgres_server, granted=True) == 1
            assert postgres_server.query(in_transaction) == [(1,)]


def test_who_waited_too_long_gives_the_connection_back_and_does_not_wait_again(
    postgres_server: PostgresServer, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_queue, "PATIENCE_S", 0.05)
    with closing(PostgresQueue(postgres_url, "c")) as first, closing(PostgresQueue(postgres_url, "c")) as second:
        with first.slot(TABLE):
            with second.slot(TABLE):
                aborted = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction (aborted)'"
                assert postgres_server.query(aborted) == [(0,)]
            monkeypatch.setattr(postgres_queue, "PATIENCE_S", 10_000.0)
            for _ in range(postgres_queue.SLOTS_WITHOUT):
                with second.slot(TABLE):
                    pass
        with second.slot(TABLE):  # and then there are turns again
            assert waiting(postgres_server, granted=True) == 1


def test_a_turn_that_raises_ends(postgres_url: str) -> None:
    with closing(PostgresQueue(postgres_url, "c")) as queue:
        for _ in range(2):
            with pytest.raises(KeyError), queue.slot(TABLE):
                raise KeyError


def test_commits_go_on_when_their_slot_is_lost(
    postgres_server: PostgresServer, postgres_url: str, tmp_path: Path
) -> None:
    with icefield.connect(postgres_url, warehouse=tmp_path / "lake", durable=False) as lake:
        table = lake.create_table("a.t", "id long")
        table.append(pa.table({"id": [1]}))
        postgres_server.stop()
        postgres_server.start()
        table.append(pa.table({"id": [2]}))
        table.append(pa.table({"id": [3]}))
        assert sorted(table.scan().to_arrow().read_all()["id"].to_pylist()) == [1, 2, 3]


def test_a_server_that_is_not_there_has_no_lanes(postgres_server: PostgresServer) -> None:
    with closing(PostgresQueue(postgres_server.url(port=free_port()), "c")) as queue, queue.slot(TABLE):
        pass


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_during_a_turn_waits_for_its_end(postgres_url: str, tmp_path: Path) -> None:
    with icefield.connect(postgres_url, warehouse=tmp_path / "lake", durable=False) as lake:
        table = lake.create_table("a.t", "id long")
        stop = threading.Event()

        def write() -> None:
            while not stop.is_set():
                table.append(pa.table({"id": [1]}))

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(3):
                if (child := os.fork()) == 0:
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
        finally:
            stop.set()
            writer.join()
