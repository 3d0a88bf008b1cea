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

INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1


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
    identifiers = _list(value.get("identifier-field-ids") or [])
    return Schema(struct.fields, _integer(value.get("schema-id", 0)), tuple(_integer(i) for i in identifiers))


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
        PartitionField(
            _integer(f["source-id"]), _integer(f["field-id"]), _text(f["name"]), parse_transform(_text(f["transform"]))
        )
        for f in _list(value["fields"])
    )
    return PartitionSpec(fields, _integer(value["spec-id"]))


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
            _integer(f["source-id"]),
            parse_transform(_text(f["transform"])),
            Direction(f["direction"]),
            NullOrder(f["null-order"]),
        )
        for f in _list(value["fields"])
    )
    return SortOrder(fields, _integer(value["order-id"]))


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
            return StructType(tuple(_decode_field(f, depth - 1) for f in _list(value["fields"])))
        case "list":
            element = _decode_type(value["element"], depth - 1)
            return ListType(_integer(value["element-id"]), element, _flag(value["element-required"]))
        case "map":
            key, item = _decode_type(value["key"], depth - 1), _decode_type(value["value"], depth - 1)
            key_id, value_id = _integer(value["key-id"]), _integer(value["value-id"])
            return MapType(key_id, key, value_id, item, _flag(value["value-required"]))
        case unknown:
            raise ValueError(f"unknown type {_shown(unknown)}")


def _decode_field(value: Json, depth: int) -> NestedField:
    kind = _decode_type(value["type"], depth)
    doc = value.get("doc")
    return NestedField(
        _integer(value["id"]),
        _text(value["name"]),
        kind,
        _flag(value["required"]),
        None if doc is None else _text(doc),
    )


def _integer(value: Any) -> int:
    if type(value) is not int or not INT_MIN <= value <= INT_MAX:
        raise ValueError(f"expected a 32-bit integer, found {_shown(value)}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a text, found {_shown(value)}")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, found {_shown(value)}")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list, found {_shown(value)}")
    return value


def _shown(value: Any) -> str:
    return repr(value)[:60]
