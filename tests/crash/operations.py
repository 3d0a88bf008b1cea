"""The operations that are killed at every step, each a small function on a lake that `prepare` made."""

import datetime
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from icefield.lake import Lake
from icefield.table.table import Table

# Few versions are kept, so that every commit also removes an old metadata file after its swap.
PROPERTIES = {
    "write.metadata.previous-versions-max": "2",
    "write.merge.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
}


@dataclass(frozen=True)
class Operation:
    """run: does it. repeatable: once it is done, doing it again changes nothing (most have a token for that)."""

    run: Callable[[Lake], object]
    repeatable: bool = True


def prepare(lake: Lake) -> None:
    """Make tables with a history, so that there is something to lose."""
    t, u = (lake.create_table(name, "id long, text string", properties=PROPERTIES) for name in ("a.t", "a.u"))
    t.append(rows(1, 2))
    t.append(rows(3, 4))
    u.append(rows(3, 4))
    u.upsert(rows(3), on=["id"], mode="equality")
    v = lake.create_table("a.v", "id long, text string", properties=PROPERTIES)
    v.append(rows(1, 2, 3, 4))
    for n in (1, 2):
        v.delete(f"id = {n}", mode="merge-on-read")
    lake.create_table("a.empty", "id long, text string", properties=PROPERTIES)
    part_branches(lake.create_table("a.h", "id long, text string", properties=PROPERTIES))
    part_the_lake(lake)


def part_branches(h: Table) -> None:
    """Make a branch that has diverged from main, in rows of one file."""
    h.append(rows(1, 2, 3, 4))
    h.create_branch("b")
    h.at("b").update({"text": "'changed'"}, "id = 1")
    h.at("b").append(rows(5))
    h.delete("id = 3", mode="merge-on-read")
    h.append(rows(6))


def part_the_lake(lake: Lake) -> None:
    """Make a branch of two tables, one of which has diverged from it."""
    names = ["a.p", "a.q"]
    for name in names:
        lake.create_table(name, "id long, text string", properties=PROPERTIES).append(rows(1, 2))
    work = lake.branch("w", tables=names)
    for name in names:
        work.table(name).update({"text": "'changed'"}, "id = 1")
    lake.table("a.p").append(rows(3))


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "text": [f"row {n}" for n in ids]})


def append(lake: Lake) -> None:
    lake.table("a.t").append(rows(5, 6), idempotency_key="append")


def overwrite(lake: Lake) -> None:
    lake.table("a.t").overwrite(rows(7), where="id >= 2 AND id <= 3", idempotency_key="overwrite", check_rows=False)


def delete(lake: Lake) -> None:
    lake.table("a.t").delete("id <= 2", idempotency_key="delete")  # a whole file, so that no data file is written


def change_rows(lake: Lake) -> None:
    lake.table("a.t").upsert(rows(3, 10), on=["id"], idempotency_key="row-delta")  # a delete file and a data file


def update(lake: Lake) -> None:
    # A file that is rewritten, a vector for another one, and new rows.
    lake.table("a.t").update({"text": "concat(text, '!')"}, "id >= 2", idempotency_key="update", mode="auto")


def merge(lake: Lake) -> None:
    merging = lake.table("a.t").merge(rows(1, 4, 12), on=["id"], idempotency_key="merge")
    merging = merging.when_matched("target.id = 1").delete().when_matched().update({"text": "source.text"})
    merging.when_not_matched().insert_all().execute()


def upsert_by_equality(lake: Lake) -> None:
    lake.table("a.t").upsert(rows(3, 11), on=["id"], mode="equality", idempotency_key="equality")


def convert(lake: Lake) -> None:
    lake.table("a.u").convert_equality_deletes()


def rewrite_deletes(lake: Lake) -> None:
    lake.table("a.v").rewrite_deletes()


def expire(lake: Lake) -> None:
    lake.table("a.t").expire_snapshots(datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC), keep_last=1)


def evolve(lake: Lake) -> None:
    with lake.table("a.t").evolve() as change:
        change.add_column("note", "string")


def create(lake: Lake) -> None:
    lake.create_table("b.new", "id long, text string", properties=PROPERTIES)


def create_with_rows(lake: Lake) -> None:
    lake.create_table_as("b.full", rows(1, 2), properties=PROPERTIES)


def replace_with_rows(lake: Lake) -> None:
    lake.create_table_as("a.t", rows(9), replace=True)


def begin_branch(lake: Lake) -> None:
    lake.table("a.empty").create_branch("b")


def transact(lake: Lake) -> None:
    with lake.transaction() as tx:
        tx.table("a.t").append(rows(8), idempotency_key="transfer")
        tx.table("a.u").overwrite(rows(9), where="id = 4", idempotency_key="transfer", check_rows=False)


def compact(lake: Lake) -> None:
    lake.table("a.t").compact()


def publish(lake: Lake) -> None:
    lake.table("a.h").publish("b")


def rebase(lake: Lake) -> None:
    lake.table("a.h").at("b").rebase()


def cherry_pick(lake: Lake) -> None:
    h = lake.table("a.h")
    (updated,) = (s for s in h.snapshots() if s.operation == "overwrite")
    h.cherry_pick(updated.snapshot_id)


def revert(lake: Lake) -> None:
    h = lake.table("a.h")
    (deleted,) = (s for s in h.snapshots() if s.operation == "delete")
    h.revert(deleted.snapshot_id)  # a data file with the row that it restores


def undo(lake: Lake) -> None:
    lake.table("a.h").undo()


def branch_the_lake(lake: Lake) -> None:
    lake.branch("experiment", tables=["a.t", "a.u", "a.empty"])


def publish_tables(lake: Lake) -> None:
    with lake.transaction() as tx:
        tx.table("a.h").publish("b")
        tx.table("a.t").append(rows(8), idempotency_key="with-publish")


def publish_the_lake(lake: Lake) -> None:
    lake.at("w").publish()


OPERATIONS = {
    "append": Operation(append),
    "overwrite": Operation(overwrite),
    "delete": Operation(delete),
    "row delta": Operation(change_rows),
    "update": Operation(update),
    "merge": Operation(merge),
    "equality upsert": Operation(upsert_by_equality),
    "conversion": Operation(convert),
    "rewritten deletes": Operation(rewrite_deletes),
    "expiry": Operation(expire),
    "evolve": Operation(evolve, repeatable=False),
    "create": Operation(create, repeatable=False),
    "create with rows": Operation(create_with_rows, repeatable=False),
    "replace with rows": Operation(replace_with_rows, repeatable=False),
    "empty branch": Operation(begin_branch, repeatable=False),
    "transaction": Operation(transact),
    "compaction": Operation(compact, repeatable=False),
    "publish": Operation(publish),
    "rebase": Operation(rebase),
    "cherry-pick": Operation(cherry_pick, repeatable=False),
    "revert": Operation(revert, repeatable=False),
    "undo": Operation(undo, repeatable=False),
    "lake-wide branch": Operation(branch_the_lake, repeatable=False),
    "publish in a transaction": Operation(publish_tables),
    "lake-wide publish": Operation(publish_the_lake),
}
