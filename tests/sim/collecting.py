"""Runs in which collectors take files away with no grace at all, while readers last and writers stop for minutes.

Invariants, beside those of every run (tests.sim.judge):

- Whatever a table leads to is there, and so is whatever a reader reads that has a living lease.
- A reader returns all rows of its snapshot, or raises.
- A change whose files a collector took away never lands.
- At the end, with all leases ended or lapsed, two rounds leave nothing behind.
"""

from collections.abc import Callable, Mapping
from random import Random

from tests.sim import dropping, versions, writing
from tests.sim.actor import COLUMNS, HOT, MIXED, TABLES, Actor, Shared
from tests.sim.dropping import DroppedModel
from tests.sim.model import Intent, Violation
from tests.sim.simulation import WAREHOUSE, Failure, Outcome, Simulation, digest_of, fates_of, run_inline
from tests.sim.world import NO_FAULTS, FaultRates

from icefield.ambient import SeededAmbient
from icefield.backend import Backend
from icefield.errors import (
    CommitError,
    IcefieldError,
    LeaseLost,
    MissingFile,
    NoSuchSnapshot,
)
from icefield.lake import Lake
from icefield.leases.lease import MARGIN_S, Lease
from icefield.table.table import Table

TTL_S = 20
AT_ONCE = {
    "icefield.gc.grace-ms": "0",
    "icefield.gc.foreign-readers": "false",
    "icefield.gc.orphan-age-ms": "0",
    "icefield.gc.lease-ttl-ms": str(TTL_S * 1000),
}
FAULT_RATES = (
    NO_FAULTS,
    NO_FAULTS,
    FaultRates(clock_jumps=0.1),
    FaultRates(store_fails=0.01, clock_jumps=0.05),
    FaultRates(dies=0.004),
    FaultRates(swap_fails=0.3, goes_silent=0.3),
    FaultRates(swap_fails=0.2, dies=0.003, clock_jumps=0.05),
)
LONG_S = TTL_S + MARGIN_S + 1
OFTEN_DROPPING = 0.25
OFTEN_COLLECTING = 0.25  # how often all garbage is collected at the end, which takes longer than the run itself


def simulate_collectors(seed: int) -> Outcome:
    """Run a seed. Raises Failure with the trace of what happened."""
    rng = Random(f"collectors {seed}")
    simulation = Simulation(seed, rng.choice(FAULT_RATES))
    simulation.store._ambient = StoreClock(simulation)
    try:
        with run_inline():
            model = DroppedModel()
            _populate(simulation, rng, model)
            simulation.run()
            dropping.check_end(simulation, _last_lake(simulation), model)
            if rng.random() < OFTEN_COLLECTING:
                _collect_all(simulation)
    except Exception as error:
        trace = "\n".join(simulation.trace)
        raise Failure(f"seed {seed}: {error}\n{trace}\nagain: simulate_collectors({seed})") from error
    digest = digest_of(simulation.trace, simulation.judge)
    return Outcome(digest, simulation.trace, simulation.judge.now, fates_of(simulation.intents))


