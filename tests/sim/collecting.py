"""Runs in which collectors take files away with no grace at all, while readers last and processes stop for minutes.

Invariants, beside those of every run (tests.sim.judge) and of everything that is written and removed (tests.sim.watch):

- Whatever a table leads to is there.
- A reader returns all rows of its snapshot, or raises.
- Nobody's change fails because of a compaction.
- Files that are not the table's own are never removed.
- At the end, with all leases ended or lapsed, two rounds leave nothing behind.
"""

from collections.abc import Callable, Mapping
from random import Random

from tests.sim import dropping, versions, writing
from tests.sim.actor import HOT, MIXED, TABLES, Actor, Shared
from tests.sim.dropping import DroppedModel
from tests.sim.lasting import read_slowly, read_what_was_opened_before, wait
from tests.sim.model import Intent, Violation
from tests.sim.prepared import FIRST_FREE_ROW, TTL_S, Shape, prepare
from tests.sim.simulation import (
    WAREHOUSE,
    Failure,
    Outcome,
    Simulation,
    StoreClock,
    digest_of,
    fates_of,
    run_inline,
)
from tests.sim.watch import Watch
from tests.sim.world import NO_FAULTS, FaultRates

from icefield.backend import Backend
from icefield.errors import CommitError, IcefieldError, LeaseLost, MissingFile, NoSuchSnapshot
from icefield.lake import Lake
from icefield.leases.lease import MARGIN_S
from icefield.table.table import Table

AGAIN = 'make sim ARGS="--collectors --seed {seed}"'
FAULT_RATES = (
    NO_FAULTS,
    FaultRates(stops=0.02),
    FaultRates(stops=0.02, clock_jumps=0.1),
    FaultRates(stops=0.02, fences=False),
    FaultRates(store_fails=0.01, clock_jumps=0.05),
    FaultRates(dies=0.006, stops=0.01),
    FaultRates(swap_fails=0.3, goes_silent=0.3),
    FaultRates(swap_fails=0.3, goes_silent=0.3, stops=0.01, fences=False),
    FaultRates(swap_fails=0.2, dies=0.003, clock_jumps=0.05, stops=0.01),
)
LONG_S = TTL_S + MARGIN_S + 1
OFTEN_COLLECTING = 0.1  # how often all garbage is collected at the end, which takes as long as the run itself
ALL, COLLECT, READ, REWRITE, DROP = MOODS = ("all", "collect", "read", "rewrite", "drop")
OFTEN = (2, 4, 2, 4, 3)
# Three of sixteen seeds are about what needs several things in a row, and hardly ever happens in the others: a table
# that was opened before its snapshot expired; a drop that did not land, and a rename before the purge; a change in
# doubt whose metadata file has left the log when a commit looks for such files.
OPENED, DOUBT, LOG = "opened", "doubt", "log"
AIMED = {3: LOG, 4: OPENED, 10: DOUBT}
AIMED_FAULTS = {
    OPENED: (NO_FAULTS,),
    DOUBT: (FaultRates(swap_fails=0.6, goes_silent=0.2),),
    LOG: (FaultRates(swap_fails=0.3, goes_silent=0.8),),
}
AIMED_AT = 16


def simulate_collectors(seed: int) -> Outcome:
    """Run a seed. Raises Failure with the trace of what happened."""
    rng = Random(f"collectors {seed}")
    aim = AIMED.get(seed % AIMED_AT)
    simulation = Simulation(seed, rng.choice(FAULT_RATES if aim is None else AIMED_FAULTS[aim]))
    simulation.store._ambient = StoreClock(simulation)
    simulation.judge.watch = Watch()
    try:
        with run_inline():
            model = DroppedModel()
            _populate(simulation, rng, model, aim)
            simulation.run()
            dropping.check_end(simulation, _last_lake(simulation), model)
            if _is_marked(simulation) or rng.random() < OFTEN_COLLECTING:
                _collect_all(simulation)
    except Exception as error:
        trace = "\n".join(simulation.trace)
        raise Failure(f"seed {seed}: {error}\n{trace}\nagain: {AGAIN.format(seed=seed)}") from error
    digest = digest_of(simulation.trace, simulation.judge)
    return Outcome(digest, simulation.trace, simulation.judge.now, fates_of(simulation.intents))


def remove_orphans(actor: Actor) -> None:
    table = actor.table()
    _collect(actor, f"remove orphans of {table}", table, lambda: table.remove_orphans(unsafe=True))


def collect_for_long(actor: Actor) -> None:
    """Remove orphan files for so long that leases lapse that were not renewed."""
    for _ in range(2):
        remove_orphans(actor)
        actor.lake.ambient.sleep(LONG_S)
    remove_orphans(actor)


def sweep(actor: Actor) -> None:
    table = actor.table()
    _collect(actor, f"sweep {table}", table, table.sweep)


def _collect(actor: Actor, what: str, table: Table, collect: Callable[[], object]) -> None:
    """Collect; a file that another collector removed must not make this one fail."""
    nothing = {table.name: lambda expected, _: expected}
    try:
        actor.simulation.attempt(Intent(actor.name, what, nothing, idle_if=lambda _: True), collect)
    except MissingFile as error:
        raise Violation(f"{what} fails: {error}") from error


