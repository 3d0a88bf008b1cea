"""Table metadata to and from metadata.json. (spec: Table Metadata, Appendix C)

The top level is read as raw slices: snapshots stay undecoded until one is asked for and are written back as the bytes
they came as, and keys that icefield does not know survive a round trip. A commit costs its change, not its history.

Raises CorruptFile for bytes that are no table metadata, Unsupported for a format version that is not handled.
"""

import gzip
import io
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import msgspec

from icefield.codec.schema_json import (
    decode_schema,
    decode_sort_order,
    decode_spec,
    encode_schema,
    encode_sort_order,
    encode_spec,
)
from icefield.errors import CorruptFile, InvalidInput, Unsupported
from icefield.model.metadata import FORMAT_VERSION, TableMetadata
from icefield.model.snapshot import (
    MAIN,
    MetadataLogEntry,
    RefKind,
    Snapshot,
    SnapshotEntry,
    SnapshotLogEntry,
    SnapshotRef,
    Snapshots,
)

T = TypeVar("T")

GZIP_MAGIC = b"\x1f\x8b"
MAX_METADATA_BYTES = 1 << 30
NO_SNAPSHOT = -1

Int = Annotated[int, msgspec.Meta(ge=-(1 << 31), le=(1 << 31) - 1)]
Long = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class _SnapshotWire(msgspec.Struct, rename="kebab", omit_defaults=True):
    snapshot_id: Long
    timestamp_ms: Long
    parent_snapshot_id: Long | None = None
    sequence_number: Long = 0
    summary: dict[str, str] = msgspec.field(default_factory=dict)
    manifest_list: str = ""
    schema_id: Int | None = None


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


@dataclass(frozen=True)
class StoredSnapshot:
    """A snapshot as the bytes it was read as."""

    raw: msgspec.Raw
    location: str

    def mentions(self, snapshot_id: int) -> bool:
        return str(snapshot_id).encode() in bytes(self.raw)

    def load(self) -> Snapshot:
        try:
            wire = _SNAPSHOT.decode(self.raw)
        except (ValueError, RecursionError) as error:
            raise CorruptFile(self.location, f"a snapshot does not decode: {error}") from error
        if not wire.manifest_list:
            raise Unsupported(f"snapshot {wire.snapshot_id} in {self.location} has no manifest list (format version 1)")
        return Snapshot(
            wire.snapshot_id,
            wire.sequence_number,
            wire.timestamp_ms,
            wire.manifest_list,
            wire.parent_snapshot_id,
            wire.schema_id,
            wire.summary,
        )


_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])
_RAW_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_OBJECTS = msgspec.json.Decoder(list[dict[str, Any]])
_INT = msgspec.json.Decoder(Int)
_LONG = msgspec.json.Decoder(Long)
_OPTIONAL_LONG = msgspec.json.Decoder(Long | None)
_TEXT = msgspec.json.Decoder(str)
_UUID = msgspec.json.Decoder(uuid.UUID)
_SNAPSHOT = msgspec.json.Decoder(_SnapshotWire)
_SNAPSHOT_LOG = msgspec.json.Decoder(list[_SnapshotLogWire])
_METADATA_LOG = msgspec.json.Decoder(list[_MetadataLogWire])
_REFS = msgspec.json.Decoder(dict[str, _RefWire])
_PROPERTIES = msgspec.json.Decoder(dict[str, str])
_ENCODER = msgspec.json.Encoder()


def decode_metadata(data: bytes, location: str) -> TableMetadata:
    """Decode a metadata.json, plain or gzipped."""
    try:
        keys = _RAW.decode(_inflate(data, location))
        _check_version(keys, location)
        metadata = _decode_keys(dict(keys), location)
        _check_pointers(metadata)
    except (InvalidInput, ValueError, TypeError, KeyError, RecursionError) as error:
        why = f"key {error} is missing" if isinstance(error, KeyError) else str(error)
        raise CorruptFile(location, f"it is no table metadata: {why}") from error
    return metadata


