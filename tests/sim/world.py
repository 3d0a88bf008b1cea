"""The outside as the simulated processes see it: clocks that are wrong, a store and a catalog that fail.

Every call is a point at which others may go first, and may fail before or after its effect. A swap may moreover lose
its answer, arrive late, or arrive twice.
"""

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NoReturn, Protocol, TypeVar

from tests.commit.faults import Around
from tests.sim.scheduler import Operation

from icefield.catalog.catalog import Catalog, Entry, Kind, PointerSwap
from icefield.errors import CatalogError, CommitStateUnknown, IcefieldError, StorageError
from icefield.model.names import TableName
from icefield.storage.store import Store

START_MS = 1_767_225_600_000
Result = TypeVar("Result")


@dataclass(frozen=True)
class FaultRates:
    """How likely what goes wrong is, at each call.

    stops: a process is stopped for longer than a lease lives. fences: whether the catalog can refuse writes.
    """

    store_fails: float = 0.0
    catalog_fails: float = 0.0
    swap_fails: float = 0.0
    goes_silent: float = 0.0
    dies: float = 0.0
    stops: float = 0.0
    clock_jumps: float = 0.0
    fences: bool = True

    @property
    def is_faultless(self) -> bool:
        """Nothing ever fails; clocks may be wrong."""
        return not (self.store_fails or self.catalog_fails or self.swap_fails or self.dies)


NO_FAULTS = FaultRates()


class World(Protocol):
    """What connects the processes: whose turn it is, and what is really there."""

    faults: FaultRates
    rng: Random

    @property
    def catalog(self) -> Catalog:
        """The real catalog."""

    @property
    def store(self) -> Store:
        """The real store."""

    @property
    def is_over(self) -> bool:
        """Whether nobody acts any more."""

    def reach(self, operation: Operation) -> None:
        """Let others go first, perhaps."""

    def hurt(self, what: str) -> None:
        """Hear that something fails on purpose."""

    def propose(self, changes: Sequence[PointerSwap]) -> None:
        """Hear that a swap is about to be sent."""

    def deliver(self, changes: Sequence[PointerSwap]) -> None:
        """Make a swap for real."""

    def deliver_late(self, changes: Sequence[PointerSwap]) -> None:
        """Make a swap some time later, with nobody there to hear the answer."""

    def stored(self, location: str, data: bytes) -> None:
        """Hear of an object that is there."""

    def removing(self, location: str) -> None:
        """Hear of a file that goes."""

    def fenced(self, write_ids: Sequence[str]) -> None:
        """Hear of writes that must not land any more."""


class SimulatedClock(Protocol):
    """The one true time."""

    now: float

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SimulatedAmbient:
    """The clock and randomness of one process; its clock is off, and may jump."""

    def __init__(self, clock: SimulatedClock, rng: Random, faults: FaultRates) -> None:
        self._clock = clock
        self._rng = rng
        self._jumps = faults.clock_jumps
        self._skew_ms = rng.choice((0, 0, -40_000, 3_600_000)) if faults.clock_jumps else 0

    def now_ms(self) -> int:
        if self._jumps and self._rng.random() < self._jumps:
            self._skew_ms += self._rng.choice((-90_000, -1, 5_000))
        return START_MS + int(self._clock.now * 1000) + self._skew_ms

    def monotonic(self) -> float:
        return self._clock.now

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)

    def every(self, seconds: float, call: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    def uniform(self, low: float, high: float) -> float:
        return self._rng.uniform(low, high)

    def random_uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self._rng.getrandbits(128), version=4)

    def random_id(self) -> int:
        return self._rng.randrange(1, 1 << 63)


class SimulatedStore(Around):
    """A store that may fail at every call, before or after its effect."""

    def __init__(self, world: World) -> None:
        super().__init__(world.store)
        self._world = world

    def read(self, location: str) -> bytes:
        return self._call("read", location, lambda: self._world.store.read(location))

    def read_range(self, location: str, offset: int, length: int, *, of_size: int | None = None) -> bytes:
        real = self._world.store
        return self._call("read", location, lambda: real.read_range(location, offset, length, of_size=of_size))

    def size(self, location: str) -> int:
        return self._call("size", location, lambda: self._world.store.size(location))

    def open_input(self, location: str) -> Any:
        return self._call("open", location, lambda: self._world.store.open_input(location))

    def put_new(self, location: str, data: bytes) -> None:
        def put() -> None:
            self._world.store.put_new(location, data)
            self._world.stored(location, data)

        self._call("put", location, put)

    def open_new(self, location: str) -> Any:
        return self._call("open new", location, lambda: _SimulatedFile(self, self._world.store.open_new(location)))

    def list(self, prefix: str) -> Any:
        return iter(self._call("list", prefix, lambda: list(self._world.store.list(prefix))))

    def delete(self, location: str) -> None:
        if self._world.is_over:
            return  # a lease of a process that was killed, which nobody ends

        def remove() -> None:
            self._world.removing(location)
            self._world.store.delete(location)

        self._call("delete", location, remove)

    def _call(self, verb: str, location: str, effect: Callable[[], Result]) -> Result:
        what = f"{verb} {location.rsplit('/', 1)[-1]}"
        self._world.reach(Operation(what, writes=verb not in ("read", "size", "open", "list"), is_shared=False))
        if not _happens(self._world, self._world.faults.store_fails):
            return effect()
        if self._world.rng.random() < 0.5:
            effect()
            what += " after the effect"
        self._world.hurt(what)
        raise StorageError(f"simulated: {what}")


