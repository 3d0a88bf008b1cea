"""Name mappings: field ids for data files without them. (spec: Column Projection, Name Mapping Serialization)

Decoding raises InvalidInput: the mapping is a table property, written by people as well as by programs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

from icefield.errors import InvalidInput
from icefield.types.datatypes import NestedField, children
from icefield.types.schema import MAX_DEPTH, Schema

PROPERTY = "schema.name-mapping.default"


@dataclass(frozen=True)
class MappedField:
    """The names that a field may have in files; a field without an id is in files but not in the table."""

    names: tuple[str, ...]
    field_id: int | None = None
    fields: "NameMapping" = field(default_factory=lambda: NameMapping(()))


@dataclass(frozen=True)
class NameMapping:
    """The mapped fields at one level."""

    fields: tuple[MappedField, ...]

    def find(self, name: str) -> MappedField | None:
        """Find the field that a file's column of this name maps to."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> dict[str, MappedField]:
        found: dict[str, MappedField] = {}
        for each in self.fields:
            for name in each.names:
                found.setdefault(name, each)
        return found


def find_name_mapping(properties: Mapping[str, str]) -> NameMapping | None:
    """Return the mapping in a table's properties, if any."""
    text = properties.get(PROPERTY)
    return None if text is None else decode_name_mapping(text)


def decode_name_mapping(text: str) -> NameMapping:
    """Decode the JSON text of a mapping."""
    try:
        return _decode(msgspec.json.decode(text, type=list[dict[str, Any]]), MAX_DEPTH)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        why = f"a field has no {error}" if isinstance(error, KeyError) else str(error)
        raise InvalidInput(f"table property {PROPERTY} is not a valid name mapping: {why}") from error


def encode_name_mapping(mapping: NameMapping) -> str:
    """Encode a mapping as JSON text."""
    return msgspec.json.encode(_encode(mapping)).decode()


def map_schema(schema: Schema) -> NameMapping:
    """Map every field of a schema by its current name."""
    return _map(schema.fields)


def remap_schema(mapping: NameMapping, schema: Schema) -> NameMapping:
    """Return the mapping after a schema change: new fields and names are added, nothing is removed.

    A mapped name keeps its field forever, for the sake of existing files. If it were mapped to another field, a column
    that was dropped and added again, or two columns that swapped their names, would show each other's values.
    """
    return _remap(mapping, schema.fields)


def _decode(fields: list[dict[str, Any]], depth: int) -> NameMapping:
    if depth == 0:
        raise ValueError(f"it is nested deeper than {MAX_DEPTH} levels")
    decoded = tuple(_decode_field(f, depth) for f in fields)
    names = [name for f in decoded for name in f.names]
    if len(set(names)) != len(names):
        twice = sorted(name for name, uses in Counter(names).items() if uses > 1)
        raise ValueError(f"duplicate names: {', '.join(twice)}")
    return NameMapping(decoded)


def _decode_field(value: dict[str, Any], depth: int) -> MappedField:
    names = msgspec.convert(value["names"], list[str])
    field_id = msgspec.convert(value.get("field-id"), int | None)
    inner = msgspec.convert(value.get("fields") or [], list[dict[str, Any]])
    return MappedField(tuple(names), field_id, _decode(inner, depth - 1))


def _encode(mapping: NameMapping) -> list[dict[str, Any]]:
    encoded = []
    for mapped in mapping.fields:
        value: dict[str, Any] = {} if mapped.field_id is None else {"field-id": mapped.field_id}
        value["names"] = list(mapped.names)
        if mapped.fields.fields:
            value["fields"] = _encode(mapped.fields)
        encoded.append(value)
    return encoded


def _map(fields: Iterable[NestedField]) -> NameMapping:
    return NameMapping(tuple(MappedField((f.name,), f.field_id, _map(children(f.type))) for f in fields))


def _remap(mapping: NameMapping, fields: tuple[NestedField, ...]) -> NameMapping:
    taken = {name for mapped in mapping.fields for name in mapped.names}
    current = {f.field_id: f for f in fields}
    remapped = [_with_name(m, current.get(m.field_id), taken) if m.field_id else m for m in mapping.fields]
    known = {m.field_id for m in mapping.fields}
    for f in fields:
        if f.field_id not in known:
            names = () if f.name in taken else (f.name,)
            remapped.append(MappedField(names, f.field_id, _map(children(f.type))))
    return NameMapping(tuple(remapped))


def _with_name(mapped: MappedField, now: NestedField | None, taken: set[str]) -> MappedField:
    if now is None:
        return mapped
    names = mapped.names if now.name in taken else (*mapped.names, now.name)
    return MappedField(names, mapped.field_id, _remap(mapped.fields, children(now.type)))
