"""Schemas, partition specs and sort orders to and from JSON values. (spec: Appendix C)

Decoders take what a JSON parser made and raise ValueError, TypeError, KeyError or InvalidInput on anything unfit;
the caller, who knows the file, turns that into CorruptFile.
"""

from typing import Any

from icefield.model.partition import PartitionField, PartitionSpec
from icefield.model.sort_order import Direction, NullOrder, SortField, SortOrder
from icefield.types.datatypes import ListType, MapType, NestedField, StructType, Type
from icefield.types.schema import MAX_DEPTH, Schema
from icefield.types.text import parse_primitive
from icefield.types.transforms import parse_transform

Json = dict[str, Any]


def encode_schema(schema: Schema) -> Json:
    """Encode a schema with its id."""
    encoded: Json = {"type": "struct", "schema-id": schema.schema_id}
    if schema.identifier_field_ids:
        encoded["identifier-field-ids"] = list(schema.identifier_field_ids)
    encoded["fields"] = [_encode_field(f) for f in schema.fields]
    return encoded


def decode_schema(value: Json) -> Schema:
    """Decode a schema; a v1 schema without an id gets 0."""
    struct = _decode_type(value, MAX_DEPTH)
    if not isinstance(struct, StructType):
        raise ValueError("a schema must be a struct")
    return Schema(struct.fields, int(value.get("schema-id", 0)), tuple(value.get("identifier-field-ids") or ()))


def encode_spec(spec: PartitionSpec) -> Json:
    """Encode a partition spec with its id."""
    return {"spec-id": spec.spec_id, "fields": encode_spec_fields(spec)}


def encode_spec_fields(spec: PartitionSpec) -> list[Json]:
    """Encode only the fields, as manifests carry them."""
    return [
        {"name": f.name, "transform": str(f.transform), "source-id": f.source_id, "field-id": f.field_id}
        for f in spec.fields
    ]


def decode_spec(value: Json) -> PartitionSpec:
    """Decode a partition spec with its id."""
    fields = tuple(
        PartitionField(int(f["source-id"]), int(f["field-id"]), str(f["name"]), parse_transform(str(f["transform"])))
        for f in value["fields"]
    )
    return PartitionSpec(fields, int(value["spec-id"]))


def encode_sort_order(order: SortOrder) -> Json:
    """Encode a sort order with its id."""
    fields = [
        {
            "transform": str(f.transform),
            "source-id": f.source_id,
            "direction": f.direction.value,
            "null-order": f.null_order.value,
        }
        for f in order.fields
    ]
    return {"order-id": order.order_id, "fields": fields}


def decode_sort_order(value: Json) -> SortOrder:
    """Decode a sort order with its id."""
    fields = tuple(
        SortField(
            int(f["source-id"]),
            parse_transform(str(f["transform"])),
            Direction(f["direction"]),
            NullOrder(f["null-order"]),
        )
        for f in value["fields"]
    )
    return SortOrder(fields, int(value["order-id"]))


def _encode_field(field: NestedField) -> Json:
    encoded: Json = {
        "id": field.field_id,
        "name": field.name,
        "required": field.required,
        "type": _encode_type(field.type),
    }
    if field.doc is not None:
        encoded["doc"] = field.doc
    return encoded


def _encode_type(kind: Type) -> str | Json:
    match kind:
        case StructType(fields):
            return {"type": "struct", "fields": [_encode_field(f) for f in fields]}
        case ListType(element_id, element, required):
            return {
                "type": "list",
                "element-id": element_id,
                "element": _encode_type(element),
                "element-required": required,
            }
        case MapType(key_id, key, value_id, value, required):
            return {
                "type": "map",
                "key-id": key_id,
                "key": _encode_type(key),
                "value-id": value_id,
                "value": _encode_type(value),
                "value-required": required,
            }
        case _:
            return str(kind)


def _decode_type(value: str | Json, depth: int) -> Type:
    if depth == 0:
        raise ValueError(f"types are nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str):
        return parse_primitive(value)
    match value["type"]:
        case "struct":
            return StructType(tuple(_decode_field(f, depth - 1) for f in value["fields"]))
        case "list":
            element = _decode_type(value["element"], depth - 1)
            return ListType(int(value["element-id"]), element, bool(value["element-required"]))
        case "map":
            key, item = _decode_type(value["key"], depth - 1), _decode_type(value["value"], depth - 1)
            return MapType(int(value["key-id"]), key, int(value["value-id"]), item, bool(value["value-required"]))
        case unknown:
            raise ValueError(f"unknown type {unknown!r}")


def _decode_field(value: Json, depth: int) -> NestedField:
    return NestedField(
        int(value["id"]), str(value["name"]), _decode_type(value["type"], depth), bool(value["required"]), value.get("doc")
    )
