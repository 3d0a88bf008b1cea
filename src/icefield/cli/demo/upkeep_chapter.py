"""icefield demo upkeep: compaction, expiry and deletion of files beside writers and a long read."""

from collections import Counter

import pyarrow as pa

from icefield.cli.demo.directory import ORDERS
from icefield.cli.demo.orders import SCHEMA, arrow_orders
from icefield.cli.demo.stage import Stage, cut, require, total
from icefield.cli.output import counted
from icefield.showing import format_bytes
from icefield.table.table import Table

WRITERS, APPENDS = 2, 16
FIRST_FILES = 8
MOST_RUNS = 4
# The periods are those of a demo: files go as soon as nothing needs them, and other engines must not read.
PROPERTIES = {
    "icefield.gc.foreign-readers": "false",
    "icefield.gc.grace-ms": "1",
    "icefield.gc.metadata-grace-ms": "1",
    "history.expire.max-snapshot-age-ms": "1",
    "write.metadata.previous-versions-max": "4",
}


def tell_upkeep(stage: Stage) -> dict[str, object]:
    """Write many small files while upkeep runs, and show what it did to files, rows and readers."""
    say = stage.tell.say
    stage.tell.chapter("Small files, and upkeep at the same time")
    table = stage.lake.create_table(ORDERS, SCHEMA, properties=PROPERTIES)
    first = stage.rows // 2
    for start, stop in cut(0, first, FIRST_FILES):
        table.append(arrow_orders(start, stop, stage.rows))
    long_read = table.scan(select=["order_id"]).to_arrow()
    part = long_read.read_next_batch()
    say(
        f"A reader opens {ORDERS}, with {counted(first, 'row')} in {counted(FIRST_FILES, 'file')}, and reads "
        f"{counted(part.num_rows, 'row')}; it will read on when all is over."
    )
    appends = WRITERS * APPENDS
    say(f"{WRITERS} processes append {appends} small batches, while another runs the upkeep of the lake over and over:")
    say("compaction, expiry of all snapshots but the newest, and deletion of files that nothing needs.")
    slices = cut(first, stage.rows, appends)
    writers = [
        stage.actor(f"writer-{at + 1}", "append_orders", table=ORDERS, total=stage.rows, slices=slices[at::WRITERS])
        for at in range(WRITERS)
    ]
    events = stage.run("appending", writers, [stage.actor("upkeep", "keep_up")])

    stage.tell.chapter("What came of it")
    done = Counter(step for run in events["upkeep"] for step in run["done"])
    stage.table(("step of upkeep", "times"), sorted(done.items()))
    written = FIRST_FILES + sum(total(events[writer.name], "files") for writer in writers)
    snapshots = FIRST_FILES + sum(len(events[writer.name]) for writer in writers)
    _keep_up(stage)
    held, leases = _on_disk(stage), len(table.leases())
    rest = long_read.read_all()
    seen = pa.concat_tables([pa.Table.from_batches([part]), rest]).column("order_id").to_pylist()
    require(sorted(seen) == list(range(first)), f"the long read returned {len(seen)} rows of {first}")
    say(
        f"The reader of the beginning goes on, and gets all {len(seen):,} rows of its version, which has expired "
        f"since: {counted(leases, 'lease')} held its files."
    )
    long_read.close()
    _keep_up(stage)
    return _check(stage, table, written, snapshots, held)


def _check(stage: Stage, table: Table, written: int, snapshots: int, held: int) -> dict[str, object]:
    say = stage.tell.say
    on_disk, in_table = _on_disk(stage), table.scan().files().num_rows
    stage.table(
        ("", "data files", "snapshots"),
        [
            ["written by the appends", written, snapshots],
            ["on disk, before the reader had ended", held, ""],
            ["on disk, afterwards", on_disk, len(table.snapshots())],
            ["named by the table", in_table, ""],
        ],
    )
    ids = table.scan(select=["order_id"]).to_arrow().read_all().column("order_id").to_pylist()
    require(sorted(ids) == list(range(stage.rows)), f"the table has {len(ids)} rows of {stage.rows}")
    require(in_table == on_disk < held, f"{on_disk} files are left on disk, of {held} while the reader read")
    health = table.fsck(deep=True)
    require(health.is_healthy, f"fsck found faults: {health}")
    say(f"The table has all {len(ids):,} orders, once each. Every file that it names was opened and checked:")
    stage.tell.show(str(health))
    report = table.report()
    say(
        f"The directory holds {format_bytes(report.stored.bytes)}, of which {format_bytes(report.live.bytes)} are live."
    )
    return {"rows": len(ids), "files_written": written, "files_held": held, "files_on_disk": on_disk}


def _keep_up(stage: Stage) -> None:
    """Do what is left to do: a run marks files, and the next one deletes them."""
    for _ in range(MOST_RUNS):
        if not stage.lake.upkeep().is_due:
            return


def _on_disk(stage: Stage) -> int:
    return sum("/data/" in path.as_posix() for path in stage.directory.rglob("*.parquet"))
