"""Bells: a process of this machine waits for another to ring, and is known to live as long as it waits.

A bell is a datagram socket whose name is only in the kernel, so that it is gone with its process. Where there are none
(they are Linux's), or where the writers are in containers that do not see each other's, nobody can ring, and whoever
waits looks again after a pause that grows with their place.
"""

import socket
from types import TracebackType
from typing import Self

from icefield.ambient import Ambient

LOOK_S = 0.05  # how long to sleep at most without a ring
PAUSE_PER_PLACE_S, LONGEST_PAUSE_S = 0.0003, 0.01


class WakeUp:
    """The bell of one ticket in a lane; whoever has it can be rung until it is closed."""

    def __init__(self, queue: str, ticket: int, ambient: Ambient) -> None:
        self._ambient = ambient
        self._socket = _new_socket()
        try:
            if self._socket is not None:
                self._socket.bind(_address(queue, ticket))
        except OSError:
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def wait(self, places: int) -> float:
        """Wait for a ring, for a moment; return the seconds that passed without one."""
        if self._socket is None:
            pause_s = min(PAUSE_PER_PLACE_S * places, LONGEST_PAUSE_S)
            self._ambient.sleep(pause_s)
            return pause_s
        self._socket.settimeout(LOOK_S)
        try:
            self._socket.recv(1)
        except TimeoutError:
            return LOOK_S
        return 0.0

    def close(self) -> None:
        """Be gone."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def wake(queue: str, ticket: int) -> bool:
    """Ring the bell of a ticket; say whether there is one."""
    sender = _new_socket()
    if sender is None:
        return False
    with sender:
        try:
            sender.sendto(b"!", _address(queue, ticket))
        except BlockingIOError:
            return True  # it was rung so often that there is no room for more
        except OSError:
            return False
    return True


def _new_socket() -> socket.socket | None:
    try:
        found = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    except (AttributeError, OSError):
        return None
    found.setblocking(False)
    return found


def _address(queue: str, ticket: int) -> bytes:
    return f"\0icefield-lane-{queue}-{ticket}".encode()
