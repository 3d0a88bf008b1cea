"""The partition values of chosen files, from the manifests that list them."""

from collections.abc import Iterator

import pyarrow as pa

from icefield.codec.manifest_columns import ManifestColumns
from icefield.codec.manifest_schema import partition_column
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.scan.listed import INHERITED, load_listed
from icefield.scan.plan import ScanPlan
from icefield.storage.store import Store


def load_partition_values(
    store: Store, metadata: TableMetadata, plan: ScanPlan, files: pa.Table
) -> Iterator[tuple[PartitionSpec, pa.Table]]:
    """Yield planned files, each batch of one spec, as their locations and one column per partition field."""
    for spec, entries in load_listed(store, metadata, plan, files, ManifestColumns(INHERITED)):
        yield spec, entries.select(["file_path", *(partition_column(f.field_id) for f in spec.fields)])
