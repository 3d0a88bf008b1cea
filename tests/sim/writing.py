"""Steps that change rows."""

from collections.abc import Callable
from functools import partial

from tests.sim.actor import KEYS, TABLES, Actor, Job, arrow, ref_of
from tests.sim.model import (
    Effect,
    Expected,
    Landing,
    appended,
    matches,
    merged,
    only_if_read,
    only_if_rows,
    overwritten,
    replaced_by_key,
    together,
    updated,
    upserted,
)
from tests.sim.reading import Rows
from tests.sim.simulation import rows_of

from icefield.errors import AlreadyExists, InvalidInput, SchemaMismatch
from icefield.model.snapshot import MAIN

SCALE = 1000  # of what changes add to values, so that these stay unique
RETRIES = (0, 0, 2)


def append(actor: Actor) -> None:
    table, rows = actor.branch(), actor.rows()
    effect = appended(rows, ref_of(table))
    actor.attempt(f"append {rows} to {table}", {table.name: effect}, lambda: table.append(arrow(rows)))


def overwrite(actor: Actor) -> None:
    table, rows = actor.branch(), actor.rows()
    key = actor.rng.choice((None, *range(KEYS)))
    effect = overwritten(rows, key, ref_of(table), actor.shared.isolation)
    actor.attempt(
        f"overwrite {key} of {table} by {rows}",
        {table.name: effect},
        lambda: table.overwrite(arrow(rows), where=None if key is None else f"id = {key}", check_rows=False),
    )


def delete(actor: Actor) -> None:
    table, key = actor.branch(), actor.rng.randrange(KEYS)
    ref = ref_of(table)
    actor.attempt(
        f"delete {key} of {table}",
        {table.name: overwritten((), key, ref, actor.shared.isolation)},
        lambda: table.delete(f"id = {key}"),
        idle_if=lambda state: not any(matches(row, key) for row in state.rows(ref)),
    )


def run_job(actor: Actor) -> None:
    """Make a change under an idempotency key: a new one, or one that was tried before, here or elsewhere."""
    jobs = actor.shared.jobs
    if not jobs or actor.rng.random() < 0.4:
        key = actor.rng.choice((None, *range(KEYS)))
        jobs.append(Job(f"job-{len(jobs)}", actor.choose_table(), key, actor.rows()))
    job = actor.rng.choice(jobs)
    table = actor.lake.table(job.table)
    effect: Effect = appended(job.rows)
    change: Callable[[], object] = partial(table.append, arrow(job.rows), idempotency_key=job.idempotency_key)
    if job.key is not None:
        effect = overwritten(job.rows, job.key, MAIN, actor.shared.isolation)
        where = f"id = {job.key}"
        change = partial(
            table.overwrite, arrow(job.rows), where=where, check_rows=False, idempotency_key=job.idempotency_key
        )
    what = f"{job.idempotency_key}: {job.rows} into {table} at {job.key}"
    actor.attempt(what, {table.name: effect}, change, idempotency_key=job.idempotency_key, refusals=(InvalidInput,))


def move_rows(actor: Actor) -> None:
    """Take the rows of a key out of one table and into another, in one transaction."""
    source, target = actor.rng.sample(TABLES, 2)
    key = actor.rng.randrange(KEYS)
    with actor.lake.transaction() as reading:
        reading.pin([source, target])
        found = tuple(row for row in rows_of(reading.table(source)) if matches(row, key))
    if not found:
        return
    effects = {source: overwritten((), key, MAIN, actor.shared.isolation), target: appended(found)}

    def change() -> None:
        with actor.lake.transaction() as transaction:
            transaction.pin([source, target])
            now = tuple(row for row in rows_of(transaction.table(source)) if matches(row, key))
            if now != found:
                raise AlreadyExists("somebody else moved them")
            transaction.table(source).delete(f"id = {key}")
            transaction.table(target).append(arrow(found))

    what = f"move {found} from {source} to {target}"
    actor.attempt(what, effects, change, refusals=(AlreadyExists,))


def write_what_was_read(actor: Actor) -> None:
    """Write to one table how many rows another has; under serializable isolation that must be so when it lands."""
    source, target = actor.rng.sample(TABLES, 2)
    (row,) = actor.rows(1)
    read: list[int] = []

    def must_be_as_read(expected: Expected, landing: Landing) -> Expected:
        return only_if_read(read[0])(expected, landing)

    def change() -> None:
        with actor.lake.transaction() as transaction:
            transaction.pin([source, target])
            read.append(transaction.table(source).count())
            transaction.table(target).append(arrow((row,)))

    effects = {source: must_be_as_read, target: appended((row,))}
    actor.attempt(f"append {row} to {target} after a look at {source}", effects, change)


