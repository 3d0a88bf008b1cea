"""Threads that hand one baton to each other, so that a run is decided by who is chosen next and by nothing else.

Whoever runs reaches a point before every call to the outside: there the chooser says who goes on. Time does not pass
but for what sleeps and points make of it. A thread may die at a point: it holds what it held, and never goes on.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass


class Killed(BaseException):
    """The process of this thread is gone: no handler may do anything to the outside any more."""


@dataclass(frozen=True)
class Operation:
    """What a thread is about to do."""

    text: str
    writes: bool = True
    is_shared: bool = True  # whether it touches what others change, too


STUCK_AFTER_S = 60.0
START = Operation("start", writes=False)


class Runner:
    """One thread, and what it waits for."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.next = START
        self.wakes_at = 0.0
        self.is_over = False
        self.go = _closed_gate()


Choose = Callable[[Sequence[Runner]], Runner]


class Scheduler:
    """Runs threads one at a time. `choose` gets those that can go on, in the order in which they were spawned."""

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self._runners: list[Runner] = []
        self._threads: list[threading.Thread] = []
        self._current: Runner | None = None
        self._finished = _closed_gate()
        self._is_closed = False
        self.now = 0.0
        self.failure: BaseException | None = None

    @property
    def is_closed(self) -> bool:
        """Whether the run has ended."""
        return self._is_closed

    @property
    def current(self) -> Runner | None:
        """Who runs; None outside of the run."""
        return self._current

    def spawn(self, name: str, body: Callable[[], None]) -> None:
        """Add a thread; it starts when it is chosen."""
        runner = Runner(name)
        self._runners.append(runner)
        self._threads.append(threading.Thread(target=self._run, args=(runner, body), name=name, daemon=True))

    def run(self) -> None:
        """Run until all threads are over or dead. Raises what the first of them raised."""
        for thread in self._threads:
            thread.start()
        self._current = self._next()
        self._wake(self._current)
        if not self._finished.acquire(timeout=STUCK_AFTER_S):
            raise TimeoutError(f"{self._current and self._current.name} waits for something that no point shows")
        self._is_closed = True
        for runner, thread in zip(self._runners, self._threads, strict=True):
            runner.go.release()  # whoever is still there was killed, and unwinds without touching anything
            thread.join()
        if self.failure is not None:
            raise self.failure

    def point(self, operation: Operation) -> None:
        """Let somebody else go first, perhaps."""
        me = self._me()
        me.next = operation
        self._wait(me)

    def sleep(self, seconds: float) -> None:
        """Wait until the time has come, while others run."""
        me = self._me()
        me.wakes_at = self.now + seconds
        me.next = Operation("wake up", writes=False)
        self._wait(me)

    def die(self) -> None:
        """End the thread here and now, as a crash does."""
        me = self._me()
        me.is_over = True
        self._wait(me)

    def _me(self) -> Runner:
        if self._is_closed:
            raise Killed
        assert self._current is not None, "called from outside of the run"
        assert threading.current_thread().name == self._current.name, "called from a thread that nobody schedules"
        return self._current

    def _wait(self, me: Runner) -> None:
        chosen = self._current = self._next()
        if chosen is not me:
            self._wake(chosen)
            me.go.acquire()
        if self._is_closed:
            raise Killed

    def _wake(self, chosen: Runner | None) -> None:
        (self._finished if chosen is None else chosen.go).release()

    def _next(self) -> Runner | None:
        alive = [runner for runner in self._runners if not runner.is_over]
        if self.failure is not None or not alive:
            return None
        self.now = max(self.now, min(runner.wakes_at for runner in alive))
        try:
            return self._choose([runner for runner in alive if runner.wakes_at <= self.now])
        except BaseException as error:
            self.failure = error
            return None

    def _run(self, runner: Runner, body: Callable[[], None]) -> None:
        runner.go.acquire()
        try:
            if not self._is_closed:
                body()
        except Killed:
            pass
        except BaseException as error:
            self.failure = self.failure or error
        runner.is_over = True
        if not self._is_closed:
            self._current = self._next()
            self._wake(self._current)


def _closed_gate() -> threading.Lock:
    gate = threading.Lock()
    gate.acquire()
    return gate
