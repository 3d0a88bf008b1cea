"""Read metadata of format version 1 as version 2: each missing field has a default.

(spec: Appendix E, Version 2, "Reading v1 metadata for v2"; Partition Specs.) Raises KeyError, ValueError, TypeError
for missing or malformed fields that version 1 requires.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from icefield.codec.json.decoders import TEXT
from icefield.codec.json.keys import Json
from icefield.model.metadata import location_uuid
from icefield.model.partition import FIRST_PARTITION_FIELD_ID

_OPTIONAL = ("table-uuid", "schemas", "partition-specs", "last-partition-id", "sort-orders")
_OBJECT = msgspec.json.Decoder(Json)
_OBJECTS = msgspec.json.Decoder(list[Json])


def as_v2(keys: Mapping[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
    """Return the top level of a v1 file with the keys that version 2 requires.

    A newer writer writes these keys besides the old ones, and they take precedence; an older one has only `schema`
    and `partition-spec`.
    """
    whole = {key: raw for key, raw in keys.items() if key not in _OPTIONAL or bytes(raw) != b"null"}
    if "schemas" not in whole:
        schema = _OBJECT.decode(whole["schema"])
        whole |= _raw({"schemas": [schema], "current-schema-id": schema.get("schema-id", 0)})
    if "partition-specs" in whole:
        specs = [
            spec | {"fields": _with_field_ids(spec["fields"])} for spec in _OBJECTS.decode(whole["partition-specs"])
        ]
    else:
        specs = [{"spec-id": 0, "fields": _with_field_ids(_OBJECTS.decode(whole["partition-spec"]))}]
        whole |= _raw({"default-spec-id": 0})
    if "sort-orders" not in whole:
        whole |= _raw({"sort-orders": [{"order-id": 0, "fields": []}], "default-sort-order-id": 0})
    whole |= _raw({"partition-specs": specs, "last-sequence-number": 0})
    defaults = {
        "last-partition-id": _highest_field_id(specs),
        # Such a table has no uuid; one that is derived from its location is the same for every reader, and the next
        # commit stores it.
        "table-uuid": str(location_uuid(TEXT.decode(whole["location"]).rstrip("/"))),
    }
    return _raw(defaults) | whole


def _raw(values: Mapping[str, Any]) -> dict[str, msgspec.Raw]:
    return {key: msgspec.Raw(msgspec.json.encode(value)) for key, value in values.items()}


def _with_field_ids(value: Any) -> list[Json]:
    """Assign ids to the fields of a spec without any. (A spec with ids for some fields only is refused later.)"""
    fields = msgspec.convert(value, list[Json])
    if any("field-id" in f for f in fields):
        return fields
    return [f | {"field-id": FIRST_PARTITION_FIELD_ID + position} for position, f in enumerate(fields)]


def _highest_field_id(specs: list[Json]) -> int:
    return max((f["field-id"] for spec in specs for f in spec["fields"]), default=FIRST_PARTITION_FIELD_ID - 1)