Step = Callable[[Actor], None]
CHANGES: dict[str, tuple[int, Step]] = {
    "append": (3, writing.append),
    "overwrite": (2, writing.overwrite),
    "delete": (4, writing.delete),
    "update": (2, writing.update),
    "upsert": (1, writing.upsert),
    "merge": (1, writing.merge),
    "write after reading": (1, writing.write_after_reading),
    "change twice": (1, writing.change_twice),
}
REWRITES: dict[str, tuple[int, Step]] = {
    "compact": (5, versions.compact),
    "rewrite manifests": (1, versions.rewrite_manifests),
}
COLLECTORS: dict[str, tuple[int, Step]] = {
    "expire": (5, versions.expire),
    "orphans": (3, remove_orphans),
    "orphans for long": (2, collect_for_long),
    "sweep": (2, sweep),
    "slow read": (5, read_slowly),
    "wait": (2, wait),
    "move rows": (1, writing.move_rows),
    "name version": (1, versions.name_version),
    "forget version": (1, versions.forget_version),
    "roll back": (1, versions.rollback),
}
FEW_COLLECTORS = {name: (1, COLLECTORS[name][1]) for name in ("expire", "orphans")}
READERS = {name: COLLECTORS[name] for name in ("expire", "orphans", "slow read")}
STEPS: dict[str, Mapping[str, tuple[int, Step]]] = {
    ALL: {**CHANGES, **REWRITES, **COLLECTORS},
    COLLECT: {**CHANGES, **COLLECTORS},
    REWRITE: {**CHANGES, **REWRITES, **FEW_COLLECTORS},
    READ: {**READERS, "overwrite": CHANGES["overwrite"], "append": CHANGES["append"]},
    OPENED: {
        "read": (3, read_what_was_opened_before),
        "expire": (3, versions.expire),
        "overwrite": CHANGES["overwrite"],
    },
    LOG: {"append": CHANGES["append"]},
}
STEPS_OF_A_PROCESS = {DROP: (3, 4), DOUBT: (3, 4), LOG: (6, 7)}
ALLOWED = (CommitError, LeaseLost, MissingFile, NoSuchSnapshot)


def step(actor: Actor, steps: Mapping[str, tuple[int, Step]]) -> None:
    """Do one thing; what may fail before there is anything to judge is passed over."""
    (name,) = actor.rng.choices(list(steps), [weight for weight, _ in steps.values()])
    try:
        steps[name][1](actor)
    except IcefieldError as error:
        if not (actor.simulation.is_expected(error) or isinstance(error, ALLOWED)):
            raise
        actor.simulation.tell(f"fails at {name}: {type(error).__name__}")


def _populate(simulation: Simulation, rng: Random, model: DroppedModel, aim: str | None) -> None:
    prepare(_draw_shape(rng, aim)).put_into(simulation)
    simulation.judge.unmodelled = lambda: dropping.live_pointers(simulation)
    shared = Shared("serializable", HOT if rng.random() < 0.8 or aim == LOG else MIXED, rows=FIRST_FREE_ROW)
    mood = aim or rng.choices(MOODS, OFTEN)[0]
    steps = _steps_of(mood, dropping.steps_of(model))
    for at in range(rng.choice((2, 2, 3))):
        name = f"process {at}"
        actor = Actor(name, simulation, simulation.lake(name), Random(f"steps of {name} {rng.random()}"), shared)
        simulation.scheduler.spawn(name, _life(actor, rng.choice(STEPS_OF_A_PROCESS.get(mood, (2, 3))), steps))


def _steps_of(mood: str, drops: Mapping[str, tuple[int, Step]]) -> Mapping[str, tuple[int, Step]]:
    if mood == DROP:
        return {**drops, "wait": (1, wait)}
    if mood == DOUBT:
        return {name: drops[name] for name in ("drop", "rename", "purge")}
    return {**STEPS[mood], **drops} if mood == ALL else STEPS[mood]


def _draw_shape(rng: Random, aim: str | None) -> Shape:
    mode = rng.choice(("copy-on-write", "merge-on-read", "merge-on-read"))
    modes = ((f"write.{verb}.mode", mode) for verb in ("delete", "update", "merge"))
    log = ("write.metadata.previous-versions-max", rng.choice(("2", "100") if aim != LOG else ("2",)))
    properties = (*modes, log, ("commit.manifest.min-count-to-merge", "3"))
    return Shape(rng.choice((2, 3)), properties, looks_soon=aim != LOG)


def _life(actor: Actor, count: int, steps: Mapping[str, tuple[int, Step]]) -> Callable[[], None]:
    def live() -> None:
        for _ in range(count):
            step(actor, steps)

    return live


def _last_lake(simulation: Simulation) -> Lake:
    """Open the lake for somebody who comes after all processes, with a clock that is right."""
    return Lake(Backend(simulation.catalog, simulation.store, StoreClock(simulation)), WAREHOUSE)


def _is_marked(simulation: Simulation) -> bool:
    """Return whether a collector left work to others."""
    return any("/gc/marks/" in location for location in simulation.store._files)


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
    needed = simulation.judge.foreign.union(*map(simulation.judge.reading.files_of_table, pointers.values()))
    files = (file.location for file in simulation.store.list(WAREHOUSE))
    there = {file for file in files if "/metadata/gc/" not in file and "/icefield-dropped/" not in file}
    if left := there - needed:
        raise Violation(f"files are left behind: {sorted(left)}")
