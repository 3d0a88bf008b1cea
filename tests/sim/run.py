"""Make the run of a seed: draw the tables, the faults and the processes, let them run, and judge the end."""

from collections.abc import Callable
from random import Random

from tests.sim.actor import BRANCHES, CHANGES, HOT, LAKE_REF, MIXED, TABLES, TRANSFERS, Actor, Shared, arrow
from tests.sim.model import Violation
from tests.sim.simulation import WAREHOUSE, Failure, Outcome, Simulation, digest_of, fates_of, rows_of
from tests.sim.steps import step
from tests.sim.world import NO_FAULTS, FaultRates

from icefield.ambient import SeededAmbient
from icefield.backend import Backend
from icefield.lake import Lake
from icefield.table.table import Table

# Deletes that a row delta wrote for a base that was not disturbed stay behind if it lands on one that was.
MERGE_ON_READ = "merge-on-read"
WRITERS = {MIXED: (2, 2, 3, 4), HOT: (4,), CHANGES: (4,), TRANSFERS: (3, 4), BRANCHES: (2, 3)}
READ_AT_END = 0.25
AGAIN = 'make sim ARGS="--seed {seed}"'
FAULT_RATES = (
    NO_FAULTS,
    FaultRates(clock_jumps=0.1),
    FaultRates(swap_fails=0.4, goes_silent=0.6, clock_jumps=0.1),
    FaultRates(swap_fails=0.15, catalog_fails=0.02, store_fails=0.01, clock_jumps=0.05),
    FaultRates(store_fails=0.03),
    FaultRates(swap_fails=0.2, goes_silent=0.6, dies=0.01),
)


def mood_of(seed: int) -> str:
    """Say what kind of steps a seed makes."""
    return {1: HOT, 3: TRANSFERS, 4: BRANCHES, 5: HOT, 6: CHANGES, 7: TRANSFERS}.get(seed % 8, MIXED)


def simulate(seed: int) -> Outcome:
    """Run a seed. Raises Failure with the trace of what happened."""
    rng = Random(f"shape {seed}")
    simulation = Simulation(seed, rng.choice(FAULT_RATES))
    try:
        _populate(simulation, rng, seed)
        simulation.run()
        _check_end(simulation)
    except Exception as error:
        trace = "\n".join(simulation.trace)
        raise Failure(f"seed {seed}: {error}\n{trace}\nagain: {AGAIN.format(seed=seed)}") from error
    digest = digest_of(simulation.trace, simulation.judge)
    return Outcome(digest, simulation.trace, simulation.judge.now, fates_of(simulation.intents))


def _populate(simulation: Simulation, rng: Random, seed: int) -> None:
    shared = Shared(rng.choice(("serializable", "serializable", "snapshot")), mood_of(seed))
    _create_tables(simulation, rng, shared)
    for at in range(rng.choice(WRITERS[shared.mood])):
        name = f"writer {at}"
        actor = Actor(name, simulation, simulation.lake(name), Random(f"steps of {name} {rng.random()}"), shared)
        simulation.scheduler.spawn(
            name, _life(actor, steps=3 if shared.mood in (HOT, CHANGES, BRANCHES) else rng.choice((2, 2, 3)))
        )


def _life(actor: Actor, steps: int) -> Callable[[], None]:
    def live() -> None:
        for _ in range(steps):
            step(actor)

    return live


def _create_tables(simulation: Simulation, rng: Random, shared: Shared) -> None:
    lake = Lake(Backend(simulation.catalog, simulation.store, SeededAmbient(rng.randrange(1 << 30))), WAREHOUSE)
    properties = {
        "commit.manifest.min-count-to-merge": rng.choice(("2", "3", "100")),
        # What is made before the run begins leaves no metadata file that the judge does not know.
        "write.metadata.previous-versions-max": rng.choice(("2", "5", "100")) if shared.mood != BRANCHES else "100",
        "write.delete.mode": rng.choice(("copy-on-write", "copy-on-write", MERGE_ON_READ)),
        "write.merge.mode": rng.choice(("copy-on-write", MERGE_ON_READ)),
        "write.update.mode": rng.choice(("copy-on-write", MERGE_ON_READ)),
        "write.update.isolation-level": shared.isolation,
        "write.delete.isolation-level": shared.isolation,
        "write.overwrite.isolation-level": shared.isolation,
    }
    partition_by = rng.choice(((), (), ("bucket(2, id)",)))
    version = rng.choice((2, 2, 3))
    for name in TABLES:
        table = lake.create_table(
            name, "id long, n long", partition_by=partition_by, properties=properties, format_version=version
        )
        if shared.mood == BRANCHES:
            _part(table, shared)
    if shared.mood == BRANCHES and rng.random() < 0.6:
        lake.branch(LAKE_REF)
    for name in TABLES:
        simulation.judge.begin(name, lake.table(name).metadata_location)


def _part(table: Table, shared: Shared) -> None:
    """Make a branch that has diverged from main, by two snapshots of its own."""
    shared.rows += 5
    first = shared.rows - 4
    table.append(arrow(((0, first), (1, first + 1))))
    table.create_branch("x")
    table.at("x").append(arrow(((0, first + 2),)))
    table.at("x").update({"n": "n + 1000000"}, f"n = {first + 1}")
    table.append(arrow(((1, first + 3), (0, first + 4))))


def _check_end(simulation: Simulation) -> None:
    """A run without faults leaves nothing behind; in some runs all heads are read with icefield's own scan."""
    if simulation.rng.random() < READ_AT_END:
        _read_heads(simulation)
    if not simulation.faults.is_faultless:
        return
    if left := simulation.judge.leftovers(WAREHOUSE):
        raise Violation(f"files are left behind though nothing failed: {sorted(left)}")


def _read_heads(simulation: Simulation) -> None:
    lake = Lake(Backend(simulation.catalog, simulation.store, SeededAmbient(0)), WAREHOUSE)
    for name, state in simulation.judge.tables.items():
        table = lake.table(name)
        for snapshot_id in {head for head in state.refs.values() if head is not None}:
            simulation.judge.read(name, snapshot_id, rows_of(table, snapshot_id))
