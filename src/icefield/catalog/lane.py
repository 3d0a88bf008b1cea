"""Lanes: writers of one table queue for the last step of a commit, so that they do not undo each other's work.

A lane is manners, not safety: the swap decides. Whoever cannot wait, or finds no lane, goes on without; losing a place
costs nothing but speed. A writer that died in the queue, or that holds its turn for long, is passed.

`FileLanes` keeps a file per table with two numbers, as a bakery does: the next ticket to draw, and the one that is
served. Turns come in the order of tickets. Whoever ends a turn rings the next one's bell (`lane_bell`), so that nobody
has to look again and again while others work.
"""

import hashlib
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Protocol

from icefield.ambient import Ambient
from icefield.catalog.lane_bell import Bell, ring
from icefield.model.names import TableName

try:
    import fcntl
except ImportError:  # there are no such locks on this system, and so no lanes
    fcntl = None  # type: ignore[assignment]

PATIENCE_S = 0.5  # for how long one turn may last before the queue passes it
LONG_PATIENCE_S = 5.0  # the same, where the writer is known to live
_NUMBERS = struct.Struct("<QQ")


class Lanes(Protocol):
    """The lanes of a catalog's tables."""

    def turn(self, table: TableName) -> AbstractContextManager[None]:
        """Wait for one's turn, for a while; the block is the turn."""
        ...

    def close(self) -> None:
        """Let go of what is held between turns."""
        ...


class NoLanes:
    """For catalogs where nobody queues."""

    def turn(self, table: TableName) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        return


NO_LANES = NoLanes()


class FileLanes:
    """Lanes in files of a local directory, for the processes of one machine."""

    def __init__(self, folder: Path, ambient: Ambient) -> None:
        self._folder = folder
        self._ambient = ambient

    @contextmanager
    def turn(self, table: TableName) -> Iterator[None]:
        # A lane that fails is as good as none: nobody's commit depends on it.
        with ExitStack() as held:
            with suppress(OSError):
                self._queue(table, held)
            yield

    def close(self) -> None:
        return

    def _queue(self, table: TableName, held: ExitStack) -> None:
        """Draw a ticket and wait for its turn, which ends with what is held."""
        if fcntl is None:
            return
        name = hashlib.sha256(str(table).encode()).hexdigest()[:16]
        self._folder.mkdir(exist_ok=True)
        lane = held.enter_context(_Lane(held.enter_context((self._folder / name).open("a+b"))))
        ticket = lane.draw()
        held.callback(lane.end, ticket)
        _wait(lane, ticket, held.enter_context(Bell(lane.name, ticket, self._ambient)))


class _Lane:
    """One table's numbers, shared by all processes; changed under a lock that nobody holds while waiting."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        with self._locked():
            if file.seek(0, 2) < _NUMBERS.size:
                file.write(bytes(_NUMBERS.size))
                file.flush()
        self._shared = mmap.mmap(file.fileno(), _NUMBERS.size)
        status = os.fstat(file.fileno())
        self.name = f"{status.st_dev}-{status.st_ino}"

    def __enter__(self) -> "_Lane":
        return self

    def __exit__(self, *_: object) -> None:
        self._shared.close()

    def draw(self) -> int:
        """Take the next ticket."""
        with self._locked():
            drawn, served = _NUMBERS.unpack(self._shared[:])
            # All that were drawn have been served: nobody is waiting, so that a turn is had at once.
            _NUMBERS.pack_into(self._shared, 0, drawn + 1, served)
        return int(drawn)

    def served(self) -> int:
        return int(_NUMBERS.unpack(self._shared[:])[1])

    def serve(self, ticket: int) -> None:
        """Let the holder of a ticket go, unless the queue is further already."""
        with self._locked():
            drawn, served = _NUMBERS.unpack(self._shared[:])
            served = max(served, min(ticket, drawn))
            _NUMBERS.pack_into(self._shared, 0, drawn, served)
        ring(self.name, served)

    def end(self, ticket: int) -> None:
        """End the turn of a ticket; if that fails, the queue passes it after a while."""
        with suppress(OSError):
            self.serve(ticket + 1)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)


def _wait(lane: _Lane, ticket: int, bell: Bell) -> None:
    seen, idle_s = lane.served(), 0.0
    while seen < ticket:
        idle_s += bell.wait(ticket - seen)
        served = lane.served()
        if served != seen:
            seen, idle_s = served, 0.0
        elif idle_s > LONG_PATIENCE_S or (idle_s > PATIENCE_S and not ring(lane.name, seen)):
            lane.serve(seen + 1)  # whoever has this turn sleeps, or is dead
