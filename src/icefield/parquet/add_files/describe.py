"""Describe existing Parquet files of other writers, so that they can be added to a table without a copy.

A column is identified by its field id, or by its name through the table's name mapping. A file is refused if a reader
of the table could not read its rows: a column that the table does not have, an incompatible type, a required column
that is missing or may contain nulls. Everything is derived from the footer; no row is read.
Raises SchemaMismatch, InvalidInput (a partition that cannot be determined), CorruptFile, MissingFile, LocationRefused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icefield.codec.json.name_mapping import NameMapping, find_name_mapping, map_schema
from icefield.errors import CorruptFile, SchemaMismatch
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.parquet.add_files.partition import ColumnRange, GivenPartition, PartitionFinder
from icefield.parquet.mapped_ids import has_ids, with_mapped_ids
from icefield.parquet.metrics import MetricsMode, WriterMetrics, exact_bounds, footer_metrics, metrics_modes, null_count
from icefield.parquet.read.stored_columns import has_false_name
from icefield.parquet.write.data_files import DataFile
from icefield.storage.store import Store
from icefield.types.arrow import arrow_type, field_id_of, schema_from_arrow
from icefield.types.datatypes import DoubleType, FloatType, ListType, MapType, NestedField, StructType, Type, walk
from icefield.types.evolve import can_widen
from icefield.types.schema import Schema

NOTHING_BESIDE = WriterMetrics()
INT96 = "INT96"


@dataclass(frozen=True)
class ImportSettings:
    """What a table requires of added files."""

    schema: Schema
    spec: PartitionSpec
    modes: Mapping[int, MetricsMode]
    mapping: NameMapping
    format_version: int
    partitions: PartitionFinder


def import_settings(metadata: TableMetadata, partition: GivenPartition) -> ImportSettings:
    """Return a table's settings for added files; without a name mapping, the current column names apply."""
    schema = metadata.schema
    return ImportSettings(
        schema,
        metadata.spec,
        metrics_modes(schema, metadata.properties),
        find_name_mapping(metadata.properties) or map_schema(schema),
        metadata.format_version,
        PartitionFinder(schema, metadata.spec, partition),
    )


def describe_file(store: Store, location: str, settings: ImportSettings) -> DataFile:
    """Read a file's footer, and describe the file as in a manifest entry."""
    try:
        with store.open_input(location) as source:
            footer = pq.read_metadata(source)
            size_bytes = source.size()
        own = footer.schema.to_arrow_schema()
        physical = with_mapped_ids(own, settings.mapping)
    except (pa.ArrowException, OSError) as error:
        raise CorruptFile(location, f"it is not a valid Parquet file: {error}") from error
    if has_false_name(location, footer):
        # Readers rely on the name for the columns that the file stores.
        raise SchemaMismatch(
            f"{location} is named like a file written by Icefield, but has other columns or types",
            hint="Rename it: a rewritten copy must not end in -s and twelve digits before .parquet",
        )
    fitting = _Fitting(settings)
    stored = Schema(fitting.fields(list(physical), settings.schema.fields, ()))
    fitting.check_required(footer, stored)
    fitting.check_physical(footer)
    if fitting.faults:
        raise SchemaMismatch(
            f"{location} does not match the table: {'; '.join(fitting.faults)}",
            hint="Change the table with evolve(), for instance union_by_name, or write the rows with append()",
        )
    # Statistics in other units than the table's are omitted.
    modes = {i: replace(m, bounds=m.bounds and i not in fitting.other_units) for i, m in settings.modes.items()}
    metrics = footer_metrics(footer, stored.leaves, modes, NOTHING_BESIDE)
    key = settings.partitions.find(location, partial(_range_of, footer, stored, fitting.other_units))
    return DataFile(location, key, footer.num_rows, size_bytes, metrics, has_ids(own))


