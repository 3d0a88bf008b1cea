"""Append rows with PyIceberg, one at a time: `append_worker.py <folder of the lake> <table> <first> <count>`.

Waits for a line on standard input before it starts, so that another writer can start together with it.
"""

import sys
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from sqlalchemy import URL

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("by", pa.string())])


def main(folder: str, table: str, first: int, count: int) -> None:
    """Append, and go on trying where PyIceberg gives up."""
    uri = URL.create("sqlite", database=str(Path(folder) / "catalog.db")).render_as_string()
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
