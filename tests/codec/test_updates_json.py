"""Updates and requirements to JSON and back, in the words of the REST protocol."""

import json
import uuid
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefield.codec.json.updates import decode_requirement, decode_update, encode_requirement, encode_update
from icefield.codec.json.view_updates import decode_view_update, encode_view_update
from icefield.errors import InvalidInput
from icefield.model.creation import AssertCreate, AssignUUID, TableUpdate
from icefield.model.partition import PartitionField, PartitionSpec
from icefield.model.snapshot import RefKind, Snapshot, SnapshotRef
from icefield.model.sort_order import Direction, NullOrder, SortField, SortOrder
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
    Update,
    UpgradeFormatVersion,
)
from icefield.model.view import OtherRepresentation, SqlRepresentation, ViewVersion
from icefield.model.view_updates import AddViewVersion, SetCurrentViewVersion, ViewUpdate
from icefield.types.datatypes import LongType, NestedField
from icefield.types.schema import Schema
from icefield.types.transforms import Bucket, Identity

pytestmark = pytest.mark.every_case

UUID = uuid.UUID("01234567-89ab-4def-8123-456789abcdef")
BIG = (1 << 63) - 1
SCHEMA = Schema((NestedField(1, "id", LongType(), required=True),), 3, (1,))
UPDATES: list[tuple[TableUpdate, dict[str, Any]]] = [
    (AssignUUID(UUID), {"action": "assign-uuid", "uuid": str(UUID)}),
    (UpgradeFormatVersion(3), {"action": "upgrade-format-version", "format-version": 3}),
    (
        AddSchema(SCHEMA),
        {
            "action": "add-schema",
            "schema": {
                "type": "struct",
                "schema-id": 3,
                "identifier-field-ids": [1],
                "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}],
            },
        },
    ),
    (SetCurrentSchema(-1), {"action": "set-current-schema", "schema-id": -1}),
    (RemoveSchemas(frozenset({4, 2})), {"action": "remove-schemas", "schema-ids": [2, 4]}),
    (
        AddPartitionSpec(PartitionSpec((PartitionField(1, 1000, "b", Bucket(4)),), 2)),
        {
            "action": "add-spec",
            "spec": {
                "spec-id": 2,
                "fields": [{"name": "b", "transform": "bucket[4]", "source-id": 1, "field-id": 1000}],
            },
        },
    ),
    (SetDefaultSpec(2), {"action": "set-default-spec", "spec-id": 2}),
    (RemovePartitionSpecs(frozenset({1, 0})), {"action": "remove-partition-specs", "spec-ids": [0, 1]}),
    (
        AddSortOrder(SortOrder((SortField(1, Identity(), Direction.DESC, NullOrder.LAST),), 1)),
        {
            "action": "add-sort-order",
            "sort-order": {
                "order-id": 1,
                "fields": [{"transform": "identity", "source-id": 1, "direction": "desc", "null-order": "nulls-last"}],
            },
        },
    ),
    (SetDefaultSortOrder(1), {"action": "set-default-sort-order", "sort-order-id": 1}),
    (
        AddSnapshot(Snapshot(BIG, 5, 6, "x://list", 7, 3, {"operation": "append"}, first_row_id=0, added_rows=9)),
        {
            "action": "add-snapshot",
            "snapshot": {
                "snapshot-id": BIG,
                "sequence-number": 5,
                "timestamp-ms": 6,
                "manifest-list": "x://list",
                "parent-snapshot-id": 7,
                "schema-id": 3,
                "summary": {"operation": "append"},
                "first-row-id": 0,
                "added-rows": 9,
            },
        },
    ),
    (
        SetSnapshotRef("main", SnapshotRef(BIG)),
        {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": BIG},
    ),
    (
        SetSnapshotRef("t", SnapshotRef(1, RefKind.TAG, max_ref_age_ms=3)),
        {"action": "set-snapshot-ref", "ref-name": "t", "type": "tag", "snapshot-id": 1, "max-ref-age-ms": 3},
    ),
    (RemoveSnapshotRef("t"), {"action": "remove-snapshot-ref", "ref-name": "t"}),
    (RemoveSnapshots(frozenset({2, 1})), {"action": "remove-snapshots", "snapshot-ids": [1, 2]}),
    (SetLocation("x://y"), {"action": "set-location", "location": "x://y"}),
    (SetProperties({"a": "b"}), {"action": "set-properties", "updates": {"a": "b"}}),
    (RemoveProperties(("a",)), {"action": "remove-properties", "removals": ["a"]}),
    (
        SetStatistics(StatisticsEntry(4, b'{"snapshot-id":4,"statistics-path":"x"}')),
        {
            "action": "set-statistics",
            "snapshot-id": 4,
            "statistics": {"snapshot-id": 4, "statistics-path": "x"},
        },
    ),
    (RemoveStatistics(4), {"action": "remove-statistics", "snapshot-id": 4}),
    (
        SetPartitionStatistics(StatisticsEntry(4, b'{"snapshot-id":4}')),
        {"action": "set-partition-statistics", "partition-statistics": {"snapshot-id": 4}},
    ),
    (RemovePartitionStatistics(4), {"action": "remove-partition-statistics", "snapshot-id": 4}),
]
REQUIREMENTS: list[tuple[Requirement | AssertCreate, dict[str, Any]]] = [
    (AssertCreate(), {"type": "assert-create"}),
    (AssertTableUUID(UUID), {"type": "assert-table-uuid", "uuid": str(UUID)}),
    (AssertRefSnapshotId("main", 3), {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 3}),
    (AssertRefSnapshotId("main", None), {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}),
    (AssertCurrentSchemaId(1), {"type": "assert-current-schema-id", "current-schema-id": 1}),
    (AssertDefaultSpecId(1), {"type": "assert-default-spec-id", "default-spec-id": 1}),
    (AssertDefaultSortOrderId(1), {"type": "assert-default-sort-order-id", "default-sort-order-id": 1}),
    (AssertLastAssignedFieldId(1), {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 1}),
    (AssertLastAssignedPartitionId(1), {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1}),
]
VERSION = ViewVersion(
    2,
    -1,
    5,
    (SqlRepresentation("SELECT 1", "spark"), OtherRepresentation(b'{"type":"x"}')),
    ("a", "b"),
    "c",
    {"k": "v"},
)
VIEW_UPDATES: list[ViewUpdate] = [
    AssignUUID(UUID),
    UpgradeFormatVersion(1),
    AddSchema(SCHEMA),
    SetLocation("x://y"),
    SetProperties({"a": "b"}),
    RemoveProperties(("a",)),
    AddViewVersion(VERSION),
    SetCurrentViewVersion(-1),
]


def through_json(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))


