"""Values of identity partitions, for columns that a data file itself may lack. (spec: Column Projection)

They stay encoded, once for each distinct partition, until a file that needs them is opened.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest.rows import ManifestEntries
from icefield.codec.manifest.schema import partition_column
from icefield.expr.prune.project import PartitionTerm
from icefield.model.partition import PartitionSpec
from icefield.plan.manifest_list import spec_sources
from icefield.types.arrow import python_values
from icefield.types.arrow_keys import KeyIndex
from icefield.types.datatypes import PrimitiveType, Value
from icefield.types.schema import Schema
from icefield.types.transforms import Identity
from icefield.types.values.binary import decode_value, encode_value

CONSTANTS = pa.dictionary(pa.int64(), pa.binary())


def identity_constants(entries: ManifestEntries, spec: PartitionSpec, schema: Schema) -> pa.Array:
    """Return the identity partition values of each entry, encoded; null for a spec without such fields."""
    sources = [s for s in identity_sources(spec, schema) if partition_column(s.field_id) in entries]
    if not sources or entries.num_rows == 0:
        return pa.nulls(entries.num_rows, CONSTANTS)
    columns = [entries[partition_column(s.field_id)].combine_chunks() for s in sources]
    index = KeyIndex(columns, entries.num_rows)
    _, firsts = np.unique(index.codes, return_index=True)
    values = [
        python_values(column.take(pa.array(firsts)), s.source_type) for column, s in zip(columns, sources, strict=True)
    ]
    encoded = [_encode(sources, partition) for partition in zip(*values, strict=True)]
    return pa.DictionaryArray.from_arrays(pa.array(index.codes), pa.array(encoded, pa.binary()))


def identity_sources(spec: PartitionSpec, schema: Schema) -> list[PartitionTerm]:
    """Return the identity fields of a spec."""
    return [s for s in spec_sources(spec, schema) if isinstance(s.transform, Identity)]


def has_identity_columns(entries: ManifestEntries, spec: PartitionSpec, schema: Schema) -> pa.Array:
    """Return which files certainly hold the columns that they are partitioned by: those with known column sizes."""
    complete = pa.repeat(True, entries.num_rows)
    for source in identity_sources(spec, schema):
        complete = pc.and_(complete, entries[f"column_size.{source.source_id}"].combine_chunks().is_valid())
    return complete


def decode_constants(encoded: bytes | None, schema: Schema) -> dict[int, Value | None]:
    """Decode the partition values of one file, by source field id."""
    if encoded is None:
        return {}
    constants: dict[int, Value | None] = {}
    for field_id, data in msgspec.msgpack.decode(encoded, type=dict[int, bytes | None]).items():
        kind = schema.by_id[field_id].type
        assert isinstance(kind, PrimitiveType), "only primitive columns are partition sources"
        constants[field_id] = None if data is None else decode_value(data, kind)
    return constants


def _encode(sources: Sequence[PartitionTerm], values: Sequence[Value | None]) -> bytes:
    pairs = zip(sources, values, strict=True)
    return msgspec.msgpack.encode(
        {s.source_id: None if v is None else encode_value(v, s.source_type) for s, v in pairs}
    )
