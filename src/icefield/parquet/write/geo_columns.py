"""Geometries and geographies for the Parquet writer: binary columns with Parquet's geospatial types.

Arrow's Parquet writer takes the type from an extension type with a well-known name. It need not be registered, and
readers get plain binary. (spec: Appendix A, Parquet; Appendix G)
"""

import json

import pyarrow as pa

from icefield.types.arrow import arrow_schema
from icefield.types.datatypes import GeographyType, GeometryType, Type
from icefield.types.schema import Schema

EXTENSION_NAME = "geoarrow.wkb"


class WellKnownBinary(pa.ExtensionType):  # type: ignore[misc] # pyarrow is untyped
    """Shapes as well-known binary (WKB)."""

    def __init__(self, description: str) -> None:
        self._description = description
        super().__init__(pa.binary(), EXTENSION_NAME)

    def __arrow_ext_serialize__(self) -> bytes:
        return self._description.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> "WellKnownBinary":
        return cls(serialized.decode())


def parquet_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema for the Parquet writer."""
    fields = list(arrow_schema(schema))
    for at, field in enumerate(schema.fields):
        if isinstance(field.type, GeometryType | GeographyType):
            fields[at] = fields[at].with_type(WellKnownBinary(_description(field.type)))
    return pa.schema(fields)


def as_parquet(table: pa.Table, target: pa.Schema) -> pa.Table:
    """Return the rows with the types of a Parquet writer's schema."""
    for at, field in enumerate(target):
        if isinstance(field.type, WellKnownBinary):
            shapes = pa.ExtensionArray.from_storage(field.type, table.column(at).combine_chunks())
            table = table.set_column(at, field, shapes)
    return table


def _description(kind: Type) -> str:
    match kind:
        case GeographyType():
            return json.dumps({"crs": kind.crs, "edges": str(kind.algorithm)})
        case GeometryType():
            return json.dumps({"crs": kind.crs})
        case _:
            return "{}"
