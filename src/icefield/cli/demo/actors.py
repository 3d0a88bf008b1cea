"""Processes that work on one lake at the same time: writers, readers, compaction, upkeep; one role each.

A role yields what it did, step by step. Readers, compaction and upkeep go on until the demo stops them, and do one
step at least.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import pyarrow.compute as pc

from icefield.cli.demo.accounts import transfers
from icefield.cli.demo.orders import arrow_orders
from icefield.cli.demo.processes import DemoProcess, Event, serve
from icefield.cli.demo.race import Task, append_slices
from icefield.config.connect import connect
from icefield.errors import ConcurrentChange, RowsMoved
from icefield.lake import Lake

MODULE = "icefield.cli.demo.actors"
PAUSE_SECONDS = 0.1
SMALL = {"min-input-files": "2"}


def actor(name: str, role: str, lake: str, **given: object) -> DemoProcess:
    """Start a process that plays a role."""
    return DemoProcess(name, MODULE, {"role": role, "lake": lake, **given})


def merge_transfers(lake: Lake, given: Event, _: threading.Event) -> Iterator[Event]:
    """Merge batches of transfers. One whose rows another writer changed first runs again."""
    table = lake.table(given["table"])
    for number in range(given["batches"]):
        batch = transfers(given["writer"], number, given["accounts"])
        merge = table.merge(batch, on=["id"]).when_matched().update({"balance": "target.balance + source.delta"})
        merge = merge.when_not_matched().insert({"id": "source.id", "balance": "source.delta"})
        result, again, moved = None, 0, 0
        while result is None:
            try:
                result = merge.execute()
            except RowsMoved:
                moved += 1
            except ConcurrentChange:
                again += 1
        yield {"updated": result.rows_updated, "inserted": result.rows_inserted, "again": again, "moved": moved}


def move_between(lake: Lake, given: Event, _: threading.Event) -> Iterator[Event]:
    """Move money from one table to another, in transactions that change both."""
    for number in range(given["batches"]):
        again = 0
        while True:
            try:
                with lake.transaction() as tx:
                    key = f"id % {given['batches']} = {number}"
                    source, target = (tx.table(name) for name in given["tables"])
                    source.update({"balance": f"balance - {number + 1}"}, key)
                    target.update({"balance": f"balance + {number + 1}"}, key)
                break
            except ConcurrentChange:
                again += 1
        yield {"moved": number + 1, "again": again}


def append_task(_: Lake, given: Event, __: threading.Event) -> Iterator[Event]:
    """Append the slices of a writer of the story, and count the races that it lost."""
    task = Task(**{name: given[name] for name in Task.__dataclass_fields__})
    for landed in append_slices(task, lambda start, stop: arrow_orders(start, stop, task.total)):
        yield asdict(landed)


def append_orders(lake: Lake, given: Event, _: threading.Event) -> Iterator[Event]:
    """Append slices of orders, one commit each."""
    table = lake.table(given["table"])
    for start, stop in given["slices"]:
        snapshot = table.append(arrow_orders(start, stop, given["total"]))
        assert snapshot is not None
        yield {"rows": stop - start, "files": int(snapshot.summary["added-data-files"])}


def update_branch(lake: Lake, given: Event, _: threading.Event) -> Iterator[Event]:
    """Change orders on a branch, one country after another."""
    table = lake.table(given["table"]).at(given["branch"])
    for country in given["countries"]:
        result = table.update(given["values"], f"country = '{country}'")
        yield {"country": country, "updated": result.rows_updated}


def read_total(lake: Lake, given: Event, stopped: threading.Event) -> Iterator[Event]:
    """Read the table again and again; report the version, the rows and the total of a column."""
    table, column = lake.table(given["table"]), given["column"]
    where = given.get("where")
    while True:
        scan = table.scan(where, select=[column])
        rows = scan.to_arrow().read_all()
        total = pc.sum(rows.column(column)).as_py()
        yield {"snapshot": str(scan.snapshot_id), "rows": rows.num_rows, "total": str(total)}
        if stopped.wait(PAUSE_SECONDS):
            return


def compact(lake: Lake, given: Event, stopped: threading.Event) -> Iterator[Event]:
    """Compact the table again and again."""
    table = lake.table(given["table"])
    while True:
        result = table.compact(options=SMALL)
        left_out = result.groups_left_out
        yield {"removed": result.files_removed, "added": result.files_added, "left_out": left_out}
        if stopped.wait(PAUSE_SECONDS):
            return


def keep_up(lake: Lake, given: Event, stopped: threading.Event) -> Iterator[Event]:
    """Run the upkeep of the lake again and again."""
    while True:
        result = lake.upkeep()
        steps = [step for table in result.tables for step in table.steps]
        yield {"done": [step.step for step in steps if step.outcome == "done"], "freed": result.bytes_freed}
        if stopped.wait(PAUSE_SECONDS):
            return


ROLES: dict[str, Callable[[Lake, Event, threading.Event], Iterator[Event]]] = {
    role.__name__: role
    for role in (merge_transfers, move_between, append_task, append_orders, update_branch, read_total, compact, keep_up)
}


def play(given: dict[str, Any], stopped: threading.Event) -> Iterator[Event]:
    """Play the role that is given."""
    with connect(given["lake"]) as lake:
        yield from ROLES[given["role"]](lake, given, stopped)


if __name__ == "__main__":
    serve(play)
