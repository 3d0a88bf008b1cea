"""Table metadata to and from metadata.json. (spec: Table Metadata, Appendix C)

The top level is read as raw slices: each snapshot is decoded on first use and written back as the original bytes, and
unknown keys survive a round trip. The cost of a commit depends on its change, not on the table's history.

Raises CorruptFile for bytes that are not table metadata, Unsupported for an unsupported format version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from icefield.codec.json.decoders import ENCODER, INT, LONG, OBJECTS, RAW, RAW_LIST, TEXT, UUID
from icefield.codec.json.snapshots import Int, Long, NaturalLong, StoredSnapshot, encode_snapshot
from icefield.deferred import deferred_imports
from icefield.errors import CorruptFile, InvalidInput
from icefield.model.metadata import ROW_LINEAGE_VERSION, TableMetadata, check_format_version
from icefield.model.snapshot import (
    MAIN,
    MetadataLogEntry,
    RefKind,
    SnapshotLogEntry,
    SnapshotRef,
    Snapshots,
)

with deferred_imports(__name__):
    from icefield.codec.json.keys import KeyTaker, inflate_json
    from icefield.codec.json.metadata_v1 import as_v2
    from icefield.codec.json.schema import (
        decode_schema,
        decode_sort_order,
        decode_spec,
        encode_schema,
        encode_sort_order,
        encode_spec,
        encode_spec_fields,
    )
    from icefield.codec.json.statistics import decode_entries, encode_entries
    from icefield.types.unknown_keys import find_unknown_keys

NO_SNAPSHOT = -1

# Keys that a later version replaced, and keys that an earlier version does not have: both are ignored.
_REPLACED = ("schema", "partition-spec")
_ROW_LINEAGE = ("next-row-id",)


class _SnapshotLogWire(msgspec.Struct, rename="kebab"):
    timestamp_ms: Long
    snapshot_id: Long


class _MetadataLogWire(msgspec.Struct, rename="kebab"):
    timestamp_ms: Long
    metadata_file: str


class _RefWire(msgspec.Struct, rename="kebab", omit_defaults=True):
    snapshot_id: Long
    type: str
    min_snapshots_to_keep: Int | None = None
    max_snapshot_age_ms: Long | None = None
    max_ref_age_ms: Long | None = None


_NATURAL_LONG = msgspec.json.Decoder(NaturalLong)
_OPTIONAL_LONG = msgspec.json.Decoder(Long | None)
_SNAPSHOT_LOG = msgspec.json.Decoder(list[_SnapshotLogWire])
_METADATA_LOG = msgspec.json.Decoder(list[_MetadataLogWire])
_REFS = msgspec.json.Decoder(dict[str, dict[str, Any]])
_REF_KEYS = frozenset(known.encode_name for known in msgspec.structs.fields(_RefWire))
_PROPERTIES = msgspec.json.Decoder(dict[str, str])


def decode_metadata(data: bytes, location: str) -> TableMetadata:
    """Decode a metadata.json, plain or gzipped."""
    try:
        keys = RAW.decode(inflate_json(data, location))
        version = INT.decode(keys["format-version"])
        check_format_version(version, location)
        metadata = _decode_keys(_current_keys(keys, version), location)
        _check_pointers(metadata)
    except (InvalidInput, ValueError, TypeError, KeyError, RecursionError) as error:
        why = f"key {error} is missing" if isinstance(error, KeyError) else str(error)
        raise CorruptFile(location, f"it is not valid table metadata: {why}") from error
    return metadata


def encode_metadata(metadata: TableMetadata) -> bytes:
    """Encode to JSON for the format version; unchanged snapshots keep their bytes."""
    keys: dict[str, Any] = {
        "format-version": metadata.format_version,
        "table-uuid": str(metadata.table_uuid),
        "location": metadata.location,
        **_encode_versioned(metadata),
        "last-updated-ms": metadata.last_updated_ms,
        "last-column-id": metadata.last_column_id,
        "current-schema-id": metadata.current_schema_id,
        "schemas": [encode_schema(s) for s in metadata.schemas],
        "default-spec-id": metadata.default_spec_id,
        "partition-specs": [encode_spec(s) for s in metadata.specs],
        "last-partition-id": metadata.last_partition_id,
        "default-sort-order-id": metadata.default_sort_order_id,
        "sort-orders": [encode_sort_order(o) for o in metadata.sort_orders],
        "properties": dict(metadata.properties),
    }
    if metadata.current_snapshot_id is not None:
        keys["current-snapshot-id"] = metadata.current_snapshot_id
    keys["refs"] = {name: _encode_ref(ref) for name, ref in metadata.refs.items()}
    keys["snapshots"] = [encode_snapshot(entry) for entry in metadata.snapshots.entries]
    keys["snapshot-log"] = [_SnapshotLogWire(e.timestamp_ms, e.snapshot_id) for e in metadata.snapshot_log]
    keys["metadata-log"] = [_MetadataLogWire(e.timestamp_ms, e.metadata_file) for e in metadata.metadata_log]
    for key, entries in (("statistics", metadata.statistics), ("partition-statistics", metadata.partition_statistics)):
        if entries:
            keys[key] = encode_entries(entries)
    keys.update({key: msgspec.Raw(raw) for key, raw in metadata.unknown.items()})
    try:
        return ENCODER.encode(keys)
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"a name, doc or property contains a lone surrogate, which is not a valid character: {error.object[:80]!r}"
        ) from error


def _current_keys(keys: Mapping[str, msgspec.Raw], version: int) -> dict[str, msgspec.Raw]:
    """Return the keys that are valid in a file of this version, with those that version 1 omits filled in."""
    whole = as_v2(keys) if version == 1 else dict(keys)
    ignored = _REPLACED if version >= ROW_LINEAGE_VERSION else _REPLACED + _ROW_LINEAGE
    return {key: raw for key, raw in whole.items() if key not in ignored}


def _decode_keys(keys: dict[str, msgspec.Raw], location: str) -> TableMetadata:
    take = KeyTaker(keys)
    version = take.required("format-version", INT)
    current = take.optional("current-snapshot-id", _OPTIONAL_LONG, None)
    current = None if current == NO_SNAPSHOT else current
    refs = take.optional("refs", _REFS, {})
    properties = take.optional("properties", _PROPERTIES, {})
    return TableMetadata(
        format_version=version,
        table_uuid=take.required("table-uuid", UUID),
        location=take.required("location", TEXT).rstrip("/"),
        last_sequence_number=take.required("last-sequence-number", LONG),
        last_updated_ms=take.required("last-updated-ms", LONG),
        last_column_id=take.required("last-column-id", INT),
        current_schema_id=take.required("current-schema-id", INT),
        schemas=tuple(decode_schema(s) for s in take.required("schemas", OBJECTS)),
        default_spec_id=take.required("default-spec-id", INT),
        specs=tuple(decode_spec(s) for s in take.required("partition-specs", OBJECTS)),
        last_partition_id=take.required("last-partition-id", INT),
        default_sort_order_id=take.required("default-sort-order-id", INT),
        sort_orders=tuple(decode_sort_order(o) for o in take.required("sort-orders", OBJECTS)),
        properties=properties,
        current_snapshot_id=current,
        snapshots=Snapshots(tuple(StoredSnapshot(raw, location) for raw in take.optional("snapshots", RAW_LIST, []))),
        snapshot_log=tuple(
            SnapshotLogEntry(e.timestamp_ms, e.snapshot_id) for e in take.optional("snapshot-log", _SNAPSHOT_LOG, [])
        ),
        metadata_log=tuple(
            MetadataLogEntry(e.timestamp_ms, e.metadata_file) for e in take.optional("metadata-log", _METADATA_LOG, [])
        ),
        refs=_decode_refs(refs, current),
        next_row_id=take.required("next-row-id", _NATURAL_LONG) if version >= ROW_LINEAGE_VERSION else 0,
        statistics=decode_entries(take.optional("statistics", RAW_LIST, [])),
        partition_statistics=decode_entries(take.optional("partition-statistics", RAW_LIST, [])),
        unknown={key: bytes(raw) for key, raw in keys.items()},
    )


def _decode_refs(values: Mapping[str, dict[str, Any]], current: int | None) -> dict[str, SnapshotRef]:
    refs = {name: _decode_ref(value) for name, value in values.items()}
    # There is always a main branch, even if the map omits it. (spec: Table Metadata Fields, refs)
    if current is not None:
        refs.setdefault(MAIN, SnapshotRef(current))
    return refs


def _check_pointers(metadata: TableMetadata) -> None:
    """Refuse metadata whose current schema, spec, order or snapshot is not in it."""
    metadata.schema_by_id(metadata.current_schema_id)
    metadata.spec_by_id(metadata.default_spec_id)
    metadata.sort_order_by_id(metadata.default_sort_order_id)
    main = metadata.refs[MAIN].snapshot_id if MAIN in metadata.refs else None
    if main != metadata.current_snapshot_id:
        raise ValueError(f"its current snapshot is {metadata.current_snapshot_id}, but main is at {main}")
    if main is not None and metadata.snapshots.find(main) is None:
        raise ValueError(f"its current snapshot {main} is not among its snapshots")


def _encode_versioned(metadata: TableMetadata) -> dict[str, Any]:
    """Encode the keys that only some format versions have, as Iceberg Java writes them."""
    if metadata.format_version == 1:
        # For readers that do not support lists of schemas and specs. (spec: Table Metadata Fields)
        return {"schema": encode_schema(metadata.schema), "partition-spec": encode_spec_fields(metadata.spec)}
    keys = {"last-sequence-number": metadata.last_sequence_number}
    return keys | {"next-row-id": metadata.next_row_id} if metadata.has_row_ids else keys


def _decode_ref(value: dict[str, Any]) -> SnapshotRef:
    wire = msgspec.convert(value, _RefWire)
    return SnapshotRef(
        wire.snapshot_id,
        RefKind(wire.type),
        wire.min_snapshots_to_keep,
        wire.max_snapshot_age_ms,
        wire.max_ref_age_ms,
        find_unknown_keys(value, _REF_KEYS),
    )


def _encode_ref(ref: SnapshotRef) -> dict[str, Any]:
    wire = _RefWire(
        ref.snapshot_id, ref.kind.value, ref.min_snapshots_to_keep, ref.max_snapshot_age_ms, ref.max_ref_age_ms
    )
    return {**(ref.unknown_keys or {}), **msgspec.to_builtins(wire)}
