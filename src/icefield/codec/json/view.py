"""View metadata to and from its metadata.json. (view spec: View Metadata)

Unknown keys of the view and of its versions survive a round trip, and so do representations of unknown types. Raises
CorruptFile for bytes that are not view metadata, Unsupported for an unsupported format version.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from icefield.codec.json.decoders import ENCODER, INT, LONG, OBJECTS, RAW, RAW_LIST, TEXT, UUID
from icefield.codec.json.keys import KeyTaker, inflate_json
from icefield.codec.json.schema import decode_schema, encode_schema
from icefield.codec.json.snapshots import Int, Long
from icefield.errors import CorruptFile, InvalidInput, Unsupported
from icefield.model.view import (
    VIEW_FORMAT_VERSION,
    OtherRepresentation,
    Representation,
    SqlRepresentation,
    VersionLogEntry,
    ViewMetadata,
    ViewVersion,
)

_SQL = "sql"


class _LogWire(msgspec.Struct, rename="kebab"):
    timestamp_ms: Long
    version_id: Int


class _SqlWire(msgspec.Struct):
    type: str
    sql: str
    dialect: str


class _TypeWire(msgspec.Struct):
    type: str


_OPTIONAL_TEXT: msgspec.json.Decoder[str | None] = msgspec.json.Decoder(str)
_TEXTS = msgspec.json.Decoder(tuple[str, ...])
_LOG = msgspec.json.Decoder(list[_LogWire])
_STRINGS: msgspec.json.Decoder[Mapping[str, str]] = msgspec.json.Decoder(dict[str, str])
_TYPE = msgspec.json.Decoder(_TypeWire)
_REPRESENTATION = msgspec.json.Decoder(_SqlWire)


def decode_view(data: bytes, location: str) -> ViewMetadata:
    """Decode a view's metadata.json, plain or gzipped."""
    try:
        keys = RAW.decode(inflate_json(data, location))
        version = INT.decode(keys["format-version"])
        if version != VIEW_FORMAT_VERSION:
            raise Unsupported(f"{location} has view format version {version}; icefield supports {VIEW_FORMAT_VERSION}")
        metadata = _decode_keys(dict(keys))
        _check(metadata)
    except (InvalidInput, ValueError, TypeError, KeyError, RecursionError) as error:
        why = f"key {error} is missing" if isinstance(error, KeyError) else str(error)
        raise CorruptFile(location, f"it is not valid view metadata: {why}") from error
    return metadata


def encode_view(metadata: ViewMetadata) -> bytes:
    """Encode to JSON, with the keys in the order of Iceberg Java."""
    keys: dict[str, Any] = {
        "view-uuid": str(metadata.view_uuid),
        "format-version": metadata.format_version,
        "location": metadata.location,
        "properties": dict(metadata.properties),
        "schemas": [encode_schema(schema) for schema in metadata.schemas],
        "current-version-id": metadata.current_version_id,
        "versions": [encode_view_version(version) for version in metadata.versions],
        "version-log": [_LogWire(entry.timestamp_ms, entry.version_id) for entry in metadata.version_log],
    }
    if not metadata.properties:
        del keys["properties"]
    keys.update(_raw(metadata.unknown))
    return ENCODER.encode(keys)


def decode_view_version(raw: msgspec.Raw) -> ViewVersion:
    """Decode one version."""
    keys = dict(RAW.decode(raw))
    take = KeyTaker(keys)
    return ViewVersion(
        version_id=take.required("version-id", INT),
        schema_id=take.required("schema-id", INT),
        timestamp_ms=take.required("timestamp-ms", LONG),
        representations=tuple(_decode_representation(each) for each in take.required("representations", RAW_LIST)),
        default_namespace=take.required("default-namespace", _TEXTS),
        default_catalog=take.optional("default-catalog", _OPTIONAL_TEXT, None),
        summary=take.required("summary", _STRINGS),
        unknown={key: bytes(kept) for key, kept in keys.items()},
    )


def encode_view_version(version: ViewVersion) -> dict[str, Any]:
    """Encode one version."""
    keys: dict[str, Any] = {
        "version-id": version.version_id,
        "timestamp-ms": version.timestamp_ms,
        "schema-id": version.schema_id,
        "summary": dict(version.summary),
        "default-catalog": version.default_catalog,
        "default-namespace": list(version.default_namespace),
        "representations": [_encode_representation(each) for each in version.representations],
    }
    if version.default_catalog is None:
        del keys["default-catalog"]
    return keys | _raw(version.unknown)


def _decode_keys(keys: dict[str, msgspec.Raw]) -> ViewMetadata:
    take = KeyTaker(keys)
    return ViewMetadata(
        view_uuid=take.required("view-uuid", UUID),
        location=take.required("location", TEXT).rstrip("/"),
        schemas=tuple(decode_schema(schema) for schema in take.required("schemas", OBJECTS)),
        current_version_id=take.required("current-version-id", INT),
        versions=tuple(decode_view_version(raw) for raw in take.required("versions", RAW_LIST)),
        version_log=tuple(
            VersionLogEntry(entry.timestamp_ms, entry.version_id) for entry in take.required("version-log", _LOG)
        ),
        properties=take.optional("properties", _STRINGS, {}),
        format_version=take.required("format-version", INT),
        unknown={key: bytes(raw) for key, raw in keys.items()},
    )


def _decode_representation(raw: msgspec.Raw) -> Representation:
    if _TYPE.decode(raw).type != _SQL:
        return OtherRepresentation(bytes(raw))
    wire = _REPRESENTATION.decode(raw)
    return SqlRepresentation(wire.sql, wire.dialect)


def _encode_representation(representation: Representation) -> Any:
    if isinstance(representation, OtherRepresentation):
        return msgspec.Raw(representation.raw)
    return _SqlWire(_SQL, representation.sql, representation.dialect)


def _raw(unknown: Any) -> dict[str, msgspec.Raw]:
    return {key: msgspec.Raw(raw) for key, raw in unknown.items()}


def _check(metadata: ViewMetadata) -> None:
    """Refuse metadata whose ids are not unique, or whose current version or its schema is not in it."""
    for ids in ([v.version_id for v in metadata.versions], [s.schema_id for s in metadata.schemas]):
        if len(set(ids)) < len(ids):
            raise ValueError(f"duplicate ids among {ids[:20]}")
    metadata.schema_by_id(metadata.current_version.schema_id)
    dialects = [dialect.lower() for dialect in metadata.current_version.dialects]
    if len(set(dialects)) < len(dialects):
        raise ValueError(f"its current version has several queries in one dialect ({', '.join(dialects)})")
