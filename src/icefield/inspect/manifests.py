"""The metadata tables of manifests: of one version, and of all snapshots."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest.header import DATA_MANIFEST, DELETE_MANIFEST
from icefield.codec.manifest.rows import Manifests
from icefield.errors import InvalidInput
from icefield.expr.prune.evaluate import might_match
from icefield.expr.prune.project import PartitionTerm
from icefield.expr.prune.statistics import from_partition_values
from icefield.inspect.source import Inspected, MetadataTable, Request, manifests_of_version
from icefield.model.metadata import TableMetadata
from icefield.plan.manifest_list import load_many_manifests, spec_sources
from icefield.types.arrow import arrow_field, arrow_schema
from icefield.types.datatypes import LongType
from icefield.types.schema import Schema
from icefield.types.text import parse_schema
from icefield.types.values.binary import decode_value

_COLUMNS = (
    "content int not null, path string not null, length long not null, partition_spec_id int not null, "
    "added_snapshot_id long not null, added_data_files_count int, existing_data_files_count int, "
    "deleted_data_files_count int, added_delete_files_count int, existing_delete_files_count int, "
    "deleted_delete_files_count int, partition_summaries list<struct<contains_null: boolean, contains_nan: boolean, "
    "lower_bound: string, upper_bound: string>>"
)
MANIFESTS = parse_schema(_COLUMNS)
ALL_MANIFESTS = parse_schema(f"{_COLUMNS}, reference_snapshot_id long not null, key_metadata binary")
REFERENCE, SUMMARIES = "reference_snapshot_id", "partition_summaries"
# Columns of the manifest list that have a different name here.
STORED = {"path": "manifest_path", "length": "manifest_length"}
SORTS = {"data": DATA_MANIFEST, "delete": DELETE_MANIFEST}
Terms = Mapping[tuple[int, int], PartitionTerm]


def manifests_table(source: Inspected) -> MetadataTable:
    """Return the manifests of the version."""

    def load(request: Request) -> Iterator[pa.Table]:
        shown = _Shown(source.metadata)
        return (shown.table(found, request.columns) for found in manifests_of_version(source))

    return MetadataTable(MANIFESTS, load)


def all_manifests_table(source: Inspected) -> MetadataTable:
    """Return the manifests of every snapshot: one row for each manifest of each snapshot."""
    snapshots = list(source.metadata.snapshots)
    reference = ALL_MANIFESTS.find_field(REFERENCE).field_id

    def load(request: Request) -> Iterator[pa.Table]:
        shown = _Shown(source.metadata)
        ids = from_partition_values(pa.array([s.snapshot_id for s in snapshots], pa.int64()), LongType())
        wanted = might_match(request.where, {reference: ids}.get, len(snapshots))
        for snapshot, found in load_many_manifests(source.context, (snapshots[at] for at in np.flatnonzero(wanted))):
            ids_of_all = pa.repeat(snapshot.snapshot_id, found.num_rows)
            yield shown.table(found.extended({REFERENCE: ids_of_all}), request.columns)

    return MetadataTable(ALL_MANIFESTS, load)


class _Shown:
    """Rows of manifest lists, with readable values."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._terms = _terms(metadata)
        self._texts: dict[tuple[int, int, bytes], str | None] = {}

    def table(self, manifests: Manifests, columns: Schema) -> pa.Table:
        arrays = [self._array(manifests, name) for name in (f.name for f in columns.fields)]
        target = arrow_schema(columns)
        cast = [a.cast(f.type) if a.type != f.type else a for a, f in zip(arrays, target, strict=True)]
        return pa.Table.from_arrays(cast, schema=target)

    def _array(self, manifests: Manifests, name: str) -> pa.Array:
        if name == SUMMARIES:
            return self._summaries(manifests)
        action, _, rest = name.partition("_")
        sort = rest.removesuffix("_files_count")
        if sort in SORTS:
            counted = manifests[f"{action}_files_count"].combine_chunks()
            return pc.if_else(pc.equal(manifests.content.combine_chunks(), SORTS[sort]), counted, 0)
        return manifests[STORED.get(name, name)].combine_chunks()

    def _summaries(self, manifests: Manifests) -> pa.Array:
        specs = manifests.partition_spec_id.to_pylist()
        rows = manifests.partitions.to_pylist()
        shown = [
            None if row is None else [self._summary(spec, at, summary) for at, summary in enumerate(row)]
            for spec, row in zip(specs, rows, strict=True)
        ]
        return pa.array(shown, arrow_field(MANIFESTS.find_field(SUMMARIES)).type)

    def _summary(self, spec_id: int, position: int, summary: dict[str, Any]) -> dict[str, Any]:
        bounds = {name: self._text(spec_id, position, summary[name]) for name in ("lower_bound", "upper_bound")}
        return summary | bounds

    def _text(self, spec_id: int, position: int, bound: bytes | None) -> str | None:
        if bound is None:
            return None
        key = (spec_id, position, bound)
        if key not in self._texts:
            self._texts[key] = _human(self._terms.get((spec_id, position)), bound)
        return self._texts[key]


def _terms(metadata: TableMetadata) -> Terms:
    """Return the field at each position of each spec; specs with unknown source columns are left out."""
    found: dict[tuple[int, int], PartitionTerm] = {}
    for spec in metadata.specs:
        try:
            schema = metadata.schema_of_spec(spec)
        except InvalidInput:
            continue
        positions = {f.field_id: at for at, f in enumerate(spec.fields)}
        found |= {(spec.spec_id, positions[t.field_id]): t for t in spec_sources(spec, schema)}
    return found


def _human(term: PartitionTerm | None, bound: bytes) -> str | None:
    if term is None:
        return None
    try:
        value = decode_value(bound, term.transform.result_type(term.source_type))
    except ValueError:
        return None
    return term.transform.to_human_string(value, term.source_type)
