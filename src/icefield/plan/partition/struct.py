"""The partitions of a table as one struct over all specs; and filters on it, evaluated on the partition summaries of
manifests.

The struct has the fields of all specs by id, under their newest names; a field that a file's spec lacks is null.
Fields of dropped source columns or unknown transforms have no known type, and are left out.
Raises Unsupported for specs that use one field id with different meanings, which version 1 allowed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pyarrow as pa

from icefield.codec.manifest.rows import ManifestEntries, Manifests
from icefield.codec.manifest.schema import partition_column
from icefield.errors import Unsupported
from icefield.expr.bind.bound import Bound
from icefield.expr.prune.evaluate import might_match
from icefield.expr.prune.ordered import column_of
from icefield.expr.prune.statistics import FieldStatistics
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionField, PartitionSpec
from icefield.plan.manifest_list import prune_manifests
from icefield.types.arrays import Mask
from icefield.types.arrow import arrow_type, struct_array
from icefield.types.datatypes import NestedField, PrimitiveType, StructType
from icefield.types.schema import Schema
from icefield.types.transforms import Identity, Unknown, Void

PARTITION = "partition"
NOWHERE = -1  # the id of no field


@dataclass(frozen=True)
class PartitionStruct:
    """The partition fields of a table, under the ids that manifests have for them."""

    fields: tuple[NestedField, ...]

    @property
    def column(self) -> tuple[NestedField, ...]:
        """The struct as a column, or nothing for a table that was never partitioned."""
        return (NestedField(NOWHERE, PARTITION, StructType(self.fields), required=True),) if self.fields else ()

    def array(self, entries: ManifestEntries, wanted: Sequence[NestedField]) -> pa.StructArray:
        """Return some fields of the struct, for each entry."""
        ids = {f.name: f.field_id for f in self.fields}
        return struct_array(wanted, (partition_values(entries, replace(f, field_id=ids[f.name])) for f in wanted))


def partition_struct(metadata: TableMetadata) -> PartitionStruct:
    """Merge the partition fields of all specs."""
    return _partition_struct(tuple(metadata.specs), metadata.schema)


@lru_cache(maxsize=64)
def _partition_struct(specs: tuple[PartitionSpec, ...], schema: Schema) -> PartitionStruct:
    chosen: dict[int, PartitionField] = {}
    names: dict[int, str] = {}
    for spec in sorted(specs, key=lambda s: s.spec_id, reverse=True):
        for field in spec.fields:
            if field.source_id not in schema.by_id or isinstance(field.transform, Unknown):
                continue
            known = chosen.setdefault(field.field_id, field)
            names.setdefault(field.field_id, _free_name(field, names.values()))
            _check_same(known, field)
            if isinstance(known.transform, Void):
                chosen[field.field_id] = field  # the field before it was dropped
    made = (NestedField(i, names[i], _result_type(chosen[i], schema)) for i in sorted(chosen))
    return PartitionStruct(tuple(made))


def partition_values(entries: ManifestEntries, field: NestedField) -> pa.Array:
    """Return the values of a partition field in its current type; null if the spec lacks it."""
    name, target = partition_column(field.field_id), arrow_type(field.type)
    if name not in entries:
        return pa.nulls(entries.num_rows, target)
    stored = entries[name].combine_chunks()
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, stored.cast(target.storage_type))
    return stored.cast(target)


def prune_by_partition(
    manifests: Manifests, where: Bound, metadata: TableMetadata, schema: Schema, inside: tuple[str, ...] = ()
) -> Mask:
    """Return which manifests may hold entries that match a filter on the struct.

    inside: the path of the struct that contains the partition. The partition fields themselves are the columns here, so
    each is an identity field of its spec.
    """
    ids = {path: field_id for field_id, path in schema.paths.items()}
    fields = partition_struct(metadata).fields
    columns = {f.field_id: ids[*inside, PARTITION, f.name] for f in fields}
    specs = tuple(
        replace(
            spec,
            fields=tuple(
                replace(f, source_id=columns.get(f.field_id, NOWHERE), transform=Identity()) for f in spec.fields
            ),
        )
        for spec in metadata.specs
    )
    absent = {columns[f.field_id]: _null_without(f, manifests, metadata) for f in fields}
    known = might_match(where, absent.get, manifests.num_rows)
    return known & prune_manifests(manifests, where, replace(metadata, specs=specs), schema)


def _null_without(field: NestedField, manifests: Manifests, metadata: TableMetadata) -> FieldStatistics:
    """Return the summary of a missing partition field: null in all files."""
    having = [s.spec_id for s in metadata.specs if field.field_id in {f.field_id for f in s.fields}]
    spec_ids = manifests.partition_spec_id.to_numpy()
    may, always = np.isin(spec_ids, having), np.ones(len(spec_ids), np.bool_)
    assert isinstance(field.type, PrimitiveType), "partition values are primitive"
    unknown = column_of(pa.nulls(len(spec_ids), arrow_type(field.type)), field.type)
    return FieldStatistics(unknown, unknown, always, may, may, exact=False)


def _free_name(field: PartitionField, taken: Iterable[str]) -> str:
    return field.name if field.name not in taken else f"{field.name}_{field.field_id}"


def _check_same(newer: PartitionField, older: PartitionField) -> None:
    transforms = {f.transform for f in (newer, older) if not isinstance(f.transform, Void)}
    if newer.source_id != older.source_id or len(transforms) > 1:
        raise Unsupported(
            f"partition field {older.field_id} is {newer.name!r} in one spec and {older.name!r} in another"
        )


def _result_type(field: PartitionField, schema: Schema) -> PrimitiveType:
    source = schema.by_id[field.source_id].type
    assert isinstance(source, PrimitiveType), "only primitive columns are partition sources"
    return field.transform.result_type(source)
