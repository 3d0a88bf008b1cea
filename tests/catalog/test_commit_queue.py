"""Commit queues: slots in the order of arrival, and dead writers block nobody."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from icefield.ambient import SystemAmbient
from icefield.catalog.commit_queue import queue as queue_module
from icefield.catalog.commit_queue import wake_up as wake_up
from icefield.catalog.commit_queue.queue import NO_QUEUE, FileQueue
from icefield.model.names import parse_table_name

TABLE = parse_table_name("shop.orders")
DIES = """
import os, sys
from pathlib import Path
from icefield.ambient import SystemAmbient
from icefield.catalog.commit_queue.queue import FileQueue
from icefield.model.names import parse_table_name
with FileQueue(Path(sys.argv[1]), SystemAmbient()).slot(parse_table_name("shop.orders")):
    os._exit(0)
"""


def queue(folder: Path) -> FileQueue:
    return FileQueue(folder / "queue", SystemAmbient())


def test_turns_come_one_after_the_other_and_in_order(tmp_path: Path) -> None:
    order: list[int] = []
    inside: list[int] = []
    drawn = [threading.Event() for _ in range(5)]

    def take(number: int) -> None:
        if number:
            drawn[number - 1].wait()
        threading.Timer(0.05, drawn[number].set).start()
        with queue(tmp_path).slot(TABLE):
            assert not inside
            inside.append(number)
            order.append(number)
            inside.remove(number)

    with queue(tmp_path).slot(TABLE):
        writers = [threading.Thread(target=take, args=(number,)) for number in range(5)]
        for writer in writers:
            writer.start()
        drawn[-1].wait()
    for writer in writers:
        writer.join()
    assert order == [0, 1, 2, 3, 4]


def test_a_writer_that_died_in_its_turn_is_passed(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", DIES, str(tmp_path / "queue")], check=True)
    with queue(tmp_path).slot(TABLE):
        pass
    with queue(tmp_path).slot(TABLE):
        pass


def test_a_writer_that_lives_is_waited_for_longer_and_then_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_module, "PATIENCE_S", 0.2)
    order: list[str] = []

    def sleep_in_turn(entered: threading.Event, leave: threading.Event) -> None:
        with queue(tmp_path).slot(TABLE):
            entered.set()
            leave.wait()
            order.append("first")

    entered, leave = threading.Event(), threading.Event()
    first = threading.Thread(target=sleep_in_turn, args=(entered, leave))
    first.start()
    entered.wait()
    threading.Timer(0.1, leave.set).start()
    with queue(tmp_path).slot(TABLE):  # it ends its turn in time
        order.append("second")
    first.join()
    assert order == ["first", "second"]
    entered, leave = threading.Event(), threading.Event()
    first = threading.Thread(target=sleep_in_turn, args=(entered, leave))
    first.start()
    entered.wait()
    with queue(tmp_path).slot(TABLE):  # it does not
        leave.set()
    first.join()


def test_without_bells_turns_come_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wake_up, "_new_socket", lambda: None)
    test_turns_come_one_after_the_other_and_in_order(tmp_path)


def test_a_turn_that_raises_ends(tmp_path: Path) -> None:
    for _ in range(2):
        try:
            with queue(tmp_path).slot(TABLE):
                raise KeyError
        except KeyError:
            continue


def test_tables_have_lanes_of_their_own(tmp_path: Path) -> None:
    with queue(tmp_path).slot(TABLE), queue(tmp_path).slot(parse_table_name("shop.stock")):
        assert len(list((tmp_path / "queue").iterdir())) == 2


def test_without_a_place_for_lanes_nobody_waits(tmp_path: Path) -> None:
    (tmp_path / "queue").write_text("a file, where a directory should be")
    with queue(tmp_path).slot(TABLE), queue(tmp_path).slot(TABLE):
        pass
    with NO_QUEUE.slot(TABLE), NO_QUEUE.slot(TABLE):
        pass
