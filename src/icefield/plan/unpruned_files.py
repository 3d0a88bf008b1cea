"""Files of one partition spec before pruning, and their description for readers.

The filter columns are available for all files; a description is made only for those that are kept.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest.rows import ManifestEntries
from icefield.errors import IcefieldError, Unsupported
from icefield.expr.prune.residual import FileStatistics
from icefield.model.partition import PartitionSpec
from icefield.plan.delete_index import DeleteIndex, match_none
from icefield.plan.partition.constants import has_identity_columns, identity_constants
from icefield.plan.partition.keys import PARTITION_KEY, partition_keys, partition_texts
from icefield.plan.planned_files import DESCRIBED_FILE_SCHEMA, DescribedFiles
from icefield.types.arrays import Longs, Mask
from icefield.types.schema import Schema


@dataclass(frozen=True)
class UnprunedFiles:
    """Files with their statistics, and how many manifests list them.

    describe: describes the files to keep. Raises Unsupported if one of them is not Parquet.
    """

    statistics: FileStatistics
    record_counts: Longs
    sizes: Longs
    manifests: int
    describe: Callable[[Mask], DescribedFiles]

    def described(self) -> "UnprunedFiles":
        """Describe all files in advance, for later filters, unless one cannot be described: it may be pruned."""
        try:
            files = self.describe(np.ones(self.statistics.rows, np.bool_))
        except IcefieldError:
            return self
        return replace(self, describe=files.choose)


def describe_files(
    entries: ManifestEntries, spec: PartitionSpec, schema: Schema, deletes: DeleteIndex | None
) -> DescribedFiles:
    """Describe the files of entries of one spec."""
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
    filled = [columns[name] if name in columns else entries[name] for name in DESCRIBED_FILE_SCHEMA.names]
    return DescribedFiles(pa.Table.from_arrays(filled, schema=DESCRIBED_FILE_SCHEMA))


def _refuse_other_formats(entries: ManifestEntries) -> None:
    words = entries.file_format
    for word in words.unique().to_pylist():
        # Writers differ in the case of the format name.
        if word is not None and word.upper() != "PARQUET":
            path = entries.file_path[pc.index(words, word).as_py()].as_py()
            raise Unsupported(f"{path} is a data file in {word}; icefield reads Parquet")
