"""icefield demo branches: a backfill on a branch while main is written, its publish, a collision, and undo."""

from decimal import Decimal

import pyarrow as pa

from icefield.cli.demo.directory import ORDERS
from icefield.cli.demo.orders import COUNTRIES, SCHEMA, arrow_orders
from icefield.cli.demo.stage import Stage, cut, require, total
from icefield.cli.history.diff import graph_lines
from icefield.cli.output import counted
from icefield.errors import CheckFailed, ConcurrentChange
from icefield.history.log import list_log
from icefield.table.table import Table

BRANCH = "backfill"
WRITERS, APPENDS = 2, 6
RAISED = {"amount": "cast(amount + 1 AS decimal(10, 2))"}
CHECK = {"amounts": "amount IS NULL OR amount <= 0"}
PROPERTIES = {"write.update.mode": "merge-on-read"}

Amounts = dict[int, Decimal]


def tell_branches(stage: Stage) -> dict[str, object]:
    """Change every order on a branch while others append to main, then publish."""
    say = stage.tell.say
    stage.tell.chapter("A backfill on a branch, while main is written")
    table = stage.lake.create_table(ORDERS, SCHEMA, properties=PROPERTIES, format_version=3)
    first = stage.rows // 2
    for start, stop in cut(0, first, 4):
        table.append(arrow_orders(start, stop, stage.rows))
    before = amounts(table)
    table.create_branch(BRANCH)
    countries = sorted(set(COUNTRIES))
    say(f"On the branch {BRANCH}, a process adds 1 to the amounts of {counted(first, 'order')}, country by country.")
    say(f"{WRITERS} processes append to main, one compacts main, and one adds up the orders that main had before.")
    slices = cut(first, stage.rows, WRITERS * APPENDS)
    workers = [
        stage.actor("backfill", "update_branch", table=ORDERS, branch=BRANCH, countries=countries, values=RAISED),
        *(
            stage.actor(f"writer-{at + 1}", "append_orders", table=ORDERS, total=stage.rows, slices=slices[at::WRITERS])
            for at in range(WRITERS)
        ),
    ]
    watchers = [
        stage.actor("compaction", "compact", table=ORDERS),
        stage.actor("reader", "read_total", table=ORDERS, column="amount", where=f"order_id < {first}"),
    ]
    events = stage.run("writing", workers, watchers)
    result = stage.show_reads(events["reader"], "the old amounts")
    say(f"So nobody saw the {total(events['backfill'], 'updated'):,} changed amounts before they are published.")

    stage.tell.chapter("A check, and the publish")
    refused = _publish_bad(stage, table)
    _publish(stage, table, before, first)
    stage.tell.chapter("The same order, changed on both sides")
    collided = _collide(stage, table)
    stage.tell.chapter("A way back")
    undone = _undo(stage, table)
    shown = graph_lines(list_log(table.metadata))[:12]
    say("The newest part of the history, as `icefield log --graph` draws it:")
    stage.tell.show("\n".join(shown))
    return {
        **result,
        "refused_rows": refused,
        "collisions": collided,
        "undone_to": undone,
        "orders": len(amounts(table)),
    }


def amounts(table: Table) -> Amounts:
    """Read the amount of each order."""
    rows = table.scan(select=["order_id", "amount"]).to_arrow().read_all()
    return dict(zip(rows.column("order_id").to_pylist(), rows.column("amount").to_pylist(), strict=True))


def _publish_bad(stage: Stage, table: Table) -> int:
    """Spoil a row of the branch, and have the publish refused."""
    bad = table.at(BRANCH)
    bad.update({"amount": "cast(-amount AS decimal(10, 2))"}, "order_id = 7")
    head = table.current_snapshot
    try:
        table.publish(BRANCH, checks=CHECK)
    except CheckFailed as error:
        require(table.current_snapshot == head, "a publish that was refused moved main")
        stage.tell.say(f"A mistake on the branch is found by a check: {error.message}.")
        stage.tell.say("Main has not moved. The branch takes it back:")
        snapshot = bad.undo()
        stage.tell.show(f"{BRANCH} is at snapshot {snapshot.snapshot_id if snapshot else None} again")
        return sum(failure.rows for failure in error.failures)
    require(False, "a check did not hold back a bad row")
    return 0


def _publish(stage: Stage, table: Table, before: Amounts, first: int) -> None:
    main = amounts(table)
    appended = {key: amount for key, amount in main.items() if key >= first}
    snapshot = table.publish(BRANCH, checks=CHECK, message="amounts corrected")
    assert snapshot is not None
    expected = {key: amount + 1 for key, amount in before.items()} | appended
    found = amounts(table)
    require(found == expected, f"{sum(found.get(k) != v for k, v in expected.items())} amounts are wrong")
    stage.tell.say(
        f"Published as snapshot {snapshot.snapshot_id}: all {len(before):,} old orders have their new amounts, and the "
        f"{len(appended):,} orders that were appended concurrently are there as they were."
    )


def _collide(stage: Stage, table: Table) -> int:
    table.create_branch("prices", replace=True)
    table.at("prices").update({"amount": "100.00"}, "order_id = 3")
    table.update({"amount": "200.00"}, "order_id = 3")
    try:
        table.publish("prices")
    except ConcurrentChange as error:
        stage.tell.say(f"Publish fails, and says what collides: {error.message}.")
        rows = sum(int(each.rows) for each in error.collisions)
        require(amounts(table)[3] == 200, "a publish that was refused changed main")
        table.publish("prices", on_collision="theirs")
        stage.tell.say(f"With on_collision='theirs' the branch wins: the amount of order 3 is now {amounts(table)[3]}.")
        require(amounts(table)[3] == 100, "a decided collision was not applied")
        return rows
    require(False, "a collision was not found")
    return 0


def _undo(stage: Stage, table: Table) -> str:
    after = _digest(table)
    table.undo()
    stage.tell.say(f"undo: the amount of order 3 is {amounts(table)[3]}, as before the publish.")
    require(amounts(table)[3] == 200, "undo did not take the publish back")
    head = table.undo()
    assert head is not None
    require(_digest(table).equals(after), "undo of an undo did not lead back")
    stage.tell.say(f"undo again: {amounts(table)[3]}. Each was one move of a pointer; no row was written.")
    return str(head.snapshot_id)


def _digest(table: Table) -> pa.Table:
    return table.scan().to_arrow().read_all().sort_by("order_id").combine_chunks()
