"""One run of the simulation: everything that happens follows from the seed.

Several processes, each with a lake of its own over the same catalog and store, make steps (`tests.sim.steps`) while the
judge looks on. `simulate(seed)` raises a `Failure` that tells how to make the run again.
"""

import gc
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.sim.judge import Judge
from tests.sim.model import Fate, Intent, Violation
from tests.sim.reading import Rows
from tests.sim.scheduler import Killed, Operation, Runner, Scheduler
from tests.sim.world import NO_FAULTS, START_MS, FaultRates, SimulatedAmbient, SimulatedCatalog, SimulatedStore

from icefield.ambient import SeededAmbient
from icefield.backend import Backend
from icefield.cache.decoded_files import DecodedFiles
from icefield.cache.manifests import ManifestCache
from icefield.catalog.catalog import Catalog, PointerSwap
from icefield.catalog.memory import MemoryCatalog
from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.decode import decode_manifests_in_turn
from icefield.errors import CatalogError, CommitError, CommitStateUnknown, IcefieldError, StorageError
from icefield.lake import Lake
from icefield.storage.memory import MemoryStore
from icefield.table.table import Table

WAREHOUSE = "memory://lake"
LATEST_SWAPS = (12, 12, 150)  # after how many more calls a late swap arrives at the latest
STOPS_FOR_S = (120.0, 400.0)


class Failure(AssertionError):
    """A run that broke an invariant."""


@dataclass(frozen=True)
class Outcome:
    """What became of a run."""

    digest: str
    trace: Sequence[str]
    swaps: int
    fates: dict[str, int]


class Simulation:
    """The world of a run: who goes next, what fails, what is really there."""

    def __init__(
        self, seed: int, faults: FaultRates = NO_FAULTS, choose: Callable[[Sequence[Runner]], Runner] | None = None
    ):
        self.rng = Random(f"world {seed}")
        self.faults = faults
        self.scheduler = Scheduler(choose or self._choose)
        self.catalog: Catalog = MemoryCatalog("simulated")
        self.store = MemoryStore(SeededAmbient(seed))
        self.judge = Judge(self.store, self._scan)
        self.trace: list[str] = []
        self.intents: list[Intent] = []
        self._seed = seed
        self._late: list[tuple[int, Sequence[PointerSwap], Intent]] = []
        self._acting: dict[str, Intent] = {}
        self._calls = 0
        # In some runs all go step by step, in others one makes many steps while the rest wait.
        self.dropped: list[str] = []  # the last metadata files of dropped tables
        self._sticky = self.rng.choice((0.0, 0.8, 0.95, 0.97))

    def lake(self, name: str) -> Lake:
        """Open the lake for one process."""
        ambient = SimulatedAmbient(self.scheduler, Random(f"{name} {self._seed}"), self.faults)
        catalog: Any = SimulatedCatalog(self)
        store: Any = SimulatedStore(self)
        return Lake(Backend(catalog, store, ambient, cache=DECODED), WAREHOUSE)

    def run(self) -> None:
        """Run all that was spawned; then everything arrives that was late, and the judge has the last word."""
        with run_inline():
            self.scheduler.run()
            for _, changes, intent in self._late:
                self._deliver_unheard(changes, intent)
            self.judge.finish()

    def attempt(self, intent: Intent, change: Callable[[], object]) -> None:
        """Try to make a change, and have the judge hear how it went."""
        intent.began = self.judge.now
        self._acting[intent.actor] = intent
        self.intents.append(intent)
        self.tell(f"begins: {intent.what}")
        try:
            change()
        except CommitStateUnknown:
            self.judge.doubt(intent)
            self.tell(f"does not know of: {intent.what}")
        except IcefieldError as error:
            self.judge.refuse(intent, error)
            self.tell(f"fails with {type(error).__name__}: {intent.what}")
            if not isinstance(error, (CommitError, *intent.refusals)) and not self.is_expected(error):
                raise
        else:
            self.judge.acknowledge(intent)
            self.tell(f"has done: {intent.what}")

    def is_expected(self, error: IcefieldError) -> bool:
        """Return whether an error was made on purpose."""
        return isinstance(error, StorageError | CatalogError) and "simulated" in str(error)

    def tell(self, what: str) -> None:
        """Add a line to the trace."""
        who = self.scheduler.current
        self.trace.append(f"{self.scheduler.now:9.3f} {who.name if who else 'world'} {what}")

    @property
    def is_over(self) -> bool:
        return self.scheduler.is_closed

    def reach(self, operation: Operation) -> None:
        self.scheduler.point(operation)
        self._calls += 1
        self.scheduler.now += self.rng.random() / 100
        for late in [late for late in self._late if late[0] <= self._calls]:
            self._late.remove(late)
            self._deliver_unheard(late[1], late[2])
        self.tell(operation.text)
        if self.faults.stops and self.rng.random() < self.faults.stops:
            self.tell("stops for minutes")
            self.scheduler.sleep(self.rng.choice(STOPS_FOR_S))
        if self.faults.dies and self.rng.random() < self.faults.dies:
            self.tell("dies")
            self.scheduler.die()

    def propose(self, changes: Sequence[PointerSwap]) -> None:
        intent = self._intent()
        intent.proposed, intent.removed = changes, []

    def hurt(self, what: str) -> None:
        self.tell(f"FAULT: {what}")

    def deliver(self, changes: Sequence[PointerSwap]) -> None:
        self._make_swap(changes, self._intent())

    def deliver_late(self, changes: Sequence[PointerSwap]) -> None:
        at = self._calls + self.rng.randrange(1, self.rng.choice(LATEST_SWAPS))
        self._late.append((at, changes, self._intent()))

    def stored(self, location: str, data: bytes) -> None:
        if self.scheduler.current is not None:
            with self._heard():
                self.judge.stored(location, data, self.scheduler.current.name, self.scheduler.now)

    def removing(self, location: str) -> None:
        with self._heard():
            if "/metadata/gc/" in location or "/icefield-dropped/" in location:
                assert self.scheduler.current is not None
                self.judge.removed(location, self.scheduler.current.name)
            else:
                self.judge.removing(location, self._intent())

    def fenced(self, write_ids: Sequence[str]) -> None:
        if self.judge.watch is not None:
            self.judge.watch.fenced.update(write_ids)

    def _choose(self, runners: Sequence[Runner]) -> Runner:
        last = self.scheduler.current
        if last is not None and last in runners and self.rng.random() < self._sticky:
            return last
        return self.rng.choice(runners)

    def _intent(self) -> Intent:
        assert self.scheduler.current is not None
        return self._acting[self.scheduler.current.name]

    def _make_swap(self, changes: Sequence[PointerSwap], intent: Intent) -> None:
        self.catalog.swap(changes)
        self.dropped += [str(change.expected) for change in changes if change.new is None]
        self.tell(f"LANDED: {intent}")
        if self.judge.watch is not None:
            for change in changes:
                self.judge.watch.committed(change.new)
        with self._heard():
            self.judge.swapped(changes, intent)

    @contextmanager
    def _heard(self) -> Iterator[None]:
        """Let no violation pass: the code that is judged may take it for an error of the outside, and go on."""
        try:
            yield
        except Violation as violation:
            self.scheduler.failure = self.scheduler.failure or violation
            raise

    def _deliver_unheard(self, changes: Sequence[PointerSwap], intent: Intent) -> None:
        try:
            self._make_swap(changes, intent)
        except (IcefieldError, Killed) as error:  # a guard reads in the process of the change, which may be over
            self.tell(f"a late swap of {intent} fails with {type(error).__name__}")

    def _scan(self, table: str, snapshot_id: int) -> Rows:
        plain = Lake(Backend(self.catalog, self.store, SeededAmbient(0, START_MS)), WAREHOUSE)
        return rows_of(plain.table(table), snapshot_id)


