"""Spark DataFrames that can still be read, and what is done for each of them until then.

A DataFrame is a plan: when it is read, how often, and by which DataFrames derived from it, is not known. So what its
files need is done in the background, one thread for all, until neither it nor anything derived from it is left. The
thread ends with the last of them.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from icefield.ambient import Ambient

EVERY_S = 60.0
# Whether a DataFrame, or one that is derived from it, can still be read.
IsAlive = Callable[[], bool]


@dataclass(frozen=True)
class _OpenFrame:
    is_alive: IsAlive
    keep: Callable[[], object]
    finish: Callable[[], object]


class OpenFrames:
    """The DataFrames of a lake that are looked after."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._frames: list[_OpenFrame] = []
        self._stop: Callable[[], None] | None = None

    def watch(
        self, ambient: Ambient, is_alive: IsAlive, keep: Callable[[], object], finish: Callable[[], object]
    ) -> None:
        """Call `keep` every minute while a DataFrame can be read, and `finish` once it cannot."""
        with self._lock:
            self._frames.append(_OpenFrame(is_alive, keep, finish))
            if self._stop is None:
                self._stop = ambient.every(EVERY_S, self.look)

    def look(self) -> None:
        """Look after all DataFrames once."""
        with self._lock:
            frames = list(self._frames)
        gone = {id(frame): frame for frame in frames if not frame.is_alive()}
        with self._lock:
            self._frames = [frame for frame in self._frames if id(frame) not in gone]
            if not self._frames and self._stop is not None:
                self._stop()
                self._stop = None
        for frame in frames:
            if id(frame) in gone:
                frame.finish()
            else:
                frame.keep()
