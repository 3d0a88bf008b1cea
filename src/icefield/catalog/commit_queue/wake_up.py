"""Wake-ups between processes of one machine: a waiting process is woken by another, and is known to be alive.

A wake-up is a datagram socket with an abstract name, which disappears with its process. Where abstract sockets do not
exist (they are specific to Linux), or where the writers run in separate containers, a waiting process polls instead,
after a pause that grows with its position in the queue.
"""

import socket
from types import TracebackType
from typing import Self

from icefield.ambient import Ambient

LOOK_S = 0.05  # how long to sleep at most without a wake-up
PAUSE_PER_PLACE_S, LONGEST_PAUSE_S = 0.0003, 0.01


class WakeUp:
    """The wake-up socket of one ticket in a commit queue; it can be woken until it is closed."""

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
        """Wait briefly for a wake-up; return the seconds that passed without one."""
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
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def wake(queue: str, ticket: int) -> bool:
    """Wake the holder of a ticket; return whether it is waiting."""
    sender = _new_socket()
    if sender is None:
        return False
    with sender:
        try:
            sender.sendto(b"!", _address(queue, ticket))
        except BlockingIOError:
            return True  # its buffer is full of wake-ups
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
    return f"\0icefield-queue-{queue}-{ticket}".encode()
