"""Equality deletes of a change, to be added again to another version."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from icefield.cache.reading import ReadContext
from icefield.codec.manifest.columns import ALL
from icefield.codec.manifest.header import DATA_MANIFEST, DELETE_MANIFEST
from icefield.codec.manifest.rows import ManifestEntries
from icefield.commit.replay.difference import Difference
from icefield.errors import ConcurrentChange
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.model.snapshot import Snapshot
from icefield.plan.entries import LIVE, load_batches
from icefield.plan.manifest_list import find_spec, has_live_files, is_of, load_manifests


def load_key_deletes(
    context: ReadContext, metadata: TableMetadata, theirs: Difference, ours: Difference, verb: str
) -> Iterator[tuple[PartitionSpec, ManifestEntries]]:
    """Yield the equality deletes that a change adds, each batch of one spec.

    Raises ConcurrentChange if the other side has files of a partition spec that they do not reach.
    """
    wanted = pa.array(sorted(theirs.key_deletes), pa.string())
    manifests = load_manifests(context, theirs.after.version.snapshot) if len(wanted) else None
    if manifests is None:
        return
    new = _data_specs(context, ours.after.version.snapshot) - _data_specs(context, theirs.after.version.snapshot)
    for batch, entries in load_batches(context, manifests.choose(is_of(manifests, DELETE_MANIFEST)), ALL, LIVE):
        spec = find_spec(metadata, batch.partition_spec_id[0].as_py())
        chosen = entries.filter(pc.is_in(entries.file_path, value_set=wanted))
        if chosen.num_rows and not spec.is_unpartitioned and new:
            raise ConcurrentChange(
                f"cannot {verb}: its equality deletes do not reach files of partition spec {min(new)}, which were "
                "added since",
                hint="Nothing was changed; convert the equality deletes of the branch first",
            )
        if chosen.num_rows:
            yield spec, chosen


def _data_specs(context: ReadContext, snapshot: Snapshot | None) -> frozenset[int]:
    manifests = load_manifests(context, snapshot)
    if manifests is None:
        return frozenset()
    live = manifests.choose(has_live_files(manifests) & is_of(manifests, DATA_MANIFEST))
    return frozenset(live.partition_spec_id.to_pylist())
