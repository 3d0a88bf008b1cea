"""Append rows with PyIceberg, one at a time: `append_worker.py <URI of the catalog> <table> <first> <count>`.

Waits for a line on standard input before it starts, so that another writer can start together with it.
"""

import sys

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("by", pa.string())])


def main(uri: str, table: str, first: int, count: int) -> None:
    """Append, and go on trying where PyIceberg gives up."""
    catalog = SqlCatalog("icefield", uri=uri)
    rows = [pa.Table.from_pylist([{"id": n, "by": "pyiceberg"}], SCHEMA) for n in range(first, first + count)]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    while rows:
        try:
            catalog.load_table(table).append(rows[0])
        except CommitFailedException:
            continue
        del rows[0]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
