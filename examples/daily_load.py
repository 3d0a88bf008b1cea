"""Load one file a day, so that a run can be repeated.

The idempotency key names the load of a day. A load that has landed is not made again, also when two runs of it meet.

Prints:
    2026-01-05: 3 rows in the table
    2026-01-06: 6 rows in the table
    2026-01-06 again: 6 rows in the table
    2026-01-06 read by its day: 3 rows in 1 file
"""

import datetime

import pyarrow as pa

import icefield
from icefield import Table


def main() -> None:
    with icefield.connect("lake") as lake:
        clicks = lake.create_table(
            "web.clicks", "id long not null, ts timestamptz, page string", partition_by=["day(ts)"]
        )
        monday, tuesday = datetime.date(2026, 1, 5), datetime.date(2026, 1, 6)
        print(f"{monday}: {load(clicks, monday)} rows in the table")
        print(f"{tuesday}: {load(clicks, tuesday)} rows in the table")
        print(f"{tuesday} again: {load(clicks, tuesday)} rows in the table")

        scan = clicks.scan("ts >= '2026-01-06' AND ts < '2026-01-07'")
        print(f"{tuesday} read by its day: {scan.count()} rows in {scan.files().num_rows} file")


def load(clicks: Table, day: datetime.date) -> int:
    clicks.append(clicks_of(day), idempotency_key=f"clicks/{day}")
    return clicks.count()


def clicks_of(day: datetime.date) -> pa.Table:
    """Stand in for the file of a day; pyarrow.csv and pyarrow.parquet read real ones."""
    start = datetime.datetime.combine(day, datetime.time(9), datetime.UTC)
    times = [start + datetime.timedelta(minutes=minute) for minute in (0, 10, 20)]
    return pa.table({"id": [day.day * 100 + n for n in range(3)], "ts": times, "page": ["/", "/help", "/"]})


if __name__ == "__main__":
    main()