class _SimulatedFile(Around):
    """A new file whose close may fail."""

    def __init__(self, store: SimulatedStore, real: Any) -> None:
        super().__init__(real)
        self._store = store

    def close(self) -> None:
        if not self.real.closed:
            self._store._call("close", "new file", self.real.close)

    def __enter__(self) -> "_SimulatedFile":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self.close()
        else:
            self.real.abort()


class SimulatedCatalog(Around):
    """A catalog whose answers may fail or get lost, and whose swaps may arrive late or twice."""

    def __init__(self, world: World) -> None:
        super().__init__(world.catalog)
        self._world = world
        self._silent_for = 0  # how many more calls get no answer

    def pointer(self, table: TableName, kind: Kind = Kind.TABLE) -> str:
        return self._look("pointer", lambda: self._world.catalog.pointer(table, kind))

    def find(self, name: TableName) -> Entry | None:
        return self._look("find", lambda: self._world.catalog.find(name))

    def pointers(self, tables: Iterable[TableName]) -> dict[TableName, str]:
        return self._look("pointers", lambda: self._world.catalog.pointers(tables))

    def swap(self, changes: Sequence[PointerSwap]) -> None:
        world = self._world
        world.propose(changes)
        world.reach(Operation("swap " + " ".join(str(c.new).rsplit("/", 1)[-1] for c in changes)))
        if self._is_silent():
            _refuse(world, changes)
        if not _happens(world, world.faults.swap_fails):
            world.deliver(changes)
            return
        try:
            world.rng.choice(FAULTS_OF_SWAPS)(world, changes)
        except CommitStateUnknown:
            if _happens(world, world.faults.goes_silent):
                self._silent_for = world.rng.choice((3, 30))
            raise

    def entries(self) -> dict[TableName, Entry]:
        return self._look("entries", self._world.catalog.entries)

    def rename_table(self, old: TableName, new: TableName) -> None:
        self._look("rename", lambda: self._world.catalog.rename_table(old, new), writes=True)

    def fence(self, table: TableName, write_ids: Sequence[str]) -> bool:
        def fence() -> bool:
            if not self._world.faults.fences:
                return False
            self._world.fenced(write_ids)
            return self._world.catalog.fence(table, write_ids)

        return self._look("fence", fence, writes=True)

    def _is_silent(self) -> bool:
        self._silent_for = max(0, self._silent_for - 1)
        return self._silent_for > 0

    def _look(self, verb: str, look: Callable[[], Result], *, writes: bool = False) -> Result:
        self._world.reach(Operation(verb, writes=writes))
        if self._is_silent() or _happens(self._world, self._world.faults.catalog_fails):
            self._world.hurt(verb)
            raise CatalogError(f"simulated: {verb} failed")
        return look()


def _refuse(world: World, changes: Sequence[PointerSwap]) -> None:
    world.hurt("swap refused")
    raise CatalogError("simulated: the swap was refused")


def _lose_request(world: World, changes: Sequence[PointerSwap]) -> None:
    _lose("swap lost before it arrived", world)


def _lose_answer(world: World, changes: Sequence[PointerSwap]) -> None:
    try:
        world.deliver(changes)
    except IcefieldError:
        _lose("answer of a swap lost that failed", world)
    _lose("answer of a swap lost that landed", world)


def _delay(world: World, changes: Sequence[PointerSwap]) -> None:
    world.deliver_late(changes)
    _lose("swap delayed", world)


def _repeat(world: World, changes: Sequence[PointerSwap]) -> None:
    world.hurt("swap sent twice")
    world.deliver_late(changes)
    world.deliver(changes)


def _repeat_and_lose(world: World, changes: Sequence[PointerSwap]) -> None:
    world.deliver_late(changes)
    _lose_answer(world, changes)


def _lose(what: str, world: World) -> NoReturn:
    world.hurt(what)
    raise CommitStateUnknown(f"simulated: {what}")


FAULTS_OF_SWAPS = (_refuse, _lose_request, _lose_answer, _lose_answer, _delay, _delay, _repeat, _repeat_and_lose)


def _happens(world: World, chance: float) -> bool:
    return bool(chance) and world.rng.random() < chance
