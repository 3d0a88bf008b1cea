"""Count the I/O calls of an operation, and at one of them die or fail.

A call can be hit in three ways (a fourth is in `torn`): the process is killed before it (which is also after the call
before it, since nothing outside changes in between), the call fails and had no effect, or the call had its effect and
its answer is lost.
"""

import os
import signal
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from tests.effort import sample

SAMPLE = 1  # places of an operation that are hit with every run


class Hit(Enum):
    """What happens at the step that is hit."""

    NOTHING = "nothing"
    KILL = "kill"
    FAIL_BEFORE = "fail before"
    FAIL_AFTER = "fail after"
    TEAR = "tear"


class Steps:
    """The I/O calls of one operation; `at` is the one that is hit, and `taken` are the labels of those so far."""

    def __init__(self, hit: Hit, at: int) -> None:
        self._hit = hit
        self._at = at
        self._armed = True
        self.taken: list[tuple[str, bool]] = []

    def take(self, label: str, call: Callable[[], Any], failure: Callable[[], Exception], *, effect: bool) -> Any:
        """Make a call, or what is to happen in its place; `effect`: somebody else could see that it was made."""
        if not self._armed:
            return call()
        hit = self._hit if len(self.taken) == self._at else Hit.NOTHING
        self.taken.append((label, effect))
        if hit is Hit.KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        if hit is Hit.FAIL_BEFORE:
            raise failure()
        result = call()
        if hit is Hit.FAIL_AFTER:
            raise failure()
        return result

    def end(self) -> None:
        """Let every call pass from here on."""
        self._armed = False


def some(steps: Sequence[tuple[str, bool]], places: Sequence[int]) -> list[int]:
    """Return the first and the last place, those around the last commit, and a sample of the others."""
    commit = max(at for at, (label, _) in enumerate(steps) if label == "COMMIT")
    near = [at for at in places if abs(at - commit) <= 1]
    return sorted({places[0], places[-1], *near, *sample(places, SAMPLE)})
