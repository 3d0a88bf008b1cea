"""Time, sleep, ids and randomness, as one object that is handed down.

Nothing else in the package reads a clock or draws a random number (a lint rule holds that), so a run under
`SeededAmbient` can be replayed from its seed.
"""

import logging
import random
import threading
import time
import uuid
from collections.abc import Callable
from typing import Protocol


class Ambient(Protocol):
    """The world's clock and rng."""

    def now_ms(self) -> int:
        """Return milliseconds since the epoch, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never run backwards, for budgets and time-outs."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...

    def every(self, seconds: float, call: Callable[[], None]) -> Callable[[], None]:
        """Call something in the background again and again, until the returned function is called."""
        ...

    def uniform(self, low: float, high: float) -> float:
        """Draw a float between low and high."""
        ...

    def random_uuid(self) -> uuid.UUID:
        """Draw a version 4 UUID."""
        ...

    def random_id(self) -> int:
        """Draw a positive 63-bit integer that is not 0 (snapshot ids)."""
        ...


class SystemAmbient:
    """The real clock and the operating system's randomness."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    monotonic = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)

    def every(self, seconds: float, call: Callable[[], None]) -> Callable[[], None]:
        stop = threading.Event()

        def run() -> None:
            while not stop.wait(seconds):
                try:
                    call()
                except Exception:  # the next call may succeed; what it does, such as renewing leases, must go on
                    logging.getLogger("icefield").warning("a background call failed", exc_info=True)

        threading.Thread(target=run, name="icefield-background", daemon=True).start()
        return stop.set

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def random_uuid(self) -> uuid.UUID:
        return uuid.uuid4()

    def random_id(self) -> int:
        return self._random.randrange(1, 1 << 63)


class SeededAmbient:
    """A clock that moves only when slept on or read, and rng with a seed."""

    def __init__(self, seed: int, start_ms: int = 1_767_225_600_000, tick_ms: int = 1) -> None:
        self._random = random.Random(seed)
        self._now_ms = float(start_ms)
        self._tick_ms = tick_ms

    def now_ms(self) -> int:
        self._now_ms += self._tick_ms
        return int(self._now_ms)

    def monotonic(self) -> float:
        return self._now_ms / 1000

    def sleep(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        self._now_ms += seconds * 1000

    def every(self, seconds: float, call: Callable[[], None]) -> Callable[[], None]:
        """Call nothing: a replayed run has one thread."""
        return lambda: None

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def random_uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self._random.getrandbits(128), version=4)

    def random_id(self) -> int:
        return self._random.randrange(1, 1 << 63)
