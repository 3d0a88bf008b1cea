"""Updates and requirements to and from JSON, as in the REST protocol.

(rest-catalog-open-api.yaml: TableUpdate, TableRequirement.) Encoders return values for a JSON encoder. Decoders take
parsed JSON and raise InvalidInput for an unknown or malformed update: "servers are required to fail if any unknown
updates or requirements are received".
"""

import uuid
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from icefield.codec.json.keys import Json
from icefield.codec.json.schema import (
    decode_schema,
    decode_sort_order,
    decode_spec,
    encode_schema,
    encode_sort_order,
    encode_spec,
)
from icefield.codec.json.snapshots import StoredSnapshot, encode_snapshot
from icefield.codec.json.statistics import decode_entries
from icefield.errors import CorruptFile, InvalidInput
from icefield.model.creation import AssertCreate, AssignUUID, TableUpdate
from icefield.model.snapshot import RefKind, Snapshot, SnapshotRef
from icefield.model.statistics import StatisticsEntry
from icefield.model.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePartitionSpecs,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    Requirement,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    UpgradeFormatVersion,
)
from icefield.types.unknown_keys import find_unknown_keys

Encode = Callable[[Any], Json]
Decode = Callable[[Json], Any]


_REF_KEYS = frozenset(
    {
        "action",
        "ref-name",
        "type",
        "snapshot-id",
        "min-snapshots-to-keep",
        "max-snapshot-age-ms",
        "max-ref-age-ms",
    }
)


def encode_update(update: TableUpdate) -> Json:
    """Encode one update."""
    return encode_tagged(UPDATES, "action", update)


def decode_update(value: Json) -> TableUpdate:
    """Decode one update."""
    found: TableUpdate = decode_tagged(UPDATES, "action", value)
    return found


def encode_requirement(requirement: Requirement | AssertCreate) -> Json:
    """Encode one requirement."""
    return encode_tagged(REQUIREMENTS, "type", requirement)


def decode_requirement(value: Json) -> Requirement | AssertCreate:
    """Decode one requirement."""
    found: Requirement | AssertCreate = decode_tagged(REQUIREMENTS, "type", value)
    return found


def encode_tagged(table: Mapping[str, tuple[type, Encode, Decode]], tag: str, value: object) -> Json:
    """Encode a value under the name that the given codecs have for its type."""
    for name, (kind, encode, _) in table.items():
        if type(value) is kind:
            return {tag: name, **encode(value)}
    raise InvalidInput(f"the REST protocol cannot express {type(value).__name__}")


def decode_tagged(table: Mapping[str, tuple[type, Encode, Decode]], tag: str, value: Json) -> Any:
    """Decode a value by the codec of its tag."""
    try:
        _, _, decode = table[value[tag]]
        return decode(value)
    except (CorruptFile, KeyError, ValueError, TypeError, AttributeError) as error:
        name = value.get(tag) if isinstance(value, dict) else None
        raise InvalidInput(f"unknown or malformed {tag} {name!r}: {error}") from error


def _encode_ref(update: SetSnapshotRef) -> Json:
    ref = update.ref
    encoded = {
        "ref-name": update.name,
        "type": ref.kind.value,
        "snapshot-id": ref.snapshot_id,
        "min-snapshots-to-keep": ref.min_snapshots_to_keep,
        "max-snapshot-age-ms": ref.max_snapshot_age_ms,
        "max-ref-age-ms": ref.max_ref_age_ms,
    }
    return {**(ref.unknown_keys or {}), **{key: value for key, value in encoded.items() if value is not None}}


def _decode_ref(value: Json) -> SetSnapshotRef:
    ref = SnapshotRef(
        value["snapshot-id"],
        RefKind(value["type"]),
        value.get("min-snapshots-to-keep"),
        value.get("max-snapshot-age-ms"),
        value.get("max-ref-age-ms"),
        find_unknown_keys(value, _REF_KEYS),
    )
    return SetSnapshotRef(value["ref-name"], ref)


def _decode_snapshot(value: Json) -> Snapshot:
    return StoredSnapshot(msgspec.Raw(msgspec.json.encode(value)), "the update").load()


def _encode_entry(entry: StatisticsEntry) -> msgspec.Raw:
    return msgspec.Raw(entry.document)


def _decode_entry(value: Json) -> StatisticsEntry:
    return decode_entries([msgspec.Raw(msgspec.json.encode(value))])[0]


def _one(kind: type, attribute: str, key: str) -> tuple[type, Encode, Decode]:
    """Return the codec of a type with a single plain value."""
    return kind, lambda value: {key: getattr(value, attribute)}, lambda value: kind(value[key])


