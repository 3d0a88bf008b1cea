"""Schemas, partition specs and sort orders to and from JSON values. (spec: Appendix C)

A partition or sort field over several columns has `source-ids`. No multi-argument transform is supported, so any such
field is kept as an unknown transform, which readers ignore and writers preserve.

Decoders take parsed JSON and raise ValueError, TypeError, KeyError or InvalidInput for invalid input; the caller, which
has the file's location, turns that into CorruptFile.
"""

from __future__ import annotations

from typing import Any, Protocol

from icefield.deferred import deferred_imports
from icefield.types.datatypes import Default, ListType, MapType, NestedField, StructType, Type
from icefield.types.schema import MAX_DEPTH, Schema

with deferred_imports(__name__):
    from icefield.codec.json.keys import Json
    from icefield.model.partition import PartitionField, PartitionSpec
    from icefield.model.sort_order import Direction, NullOrder, SortField, SortOrder
    from icefield.types.text import parse_stored_type
    from icefield.types.transforms import Transform, Unknown, parse_transform
    from icefield.types.unknown_keys import UnknownKeys, find_unknown_keys
    from icefield.types.values.json import decode_json_value, encode_json_value

INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1

_SOURCE_KEYS = {"source-id", "source-ids"}
_SCHEMA_KEYS = frozenset({"type", "schema-id", "identifier-field-ids", "fields"})
_FIELD_KEYS = frozenset({"id", "name", "required", "type", "doc", "initial-default", "write-default"})
_STRUCT_KEYS = _SCHEMA_KEYS  # a schema is decoded as a struct
_LIST_KEYS = frozenset({"type", "element-id", "element", "element-required"})
_MAP_KEYS = frozenset({"type", "key-id", "key", "value-id", "value", "value-required"})
_SPEC_KEYS = frozenset({"spec-id", "fields"})
_PARTITION_FIELD_KEYS = frozenset({"name", "transform", "field-id"} | _SOURCE_KEYS)
_ORDER_KEYS = frozenset({"order-id", "fields"})
_SORT_FIELD_KEYS = frozenset({"transform", "direction", "null-order"} | _SOURCE_KEYS)


def encode_schema(schema: Schema) -> Json:
    """Encode a schema with its id."""
    encoded: Json = {"type": "struct", "schema-id": schema.schema_id}
    if schema.identifier_field_ids:
        encoded["identifier-field-ids"] = list(schema.identifier_field_ids)
    encoded["fields"] = [_encode_field(f) for f in schema.fields]
    return _with_unknown(encoded, schema)


def decode_schema(value: Json) -> Schema:
    """Decode a schema; a v1 schema without an id gets 0."""
    struct = _decode_type(value, MAX_DEPTH)
    if not isinstance(struct, StructType):
        raise ValueError("a schema must be a struct")
    identifiers = _list(value.get("identifier-field-ids") or [])
    return Schema(
        struct.fields,
        _integer(value.get("schema-id", 0)),
        tuple(_integer(i) for i in identifiers),
        find_unknown_keys(value, _SCHEMA_KEYS),
    )


def encode_spec(spec: PartitionSpec) -> Json:
    """Encode a partition spec with its id."""
    return _with_unknown({"spec-id": spec.spec_id, "fields": encode_spec_fields(spec)}, spec)


def encode_spec_fields(spec: PartitionSpec) -> list[Json]:
    """Encode only the fields, as manifest headers store them."""
    return [
        _with_unknown(
            {"name": f.name, "transform": str(f.transform), **_encode_sources(f.source_ids), "field-id": f.field_id}, f
        )
        for f in spec.fields
    ]


def decode_spec(value: Json) -> PartitionSpec:
    """Decode a partition spec with its id."""
    fields = tuple(_decode_partition_field(f) for f in _list(value["fields"]))
    return PartitionSpec(fields, _integer(value["spec-id"]), find_unknown_keys(value, _SPEC_KEYS))


def encode_sort_order(order: SortOrder) -> Json:
    """Encode a sort order with its id."""
    fields = [
        _with_unknown(
            {
                "transform": str(f.transform),
                **_encode_sources(f.source_ids),
                "direction": f.direction.value,
                "null-order": f.null_order.value,
            },
            f,
        )
        for f in order.fields
    ]
    return _with_unknown({"order-id": order.order_id, "fields": fields}, order)


