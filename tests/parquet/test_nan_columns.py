"""Columns with NaN have no footer statistics, and all their statistics in the manifest."""

import math

import pyarrow as pa
import pyarrow.parquet as pq

from icefield.lake import Lake
from icefield.parquet.nan_columns import NaNColumn
from icefield.storage.location import local_path
from icefield.table.table import Table

NAN = float("nan")


def footers(table: Table) -> list[pq.FileMetaData]:
    paths = table.scan().files()["file_path"].to_pylist()
    return [pq.read_metadata(local_path(path)) for path in sorted(paths)]


def has_statistics(footer: pq.FileMetaData, column: int) -> bool:
    return all(footer.row_group(g).column(column).statistics is not None for g in range(footer.num_row_groups))


def test_only_columns_with_nan_are_silent(lake: Lake) -> None:
    table = lake.create_table("s.t", "id long, f double, g double, l list<double>")
    table.append(pa.table({"id": [1, 2], "f": [1.0, NAN], "g": [1.0, 2.0], "l": [[NAN], []]}))
    (footer,) = footers(table)
    assert [has_statistics(footer, c) for c in range(4)] == [True, False, True, True]
    assert table.scan(where="f < 0.5").files().num_rows == 0
    assert table.scan(where="f > 5").count() == 1
    assert table.scan(where="isnan(g)").files().num_rows == 0


def test_nan_that_comes_late_begins_another_file(lake: Lake) -> None:
    table = lake.create_table("s.t", "f double", properties={"write.parquet.row-group-size-bytes": "1"})
    batches = [pa.record_batch({"f": values}) for values in ([1.0], [2.0], [NAN], [3.0], [NAN, None])]
    table.append(pa.Table.from_batches(batches))
    assert sorted(has_statistics(f, 0) for f in footers(table)) == [False, True]
    assert sorted(f.num_rows for f in footers(table)) == [2, 4]
    assert table.scan(where="f IS NULL").count() == 1
    assert table.scan(where="isnan(f)").count() == 2
    assert table.scan(where="f >= 3").count() == 3


def test_bounds_leave_out_nan_and_keep_the_sign_of_zero_wide() -> None:
    column = NaNColumn()
    column.add(pa.array([NAN, None]))
    assert (column.nulls, column.lower, column.upper) == (1, None, None)
    column.add(pa.array([0.0, NAN]))
    column.add(pa.array([-0.0]))
    assert column.lower is not None
    assert column.upper is not None
    assert (math.copysign(1, column.lower), math.copysign(1, column.upper)) == (-1, 1)
    column.add(pa.array([float("-inf"), 7.5]))
    assert (column.lower, column.upper) == (float("-inf"), 7.5)
