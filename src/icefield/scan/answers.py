"""How many rows match, of each file and of each partition: from metadata where it can tell, else by reading."""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefield.model.partition import PartitionSpec
from icefield.scan.entries import partition_columns
from icefield.scan.plan import ScanPlan
from icefield.types.arrow_keys import KeyIndex

Longs = npt.NDArray[np.int64]
PARTITION_COUNTS = pa.schema(
    [("partition", pa.string()), ("spec_id", pa.int32()), ("record_count", pa.int64()), ("file_count", pa.int64())]
)


def count_rows(plan: ScanPlan, count: Callable[[pa.Table], Iterable[int]], *, with_deleted: bool = False) -> Longs:
    """Count the matching rows of each planned file; `count` does so by reading, where metadata cannot tell."""
    rows, deleted = plan.files.column("record_count"), plan.files.column("deleted_rows")
    if with_deleted:
        deleted = pa.chunked_array([pa.array(np.zeros(plan.files.num_rows, np.int64))])
    settled = pc.and_(plan.files.column("must_match"), deleted.is_valid())
    counts: Longs = pc.fill_null(pc.subtract(rows, deleted), 0).to_numpy().copy()
    unsettled = np.flatnonzero(~settled.to_numpy())
    for place, found in zip(unsettled, count(plan.files.take(pa.array(unsettled))), strict=True):
        counts[place] = found
    return counts


def count_by_partition(plan: ScanPlan, listed: Iterable[tuple[PartitionSpec, pa.Table]], counts: Longs) -> pa.Table:
    """Add up what was counted for each file by partition; partitions without a matching row are left out."""
    parts = [_counted(plan, spec, entries, counts) for spec, entries in listed]
    return pa.concat_tables([PARTITION_COUNTS.empty_table(), *parts]).sort_by(
        [("spec_id", "ascending"), ("partition", "ascending")]
    )


def _counted(plan: ScanPlan, spec: PartitionSpec, entries: pa.Table, counts: Longs) -> pa.Table:
    rows = pc.index_in(entries.column("file_path"), value_set=plan.files.column("file_path")).to_numpy()
    # By value and not by text: a null and the text 'null' read the same.
    codes = KeyIndex(partition_columns(entries, spec), entries.num_rows).codes
    distinct, firsts, places = np.unique(codes, return_index=True, return_inverse=True)
    totals, files = np.zeros(len(distinct), np.int64), np.zeros(len(distinct), np.int64)
    np.add.at(totals, places, counts[rows])
    np.add.at(files, places, counts[rows] > 0)
    texts = plan.files.column("partition").take(pa.array(rows[firsts]))
    spec_ids = pa.array(np.full(len(distinct), spec.spec_id, np.int32))
    table = pa.Table.from_arrays([texts, spec_ids, pa.array(totals), pa.array(files)], schema=PARTITION_COUNTS)
    return table.filter(pa.array(totals > 0))
