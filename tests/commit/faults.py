"""Catalogs and stores that fail on purpose, around real ones."""

from collections.abc import Callable, Sequence
from typing import Any

from icefield.catalog.catalog import Catalog, PointerSwap
from icefield.errors import CommitConflict, CommitStateUnknown
from icefield.storage.store import Store


class Around:
    """Hands everything on to the real thing, unless a subclass says otherwise."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


class RacingCatalog(Around):
    """Lets somebody else commit just before each of the first swaps."""

    def __init__(self, real: Catalog, rivals: Sequence[Callable[[], object]]) -> None:
        super().__init__(real)
        self.rivals = list(rivals)
        self.swaps = 0

    def swap(self, changes: Sequence[PointerSwap]) -> None:
        self.swaps += 1
        if self.rivals:
            self.rivals.pop(0)()
        self.real.swap(changes)


class LosesReplies(Around):
    """Loses the reply of the first swaps, after or before they took effect, and may go silent afterwards."""

    def __init__(self, real: Catalog, *, times: int, lands: bool, then: Callable[[], object] = lambda: None) -> None:
        super().__init__(real)
        self.times, self.lands, self.then = times, lands, then
        self.silent = False

    def swap(self, changes: Sequence[PointerSwap]) -> None:
        if self.times == 0:
            self.real.swap(changes)
            return
        self.times -= 1
        if self.lands:
            self.real.swap(changes)
        self.then()
        raise CommitStateUnknown("the reply was lost")

    def pointer(self, *what: Any) -> str:
        if self.silent:
            raise CommitConflict("no answer")
        return str(self.real.pointer(*what))

    def find(self, name: Any) -> Any:
        if self.silent:
            raise CommitConflict("no answer")
        return self.real.find(name)


class RecordingStore(Around):
    """Remembers what was written and removed."""

    def __init__(self, real: Store) -> None:
        super().__init__(real)
        self.written: list[str] = []
        self.deleted: list[str] = []

    def put_new(self, location: str, data: bytes) -> None:
        self.written.append(location)
        self.real.put_new(location, data)

    def open_new(self, location: str) -> Any:
        self.written.append(location)
        return self.real.open_new(location)

    def delete(self, location: str) -> None:
        self.deleted.append(location)
        self.real.delete(location)