def encode_metadata(metadata: TableMetadata) -> bytes:
    """Encode to JSON; snapshots that were not touched keep their bytes."""
    keys: dict[str, Any] = {
        "format-version": metadata.format_version,
        "table-uuid": str(metadata.table_uuid),
        "location": metadata.location,
        "last-sequence-number": metadata.last_sequence_number,
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
    keys["snapshots"] = [_encode_snapshot(entry) for entry in metadata.snapshots.entries]
    keys["snapshot-log"] = [_SnapshotLogWire(e.timestamp_ms, e.snapshot_id) for e in metadata.snapshot_log]
    keys["metadata-log"] = [_MetadataLogWire(e.timestamp_ms, e.metadata_file) for e in metadata.metadata_log]
    keys.update({key: msgspec.Raw(raw) for key, raw in metadata.unknown.items()})
    return _ENCODER.encode(keys)


def _inflate(data: bytes, location: str) -> bytes:
    # (spec: Naming for GZIP compressed Metadata JSON files; the content tells, the name may lie.)
    if not data.startswith(GZIP_MAGIC):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            plain = stream.read(MAX_METADATA_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise CorruptFile(location, f"its gzip stream is damaged: {error}") from error
    if len(plain) > MAX_METADATA_BYTES:
        raise CorruptFile(location, f"it inflates to more than {MAX_METADATA_BYTES} bytes")
    return plain


def _check_version(keys: Mapping[str, msgspec.Raw], location: str) -> None:
    version = _INT.decode(keys["format-version"])
    if version != FORMAT_VERSION:
        raise Unsupported(f"{location} has format version {version}; icefield knows version {FORMAT_VERSION}")


def _decode_keys(keys: dict[str, msgspec.Raw], location: str) -> TableMetadata:
    take = _Taker(keys)
    current = take.optional("current-snapshot-id", _OPTIONAL_LONG, None)
    current = None if current == NO_SNAPSHOT else current
    refs = take.optional("refs", _REFS, {})
    properties = take.optional("properties", _PROPERTIES, {})
    return TableMetadata(
        format_version=take.required("format-version", _INT),
        table_uuid=take.required("table-uuid", _UUID),
        location=take.required("location", _TEXT).rstrip("/"),
        last_sequence_number=take.required("last-sequence-number", _LONG),
        last_updated_ms=take.required("last-updated-ms", _LONG),
        last_column_id=take.required("last-column-id", _INT),
        current_schema_id=take.required("current-schema-id", _INT),
        schemas=tuple(decode_schema(s) for s in take.required("schemas", _OBJECTS)),
        default_spec_id=take.required("default-spec-id", _INT),
        specs=tuple(decode_spec(s) for s in take.required("partition-specs", _OBJECTS)),
        last_partition_id=take.required("last-partition-id", _INT),
        default_sort_order_id=take.required("default-sort-order-id", _INT),
        sort_orders=tuple(decode_sort_order(o) for o in take.required("sort-orders", _OBJECTS)),
        properties=properties,
        current_snapshot_id=current,
        snapshots=Snapshots(tuple(StoredSnapshot(raw, location) for raw in take.optional("snapshots", _RAW_LIST, []))),
        snapshot_log=tuple(
            SnapshotLogEntry(e.timestamp_ms, e.snapshot_id) for e in take.optional("snapshot-log", _SNAPSHOT_LOG, [])
        ),
        metadata_log=tuple(
            MetadataLogEntry(e.timestamp_ms, e.metadata_file) for e in take.optional("metadata-log", _METADATA_LOG, [])
        ),
        refs=_decode_refs(refs, current),
        unknown={key: bytes(raw) for key, raw in keys.items()},
    )


def _decode_refs(wire: Mapping[str, _RefWire], current: int | None) -> dict[str, SnapshotRef]:
    refs = {
        name: SnapshotRef(
            r.snapshot_id, RefKind(r.type), r.min_snapshots_to_keep, r.max_snapshot_age_ms, r.max_ref_age_ms
        )
        for name, r in wire.items()
    }
    # There is always a main branch, even where the map leaves it out. (spec: Table Metadata Fields, refs)
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


class _Taker:
    """Takes known keys out of the raw top level; what stays is unknown."""

    def __init__(self, keys: dict[str, msgspec.Raw]) -> None:
        self._keys = keys

    def required(self, key: str, decoder: "msgspec.json.Decoder[T]") -> T:
        return decoder.decode(self._keys.pop(key))

    def optional(self, key: str, decoder: "msgspec.json.Decoder[T]", default: T) -> T:
        raw = self._keys.pop(key, None)
        return default if raw is None or bytes(raw) == b"null" else decoder.decode(raw)


def _encode_snapshot(entry: SnapshotEntry) -> Any:
    if isinstance(entry, StoredSnapshot):
        return entry.raw
    snapshot = entry if isinstance(entry, Snapshot) else entry.load()
    return _SnapshotWire(
        snapshot_id=snapshot.snapshot_id,
        timestamp_ms=snapshot.timestamp_ms,
        parent_snapshot_id=snapshot.parent_snapshot_id,
        sequence_number=snapshot.sequence_number,
        summary=dict(snapshot.summary),
        manifest_list=snapshot.manifest_list,
        schema_id=snapshot.schema_id,
    )


def _encode_ref(ref: SnapshotRef) -> _RefWire:
    return _RefWire(
        ref.snapshot_id, ref.kind.value, ref.min_snapshots_to_keep, ref.max_snapshot_age_ms, ref.max_ref_age_ms
    )
