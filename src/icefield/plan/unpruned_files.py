"""Files of one partition spec before pruning, and their description for readers.

The filter columns are available for all files; a description is made only for those that are kept.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import IcefieldError, Unsupported
from icefield.expr.prune.residual import FileStatistics
from icefield.model.partition import PartitionSpec
from icefield.plan.delete_index import DELETE_KEYS, DeleteIndex, match_none
from icefield.plan.manifest_list import Mask, choose
from icefield.plan.partition.constants import CONSTANTS, has_identity_columns, identity_constants
from icefield.plan.partition.keys import PARTITION_KEY, partition_keys, partition_texts
from icefield.types.schema import Schema

Longs = npt.NDArray[np.int64]
UNPRUNED_FILE_SCHEMA = pa.schema(
    [
        ("file_path", pa.string()),
        ("record_count", pa.int64()),
        ("file_size_in_bytes", pa.int64()),
        ("sequence_number", pa.int64()),
        ("snapshot_id", pa.int64()),
        ("spec_id", pa.int32()),
        ("partition", pa.string()),  # for display only
        (PARTITION_KEY, pa.binary()),
        ("manifest_path", pa.string()),
        ("first_row_id", pa.int64()),
        ("constants", CONSTANTS),
        ("is_complete", pa.bool_()),
        ("delete_keys", DELETE_KEYS),
        ("deleted_rows", pa.int64()),
    ]
)


@dataclass(frozen=True)
class UnprunedFiles:
    """Files with their statistics, and how many manifests list them.

    describe: makes the columns of DESCRIBED for the files to keep. Raises Unsupported if one of them is not Parquet.
    """

    statistics: FileStatistics
    record_counts: Longs
    sizes: Longs
    manifests: int
    describe: Callable[[Mask], pa.Table]

    def described(self) -> "UnprunedFiles":
        """Describe all files in advance, for later filters, unless one cannot be described: it may be pruned."""
        try:
            files = self.describe(np.ones(self.statistics.rows, np.bool_))
        except IcefieldError:
            return self
        return replace(self, describe=lambda keep: choose(files, keep))


def describe_files(entries: pa.Table, spec: PartitionSpec, schema: Schema, deletes: DeleteIndex | None) -> pa.Table:
    """Return the columns of DESCRIBED for entries of one spec."""
    _refuse_other_formats(entries)
    count = entries.num_rows
    matched = match_none(count) if deletes is None else deletes.match(entries, spec)
    columns = {
        "spec_id": pa.array(np.full(count, spec.spec_id, np.int32)),
        "partition": partition_texts(entries, spec, schema),
        PARTITION_KEY: partition_keys(entries, spec),
        "constants": identity_constants(entries, spec, schema),
        "is_complete": has_identity_columns(entries, spec, schema),
        "delete_keys": matched.keys,
        "deleted_rows": matched.deleted_rows,
    }
    filled = [columns[name] if name in columns else entries.column(name) for name in UNPRUNED_FILE_SCHEMA.names]
    return pa.Table.from_arrays(filled, schema=UNPRUNED_FILE_SCHEMA)


def _refuse_other_formats(entries: pa.Table) -> None:
    words = entries.column("file_format")
    for word in words.unique().to_pylist():
        # Writers differ in the case of the format name.
        if word is not None and word.upper() != "PARQUET":
            path = entries.column("file_path")[pc.index(words, word).as_py()].as_py()
            raise Unsupported(f"{path} is a data file in {word}; icefield reads Parquet")
