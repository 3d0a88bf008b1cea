"""Apply the change data of a database: inserts, updates and deletes, in order, each batch once.

A batch is one MERGE, and so one snapshot: readers see all of it or nothing. The table remembers the batch number, so
that a batch that is delivered again changes nothing.

Prints:
    after batch 1: [(1, 'ada', 'London'), (2, 'grace', 'New York'), (3, 'edsger', 'Nuenen')]
    after batch 2: [(1, 'ada', 'Paris'), (3, 'edsger', 'Nuenen'), (4, 'barbara', 'Boston')]
    after batch 2 once more: [(1, 'ada', 'Paris'), (3, 'edsger', 'Nuenen'), (4, 'barbara', 'Boston')]
    2 snapshots
"""

import pyarrow as pa

import icefield
from icefield import StreamBatch, Table

Change = tuple[str, int, str | None, str | None]
BATCHES: dict[int, list[Change]] = {
    1: [("insert", 1, "ada", "London"), ("insert", 2, "grace", "New York"), ("insert", 3, "edsger", "Nuenen")],
    2: [
        ("update", 1, "ada", "Rome"),
        ("update", 1, "ada", "Paris"),
        ("delete", 2, None, None),
        ("insert", 4, "barbara", "Boston"),
    ],
}


def main() -> None:
    with icefield.connect("lake") as lake:
        customers = lake.create_table(
            "crm.customers",
            "id long not null, name string, city string",
            properties={"write.merge.mode": "merge-on-read"},
        )
        for number, again in ((1, ""), (2, ""), (2, " once more")):
            apply_batch(customers, number, BATCHES[number])
            print(f"after batch {number}{again}: {contents(customers)}")
        print(f"{len(customers.snapshots())} snapshots")
        customers.compact()  # from time to time: rewrites the files that have deletes


def apply_batch(customers: Table, number: int, changes: list[Change]) -> None:
    last = {change[1]: change for change in changes}  # of several changes of one row, the last one counts
    kinds, ids, names, cities = zip(*last.values(), strict=True)
    rows = pa.table({"op": kinds, "id": ids, "name": names, "city": cities})
    (
        customers.merge(rows, on=["id"], idempotency_key=StreamBatch("customers", number))
        .when_matched("source.op = 'delete'")
        .delete()
        .when_matched()
        .update_all()
        .when_not_matched("source.op != 'delete'")
        .insert_all()
        .execute()
    )


def contents(customers: Table) -> list[tuple[object, ...]]:
    rows = customers.scan().to_arrow().read_all().sort_by("id")
    return [tuple(row.values()) for row in rows.to_pylist()]


if __name__ == "__main__":
    main()
