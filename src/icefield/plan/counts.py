"""Count matching rows, by file and by partition: from metadata where possible, else by reading."""

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.plan.partition.keys import PARTITION_KEY
from icefield.plan.plan import ScanPlan
from icefield.plan.planned_files import PlannedFiles
from icefield.types.arrays import Longs
from icefield.types.arrow_keys import KeyIndex

PARTITION_COUNTS = pa.schema(
    [("partition", pa.string()), ("spec_id", pa.int32()), ("record_count", pa.int64()), ("file_count", pa.int64())]
)


def count_rows(plan: ScanPlan, count: Callable[[PlannedFiles], Iterable[int]], *, with_deleted: bool = False) -> Longs:
    """Count the matching rows of each planned file; `count` reads the files that metadata cannot answer for."""
    rows, deleted = plan.files.record_count, plan.files.deleted_rows
    if with_deleted:
        deleted = pa.chunked_array([pa.array(np.zeros(plan.files.num_rows, np.int64))])
    known = pc.and_(plan.files.must_match, deleted.is_valid())
    counts: Longs = pc.fill_null(pc.subtract(rows, deleted), 0).to_numpy().copy()
    unknown = np.flatnonzero(~known.to_numpy())
    if len(unknown):
        counts[unknown] = list(count(plan.files.take(unknown)))
    return counts


def count_by_partition(plan: ScanPlan, counts: Longs) -> pa.Table:
    """Sum the counts of files by partition; partitions without matching rows are left out."""
    files = plan.files.table.select(["partition", "spec_id", PARTITION_KEY]).combine_chunks()
    codes = KeyIndex([files[name].combine_chunks() for name in ("spec_id", PARTITION_KEY)], files.num_rows).codes
    distinct, firsts = np.unique(codes, return_index=True)
    totals, having = np.zeros(len(distinct), np.int64), np.zeros(len(distinct), np.int64)
    np.add.at(totals, codes, counts)
    np.add.at(having, codes, counts > 0)
    named = files.select(["partition", "spec_id"]).take(pa.array(firsts))
    table = pa.Table.from_arrays([*named.columns, pa.array(totals), pa.array(having)], schema=PARTITION_COUNTS)
    return table.filter(pa.array(totals > 0)).sort_by([("spec_id", "ascending"), ("partition", "ascending")])
