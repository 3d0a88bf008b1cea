"""Schemas, partition specs and sort orders to and from JSON values. (spec: Appendix C)

A partition or sort field over several columns has `source-ids`; no transform of several columns is known, so whatever
it is called it is kept as an unknown one, to be read around and written back as it was.

Decoders take what a JSON parser made and raise ValueError, TypeError, KeyError or InvalidInput on anything unfit;
the caller, who knows the file, turns that into CorruptFile.
"""

from typing import Any

from icefield.model.partition import PartitionField, PartitionSpec
from icefield.model.sort_order import Direction, NullOrder, SortField, SortOrder
from icefield.types.datatypes import Default, ListType, MapType, NestedField, StructType, Type
from icefield.types.json_value import decode_json_value, encode_json_value
from icefield.types.schema import MAX_DEPTH, Schema
from icefield.types.text import parse_stored_type
from icefield.types.transforms import Transform, Unknown, parse_transform

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
        {"name": f.name, "transform": str(f.transform), **_encode_sources(f.source_ids), "field-id": f.field_id}
        for f in spec.fields
    ]


def decode_spec(value: Json) -> PartitionSpec:
    """Decode a partition spec with its id."""
    fields = tuple(_decode_partition_field(f) for f in _list(value["fields"]))
    return PartitionSpec(fields, _integer(value["spec-id"]))


def encode_sort_order(order: SortOrder) -> Json:
    """Encode a sort order with its id."""
    fields = [
        {
            "transform": str(f.transform),
            **_encode_sources(f.source_ids),
            "direction": f.direction.value,
            "null-order": f.null_order.value,
        }
        for f in order.fields
    ]
    return {"order-id": order.order_id, "fields": fields}


def decode_sort_order(value: Json) -> SortOrder:
    """Decode a sort order with its id."""
    fields = tuple(_decode_sort_field(f) for f in _list(value["fields"]))
    return SortOrder(fields, _integer(value["order-id"]))


def _decode_partition_field(value: Json) -> PartitionField:
    first, *others = _decode_sources(value)
    transform = _decode_transform(value, others)
    return PartitionField(first, _integer(value["field-id"]), _text(value["name"]), transform, tuple(others))


def _decode_sort_field(value: Json) -> SortField:
    first, *others = _decode_sources(value)
    direction, null_order = Direction(value["direction"]), NullOrder(value["null-order"])
    return SortField(first, _decode_transform(value, others), direction, null_order, tuple(others))


def _encode_sources(source_ids: tuple[int, ...]) -> Json:
    return {"source-id": source_ids[0]} if len(source_ids) == 1 else {"source-ids": list(source_ids)}


def _decode_sources(value: Json) -> list[int]:
    if "source-ids" not in value:
        return [_integer(value["source-id"])]
    sources = [_integer(i) for i in _list(value["source-ids"])]
    if not sources:
        raise ValueError("source-ids names no column")
    return sources


def _decode_transform(value: Json, other_sources: list[int]) -> Transform:
    text = _text(value["transform"])
    return Unknown(text) if other_sources else parse_transform(text)


def _encode_field(field: NestedField) -> Json:
    encoded: Json = {
        "id": field.field_id,
        "name": field.name,
        "required": field.required,
        "type": _encode_type(field.type),
    }
    if field.doc is not None:
        encoded["doc"] = field.doc
    if field.initial_default is not None:
        encoded["initial-default"] = encode_json_value(field.initial_default, field.type)
    if field.write_default is not None:
        encoded["write-default"] = encode_json_value(field.write_default, field.type)
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
        return parse_stored_type(value)
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
        _decode_default(value, "initial-default", kind),
        _decode_default(value, "write-default", kind),
    )


def _decode_default(value: Json, key: str, kind: Type) -> Default | None:
    default = value.get(key)
    try:
        return None if default is None else decode_json_value(default, kind)
    except ValueError as error:
        raise ValueError(f"{key} of column {_shown(value['name'])}: {error}") from error


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