class StoreClock(SeededAmbient):
    """The clock of the store: the one true time."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__(0)
        self._simulation = simulation

    def now_ms(self) -> int:
        return int(self._simulation.scheduler.now * 1000)


def slow_read(actor: Actor) -> None:
    """Read a version batch by batch, with pauses in which a lease may lapse."""
    table = actor.table()
    versions_ = table.snapshots()
    if not versions_:
        return
    snapshot = actor.rng.choice(versions_[-2:])
    judge, who = actor.simulation.judge, f"{actor.name} at {snapshot.snapshot_id}"
    actor.simulation.tell(f"begins to read {table} at {snapshot.snapshot_id}")
    try:
        scan = table.scan(select=list(COLUMNS), as_of=snapshot.snapshot_id)
        rows: list[tuple[int, int]] = []
        reader = scan.to_arrow()
        lease = _lease_of(scan)
        if lease is not None:
            judge.held[who] = _files_of(actor.simulation, table, snapshot.snapshot_id)
        for batch in reader:
            rows += zip(*(batch.column(name).to_pylist() for name in COLUMNS), strict=True)
            pause = actor.rng.choice((0, 0, 1, TTL_S / 2, LONG_S))
            if pause >= TTL_S:
                judge.held.pop(who, None)  # it may lapse
            actor.lake.ambient.sleep(pause)
    except (LeaseLost, NoSuchSnapshot, MissingFile) as error:
        if isinstance(error, MissingFile) and who in judge.held:
            raise Violation(f"{who} misses {error.location}, though it renewed its lease") from error
        if isinstance(error, LeaseLost) and who in judge.held:
            raise Violation(f"{who} lost its lease, though it renewed it") from error
        actor.simulation.tell(f"stops reading: {type(error).__name__}")
    else:
        actor.simulation.tell(f"has read {table} at {snapshot.snapshot_id}: {sorted(rows)}")
        judge.read(table.name, snapshot.snapshot_id, tuple(sorted(rows)))
    finally:
        judge.held.pop(who, None)


def remove_orphans(actor: Actor) -> None:
    table = actor.table()
    _collect(actor, f"remove orphans of {table}", table, lambda: table.remove_orphans(unsafe=True))


def sweep(actor: Actor) -> None:
    table = actor.table()
    _collect(actor, f"sweep {table}", table, table.sweep)


def wait(actor: Actor) -> None:
    """Do nothing for so long that a lease which is not renewed lapses."""
    actor.lake.ambient.sleep(actor.rng.choice((1.0, LONG_S)))


def _collect(actor: Actor, what: str, table: Table, collect: Callable[[], object]) -> None:
    actor.simulation.attempt(
        Intent(actor.name, what, {table.name: lambda expected, _: expected}, idle_if=lambda _: True,
               refusals=(MissingFile,)),
        collect,
    )  # fmt: skip


STEPS: dict[str, tuple[int, Callable[[Actor], None]]] = {
    "append": (5, writing.append),
    "overwrite": (4, writing.overwrite),
    "delete": (3, writing.delete),
    "move rows": (2, writing.move_rows),
    "write after reading": (2, writing.write_after_reading),
    "change twice": (1, writing.change_twice),
    "compact": (2, versions.compact),
    "rewrite manifests": (1, versions.rewrite_manifests),
    "name version": (1, versions.name_version),
    "forget version": (1, versions.forget_version),
    "roll back": (1, versions.rollback),
    "expire": (5, versions.expire),
    "orphans": (4, remove_orphans),
    "sweep": (3, sweep),
    "slow read": (5, slow_read),
    "wait": (2, wait),
}
ALLOWED = (CommitError, LeaseLost, MissingFile, NoSuchSnapshot)


def step(actor: Actor, drops: Mapping[str, Callable[[Actor], None]]) -> None:
    """Do one thing, with the tables or with the one that is dropped."""
    if actor.rng.random() < OFTEN_DROPPING:
        drops[actor.rng.choice(list(drops))](actor)
        return
    (name,) = actor.rng.choices(list(STEPS), [weight for weight, _ in STEPS.values()])
    try:
        STEPS[name][1](actor)
    except IcefieldError as error:
        if not (actor.simulation.is_expected(error) or isinstance(error, ALLOWED)):
            raise
        actor.simulation.tell(f"fails at {name}: {type(error).__name__}")


def _populate(simulation: Simulation, rng: Random, model: DroppedModel) -> None:
    shared = Shared("serializable", HOT if rng.random() < 0.7 else MIXED)
    lake = Lake(Backend(simulation.catalog, simulation.store, SeededAmbient(rng.randrange(1 << 30))), WAREHOUSE)
    properties = {
        **AT_ONCE,
        "commit.manifest.min-count-to-merge": rng.choice(("2", "100")),
        "write.metadata.previous-versions-max": rng.choice(("2", "100")),
        "write.delete.mode": rng.choice(("copy-on-write", "merge-on-read")),
    }
    for name in TABLES:
        table = lake.create_table(name, "id long, n long", properties=properties, format_version=rng.choice((2, 3)))
        for _ in range(2):
            table.append(_first_rows(shared))
        simulation.judge.begin(name, table.metadata_location)
    properties |= {"icefield.gc.undrop-ms": "0"}
    lake.create_table(dropping.NAMES[0], "id long, n long", properties=properties)
    simulation.judge.unmodelled = lambda: dropping.live_pointers(simulation)
    steps = dropping.steps_of(model)
    for at in range(rng.choice((2, 3, 3, 4))):
        name = f"process {at}"
        actor = Actor(name, simulation, simulation.lake(name), Random(f"steps of {name} {rng.random()}"), shared)
        simulation.scheduler.spawn(name, _life(actor, rng.choice((3, 4, 5)), steps))


def _first_rows(shared: Shared) -> object:
    from tests.sim.actor import arrow  # noqa: PLC0415

    shared.rows += 1
    return arrow(((0, shared.rows),))


def _life(actor: Actor, count: int, steps: Mapping[str, Callable[[Actor], None]]) -> Callable[[], None]:
    def live() -> None:
        for _ in range(count):
            step(actor, steps)

    return live


def _last_lake(simulation: Simulation) -> Lake:
    """Open the lake for somebody who comes after all processes, with a clock that is right."""
    return Lake(Backend(simulation.catalog, simulation.store, StoreClock(simulation)), WAREHOUSE)


def _collect_all(simulation: Simulation) -> None:
    """With all processes gone, a commit and two rounds leave only what the tables lead to."""
    lake = _last_lake(simulation)
    pointers: dict[str, str] = {}
    live = {*TABLES, *dropping.live_pointers(simulation)}
    for name in sorted(live):
        table = lake.table(name)
        # What a writer that died left on top of the current version is kept until the next commit.
        table.set_properties({"end": "here"})
        pointers[name] = table.metadata_location
        for _ in range(2):
            table.remove_orphans(unsafe=True)
            simulation.scheduler.now += LONG_S
        table.remove_orphans(unsafe=True)
        if leases := table.leases():
            raise Violation(f"leases are left though nobody renews them: {leases}")
    simulation.judge.pointers.update(pointers)
    simulation.judge.finish()
    for _ in range(2):
        lake.purge_dropped()
        simulation.scheduler.now += 2 * 24 * 3600  # a restore that died is honoured for a day
    reachable = set[str]().union(*map(simulation.judge.reading.files_of_table, pointers.values()))
    files = (file.location for file in simulation.store.list(WAREHOUSE))
    there = {file for file in files if "/metadata/gc/" not in file and "/icefield-dropped/" not in file}
    if left := there - reachable:
        raise Violation(f"files are left behind: {sorted(left)}")


def _lease_of(scan: object) -> Lease | None:
    held = scan._lease._held  # type: ignore[attr-defined]
    return held[0].lease if held else None


def _files_of(simulation: Simulation, table: Table, snapshot_id: int) -> set[str]:
    metadata = simulation.judge.reading.metadata(simulation.judge.pointers[table.name])
    for snapshot in metadata["snapshots"]:
        if snapshot["snapshot-id"] == snapshot_id:
            return simulation.judge.reading.files_of(snapshot)
    return set()
