"""The partitions of files, as people read them."""

import pyarrow as pa

from icefield.codec.manifest_schema import partition_column
from icefield.model.partition import PartitionSpec
from icefield.scan.manifests import spec_sources
from icefield.types.arrow import python_values
from icefield.types.schema import Schema


def partition_texts(files: pa.Table, spec: PartitionSpec, schema: Schema) -> list[str]:
    """Write each file's partition as `name=value/…`; fields whose source column was dropped are left out."""
    texts = [""] * files.num_rows
    for source in spec_sources(spec, schema):
        column = files.column(partition_column(source.field_id)).combine_chunks()
        values = python_values(column, source.transform.result_type(source.source_type))
        for at, value in enumerate(values):
            text = f"{source.name}={source.transform.human(value, source.source_type)}"
            texts[at] = f"{texts[at]}/{text}" if texts[at] else text
    return texts
