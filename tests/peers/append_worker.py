"""Append rows one at a time, in one engine: `append_worker.py <icefield|pyiceberg> <folder> <first> <count>`.

Waits for a line on standard input before it starts, so that two workers start together.
"""

import sys
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from sqlalchemy import URL

import icefield

TABLE = "shared.raced"


def append_with_icefield(folder: Path, rows: list[pa.Table]) -> None:
    """Append through a lake, which tries again by itself."""
    with icefield.connect(folder) as lake:
        table = lake.table(TABLE)
        _wait()
        for row in rows:
            table.append(row)


def append_with_pyiceberg(folder: Path, rows: list[pa.Table]) -> None:
    """Append through PyIceberg, which gives up after some tries."""
    uri = URL.create("sqlite", database=str(folder / "catalog.db")).render_as_string()
    catalog = SqlCatalog("icefield", uri=uri)
    _wait()
    for row in rows:
        while True:
            try:
                catalog.load_table(TABLE).append(row)
                break
            except CommitFailedException:
                continue


def _wait() -> None:
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()


if __name__ == "__main__":
    engine, place, first, count = sys.argv[1:]
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("by", pa.string())])
    made = [{"id": n, "by": engine} for n in range(int(first), int(first) + int(count))]
    each = [pa.Table.from_pylist([row], schema) for row in made]
    {"icefield": append_with_icefield, "pyiceberg": append_with_pyiceberg}[engine](Path(place), each)
