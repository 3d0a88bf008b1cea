"""Commit queues when things go wrong: writers that are killed or stopped, damaged files, places that cannot be written.

The queue is best effort: a commit goes on in each case, and soon.
"""

import os
import random
import resource
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import icefield
from icefield.ambient import SystemAmbient
from icefield.catalog.commit_queue import queue as queue_module
from icefield.catalog.commit_queue import tickets as tickets
from icefield.catalog.commit_queue.queue import FileQueue
from icefield.catalog.commit_queue.tickets import QueueFile
from icefield.catalog.commit_queue.wake_up import LOOK_S, WakeUp
from icefield.model.names import parse_table_name

TABLE = parse_table_name("shop.orders")
NEVER_S = 1e9
# Takes a turn, lets others queue behind it, and says so.
QUEUES = """
import sys, threading, time
from pathlib import Path
from icefield.ambient import SystemAmbient
from icefield.catalog.commit_queue.queue import FileQueue
from icefield.model.names import parse_table_name
folder, writers = Path(sys.argv[1]), int(sys.argv[2])
entered = threading.Event()
def take():
    with FileQueue(folder, SystemAmbient()).slot(parse_table_name("shop.orders")):
        entered.set()
        time.sleep(600)
for _ in range(writers):
    threading.Thread(target=take, daemon=True).start()
entered.wait()
(file,) = folder.iterdir()
while int.from_bytes(file.read_bytes()[:8], "little") < writers:
    time.sleep(0.001)
print("queued", flush=True)
sys.stdin.read()
"""
LOCKS = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "queue"


def queue(folder: Path) -> FileQueue:
    return FileQueue(folder, SystemAmbient())


def take_turns(folder: Path, count: int = 2) -> None:
    for _ in range(count):
        with queue(folder).slot(TABLE):
            pass


@contextmanager
def child(code: str, *arguments: object) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def queue_file(folder: Path) -> Path:
    take_turns(folder, 1)
    (found,) = folder.iterdir()
    return found


def numbers_of(file: Path) -> tickets.Numbers:
    with QueueFile(file, SystemAmbient()) as queue:
        return queue.numbers()


def test_writers_that_were_killed_in_the_queue_are_passed_in_one_step(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_module, "PATIENCE_S", NEVER_S)
    monkeypatch.setattr(queue_module, "PATIENCE_WITH_SILENT_S", NEVER_S)
    monkeypatch.setattr(queue_module, "LONGEST_STALL_S", NEVER_S)
    with child(QUEUES, folder, 40) as writers:
        writers.send_signal(signal.SIGKILL)
        writers.wait()
    take_turns(folder)
    (file,) = folder.iterdir()
    assert numbers_of(file) == (42, 42, 0)


def test_thousands_of_dead_tickets_are_passed_in_one_step(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_module, "PATIENCE_S", NEVER_S)
    monkeypatch.setattr(queue_module, "LONGEST_STALL_S", NEVER_S)
    file = queue_file(folder)
    file.write_bytes(struct.pack("<QQQ", 50_000, 7, 0))
    take_turns(folder)
    assert numbers_of(file) == (50_002, 50_002, 0)


def test_of_dead_and_living_writers_the_first_living_one_comes_next(folder: Path) -> None:
    file = queue_file(folder)
    with QueueFile(file, SystemAmbient()) as first:
        drawn = first.draw()
        for _ in range(5):
            with QueueFile(file, SystemAmbient()) as dead:
                dead.draw()
        with QueueFile(file, SystemAmbient()) as second:
            ticket = second.draw()
            with QueueFile(file, SystemAmbient()) as third:
                last = third.draw()
                assert third.first_alive(drawn, last) == drawn
                assert third.first_alive(drawn + 1, last) == ticket
                assert second.first_alive(drawn + 1, ticket) == ticket


def test_a_stopped_writer_that_has_the_turn_is_passed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_module, "PATIENCE_S", 0.1)
    monkeypatch.setattr(queue_module, "LONGEST_STALL_S", NEVER_S)
    with child(QUEUES, folder, 3) as writers:
        writers.send_signal(signal.SIGSTOP)
        take_turns(folder)
        (file,) = folder.iterdir()
        assert numbers_of(file).served == 5


class QuickWakeUp(WakeUp):
    """A wake-up whose time passes at once, and is counted."""

    waited_s = 0.0

    def wait(self, places: int) -> float:
        QuickWakeUp.waited_s += LOOK_S
        return LOOK_S


def test_many_stopped_writers_hold_nobody_up_for_long(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_module, "WakeUp", QuickWakeUp)
    with child(QUEUES, folder, 40) as writers:
        writers.send_signal(signal.SIGSTOP)
        QuickWakeUp.waited_s = 0.0
        take_turns(folder, 1)
        assert QuickWakeUp.waited_s <= queue_module.LONGEST_STALL_S + LOOK_S
        QuickWakeUp.waited_s = 0.0
        take_turns(folder, 1)
        assert QuickWakeUp.waited_s <= LOOK_S  # the queue is past them