def _ids(kind: type, attribute: str, key: str) -> tuple[type, Encode, Decode]:
    """Return the codec of a type with a set of ids."""
    return kind, lambda value: {key: sorted(getattr(value, attribute))}, lambda value: kind(frozenset(value[key]))


# The statistics themselves name the snapshot; the field beside them is for older servers.
_SET_STATISTICS: Encode = lambda update: {  # noqa: E731 - a row of the table below
    "snapshot-id": update.statistics.snapshot_id,
    "statistics": _encode_entry(update.statistics),
}

UPDATES: Mapping[str, tuple[type, Encode, Decode]] = {
    "assign-uuid": (AssignUUID, lambda u: {"uuid": str(u.uuid)}, lambda v: AssignUUID(uuid.UUID(v["uuid"]))),
    "upgrade-format-version": _one(UpgradeFormatVersion, "format_version", "format-version"),
    "add-schema": (
        AddSchema,
        lambda u: {"schema": encode_schema(u.schema)},
        lambda v: AddSchema(decode_schema(v["schema"])),
    ),
    "set-current-schema": _one(SetCurrentSchema, "schema_id", "schema-id"),
    "remove-schemas": _ids(RemoveSchemas, "schema_ids", "schema-ids"),
    "add-spec": (
        AddPartitionSpec,
        lambda u: {"spec": encode_spec(u.spec)},
        lambda v: AddPartitionSpec(decode_spec({"spec-id": 0, **v["spec"]})),
    ),
    "set-default-spec": _one(SetDefaultSpec, "spec_id", "spec-id"),
    "remove-partition-specs": _ids(RemovePartitionSpecs, "spec_ids", "spec-ids"),
    "add-sort-order": (
        AddSortOrder,
        lambda u: {"sort-order": encode_sort_order(u.order)},
        lambda v: AddSortOrder(decode_sort_order(v["sort-order"])),
    ),
    "set-default-sort-order": _one(SetDefaultSortOrder, "order_id", "sort-order-id"),
    "add-snapshot": (
        AddSnapshot,
        lambda u: {"snapshot": encode_snapshot(u.snapshot)},
        lambda v: AddSnapshot(_decode_snapshot(v["snapshot"])),
    ),
    "set-snapshot-ref": (SetSnapshotRef, _encode_ref, _decode_ref),
    "remove-snapshots": _ids(RemoveSnapshots, "snapshot_ids", "snapshot-ids"),
    "remove-snapshot-ref": _one(RemoveSnapshotRef, "name", "ref-name"),
    "set-location": _one(SetLocation, "location", "location"),
    "set-properties": (
        SetProperties,
        lambda u: {"updates": dict(u.updates)},
        # Older clients wrote `updated`.
        lambda v: SetProperties(dict(v["updates"] if "updates" in v else v["updated"])),
    ),
    "remove-properties": (
        RemoveProperties,
        lambda u: {"removals": list(u.removals)},
        lambda v: RemoveProperties(tuple(v["removals"])),
    ),
    "set-statistics": (SetStatistics, _SET_STATISTICS, lambda v: SetStatistics(_decode_entry(v["statistics"]))),
    "remove-statistics": _one(RemoveStatistics, "snapshot_id", "snapshot-id"),
    "set-partition-statistics": (
        SetPartitionStatistics,
        lambda u: {"partition-statistics": _encode_entry(u.statistics)},
        lambda v: SetPartitionStatistics(_decode_entry(v["partition-statistics"])),
    ),
    "remove-partition-statistics": _one(RemovePartitionStatistics, "snapshot_id", "snapshot-id"),
}

REQUIREMENTS: Mapping[str, tuple[type, Encode, Decode]] = {
    "assert-create": (AssertCreate, lambda r: {}, lambda v: AssertCreate()),
    "assert-table-uuid": (
        AssertTableUUID,
        lambda r: {"uuid": str(r.table_uuid)},
        lambda v: AssertTableUUID(uuid.UUID(v["uuid"])),
    ),
    "assert-ref-snapshot-id": (
        AssertRefSnapshotId,
        lambda r: {"ref": r.ref, "snapshot-id": r.snapshot_id},
        lambda v: AssertRefSnapshotId(v["ref"], v.get("snapshot-id")),
    ),
    "assert-current-schema-id": _one(AssertCurrentSchemaId, "schema_id", "current-schema-id"),
    "assert-default-spec-id": _one(AssertDefaultSpecId, "spec_id", "default-spec-id"),
    "assert-default-sort-order-id": _one(AssertDefaultSortOrderId, "order_id", "default-sort-order-id"),
    "assert-last-assigned-field-id": _one(AssertLastAssignedFieldId, "field_id", "last-assigned-field-id"),
    "assert-last-assigned-partition-id": _one(AssertLastAssignedPartitionId, "field_id", "last-assigned-partition-id"),
}
