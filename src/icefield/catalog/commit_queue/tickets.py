"""The queue of one table's writers, in a file: the next ticket, the ticket served, and which writers are alive.

    bytes 0-23   three little-endian numbers: tickets drawn, ticket served, tickets skipped after a timeout
    2^40 + n     a lock on this byte, held by the writer with ticket n; the kernel releases it when the writer dies

The numbers change under a lock that is never held while waiting. Its holder may be stopped all the same, so waiting for
the lock has a deadline; after it, the file is removed, and the next writer creates a new one. Invalid numbers (in a
corrupt file) restart from zero. The file is not mapped into memory: if another process truncated it, a read would
crash.

Raises OSError for any failure with the file; the caller then commits without a queue.
"""

import errno
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from icefield.ambient import Ambient

try:
    import fcntl
except ImportError:  # this system has no such locks, and so no queues
    fcntl = None  # type: ignore[assignment]

LOCK_DEADLINE_S = 1.0
LOCK_PAUSE_S = 0.001
MOST_WAITING = 100_000  # no more are possible: each has a process or a thread
_NUMBERS = struct.Struct("<QQQ")
_MOST = 1 << 62
_ALIVE_AT = 1 << 40
# struct flock: type, whence, start, length, pid. These are the kernel's field widths on all 64-bit systems.
_FLOCK = struct.Struct("hhqqi4x")


class Numbers(NamedTuple):
    """The numbers in the file."""

    drawn: int
    served: int
    passed: int

    @property
    def is_sound(self) -> bool:
        return self.drawn < _MOST and self.passed < _MOST and 0 <= self.drawn - self.served <= MOST_WAITING


class QueueFile:
    """The open queue file of one table, shared by all processes."""

    def __init__(self, path: Path, ambient: Ambient) -> None:
        if fcntl is None:
            raise OSError(errno.ENOTSUP, "this system has no file locks")
        self._path = path
        self._ambient = ambient
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        status = os.fstat(self._file)
        self.name = f"{status.st_dev}-{status.st_ino}"

    def __enter__(self) -> "QueueFile":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def draw(self) -> int:
        """Draw the next ticket, and hold its lock as long as the file is open."""
        with self._locked():
            numbers = self.numbers()
            if not numbers.is_sound:
                numbers = Numbers(0, 0, 0)
            self._mark_alive(numbers.drawn)
            self._write(numbers._replace(drawn=numbers.drawn + 1))
        return numbers.drawn

    def numbers(self) -> Numbers:
        """Return the numbers; missing ones are zero."""
        return Numbers(*_NUMBERS.unpack(os.pread(self._file, _NUMBERS.size, 0).ljust(_NUMBERS.size, b"\0")))

    def serve(self, ticket: int, *, passing: bool = False) -> int:
        """End the slot of a ticket, unless the queue has moved past it already; return the ticket served."""
        with self._locked():
            drawn, served, passed = numbers = self.numbers()
            if not numbers.is_sound or served >= min(ticket, drawn):
                return served
            self._write(Numbers(drawn, min(ticket, drawn), passed + passing))
        return min(ticket, drawn)

    def first_alive(self, first: int, last: int) -> int | None:
        """Return the lowest ticket in a range (without its last) whose writer is alive, or the last ticket.

        None if it cannot be determined.
        """
        found = last
        while first < found:
            start = self._find_lock(first, found)
            if start is None:
                return None
            if start == found:
                break
            found = start
        return found

    def _find_lock(self, first: int, last: int) -> int | None:
        """Return one locked ticket of a range, not always the lowest, or the last; None if it cannot be determined."""
        if not hasattr(fcntl, "F_OFD_GETLK"):
            return None
        question = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, _ALIVE_AT + first, last - first, 0)
        kind, _, start, *_ = _FLOCK.unpack(fcntl.fcntl(self._file, fcntl.F_OFD_GETLK, question))
        return last if kind == fcntl.F_UNLCK else max(first, start - _ALIVE_AT)

    def _mark_alive(self, ticket: int) -> None:
        # A lock of the open file, not of the process: threads of one process queue independently.
        if hasattr(fcntl, "F_OFD_SETLK"):
            lock = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, _ALIVE_AT + ticket, 1, 0)
            with suppress(OSError):
                fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, lock)

    def _write(self, numbers: Numbers) -> None:
        if os.pwrite(self._file, _NUMBERS.pack(*numbers), 0) < _NUMBERS.size:
            raise OSError(errno.ENOSPC, "the queue could not be written", str(self._path))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        waited_s = 0.0
        while not self._try_lock():
            if waited_s >= LOCK_DEADLINE_S:
                self._put_away()
                raise TimeoutError(errno.ETIMEDOUT, "the queue is locked by a process that makes no progress")
            self._ambient.sleep(LOCK_PAUSE_S)
            waited_s += LOCK_PAUSE_S
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def _try_lock(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _put_away(self) -> None:
        """Remove the file, if it is still this one, so that the next writer creates a new queue."""
        with suppress(OSError):
            there = self._path.stat()
            if f"{there.st_dev}-{there.st_ino}" == self.name:
                self._path.unlink()