def test_a_stopped_holder_of_the_lock_stops_nobody(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tickets, "LOCK_DEADLINE_S", 0.05)
    file = queue_file(folder)
    with child(LOCKS, file) as holder:
        holder.send_signal(signal.SIGSTOP)
        take_turns(folder, 1)
        monkeypatch.setattr(tickets, "LOCK_DEADLINE_S", NEVER_S)
        take_turns(folder, 3)  # in a new queue
        assert numbers_of(file) == (3, 3, 0)


def test_a_lock_that_is_held_when_a_turn_ends_stops_nobody(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tickets, "LOCK_DEADLINE_S", 0.05)
    file = queue_file(folder)
    with queue(folder).slot(TABLE):
        holder = child(LOCKS, file)
        holder.__enter__()
    take_turns(folder)
    holder.__exit__(None, None, None)


DAMAGED = {
    "empty": b"",
    "cut short": b"\x05\0\0",
    "of an older version": struct.pack("<QQ", 9, 9),
    "all ones": b"\xff" * 24,
    "as high as numbers go": struct.pack("<QQQ", (1 << 64) - 1, (1 << 64) - 1, 0),
    "served before drawn": struct.pack("<QQQ", 3, 70, 0),
    "more waiting than can be": struct.pack("<QQQ", 1 << 50, 5, 0),
    "text": b"not a queue at all, but some text of somebody",
    **{f"random {seed}": random.Random(seed).randbytes(24) for seed in range(8)},
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_repaired(folder: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_module, "PATIENCE_S", NEVER_S)
    monkeypatch.setattr(queue_module, "LONGEST_STALL_S", NEVER_S)
    file = queue_file(folder)
    file.write_bytes(content)
    take_turns(folder)
    assert numbers_of(file).is_sound
    order: list[int] = []

    def come_second() -> None:
        with queue(folder).slot(TABLE):
            order.append(2)

    with queue(folder).slot(TABLE):
        second = threading.Thread(target=come_second)
        second.start()
        while numbers_of(file).drawn - numbers_of(file).served < 2:
            second.join(0.001)
        order.append(1)
    second.join()
    assert order == [1, 2]  # it is a queue again


def test_a_file_that_is_cut_short_while_writers_wait_lets_them_go(folder: Path) -> None:
    file = queue_file(folder)
    with queue(folder).slot(TABLE):
        waiting = threading.Thread(target=take_turns, args=(folder, 1))
        waiting.start()
        while numbers_of(file).drawn < 3:
            waiting.join(0.001)
        os.truncate(file, 0)
        waiting.join()
    take_turns(folder)


@pytest.mark.parametrize("what", ["directory", "link", "link to itself", "pipe", "removed folder"])
def test_something_else_in_its_place_is_left_alone(folder: Path, what: str) -> None:
    file = queue_file(folder)
    file.unlink()
    if what == "directory":
        file.mkdir()
    elif what == "link":
        file.symlink_to(folder.parent / "elsewhere")
    elif what == "link to itself":
        file.symlink_to(file)
    elif what == "pipe":
        os.mkfifo(file)
    else:
        folder.rmdir()
    take_turns(folder)
    assert not (folder.parent / "elsewhere").exists()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_place_that_cannot_be_written_has_no_queue(folder: Path) -> None:
    file = queue_file(folder)

    def without_rights() -> None:
        file.chmod(0o444)
        folder.chmod(0o555)
        if os.geteuid() == 0:
            os.seteuid(65534)

    def on_a_full_disk() -> None:
        file.write_bytes(b"")
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    def without_descriptors() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))

    for prepare in (on_a_full_disk, without_descriptors, without_rights):
        if (writer := os.fork()) == 0:
            try:
                prepare()
                take_turns(folder)
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(writer, 0)[1] == 0, prepare.__name__
    folder.chmod(0o755)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_outlives_its_parent_holds_nobody_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_module, "PATIENCE_S", 0.1)
    with queue(folder).slot(TABLE):
        reader, writer = os.pipe()
        if (forked := os.fork()) == 0:
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
        os.close(reader)
    take_turns(folder)
    os.close(writer)
    os.waitpid(forked, 0)


@pytest.mark.parametrize("content", [b"", b"\xff" * 24, b"text"], ids=["empty", "ones", "text"])
def test_commits_go_on_with_a_damaged_queue(tmp_path: Path, content: bytes) -> None:
    with icefield.connect(tmp_path / "lake", durable=False) as lake:
        table = lake.create_table("a.t", "id long")
        table.append(pa.table({"id": [1]}))
        for file in (tmp_path / "lake" / "catalog.queue").iterdir():
            file.write_bytes(content)
        table.append(pa.table({"id": [2]}))
        assert sorted(table.scan().to_arrow().read_all()["id"].to_pylist()) == [1, 2]
