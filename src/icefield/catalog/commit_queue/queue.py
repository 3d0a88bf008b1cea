"""The commit queue: writers of one table queue for the last step of a commit, which avoids most conflicts and retries.

The queue is best effort, not needed for safety: the catalog's swap decides. A writer that cannot queue, or waited
too long, commits without a slot; the only cost is speed. Writers that died in the queue are skipped all at once, and a
writer that holds its slot for too long is skipped too: the first after `PATIENCE_S`, further ones sooner and sooner, so
that a group of stopped writers does not block the queue for long.

`FileQueue` keeps a file per table (`tickets`): the next ticket to draw, and the ticket that is served. Slots come
in the order of tickets. A writer that ends its slot wakes the next one (`wake_up`), so that waiting does not need
polling.
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

PATIENCE_S = 5.0  # how long a slot may last before the queue skips it
PATIENCE_WITH_SILENT_S = 0.5  # the same, where it cannot be determined whether the writer is alive
LONGEST_STALL_S = 15.0  # how long to wait in total while no slot ends, before committing without one


class CommitQueue(Protocol):
    """The commit queues of a catalog's tables."""

    def slot(self, table: TableName) -> AbstractContextManager[None]:
        """Wait for a slot, for a limited time; the slot lasts as long as the block."""
        ...

    def close(self) -> None:
        """Release what is held between slots."""
        ...


class NoQueue:
    """For catalogs without a queue."""

    def slot(self, table: TableName) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        return


NO_QUEUE = NoQueue()


class FileQueue:
    """Commit queues in files of a local directory, for the processes of one machine."""

    def __init__(self, folder: Path, ambient: Ambient) -> None:
        self._folder = folder
        self._ambient = ambient

    @contextmanager
    def slot(self, table: TableName) -> Iterator[None]:
        # Best effort: if queueing fails, the commit goes on without a slot.
        with ExitStack() as held:
            with suppress(OSError):
                self._queue(table, held)
            yield

    def close(self) -> None:
        return

    def _queue(self, table: TableName, held: ExitStack) -> None:
        """Draw a ticket and wait for its slot, which ends when `held` is closed."""
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
                # A slot that ended shows that the queue moves; one that was skipped says nothing about the next.
                is_moving = now.passed == seen.passed
                patience_s = PATIENCE_S if is_moving else max(patience_s / 2, LOOK_S)
                stalled_s = 0.0 if is_moving else stalled_s
                seen, idle_s, looked_s = now, 0.0, 0.0
            elif idle_s - looked_s >= LOOK_S:
                looked_s = idle_s
                self._pass_idle(now.served, idle_s, patience_s)

    def _pass_idle(self, served: int, idle_s: float, patience_s: float) -> None:
        """Skip dead writers, all at once, and a writer that has held its slot for too long."""
        alive = self._queue.first_alive(served, self._ticket)
        if alive is None:  # unknown
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
    """End the slot of a ticket, if it was served; if that fails, the queue skips it."""
    with suppress(OSError):
        if queue.numbers().served == ticket:
            wake(queue.name, queue.serve(ticket + 1))
