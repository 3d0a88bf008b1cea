"""The partitions of files: as a key that is equal only for equal partitions, and as a string for display.

Strings collide (null and 'null', 'x/b=y' and a second field), so they must not be compared. A key holds the typed
values of all fields of one spec, including those of dropped source columns. Keys of different specs do not compare, so
the spec id is part of the partition.
"""

import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest.rows import ManifestEntries
from icefield.codec.manifest.schema import partition_column
from icefield.codec.rows import FEW, Rows
from icefield.expr.prune.project import PartitionTerm
from icefield.model.partition import PartitionSpec
from icefield.plan.entries import partition_columns
from icefield.plan.manifest_list import spec_sources
from icefield.types.arrow import python_values
from icefield.types.arrow_keys import encode_keys
from icefield.types.schema import Schema

PARTITION_KEY = "partition_key"
Partition = tuple[int, bytes]  # the id of the spec, and the key


def partition_keys(files: Rows, spec: PartitionSpec) -> pa.Array:
    """Return the key of each file's partition, for files of one spec with their partition columns."""
    return encode_keys(partition_columns(files, spec), files.num_rows)


def partition_texts(files: ManifestEntries, spec: PartitionSpec, schema: Schema) -> pa.Array:
    """Format each file's partition as `name=value/…`; fields of dropped source columns are left out.

    Each distinct value is formatted once, since there are far fewer of them than files.
    """
    parts: list[pa.Array] = []
    for source in spec_sources(spec, schema):
        column = files[partition_column(source.field_id)].combine_chunks()
        if len(column) <= FEW:
            parts.append(_texts(column, source))
            continue
        encoded = column.dictionary_encode(null_encoding="encode")
        parts.append(_texts(encoded.dictionary, source).take(encoded.indices))
    if len(parts) == 1:
        return parts[0]
    return pc.binary_join_element_wise(*parts, "/") if parts else pa.repeat("", files.num_rows)


def _texts(values: pa.Array, source: PartitionTerm) -> pa.Array:
    kind = source.source_type
    known = python_values(values, source.transform.result_type(kind))
    return pa.array([f"{source.name}={source.transform.to_human_string(value, kind)}" for value in known], pa.string())
