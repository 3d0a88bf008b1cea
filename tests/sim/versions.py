"""Steps that change names, shape and history, and leave the rows of a version as they are."""

import datetime

from tests.sim.actor import COLUMNS, Actor, ref_of
from tests.sim.model import (
    applied,
    expired,
    forgotten,
    has_main,
    is_published,
    named,
    published,
    rebased,
    replaced,
    rewritten,
    rolled_back,
    with_column,
    with_property,
    without_column,
    without_snapshots,
)

from icefield.errors import AlreadyExists, ConcurrentChange, InvalidInput, NoSuchSnapshot
from icefield.model.snapshot import MAIN, RefKind


def name_version(actor: Actor) -> None:
    table, name = actor.table(), actor.rng.choice(("x", "y"))
    versions = table.snapshots()
    if not versions:
        return
    snapshot_id = actor.rng.choice(versions[-2:]).snapshot_id
    make = table.create_branch if actor.rng.random() < 0.7 else table.create_tag
    actor.attempt(
        f"{make.__name__} {name} of {table} at {snapshot_id}",
        {table.name: named(name, snapshot_id)},
        lambda: make(name, at=snapshot_id),
        refusals=(AlreadyExists, NoSuchSnapshot),
    )


def forget_version(actor: Actor) -> None:
    table, name = actor.table(), actor.rng.choice(("x", "y"))
    known = table.refs().get(name)
    drop = table.drop_tag if known is not None and known.kind is RefKind.TAG else table.drop_branch
    actor.attempt(
        f"drop {name} of {table}",
        {table.name: forgotten(name)},
        lambda: drop(name),
        refusals=(NoSuchSnapshot, InvalidInput),
    )


def publish(actor: Actor) -> None:
    table = actor.table()
    others = [name for name in table.refs() if name != MAIN]
    if not others:
        return
    name = actor.rng.choice(others)
    actor.attempt(
        f"publish {name} of {table}",
        {table.name: published(name)},
        lambda: table.publish(name),
        refusals=(NoSuchSnapshot, ConcurrentChange),
        idle_if=lambda state: is_published(state, name),
    )


def rebase(actor: Actor) -> None:
    table = actor.table()
    others = [name for name, ref in table.refs().items() if name != MAIN and ref.kind is RefKind.BRANCH]
    if not others:
        return
    name, squashes = actor.rng.choice(others), actor.rng.random() < 0.3
    actor.attempt(
        f"rebase {name} of {table}",
        {table.name: rebased(name, squashes=squashes)},
        lambda: table.at(name).rebase(squash=squashes),
        refusals=(NoSuchSnapshot, ConcurrentChange, InvalidInput),
        idle_if=lambda state: has_main(state, name),
    )


def pick(actor: Actor) -> None:
    """Apply what a snapshot changed, or take it back."""
    table = actor.table()
    metadata = table.metadata
    is_revert = actor.rng.random() < 0.5
    found = metadata.ancestors(metadata.ref_head(MAIN)) if is_revert else metadata.snapshots
    known = [s for s in found if s.parent_snapshot_id is not None and metadata.snapshots.find(s.parent_snapshot_id)]
    if not known:
        return
    snapshot = actor.rng.choice(known)
    before, after = snapshot.parent_snapshot_id or 0, snapshot.snapshot_id
    first, second = (after, before) if is_revert else (before, after)
    change = table.revert if is_revert else table.cherry_pick
    actor.attempt(
        f"{'revert' if is_revert else 'pick'} {after} of {table}",
        {table.name: applied(first, second)},
        lambda: change(after),
        refusals=(NoSuchSnapshot, InvalidInput, ConcurrentChange),
        idle_if=lambda state: state.contents.get(first) == state.contents.get(second),
    )


def rollback(actor: Actor) -> None:
    table = actor.table()
    past = list(table.metadata.ancestors(table.metadata.ref_head(MAIN)))
    if not past:
        return
    target = actor.rng.choice(past[:3]).snapshot_id
    actor.attempt(
        f"roll {table} back to {target}",
        {table.name: rolled_back(target)},
        lambda: table.rollback(target),
        refusals=(InvalidInput, NoSuchSnapshot),
        idle_if=lambda state: state.refs[MAIN] == target,
    )


def evolve(actor: Actor) -> None:
    table = actor.table()
    more = [f.name for f in table.schema.fields if f.name not in COLUMNS]
    drops = bool(more) and actor.rng.random() < 0.4
    name = actor.rng.choice(more) if drops else actor.rng.choice("uvw")

    def change() -> None:
        with table.evolve() as evolution:
            if drops:
                evolution.drop_column(name)
            else:
                evolution.add_column(name, "int")

    effect = without_column(name) if drops else with_column(name)
    what = f"{'drop' if drops else 'add'} column {name} of {table}"
    actor.attempt(what, {table.name: effect}, change, refusals=(InvalidInput,))


def set_property(actor: Actor) -> None:
    table, key, value = actor.table(), actor.rng.choice("kl"), str(actor.rng.randrange(3))
    actor.attempt(
        f"set {key} = {value} on {table}",
        {table.name: with_property(key, value)},
        lambda: table.set_properties({key: value}),
        idle_if=lambda state: state.properties.get(key) == value,
    )


def compact(actor: Actor) -> None:
    table = actor.branch()
    effect = rewritten(ref_of(table))
    actor.attempt(f"compact {table}", {table.name: effect}, table.compact, idle_if=lambda _: True, is_rewrite=True)


def convert_equality_deletes(actor: Actor) -> None:
    table = actor.branch()
    effect = rewritten(ref_of(table))
    actor.attempt(
        f"convert equality deletes of {table}",
        {table.name: effect},
        table.convert_equality_deletes,
        idle_if=lambda _: True,
    )


def rewrite_deletes(actor: Actor) -> None:
    table = actor.branch()
    effect = rewritten(ref_of(table))
    actor.attempt(f"rewrite deletes of {table}", {table.name: effect}, table.rewrite_deletes, idle_if=lambda _: True)


def rewrite_manifests(actor: Actor) -> None:
    table = actor.branch()
    effect = rewritten(ref_of(table))
    what, change = f"rewrite manifests of {table}", table.rewrite_manifests
    actor.attempt(what, {table.name: effect}, change, idle_if=lambda _: True, is_rewrite=True)


def remove_snapshots(actor: Actor) -> None:
    table = actor.table()
    kept = {ref.snapshot_id for ref in table.refs().values()}
    others = [s.snapshot_id for s in table.snapshots() if s.snapshot_id not in kept]
    if not others:
        return
    gone = frozenset(actor.rng.sample(others, 1))
    actor.attempt(
        f"remove {sorted(gone)} of {table}",
        {table.name: without_snapshots(gone)},
        lambda: table.remove_snapshots(gone),
        refusals=(InvalidInput, NoSuchSnapshot),
    )


def expire(actor: Actor) -> None:
    """Expire all snapshots but the last of every branch."""
    table, keep = actor.table(), actor.rng.choice((1, 2))
    later = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)
    actor.attempt(
        f"expire {table}, keep {keep}",
        {table.name: expired(keep)},
        lambda: table.expire_snapshots(later, keep_last=keep),
        idle_if=lambda _: True,
    )


def replace(actor: Actor) -> None:
    table = actor.table()
    actor.attempt(
        f"replace {table}",
        {table.name: replaced(COLUMNS)},
        lambda: table.replace("id long, n long"),
        idle_if=lambda state: state.refs[MAIN] is None and state.columns == COLUMNS,
    )
