"""The partition values of chosen files, from the manifests that list them."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest_columns import ManifestColumns
from icefield.codec.manifest_schema import partition_column
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.scan.entries import LIVE, batches_of_one_spec, load_entries
from icefield.scan.manifests import find_spec, load_manifests
from icefield.scan.plan import ScanPlan
from icefield.storage.store import Store

COLUMNS = ManifestColumns(("status", "snapshot_id", "sequence_number", "file_path"))


def load_partition_values(
    store: Store, metadata: TableMetadata, plan: ScanPlan, files: pa.Table
) -> Iterator[tuple[PartitionSpec, pa.Table]]:
    """Yield planned files, each batch of one spec, as their locations and one column per partition field."""
    manifests = load_manifests(store, plan.point.snapshot)
    if manifests is None or files.num_rows == 0:
        return
    listing = pc.is_in(manifests.column("manifest_path"), value_set=pc.unique(files.column("manifest_path")))
    for batch in batches_of_one_spec(manifests.filter(listing)):
        spec = find_spec(metadata, batch.column("partition_spec_id")[0].as_py())
        entries = load_entries(store, batch, COLUMNS, LIVE)
        chosen = entries.filter(pc.is_in(entries.column("file_path"), value_set=pc.unique(files.column("file_path"))))
        if chosen.num_rows:
            yield spec, chosen.select(["file_path", *(partition_column(f.field_id) for f in spec.fields)])
