"""The manifests of a snapshot: loaded as one table, pruned by their partition summaries.

Raises MissingFile, CorruptFile, and Unsupported for encrypted tables.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from icefield.cache.reading import ReadContext
from icefield.codec.manifest.header import DATA_MANIFEST, DELETE_MANIFEST, decode_manifest_header
from icefield.codec.manifest.list import check_list_of, decode_manifest_list, partition_summaries
from icefield.codec.manifest.list_schema import MANIFEST_LIST_ARROW_SCHEMA
from icefield.codec.manifest.rows import Manifests
from icefield.errors import CorruptFile, Unsupported
from icefield.expr.bind.bound import FALSE, Bound, columns_of
from icefield.expr.prune.evaluate import might_match
from icefield.expr.prune.project import PartitionTerm, project_inclusive
from icefield.expr.prune.statistics import FieldStatistics, from_summaries
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.model.snapshot import Snapshot
from icefield.storage.read_ahead import Wanted, read_many
from icefield.storage.store import Store
from icefield.types.arrays import Mask
from icefield.types.datatypes import PrimitiveType
from icefield.types.schema import Schema


@dataclass(frozen=True)
class ManifestList:
    """The manifests of a snapshot, one row each."""

    manifests: Manifests

    @cached_property
    def live_data(self) -> Manifests:
        """The manifests that may hold live data files."""
        return self._live.choose(is_of(self._live, DATA_MANIFEST))

    @cached_property
    def live_deletes(self) -> Manifests:
        """The manifests that may hold live delete files."""
        return self._live.choose(is_of(self._live, DELETE_MANIFEST))

    @cached_property
    def _live(self) -> Manifests:
        return self.manifests.choose(has_live_files(self.manifests))


def load_manifests(context: ReadContext, snapshot: Snapshot | None, data: bytes | None = None) -> Manifests | None:
    """Load the manifest list of a snapshot, one row per manifest; None for the empty table.

    data: the manifest list, if it was read already.
    """
    listed = load_manifest_list(context, snapshot, data)
    return None if listed is None else listed.manifests


def load_many_manifests(context: ReadContext, snapshots: Iterable[Snapshot]) -> Iterator[tuple[Snapshot, Manifests]]:
    """Yield snapshots that have manifests, each with its manifest list, one row per manifest."""
    snapshots = list(snapshots)
    with context.read_ahead(Wanted(s.manifest_list) for s in snapshots if s.manifest_list) as near:
        for snapshot in snapshots:
            manifests = load_manifests(near, snapshot)
            if manifests is not None:
                yield snapshot, manifests


def load_manifest_list(
    context: ReadContext, snapshot: Snapshot | None, data: bytes | None = None
) -> ManifestList | None:
    """Load the manifest list of a snapshot; None for the empty table. data: the list, if it was read already."""
    if snapshot is None:
        return None
    if snapshot.key_id is not None:
        raise Unsupported(f"snapshot {snapshot.snapshot_id} is encrypted (key {snapshot.key_id!r})")
    if not snapshot.manifest_list:
        return ManifestList(_named_manifests(context.store, snapshot))
    if data is None:
        data = context.store.read(snapshot.manifest_list)
    check_list_of(snapshot.snapshot_id, data, snapshot.manifest_list)
    return context.decode(data, snapshot.manifest_list, _decode_manifest_list)


def read_manifest_list(store: Store, snapshot: Snapshot) -> bytes:
    """Read the manifest list of a snapshot; raise CorruptFile if it is that of another snapshot."""
    data = store.read(snapshot.manifest_list)
    check_list_of(snapshot.snapshot_id, data, snapshot.manifest_list)
    return data


def is_of(manifests: Manifests, content: int) -> Mask:
    """Return which manifests hold data files, or delete files."""
    return manifests.content.to_numpy() == content  # type: ignore[no-any-return]


def has_live_files(manifests: Manifests) -> Mask:
    """Return which manifests may hold live files; those with unknown counts may."""
    added = manifests.added_files_count.to_numpy(zero_copy_only=False)
    existing = manifests.existing_files_count.to_numpy(zero_copy_only=False)
    return ~((added == 0) & (existing == 0))  # type: ignore[no-any-return]


def spec_sources(spec: PartitionSpec, schema: Schema) -> list[PartitionTerm]:
    """Describe a spec's fields for projection; a field whose source column was dropped cannot be filtered on."""
    return [
        PartitionTerm(f.field_id, f.source_id, f.transform, source.type, f.name)
        for f in spec.fields
        if (source := schema.by_id.get(f.source_id)) and isinstance(source.type, PrimitiveType)
    ]


def prune_manifests(manifests: Manifests, where: Bound, metadata: TableMetadata, schema: Schema) -> Mask:
    """Return which manifests may hold files with matching rows."""
    keep = np.ones(manifests.num_rows, np.bool_)
    filter_columns = columns_of(where)
    if where != FALSE and not any(
        field.source_id in filter_columns for spec in metadata.specs for field in spec.fields
    ):
        return keep
    spec_ids = manifests.partition_spec_id.to_numpy()
    for spec_id in np.unique(spec_ids):
        of_spec = spec_ids == spec_id
        mine, spec = manifests.choose(of_spec), find_spec(metadata, int(spec_id))
        filter_ = project_inclusive(where, spec_sources(spec, schema))
        keep[of_spec] = might_match(filter_, _summaries(mine, spec, schema), mine.num_rows)
    return keep


def find_spec(metadata: TableMetadata, spec_id: int) -> PartitionSpec:
    """Find the spec of a manifest; raise CorruptFile if the metadata does not have it."""
    for spec in metadata.specs:
        if spec.spec_id == spec_id:
            return spec
    raise CorruptFile(metadata.location, f"a manifest names partition spec {spec_id}, which the table does not have")


def _decode_manifest_list(data: bytes, location: str) -> ManifestList:
    return ManifestList(decode_manifest_list(data, location))


def _named_manifests(store: Store, snapshot: Snapshot) -> Manifests:
    """Describe the manifests that an old v1 snapshot lists itself; their counts are unknown."""
    rows = []
    for location, data in read_many(store, snapshot.manifests):
        header = decode_manifest_header(data, location)
        rows.append(
            {
                "manifest_path": location,
                "manifest_length": len(data),
                "partition_spec_id": header.partition_spec_id,
                "content": DATA_MANIFEST,
                "sequence_number": 0,
                "min_sequence_number": 0,
                "added_snapshot_id": snapshot.snapshot_id,
            }
        )
    return Manifests(pa.Table.from_pylist(rows, schema=MANIFEST_LIST_ARROW_SCHEMA))


def _summaries(manifests: Manifests, spec: PartitionSpec, schema: Schema) -> Callable[[int], FieldStatistics | None]:
    positions = {f.field_id: at for at, f in enumerate(spec.fields)}
    kinds = {s.field_id: s.transform.result_type(s.source_type) for s in spec_sources(spec, schema)}

    def statistics(field_id: int) -> FieldStatistics | None:
        summary = partition_summaries(manifests, positions[field_id])
        nulls, nans, lower, upper = (column.combine_chunks() for column in summary.columns)
        return from_summaries(nulls, nans, lower, upper, kinds[field_id])

    return statistics
