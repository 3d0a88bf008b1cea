"""What the simulated processes do: a new kind of step is one function and one line here."""

from collections.abc import Callable

from tests.sim import lake_versions, looking, versions, writing
from tests.sim.actor import BRANCHES, CHANGES, HOT, MIXED, TRANSFERS, Actor

from icefield.errors import IcefieldError

STEPS: dict[str, tuple[int, Callable[[Actor], None]]] = {
    "append": (6, writing.append),
    "overwrite": (4, writing.overwrite),
    "delete": (4, writing.delete),
    "upsert": (2, writing.upsert),
    "update": (3, writing.update),
    "merge": (3, writing.merge),
    "equality upsert": (2, writing.equality_upsert),
    "job": (4, writing.run_job),
    "move rows": (2, writing.move_rows),
    "write what was read": (2, writing.write_what_was_read),
    "write after reading": (3, writing.write_after_reading),
    "change twice": (1, writing.change_twice),
    "name version": (2, versions.name_version),
    "forget version": (1, versions.forget_version),
    "publish": (2, versions.publish),
    "rebase": (2, versions.rebase),
    "pick or revert": (2, versions.pick),
    "name versions of all": (2, lake_versions.name_all),
    "publish all": (2, lake_versions.publish_all),
    "read all at a name": (1, lake_versions.read_all),
    "roll back": (1, versions.rollback),
    "evolve": (1, versions.evolve),
    "property": (1, versions.set_property),
    "compact": (2, versions.compact),
    "convert equality deletes": (2, versions.convert_equality_deletes),
    "rewrite deletes": (2, versions.rewrite_deletes),
    "rewrite manifests": (1, versions.rewrite_manifests),
    "remove snapshots": (1, versions.remove_snapshots),
    "expire": (1, versions.expire),
    "replace": (1, versions.replace),
    "read": (2, looking.read),
    "read together": (1, looking.read_together),
}
STEPS_OF = {
    MIXED: list(STEPS),
    HOT: ["append", "overwrite", "delete", "job", "write after reading"],
    CHANGES: ["append", "delete", "upsert", "update", "merge"],
    BRANCHES: [
        *("append", "delete", "upsert", "update", "compact", "publish", "rebase", "pick or revert", "roll back"),
        *("name version", "name versions of all", "publish all", "read all at a name"),
    ],
    TRANSFERS: ["append", "move rows", "write what was read", "write after reading", "read together"],
}


def step(actor: Actor) -> None:
    """Do one thing; what may fail before there is anything to judge is passed over."""
    names = STEPS_OF[actor.shared.mood]
    weights = [STEPS[name][0] for name in names]
    (name,) = actor.rng.choices(names, weights)
    try:
        STEPS[name][1](actor)
    except IcefieldError as error:
        if not actor.simulation.is_expected(error):
            raise
        actor.simulation.tell(f"fails at {name}")
