"""Steps that name, publish, read and drop versions of all tables at once."""

from tests.sim.actor import LAKE_REF, TABLES, Actor
from tests.sim.model import NamedTogether, forgotten, is_published, published_together
from tests.sim.simulation import rows_of

from icefield.errors import AlreadyExists, ConcurrentChange, InvalidInput, NoSuchSnapshot
from icefield.table.lakes.refs import LakeVersion


def name_all(actor: Actor) -> None:
    """Create a branch or a tag of all tables; drop it if there is one."""
    found = _open(actor)
    if found is not None:
        actor.attempt(
            f"drop {LAKE_REF} of {found.tables()}",
            dict.fromkeys(found.tables(), forgotten(LAKE_REF)),
            found.drop,
            refusals=(NoSuchSnapshot, InvalidInput),
            idle_if=lambda state: LAKE_REF not in state.refs,
        )
        return
    is_branch = actor.rng.random() < 0.6
    make = actor.lake.branch if is_branch else actor.lake.tag
    actor.attempt(
        f"{make.__name__} {LAKE_REF} of all tables",
        NamedTogether(LAKE_REF, is_branch, TABLES).effects(),
        lambda: make(LAKE_REF),
        refusals=(AlreadyExists, NoSuchSnapshot),
        idle_if=lambda state: None in state.refs.values(),  # nothing to tag
    )


def publish_all(actor: Actor) -> None:
    found = _open(actor)
    if found is None:
        return
    actor.attempt(
        f"publish {LAKE_REF} of {found.tables()}",
        dict.fromkeys(found.tables(), published_together(LAKE_REF)),
        found.publish,
        refusals=(NoSuchSnapshot, ConcurrentChange),
        idle_if=lambda state: is_published(state, LAKE_REF),
    )


def read_all(actor: Actor) -> None:
    """Read all tables at the name, while others commit."""
    found = _open(actor)
    for name in found.tables() if found is not None else ():
        try:
            table = found.table(name) if found is not None else actor.table()
            snapshot_id = table.refs()[LAKE_REF].snapshot_id
        except (NoSuchSnapshot, KeyError):  # it was dropped just now
            continue
        actor.simulation.judge.read(name, snapshot_id, rows_of(table, snapshot_id))


def _open(actor: Actor) -> LakeVersion | None:
    try:
        return actor.lake.at(LAKE_REF)
    except NoSuchSnapshot:
        return None
