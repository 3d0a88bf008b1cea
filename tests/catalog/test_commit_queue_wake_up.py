"""Wake-ups: sent by anyone who knows the ticket, and gone with their process."""

import subprocess
import sys
import threading
import uuid

import pytest

from icefield.ambient import SeededAmbient, SystemAmbient
from icefield.catalog.commit_queue import wake_up as wake_up
from icefield.catalog.commit_queue.wake_up import LONGEST_PAUSE_S, LOOK_S, PAUSE_PER_PLACE_S, WakeUp, wake

RINGS = """
import sys
from icefield.catalog.commit_queue.wake_up import wake
assert wake(sys.argv[1], 7)
assert not wake(sys.argv[1], 8)
"""


@pytest.fixture
def queue() -> str:
    return f"test-{uuid.uuid4()}"


def test_another_process_rings_and_whoever_waits_wakes(queue: str) -> None:
    with WakeUp(queue, 7, SystemAmbient()) as wake_up:
        assert wake_up.wait(1) == LOOK_S
        subprocess.run([sys.executable, "-c", RINGS, queue], check=True)
        assert wake_up.wait(1) == 0
        assert wake_up.wait(1) == LOOK_S
    assert not wake(queue, 7)


def test_a_ring_that_came_before_the_wait_is_not_lost(queue: str) -> None:
    with WakeUp(queue, 1, SystemAmbient()) as wake_up:
        threading.Thread(target=wake, args=(queue, 1)).start()
        while wake_up.wait(1):
            pass


def test_a_bell_that_is_rung_too_often_still_counts_as_alive(queue: str) -> None:
    with WakeUp(queue, 1, SystemAmbient()):
        assert all(wake(queue, 1) for _ in range(1000))


def test_a_ticket_whose_bell_is_taken_waits_without_one(queue: str) -> None:
    with WakeUp(queue, 1, SystemAmbient()), WakeUp(queue, 1, SeededAmbient(1)) as second:
        assert second.wait(2) == 2 * PAUSE_PER_PLACE_S
        assert second.wait(1000) == LONGEST_PAUSE_S


def test_where_there_are_no_bells_whoever_waits_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wake_up, "_new_socket", lambda: None)
    with WakeUp("no-sockets", 1, SeededAmbient(1)) as waiting:
        assert waiting.wait(1) == PAUSE_PER_PLACE_S
        assert not wake("no-sockets", 1)
