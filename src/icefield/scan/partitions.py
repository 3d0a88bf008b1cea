"""The partitions of files, as people read them."""

import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest_schema import partition_column
from icefield.model.partition import PartitionSpec
from icefield.scan.manifests import spec_sources
from icefield.types.arrow import python_values
from icefield.types.schema import Schema


def partition_texts(files: pa.Table, spec: PartitionSpec, schema: Schema) -> pa.Array:
    """Write each file's partition as `name=value/…`; fields whose source column was dropped are left out.

    A text is made once for each distinct value, for there are far fewer of them than files.
    """
    parts: list[pa.Array] = []
    for source in spec_sources(spec, schema):
        column = files.column(partition_column(source.field_id)).combine_chunks()
        encoded = column.dictionary_encode(null_encoding="encode")
        values = python_values(encoded.dictionary, source.transform.result_type(source.source_type))
        texts = [f"{source.name}={source.transform.human(value, source.source_type)}" for value in values]
        parts.append(pa.array(texts, pa.string()).take(encoded.indices))
    return pc.binary_join_element_wise(*parts, "/") if parts else pa.repeat("", files.num_rows)