def write_after_reading(actor: Actor) -> None:
    """Read rows of a table and change it in one transaction; when that lands, the rows are as they were read."""
    name, (row,) = actor.choose_table(), actor.rows(1)
    key, target = actor.rng.choice((None, *range(KEYS))), actor.rng.randrange(KEYS)
    verb = actor.rng.choice(("append", "overwrite", "upsert"))
    where = None if key is None else f"id = {key}"
    read: list[Rows] = []
    effects: dict[str, Effect] = {
        "append": appended((row,)),
        "overwrite": overwritten((row,), target, MAIN, actor.shared.isolation),
        "upsert": upserted((row,), MAIN),
    }

    def change() -> None:
        with actor.lake.transaction() as transaction:
            inside = transaction.table(name)
            read.append(rows_of(inside, where=where))
            if verb == "overwrite":
                inside.overwrite(arrow((row,)), where=f"id = {target}", check_rows=False)
            elif verb == "upsert":
                inside.upsert(arrow((row,)), on=["id"])
            else:
                inside.append(arrow((row,)))

    def effect(expected: Expected, landing: Landing) -> Expected:
        return together(only_if_rows(read[-1], key), effects[verb])(expected, landing)

    what = f"{verb} {row} at {target} of {name} after reading {key}"
    actor.attempt(what, {name: effect}, change)


def change_twice(actor: Actor) -> None:
    """Make several changes to one table in one transaction, in either order."""
    table, rows, more = actor.rng.choice(TABLES), actor.rows(), actor.rows(1)
    key, is_append_first = actor.rng.randrange(KEYS), actor.rng.random() < 0.5

    def change() -> None:
        with actor.lake.transaction() as transaction:
            inside = transaction.table(table)
            if is_append_first:
                inside.append(arrow(rows))
            inside.overwrite(arrow(more), where=f"id = {key}", check_rows=False)
            if not is_append_first:
                inside.append(arrow(rows))

    overwrite, append = overwritten(more, key, MAIN, actor.shared.isolation), appended(rows)
    effect = together(append, overwrite) if is_append_first else together(overwrite, append)
    order = "after" if is_append_first else "before"
    actor.attempt(f"overwrite {key} by {more} {order} appending {rows} in {table}", {table: effect}, change)


def upsert(actor: Actor) -> None:
    """Update rows by key, or insert them; the keys count as read, whatever the isolation."""
    table = actor.branch()
    rows = tuple(dict(actor.rows()).items())
    effect = upserted(rows, ref_of(table))
    actor.attempt(f"upsert {rows} into {table}", {table.name: effect}, lambda: table.upsert(arrow(rows), on=["id"]))


def update(actor: Actor) -> None:
    """Add to the values of a key, and run it again if that conflicts, or not."""
    table, key = actor.branch(), actor.rng.randrange(KEYS)
    ref, more, tries = ref_of(table), actor.rows(1)[0][1] * SCALE, actor.rng.choice(RETRIES)
    actor.attempt(
        f"add {more} to {key} of {table}",
        {table.name: updated(key, more, ref, actor.shared.isolation)},
        lambda: table.update({"n": f"n + {more}"}, f"id = {key}", retry_conflicts=tries),
        idle_if=lambda state: not any(matches(row, key) for row in state.rows(ref)),
    )


def merge(actor: Actor) -> None:
    """Delete, change or insert rows by key; the keys count as read, whatever the isolation."""
    table, tries = actor.branch(), actor.rng.choice(RETRIES)
    rows = tuple(dict(actor.rows()).items())

    def change() -> object:
        merging = table.merge(arrow(rows), on=["id"]).when_matched("source.n % 2 = 0").delete()
        merging = merging.when_matched().update({"n": f"target.n + source.n * {SCALE}"})
        return merging.when_not_matched().insert({"id": "source.id", "n": "source.n"}).execute(retry_conflicts=tries)

    actor.attempt(f"merge {rows} into {table}", {table.name: merged(rows, SCALE, ref_of(table))}, change)


def equality_upsert(actor: Actor) -> None:
    """Replace rows by key without reading them; it deletes whatever was committed before."""
    table = actor.branch()
    rows = tuple(dict(actor.rows()).items())
    effect = replaced_by_key(rows, ref_of(table))
    actor.attempt(
        f"upsert {rows} into {table} by equality deletes",
        {table.name: effect},
        lambda: table.upsert(arrow(rows), on=["id"], mode="equality"),
        refusals=(InvalidInput, SchemaMismatch),  # another process may have added a column
    )
