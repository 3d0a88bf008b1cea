"""Try every order in which threads can go, but for orders that differ only in steps which do not touch each other.

A run is made again and again from its start, and each time another choice is taken at the last point where there is one
left (depth first). Sleep sets (Godefroid) leave out what would be the same: a thread whose next step was tried at a
point sleeps from there on, until a step is made that its own depends on. Two reads do not depend on each other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.sim.scheduler import Choose, Operation, Runner


class Pruned(BaseException):
    """All that could go on from here was tried elsewhere."""


@dataclass
class Explored:
    """How many orders were run to their end, and how many were left as being the same as others."""

    whole: int = 0
    pruned: int = 0


@dataclass
class _Node:
    ready: dict[str, Operation]
    asleep: dict[str, Operation] = field(default_factory=dict)
    chosen: str = ""

    def choose(self) -> bool:
        """Take the first thread that is not asleep; return whether there is one."""
        awake = [name for name in self.ready if name not in self.asleep]
        self.chosen = awake[0] if awake else ""
        return bool(awake)

    def asleep_after(self) -> dict[str, Operation]:
        """Say who still sleeps once the chosen one has made its step."""
        step = self.ready[self.chosen]
        return {name: mine for name, mine in self.asleep.items() if not (mine.writes or step.writes)}


def explore(run: Callable[[Choose], object], most: int = 1_000_000, *, reduced: bool = True) -> Explored:
    """Run in every order, or in so many; reduced: leave out what is the same. What a run raises ends the search."""
    found, path = Explored(), list[_Node]()
    while found.whole + found.pruned < most:
        try:
            run(_Follow(path, reduced=reduced))
            found.whole += 1
        except Pruned:
            found.pruned += 1
        if not _turn_back(path):
            break
    return found


class _Follow:
    """Goes the way of a path to its end, and then on by the first choice."""

    def __init__(self, path: list[_Node], *, reduced: bool) -> None:
        self._path = path
        self._reduced = reduced
        self._depth = 0

    def __call__(self, runners: Sequence[Runner]) -> Runner:
        if self._depth == len(self._path):
            asleep = self._path[-1].asleep_after() if self._path and self._reduced else {}
            ready = {runner.name: runner.next for runner in runners}
            node = _Node(ready, {name: step for name, step in asleep.items() if name in ready})
            if not node.choose():
                raise Pruned
            self._path.append(node)
        chosen = self._path[self._depth].chosen
        self._depth += 1
        return next(runner for runner in runners if runner.name == chosen)


def _turn_back(path: list[_Node]) -> bool:
    """Take the next choice at the last point that has one; return whether there was one."""
    while path:
        node = path[-1]
        node.asleep[node.chosen] = node.ready[node.chosen]
        if node.choose():
            return True
        path.pop()
    return False
