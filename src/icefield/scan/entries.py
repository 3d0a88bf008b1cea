"""The live entries of manifests, decoded many at a time: small manifests cost a tenth of what they do alone."""

from collections.abc import Collection, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest import MANIFEST_COLUMN, decode_manifests
from icefield.codec.manifest_columns import ManifestColumns
from icefield.codec.manifest_inherit import inherit
from icefield.codec.manifest_schema import ADDED, EXISTING, partition_column
from icefield.model.partition import PartitionSpec
from icefield.storage.store import Store

MANIFESTS_PER_BATCH = 100
LIVE = (EXISTING, ADDED)
ADDED_ONLY = (ADDED,)


def batches_of_one_spec(manifests: pa.Table) -> Iterator[pa.Table]:
    """Cut manifests into batches of one spec each."""
    spec_ids = manifests.column("partition_spec_id").to_numpy()
    for spec_id in np.unique(spec_ids):
        rows = np.flatnonzero(spec_ids == spec_id)
        for start in range(0, len(rows), MANIFESTS_PER_BATCH):
            yield manifests.take(pa.array(rows[start : start + MANIFESTS_PER_BATCH]))


def load_entries(store: Store, manifests: pa.Table, want: ManifestColumns, statuses: Collection[int]) -> pa.Table:
    """Load entries of manifests of one spec, with nothing left to inherit, and the `manifest_path` of each."""
    locations = manifests.column("manifest_path").to_pylist()
    entries = inherit(decode_manifests([(at, store.read(at)) for at in locations], want), manifests)
    entries = entries.filter(pc.is_in(entries.column("status"), value_set=pa.array(statuses, pa.int32())))
    paths = manifests.column("manifest_path").take(entries.column(MANIFEST_COLUMN))
    return entries.append_column("manifest_path", paths)


def partition_columns(entries: pa.Table, spec: PartitionSpec) -> list[pa.Array]:
    """Return the partition tuple of entries, one column per field; a field that a manifest lacks is null."""
    names = [partition_column(f.field_id) for f in spec.fields]
    return [
        entries.column(name).combine_chunks() if name in entries.column_names else pa.nulls(entries.num_rows)
        for name in names
    ]
