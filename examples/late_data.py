"""Take in rows that come late, correct rows that were wrong, and read the table as it was before.

Prints:
    late rows go to the partition of their own day: 1 file added
    two orders corrected, total 112.00
    the total that was reported: 121.00
    an order deleted, total 42.00
    rolled back, total 112.00
"""

import datetime
from decimal import Decimal

import pyarrow as pa

import icefield
from icefield import Table

AMOUNT = pa.decimal128(9, 2)


def main() -> None:
    with icefield.connect("lake") as lake:
        orders = lake.create_table(
            "shop.orders", "id long, ts timestamptz, amount decimal(9, 2)", partition_by=["day(ts)"]
        )
        orders.append(rows((1, 5, "10.00"), (2, 5, "20.00"), (3, 6, "70.00")))

        late = orders.append(rows((4, 5, "21.00")))
        assert late is not None
        print(f"late rows go to the partition of their own day: {late.summary['added-data-files']} file added")
        orders.create_tag("reported")  # a tag keeps this version, whatever expires

        # The filter names what is replaced, so that the correction can be run again.
        orders.overwrite(rows((1, 5, "12.00"), (2, 5, "9.00")), where="id IN (1, 2)")
        print(f"two orders corrected, total {total(orders)}")
        print(f"the total that was reported: {total(orders, as_of='reported')}")
        corrected = orders.snapshots()[-1].snapshot_id

        orders.delete("ts >= '2026-01-06' AND amount > 50")
        print(f"an order deleted, total {total(orders)}")
        orders.rollback(corrected)
        print(f"rolled back, total {total(orders)}")


def total(orders: Table, as_of: str | None = None) -> Decimal:
    amounts = orders.scan(select=["amount"], as_of=as_of).to_arrow().read_all()["amount"]
    return sum(amounts.to_pylist(), Decimal())


def rows(*orders: tuple[int, int, str]) -> pa.Table:
    """Make rows of an id, a day in January and an amount."""
    ids, days, amounts = zip(*orders, strict=True)
    times = [datetime.datetime(2026, 1, day, 12, tzinfo=datetime.UTC) for day in days]
    return pa.table({"id": ids, "ts": times, "amount": pa.array(map(Decimal, amounts), AMOUNT)})


if __name__ == "__main__":
    main()
