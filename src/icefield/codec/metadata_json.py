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
from typing import Any, TypeVar

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

_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])
_RAW_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_JSON = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder()


class _SnapshotWire(msgspec.Struct, rename="kebab", omit_defaults=True):
    snapshot_id: int
    timestamp_ms: int
    parent_snapshot_id: int | None = None
    sequence_number: int = 0
    summary: dict[str, str] = msgspec.field(default_factory=dict)
    manifest_list: str = ""
    schema_id: int | None = None


class _SnapshotLogWire(msgspec.Struct, rename="kebab"):
    timestamp_ms: int
    snapshot_id: int


class _MetadataLogWire(msgspec.Struct, rename="kebab"):
    timestamp_ms: int
    metadata_file: str


class _RefWire(msgspec.Struct, rename="kebab", omit_defaults=True):
    snapshot_id: int
    type: str
    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None


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
        except msgspec.MsgspecError as error:
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


_SNAPSHOT = msgspec.json.Decoder(_SnapshotWire)
_SNAPSHOT_LOG = msgspec.json.Decoder(list[_SnapshotLogWire])
_METADATA_LOG = msgspec.json.Decoder(list[_MetadataLogWire])
_REFS = msgspec.json.Decoder(dict[str, _RefWire])
_PROPERTIES = msgspec.json.Decoder(dict[str, str])


def decode_metadata(data: bytes, location: str) -> TableMetadata:
    """Decode a metadata.json, plain or gzipped."""
    try:
        keys = _RAW.decode(_inflate(data, location))
        _check_version(keys, location)
        return _decode_keys(dict(keys), location)
    except (msgspec.MsgspecError, InvalidInput, ValueError, TypeError, KeyError, RecursionError) as error:
        why = f"key {error} is missing" if isinstance(error, KeyError) else str(error)
        raise CorruptFile(location, f"it is no table metadata: {why}") from error


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
    version = _JSON.decode(keys["format-version"])
    if version != FORMAT_VERSION:
        raise Unsupported(f"{location} has format version {version!r}; icefield reads and writes version {FORMAT_VERSION}")


def _decode_keys(keys: dict[str, msgspec.Raw], location: str) -> TableMetadata:
    take = _Taker(keys)
    current = take.plain("current-snapshot-id", None)
    current = None if current in (None, NO_SNAPSHOT) else int(current)
    refs = take.typed("refs", _REFS, {})
    return TableMetadata(
        format_version=int(take.plain("format-version")),
        table_uuid=uuid.UUID(take.plain("table-uuid")),
        location=_text(take.plain("location")).rstrip("/"),
        last_sequence_number=int(take.plain("last-sequence-number")),
        last_updated_ms=int(take.plain("last-updated-ms")),
        last_column_id=int(take.plain("last-column-id")),
        current_schema_id=int(take.plain("current-schema-id")),
        schemas=tuple(decode_schema(s) for s in take.plain("schemas")),
        default_spec_id=int(take.plain("default-spec-id")),
        specs=tuple(decode_spec(s) for s in take.plain("partition-specs")),
        last_partition_id=int(take.plain("last-partition-id")),
        default_sort_order_id=int(take.plain("default-sort-order-id")),
        sort_orders=tuple(decode_sort_order(o) for o in take.plain("sort-orders")),
        properties=take.typed("properties", _PROPERTIES, {}),
        current_snapshot_id=current,
        snapshots=Snapshots(tuple(StoredSnapshot(raw, location) for raw in take.typed("snapshots", _RAW_LIST, []))),
        snapshot_log=tuple(
            SnapshotLogEntry(e.timestamp_ms, e.snapshot_id) for e in take.typed("snapshot-log", _SNAPSHOT_LOG, [])
        ),
        metadata_log=tuple(
            MetadataLogEntry(e.timestamp_ms, e.metadata_file) for e in take.typed("metadata-log", _METADATA_LOG, [])
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


class _Taker:
    """Takes known keys out of the raw top level; what stays is unknown."""

    def __init__(self, keys: dict[str, msgspec.Raw]) -> None:
        self._keys = keys

    def plain(self, key: str, *default: Any) -> Any:
        if default and key not in self._keys:
            return default[0]
        return _JSON.decode(self._keys.pop(key))

    def typed(self, key: str, decoder: "msgspec.json.Decoder[T]", default: T) -> T:
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


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a text, found {value!r}")
    return value

