"""The partitions of files, as people read them."""

import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest_schema import partition_column
from icefield.expr.project import PartitionTerm
from icefield.model.partition import PartitionSpec
from icefield.scan.manifests import FEW, spec_sources
from icefield.types.arrow import python_values
from icefield.types.schema import Schema


def partition_texts(files: pa.Table, spec: PartitionSpec, schema: Schema) -> pa.Array:
    """Write each file's partition as `name=value/…`; fields whose source column was dropped are left out.

    A text is made once for each distinct value, for there are far fewer of them than files.
    """
    parts: list[pa.Array] = []
    for source in spec_sources(spec, schema):
        column = files.column(partition_column(source.field_id)).combine_chunks()
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
    return pa.array([f"{source.name}={source.transform.human(value, kind)}" for value in known], pa.string())
