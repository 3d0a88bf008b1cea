"""Steps that drop, restore, rename and purge one more table, of which only rows that were appended are known.

Its files are judged like those of all tables: nothing is removed that the catalog leads to, by whatever name.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from tests.sim.actor import Actor, arrow
from tests.sim.model import Intent, Violation
from tests.sim.simulation import Simulation

from icefield.errors import (
    AlreadyExists,
    CommitError,
    CommitStateUnknown,
    IcefieldError,
    InvalidInput,
    LeaseLost,
    MissingFile,
    NotFound,
)
from icefield.lake import Lake

NAMES = ("sim.c", "sim.d")
ALLOWED = (AlreadyExists, CommitError, InvalidInput, LeaseLost, MissingFile, NotFound)


@dataclass
class DroppedModel:
    """What is known of the table: the rows of appends that succeeded, and whether anybody asked for a purge."""

    rows: set[tuple[int, int]] = field(default_factory=set)
    is_purged: bool = False


def live_pointers(simulation: Simulation) -> dict[str, str]:
    """Return where the table is, by its name."""
    entries = simulation.catalog.entries().items()
    return {str(name): entry.pointer for name, entry in entries if str(name) in NAMES}


def steps_of(model: DroppedModel) -> dict[str, tuple[int, Callable[[Actor], None]]]:
    """Return the steps, and how often each is made."""

    def append(actor: Actor) -> None:
        rows = actor.rows(1)
        if _act(actor, f"append {rows}", lambda: actor.lake.table(_name(actor)).append(arrow(rows))):
            model.rows.update(rows)

    def drop(actor: Actor) -> None:
        purge = actor.rng.random() < 0.7
        model.is_purged |= purge
        _act(actor, f"drop, purge={purge}", lambda: actor.lake.drop_table(_name(actor), purge=purge))

    def undrop(actor: Actor) -> None:
        _act(actor, "undrop", lambda: actor.lake.undrop(_name(actor), to=_name(actor)))

    def rename(actor: Actor) -> None:
        one, other = actor.rng.sample(NAMES, 2)
        _act(actor, f"rename {one}", lambda: actor.lake.rename_table(one, other))

    def purge(actor: Actor) -> None:
        _act(actor, "purge", actor.lake.purge_dropped)

    def remove_orphans(actor: Actor) -> None:
        _act(actor, "orphans", lambda: actor.lake.table(_name(actor)).remove_orphans(unsafe=True))

    return {
        "append to the dropped": (1, append),
        "drop": (2, drop),
        "undrop": (2, undrop),
        "rename": (2, rename),
        "purge": (2, purge),
        "orphans of the dropped": (1, remove_orphans),
    }


def check_end(simulation: Simulation, lake: Lake, model: DroppedModel) -> None:
    """Judge the end: the table has its rows, or was purged by request."""
    if not live_pointers(simulation):
        with suppress(InvalidInput):  # a purge that died has begun to delete it
            for dropped in lake.dropped():
                lake.undrop(str(dropped.table_uuid))
                break
    if not live_pointers(simulation) and not model.is_purged:
        try:  # the record of the drop could not be written, but its files are all there
            lake.register_table(NAMES[0], simulation.dropped[-1])
        except IcefieldError as error:
            raise Violation("a table is gone, though nobody asked for a purge") from error
    live = live_pointers(simulation)
    if not live:
        return
    ((name, pointer),) = live.items()
    metadata = simulation.judge.reading.metadata(pointer)
    (head,) = (s for s in metadata["snapshots"] if s["snapshot-id"] == metadata["current-snapshot-id"])
    found = set(simulation.judge.reading.content(head) or ())
    if missing := model.rows - found:
        raise Violation(f"{name} has lost {sorted(missing)}")


def _name(actor: Actor) -> str:
    return actor.rng.choice(NAMES)


def _act(actor: Actor, what: str, call: Callable[[], object]) -> bool:
    """Do something, and return whether it certainly succeeded."""
    simulation = actor.simulation
    simulation._acting[actor.name] = Intent(actor.name, what, {})
    simulation.tell(f"begins: {what}")
    try:
        call()
    except CommitStateUnknown:
        simulation.tell(f"does not know of: {what}")
        return False
    except IcefieldError as error:
        if not (isinstance(error, ALLOWED) or simulation.is_expected(error)):
            raise
        simulation.tell(f"fails with {type(error).__name__}: {what}")
        return False
    simulation.tell(f"has done: {what}")
    return True
