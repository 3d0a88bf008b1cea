"""Share a lake among machines: the catalog in PostgreSQL, the files in S3.

Needs icefield[postgres,object-store], a database and a bucket. Name them by arguments, or by the environment:

    export ICEFIELD_LAKE=postgresql://user:password@host/database ICEFIELD_WAREHOUSE=s3://bucket/lake
    export AWS_REGION=eu-central-1 AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=…
    python postgres_s3.py                                            # on AWS
    python postgres_s3.py --property s3.endpoint=http://minio:9000   # on another S3 server

It makes the tables example.orders and example.stock, and makes them again when it is run again.

Prints:
    one transaction over two tables: 2 orders, 97 pens
    4 processes append at the same time: 6 orders in 5 files
    a transaction that failed changed nothing: 6 orders, 97 pens
"""

import argparse
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import pyarrow as pa

import icefield
from icefield import Lake

ORDERS, STOCK = "example.orders", "example.stock"
WRITERS = 4


@dataclass(frozen=True)
class Settings:
    """Where the lake is; what is not given comes from the environment."""

    lake: str | None
    warehouse: str | None
    properties: dict[str, str]

    def connect(self) -> Lake:
        return icefield.connect(self.lake, warehouse=self.warehouse, properties=self.properties)


def main() -> None:
    settings = parse_arguments()
    with settings.connect() as lake:
        orders = lake.create_table(ORDERS, "id long not null, item string, pieces long", replace=True)
        stock = lake.create_table(STOCK, "item string not null, pieces long", replace=True)
        stock.append(pa.table({"item": ["pen"], "pieces": [100]}))

        sell(lake, [1, 2], pens_left=97)
        print(f"one transaction over two tables: {orders.count()} orders, {pens(lake)} pens")

        with ProcessPoolExecutor(WRITERS, multiprocessing.get_context("spawn")) as processes:
            list(processes.map(append_order, [settings] * WRITERS, range(10, 10 + WRITERS)))
        scan = orders.scan()
        print(f"{WRITERS} processes append at the same time: {scan.count()} orders in {scan.files().num_rows} files")

        try:
            sell(lake, [3], pens_left=-1)
        except ValueError:
            print(f"a transaction that failed changed nothing: {orders.count()} orders, {pens(lake)} pens")


def sell(lake: Lake, order_ids: Sequence[int], pens_left: int) -> None:
    """Add orders and take their pens out of stock: both, or neither."""
    with lake.transaction() as transaction:
        rows = {"id": order_ids, "item": ["pen"] * len(order_ids), "pieces": [1] * len(order_ids)}
        transaction.table(ORDERS).append(pa.table(rows))
        if pens_left < 0:
            raise ValueError("there are not enough pens")
        transaction.table(STOCK).overwrite(pa.table({"item": ["pen"], "pieces": [pens_left]}), where="item = 'pen'")


def pens(lake: Lake) -> int:
    return int(lake.table(STOCK).scan("item = 'pen'").max("pieces").as_py())


def append_order(settings: Settings, order_id: int) -> None:
    """Append one order, as another machine would."""
    with settings.connect() as lake:
        lake.table(ORDERS).append(pa.table({"id": [order_id], "item": ["ink"], "pieces": [1]}))


def parse_arguments() -> Settings:
    parser = argparse.ArgumentParser(description="Share a lake among machines.")
    parser.add_argument("--lake", help="postgresql://user:password@host/database; by default ICEFIELD_LAKE")
    parser.add_argument("--warehouse", help="s3://bucket/path; by default ICEFIELD_WAREHOUSE")
    parser.add_argument("--property", action="append", default=[], metavar="KEY=VALUE", help="such as s3.endpoint=URL")
    given = parser.parse_args()
    return Settings(given.lake, given.warehouse, dict(each.split("=", 1) for each in given.property))


if __name__ == "__main__":
    main()
