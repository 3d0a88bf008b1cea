"""Lanes: writers of one table queue for the last step of a commit, so that they do not undo each other's work.

A lane is manners, not safety: the swap decides. Whoever cannot wait, or finds no lane, goes on without; losing a place
costs nothing but speed. Writers that died in the queue are passed all at once, and one that holds its turn for long is
passed too: the first after `PATIENCE_S`, further ones sooner and sooner, so that many that were stopped hold nobody up
for long.

`FileQueue` keeps a file per table (`lane_file`), as a bakery does: the next ticket to draw, and the one that is served.
Turns come in the order of tickets. Whoever ends a turn rings the next one's bell (`lane_bell`), so that nobody has to
look again and again while others work.
"""

import hashlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Protocol

from icefield.ambient import Ambient
from icefield.catalog.commit_queue.tickets import QueueFile
from icefield.catalog.commit_queue.wake_up import LOOK_S, WakeUp, wake
from icefield.model.names import TableName

PATIENCE_S = 5.0  # for how long one turn may last before the queue passes it
PATIENCE_WITH_SILENT_S = 0.5  # the same, where the writer does not answer, and nobody can tell whether it lives
LONGEST_STALL_S = 15.0  # for how long to wait in all while nobody ends a turn, before going on without


class CommitQueue(Protocol):
    """The lanes of a catalog's tables."""

    def slot(self, table: TableName) -> AbstractContextManager[None]:
        """Wait for one's turn, for a while; the block is the turn."""
        ...

    def close(self) -> None:
        """Let go of what is held between turns."""
        ...


class NoQueue:
    """For catalogs where nobody queues."""

    def slot(self, table: TableName) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        return


NO_QUEUE = NoQueue()


class FileQueue:
    """Lanes in files of a local directory, for the processes of one machine."""

    def __init__(self, folder: Path, ambient: Ambient) -> None:
        self._folder = folder
        self._ambient = ambient

    @contextmanager
    def slot(self, table: TableName) -> Iterator[None]:
        # A lane that fails is as good as none: nobody's commit depends on it.
        with ExitStack() as held:
            with suppress(OSError):
                self._queue(table, held)
            yield

    def close(self) -> None:
        return

    def _queue(self, table: TableName, held: ExitStack) -> None:
        """Draw a ticket and wait for its turn, which ends with what is held."""
        name = hashlib.sha256(str(table).encode()).hexdigest()[:16]
        self._folder.mkdir(exist_ok=True)
        queue = held.enter_context(QueueFile(self._folder / name, self._ambient))
        ticket = queue.draw()
        held.callback(_end, queue, ticket)
        _Wait(queue, ticket, held.enter_context(WakeUp(queue.name, ticket, self._ambient))).until_served()


class _Wait:
    """The wait of one ticket."""

    def __init__(self, queue: QueueFile, ticket: int, wake_up: WakeUp) -> None:
        self._queue = queue
        self._ticket = ticket
        self._wake_up = wake_up

    def until_served(self) -> None:
        seen, idle_s, stalled_s, patience_s = self._queue.numbers(), 0.0, 0.0, PATIENCE_S
        looked_s = 0.0
        while seen.served < self._ticket < seen.drawn and stalled_s < LONGEST_STALL_S:
            passed_s = self._wake_up.wait(self._ticket - seen.served)
            idle_s, stalled_s = idle_s + passed_s, stalled_s + passed_s
            now = self._queue.numbers()
            if now.served != seen.served:
                # A turn that ended says that the queue moves; one that was passed says nothing of the next.
                is_moving = now.passed == seen.passed
                patience_s = PATIENCE_S if is_moving else max(patience_s / 2, LOOK_S)
                stalled_s = 0.0 if is_moving else stalled_s
                seen, idle_s, looked_s = now, 0.0, 0.0
            elif idle_s - looked_s >= LOOK_S:
                looked_s = idle_s
                self._pass_idle(now.served, idle_s, patience_s)

    def _pass_idle(self, served: int, idle_s: float, patience_s: float) -> None:
        """Pass the dead, all at once, and whoever has the turn for too long."""
        alive = self._queue.first_alive(served, self._ticket)
        if alive is None:  # nobody can tell
            if idle_s > min(patience_s, PATIENCE_WITH_SILENT_S) and not wake(self._queue.name, served):
                self._serve(served + 1, passing=True)
                return
            alive = served
        if alive > served:
            self._serve(alive, passing=False)
        elif idle_s >= patience_s:
            self._serve(served + 1, passing=True)

    def _serve(self, ticket: int, *, passing: bool) -> None:
        wake(self._queue.name, self._queue.serve(ticket, passing=passing))


def _end(queue: QueueFile, ticket: int) -> None:
    """End the turn of a ticket, if it came; if that fails, the queue passes it."""
    with suppress(OSError):
        if queue.numbers().served == ticket:
            wake(queue.name, queue.serve(ticket + 1))
