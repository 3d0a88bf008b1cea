"""Write equality deletes: Parquet files of keys. (spec: Equality Delete Files)

They are written like data files that have only the key columns, in the partition of the rows that they delete:

    rows (id, day, n)   keys (id, day)      data file, by day           equality delete file, by day
    1, a, 7                                 day=a: (1, a, 7)            day=a: (1, a)
    2, b, 7                                 day=b: (2, b, 7)            day=b: (2, b)
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from icefield.codec.manifest.rows import DataFiles
from icefield.codec.manifest.schema import EQUALITY_DELETES
from icefield.model.partition import PartitionSpec
from icefield.model.sort_order import UNSORTED
from icefield.parquet.write.plan import WritePlan
from icefield.types.schema import Schema


def plan_equality_deletes(plan: WritePlan, columns: Sequence[str], spec: PartitionSpec) -> WritePlan:
    """Return the settings for the equality delete files of a write, in the partitions of one spec.

    Their names contain the id of the write, so that they are removed with its data files.
    """
    keys = Schema(tuple(f for f in plan.schema.fields if f.name in columns))
    parquet = replace(plan.parquet, bloom_filters={})  # every key is read
    write_id = f"{plan.write_id}-eq-deletes-{spec.spec_id}"
    return replace(plan, schema=keys, spec=spec, write_id=write_id, parquet=parquet, order=UNSORTED, check=None)


def as_equality_deletes(files: DataFiles, field_ids: Sequence[int]) -> DataFiles:
    """Return written files of keys as equality delete files; field_ids: of the key columns."""
    ids = [sorted(field_ids)] * files.num_rows
    content = np.full(files.num_rows, EQUALITY_DELETES, np.int32)
    kinds = files.table.schema
    return files.replaced(
        {
            "content": pa.array(content, kinds.field("content").type),
            "equality_ids": pa.array(ids, kinds.field("equality_ids").type),
        }
    )
