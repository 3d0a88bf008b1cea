"""Further manifest columns of planned files; only the manifests that list them are opened again."""

from collections.abc import Iterator

import pyarrow.compute as pc

from icefield.cache.reading import ReadContext
from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.rows import ManifestEntries
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.plan.entries import LIVE, load_batches
from icefield.plan.manifest_list import find_spec, load_manifests
from icefield.plan.plan import ScanPlan
from icefield.plan.planned_files import PlannedFiles

INHERITED = ("status", "snapshot_id", "sequence_number", "file_path")


def load_entries_of_files(
    context: ReadContext, metadata: TableMetadata, plan: ScanPlan, files: PlannedFiles, want: ManifestColumns
) -> Iterator[tuple[PartitionSpec, ManifestEntries]]:
    """Yield the entries of planned files, each batch of one spec; `want` must include the inherited columns."""
    manifests = load_manifests(context, plan.version.snapshot)
    if manifests is None or files.num_rows == 0:
        return
    listing = pc.is_in(manifests.manifest_path, value_set=pc.unique(files.manifest_path))
    for batch, entries in load_batches(context, manifests.filter(listing), want, LIVE):
        spec = find_spec(metadata, batch.partition_spec_id[0].as_py())
        chosen = entries.filter(pc.is_in(entries.file_path, value_set=pc.unique(files.file_path)))
        if chosen.num_rows:
            yield spec, chosen