@pytest.mark.parametrize(("update", "expected"), UPDATES)
def test_an_update_is_written_in_the_protocols_words_and_read_back(
    update: TableUpdate, expected: dict[str, Any]
) -> None:
    written = through_json(encode_update(update))
    assert written == expected
    assert decode_update(written) == update


@pytest.mark.parametrize(("requirement", "expected"), REQUIREMENTS)
def test_a_requirement_is_written_in_the_protocols_words_and_read_back(
    requirement: Requirement | AssertCreate, expected: dict[str, Any]
) -> None:
    written = through_json(encode_requirement(requirement))
    assert written == expected
    assert decode_requirement(written) == requirement


@pytest.mark.parametrize("update", VIEW_UPDATES)
def test_an_update_of_a_view_is_read_back(update: ViewUpdate) -> None:
    assert decode_view_update(through_json(encode_view_update(update))) == update


def test_every_kind_has_its_word() -> None:
    assert {type(u) for u, _ in UPDATES} == {*get_args(Update), AssignUUID}
    assert {type(r) for r, _ in REQUIREMENTS} == {*get_args(Requirement), AssertCreate}
    assert {type(u) for u in VIEW_UPDATES} == set(get_args(ViewUpdate))


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"action": "fly"},
        {"action": "add-schema"},
        {"action": "add-snapshot", "snapshot": {}},
        {"action": ["x"]},
        [],
        3,
    ],
)
def test_what_is_not_known_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInput):
        decode_update(wrong)
    with pytest.raises(InvalidInput):
        decode_requirement(wrong)
    with pytest.raises(InvalidInput):
        decode_view_update(wrong)


def test_what_has_no_word_is_not_sent() -> None:
    with pytest.raises(InvalidInput, match="cannot express"):
        encode_view_update(SetCurrentSchema(1))  # type: ignore[arg-type]


@given(st.dictionaries(st.text(), st.text()), st.integers(-(1 << 63), BIG))
def test_any_text_and_any_id_survive(properties: dict[str, str], snapshot_id: int) -> None:
    for update in (SetProperties(properties), SetSnapshotRef("r", SnapshotRef(snapshot_id))):
        assert decode_update(through_json(encode_update(update))) == update
