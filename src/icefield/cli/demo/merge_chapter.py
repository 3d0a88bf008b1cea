"""icefield demo merge: MERGE by several writers at once, with readers and compaction."""

from collections import Counter

from icefield.cli.demo.accounts import SCHEMA, balances_of, first_accounts, replay, transfers
from icefield.cli.demo.directory import NAMESPACE
from icefield.cli.demo.stage import Stage, cut, require, total
from icefield.cli.output import counted

ACCOUNTS = f"{NAMESPACE}.accounts"
WRITERS, BATCHES = 3, 6
PROPERTIES = {"write.merge.mode": "merge-on-read"}


def tell_merge(stage: Stage) -> dict[str, object]:
    """Move money by concurrent merges, and compare the balances with plain arithmetic."""
    say = stage.tell.say
    stage.tell.chapter("Accounts that several writers change at once")
    table = stage.lake.create_table(ACCOUNTS, SCHEMA, properties=PROPERTIES, format_version=3)
    for start, stop in cut(0, stage.rows, 4):
        table.append(first_accounts(stage.rows).slice(start, stop - start))
    batches = [transfers(writer, number, stage.rows) for writer in range(WRITERS) for number in range(BATCHES)]
    say(f"{ACCOUNTS} has {counted(table.count(), 'row')} in {counted(table.scan().files().num_rows, 'file')}.")
    say(
        f"{WRITERS} processes apply {len(batches)} batches by MERGE. A batch moves money between about "
        f"{batches[0].num_rows} accounts, and opens one."
    )
    say("At the same time, one process compacts the table over and over, and one adds up all balances.")

    keys = {"table": ACCOUNTS, "accounts": stage.rows, "batches": BATCHES}
    writers = [stage.actor(f"writer-{at + 1}", "merge_transfers", writer=at, **keys) for at in range(WRITERS)]
    compaction = stage.actor("compaction", "compact", table=ACCOUNTS)
    reader = stage.actor("reader", "read_total", table=ACCOUNTS, column="balance")
    events = stage.run("merging", writers, [compaction, reader])

    stage.tell.chapter("What came of it")
    names = [writer.name for writer in writers]
    kinds = ("updated", "inserted", "again")
    stage.table(
        ("writer", "merges", "rows updated", "rows inserted", "run again"),
        [[name, len(events[name]), *(total(events[name], kind) for kind in kinds)] for name in names],
    )
    again = sum(total(events[name], "again") for name in names)
    say(
        f"{counted(again, 'time')} a merge found that another writer had changed rows of its own first, and ran again "
        "on the new version."
    )
    compacted = events["compaction"]
    moved = sum(total(events[name], "moved") for name in names)
    say(
        f"Compaction replaced {counted(total(compacted, 'removed'), 'data file')} by {total(compacted, 'added')} "
        f"while they wrote, and {counted(moved, 'merge')} had to run again for it."
    )
    reads = stage.show_reads(events["reader"], "balances")

    expected, found = replay(stage.rows, batches), balances_of(table.scan().to_arrow().read_all())
    require(found == expected, f"{sum(found.get(k) != v for k, v in expected.items())} balances are wrong")
    say(
        f"All {len(found):,} balances are what plain Python computes from the batches, in any order: no update was "
        "lost, none was applied twice."
    )
    operations = Counter(str(snapshot.operation) for snapshot in table.snapshots())
    stage.table(("snapshots", "count"), sorted(operations.items()))
    merges = sum(len(events[name]) for name in names)
    return {
        "merges": merges,
        "run_again": again,
        "accounts": len(found),
        "compacted": total(compacted, "removed"),
        **reads,
    }
