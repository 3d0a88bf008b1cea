"""Reading holds a few batches, however large the table is."""

import numpy as np
import pyarrow as pa
import pytest

from icefield.lake import Lake
from icefield.parquet.read.small_file import RUN_BYTES

ROWS = 6_000_000
SETTINGS = {
    "write.delete.mode": "merge-on-read",
    "write.parquet.compression-codec": "uncompressed",
    "write.parquet.row-group-size-bytes": str(2 * 1024 * 1024),
}


@pytest.mark.slow
def test_a_scan_in_arrow_holds_a_small_part_of_the_rows(lake: Lake) -> None:
    table = lake.create_table("a.t", "id long, a double, b double, c long", properties=SETTINGS, format_version=3)
    numbers = np.arange(ROWS)
    table.append(pa.table({"id": numbers, "a": numbers / 7, "b": numbers / 11, "c": numbers * 31}))
    table.delete("id >= 1000 AND id < 2000")
    del numbers
    before, most, seen, rows = pa.total_allocated_bytes(), 0, 0, 0
    for batch in table.scan().to_arrow():
        most = max(most, pa.total_allocated_bytes() - before)
        seen += batch.nbytes
        rows += batch.num_rows
    assert rows == ROWS - 1000
    assert seen > 5 * RUN_BYTES
    # A run of row groups is read at a time (RUN_BYTES): as it is stored, and, if other threads were fast, all decoded.
    assert most < seen / 2