@dataclass
class _Fitting:
    """Compares a file's columns with the table's, and collects all errors."""

    settings: ImportSettings
    faults: list[str] = field(default_factory=list)
    other_units: set[int] = field(default_factory=set)

    def fields(
        self, physical: Sequence[pa.Field], wanted: Sequence[NestedField], path: tuple[str, ...]
    ) -> tuple[NestedField, ...]:
        """Return the file's columns, in its order, as fields with the table's types."""
        by_id = {f.field_id: f for f in wanted}
        found: list[NestedField] = []
        for column in physical:
            name = ".".join((*path, column.name))
            known = by_id.pop(field_id_of(column) or 0, None)
            if known is None:
                self.faults.append(f"column {name!r} is not in the table")
                continue
            kind = self._type(column, known, (*path, column.name))
            found.append(replace(known, name=column.name, type=kind, required=not column.nullable))
        for absent in by_id.values():
            if absent.required and absent.initial_default is None:
                self.faults.append(f"required column {'.'.join((*path, absent.name))!r} is missing")
        return tuple(found)

    def _type(self, column: pa.Field, known: NestedField, path: tuple[str, ...]) -> Type:
        match known.type:
            case StructType(fields) if pa.types.is_struct(column.type):
                inner = [column.type.field(i) for i in range(column.type.num_fields)]
                return StructType(self.fields(inner, fields, path))
            case ListType() if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
                element = self._type(column.type.value_field, known.type.element, (*path, "element"))
                return replace(known.type, element_type=element)
            case MapType() if pa.types.is_map(column.type):
                key = self._type(column.type.key_field, known.type.key, (*path, "key"))
                value = self._type(column.type.item_field, known.type.value, (*path, "value"))
                return replace(known.type, key_type=key, value_type=value)
            case _:
                self._check_type(column, known, path)
                return known.type

    def _check_type(self, column: pa.Field, known: NestedField, path: tuple[str, ...]) -> None:
        if column.type == arrow_type(known.type):
            return
        stored = schema_from_arrow(pa.schema([pa.field("c", column.type)])).fields[0].type
        same_word = stored == known.type or can_widen(stored, known.type, self.settings.format_version)
        loses = pa.types.is_timestamp(column.type) and column.type.unit == "ns"
        if not same_word or loses:
            self.faults.append(f"column {'.'.join(path)!r} is {column.type}, but the table has {known.type}")
        elif pa.types.is_temporal(column.type):
            self.other_units.add(known.field_id)

    def check_required(self, footer: pq.FileMetaData, stored: Schema) -> None:
        """Collect required columns that may contain nulls."""
        columns = {leaf.field.field_id: at for at, leaf in enumerate(stored.leaves)}
        for path, found in walk(stored.struct):
            wanted = self.settings.schema.by_id[found.field_id]
            if not wanted.required or found.required:
                continue
            at = columns.get(found.field_id) if len(path) == 1 else None
            if at is None or null_count(_chunks(footer, at)) != 0:
                self.faults.append(f"required column {'.'.join(path)!r} may hold nulls")

    def check_physical(self, footer: pq.FileMetaData) -> None:
        """Collect physical types that the format does not allow."""
        for at in range(footer.num_columns):
            column = footer.schema.column(at)
            if column.physical_type == INT96:
                self.faults.append(f"column {column.path!r} is stored as INT96, which has no statistics")


def _chunks(footer: pq.FileMetaData, column: int) -> list[Any]:
    return [footer.row_group(i).column(column) for i in range(footer.num_row_groups)]


def _range_of(footer: pq.FileMetaData, stored: Schema, other_units: set[int], field_id: int) -> ColumnRange | None:
    """Return what a footer proves about a column; nothing for floats, because NaN is not in it."""
    for at, leaf in enumerate(stored.leaves):
        if leaf.field.field_id != field_id or field_id in other_units or isinstance(leaf.type, FloatType | DoubleType):
            continue
        chunks = _chunks(footer, at)
        bounds, nulls = exact_bounds(chunks, leaf, NOTHING_BESIDE), null_count(chunks)
        if nulls is None or (bounds is None and nulls < footer.num_rows):
            return None
        return ColumnRange(bounds, nulls > 0)
    return None