def rows_of(table: Table, as_of: Any = None, where: str | None = None) -> Rows:
    """Read the rows of a table with its own scan."""
    read: pa.Table = table.scan(where, select=["id", "n"], as_of=as_of).to_arrow().read_all()
    return tuple(sorted(zip(read.column("id").to_pylist(), read.column("n").to_pylist(), strict=True)))


class StoreClock(SeededAmbient):
    """The clock of the store: the one true time."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(0)
        self._simulation = simulation

    def now_ms(self) -> int:
        return int(self._simulation.scheduler.now * 1000)


@contextmanager
def run_inline() -> Iterator[None]:
    """Have planning read one file after the other in the caller's thread, and decode the same bytes once.

    Garbage is not collected in a run: a lease that nobody ended would end whenever that happens, in the name of another
    process.
    """
    with pytest.MonkeyPatch.context() as patch, _no_garbage_collection():
        for module in ("plan.plan", "commit.validate.ownership"):
            patch.setattr(f"icefield.{module}.ThreadPoolExecutor", _InlinePool)
        patch.setattr("icefield.plan.entries.decode_manifests_in_turn", _decode_manifests)
        yield


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class DecodedOnly(ManifestCache):
    """A cache that saves decoding, but no read: every file is read each time, and may be missing."""

    def __init__(self) -> None:
        super().__init__(max_bytes=0)
        self.files = DecodedFiles()


DECODED = DecodedOnly()


def _decode_manifests(files: Sequence[tuple[str, bytes]], want: ManifestColumns) -> tuple[Any, Any]:
    return _decode_once(tuple(files), want)


@lru_cache(maxsize=5_000)
def _decode_once(files: Sequence[tuple[str, bytes]], want: ManifestColumns) -> tuple[Any, Any]:
    return decode_manifests_in_turn(files, want)


class _InlinePool:
    def __init__(self, workers: int) -> None:
        pass

    def __enter__(self) -> "_InlinePool":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    map = staticmethod(map)


def digest_of(trace: Sequence[str], judge: Judge) -> str:
    """Hash a history: all that happened, and every pointer."""
    lines = [*trace, *(f"{table} {pointer}" for table, pointer in sorted(judge.pointers.items()))]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def fates_of(intents: Sequence[Intent]) -> dict[str, int]:
    """Count the changes by what became of them."""
    return {fate.value: sum(intent.fate is fate for intent in intents) for fate in Fate}
