"""The fields of manifests and manifest lists as the spec defines them, and their form in an Avro schema."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

_AVRO_WORDS = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.string(): "string",
    pa.binary(): "bytes",
}


@dataclass(frozen=True)
class Known:
    """A field: its Arrow type, the versions that require it, those that allow it, and the ids of its parts."""

    field_id: int
    name: str
    kind: pa.DataType
    required: tuple[int, ...] = ()
    optional: tuple[int, ...] = ()
    parts: tuple[int, ...] = ()

    def is_in(self, version: int) -> bool:
        return version in self.required or version in self.optional


def field_json(known: Known, version: int) -> dict[str, Any]:
    """Render a field as a format version defines it."""
    kind = _avro_type(known.kind, known.parts)
    return _field(known.name, kind, known.field_id, required=version in known.required)


def _field(name: str, kind: Any, field_id: int, *, required: bool) -> dict[str, Any]:
    if required:
        return {"name": name, "type": kind, "field-id": field_id}
    return {"name": name, "type": ["null", kind], "default": None, "field-id": field_id}


def _avro_type(kind: pa.DataType, parts: tuple[int, ...]) -> Any:
    if pa.types.is_map(kind):
        key_id, value_id = parts
        key = _field("key", _avro_type(kind.key_type, ()), key_id, required=True)
        value = _field("value", _avro_type(kind.item_type, ()), value_id, required=True)
        pair = {"type": "record", "name": f"k{key_id}_v{value_id}", "fields": [key, value]}
        return {"type": "array", "items": pair, "logicalType": "map"}
    if pa.types.is_list(kind):
        return {"type": "array", "items": _element_type(kind.value_type, parts), "element-id": parts[0]}
    return _AVRO_WORDS[kind]


def _element_type(kind: pa.DataType, parts: tuple[int, ...]) -> Any:
    if not pa.types.is_struct(kind):
        return _avro_type(kind, ())
    fields = [
        _field(each.name, _avro_type(each.type, ()), part, required=not each.nullable)
        for each, part in zip(kind, parts[1:], strict=True)
    ]
    return {"type": "record", "name": f"r{parts[0]}", "fields": fields}