def decode_sort_order(value: Json) -> SortOrder:
    """Decode a sort order with its id."""
    fields = tuple(_decode_sort_field(f) for f in _list(value["fields"]))
    return SortOrder(fields, _integer(value["order-id"]), find_unknown_keys(value, _ORDER_KEYS))


def _decode_partition_field(value: Json) -> PartitionField:
    first, *others = _decode_sources(value)
    transform = _decode_transform(value, others)
    unknown = find_unknown_keys(value, _PARTITION_FIELD_KEYS)
    return PartitionField(first, _integer(value["field-id"]), _text(value["name"]), transform, tuple(others), unknown)


def _decode_sort_field(value: Json) -> SortField:
    first, *others = _decode_sources(value)
    direction, null_order = Direction(value["direction"]), NullOrder(value["null-order"])
    unknown = find_unknown_keys(value, _SORT_FIELD_KEYS)
    return SortField(first, _decode_transform(value, others), direction, null_order, tuple(others), unknown)


def _encode_sources(source_ids: tuple[int, ...]) -> Json:
    return {"source-id": source_ids[0]} if len(source_ids) == 1 else {"source-ids": list(source_ids)}


def _decode_sources(value: Json) -> list[int]:
    if "source-ids" not in value:
        return [_integer(value["source-id"])]
    sources = [_integer(i) for i in _list(value["source-ids"])]
    if not sources:
        raise ValueError("source-ids is empty")
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
    return _with_unknown(encoded, field)


def _encode_type(kind: Type) -> str | Json:
    match kind:
        case StructType(fields):
            return _with_unknown({"type": "struct", "fields": [_encode_field(f) for f in fields]}, kind)
        case ListType(element_id, element, required):
            encoded = {
                "type": "list",
                "element-id": element_id,
                "element": _encode_type(element),
                "element-required": required,
            }
            return _with_unknown(encoded, kind)
        case MapType(key_id, key, value_id, value, required):
            encoded = {
                "type": "map",
                "key-id": key_id,
                "key": _encode_type(key),
                "value-id": value_id,
                "value": _encode_type(value),
                "value-required": required,
            }
            return _with_unknown(encoded, kind)
        case _:
            return str(kind)


def _decode_type(value: str | Json, depth: int) -> Type:
    if depth == 0:
        raise ValueError(f"types are nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str):
        return parse_stored_type(value)
    match value["type"]:
        case "struct":
            fields = tuple(_decode_field(f, depth - 1) for f in _list(value["fields"]))
            return StructType(fields, find_unknown_keys(value, _STRUCT_KEYS))
        case "list":
            element = _decode_type(value["element"], depth - 1)
            unknown = find_unknown_keys(value, _LIST_KEYS)
            return ListType(_integer(value["element-id"]), element, _flag(value["element-required"]), unknown)
        case "map":
            key, item = _decode_type(value["key"], depth - 1), _decode_type(value["value"], depth - 1)
            key_id, value_id = _integer(value["key-id"]), _integer(value["value-id"])
            unknown = find_unknown_keys(value, _MAP_KEYS)
            return MapType(key_id, key, value_id, item, _flag(value["value-required"]), unknown)
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
        find_unknown_keys(value, _FIELD_KEYS),
    )


def _decode_default(value: Json, key: str, kind: Type) -> Default | None:
    default = value.get(key)
    try:
        return None if default is None else decode_json_value(default, kind)
    except ValueError as error:
        raise ValueError(f"{key} of column {_shown(value['name'])}: {error}") from error


class _HasUnknownKeys(Protocol):
    @property
    def unknown_keys(self) -> UnknownKeys: ...


def _with_unknown(encoded: Json, value: _HasUnknownKeys) -> Json:
    """Return an encoded object with the unknown keys that it was read with."""
    return {**value.unknown_keys, **encoded} if value.unknown_keys else encoded


def _integer(value: Any) -> int:
    if type(value) is not int or not INT_MIN <= value <= INT_MAX:
        raise ValueError(f"expected a 32-bit integer, found {_shown(value)}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a string, found {_shown(value)}")
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
