"""What a list of changes requires, and how one sees whether it was made."""

import uuid
from dataclasses import replace

import pytest

from icefield.errors import CommitConflict, InvalidInput
from icefield.model.apply import apply, check
from icefield.model.creation import AssignUUID, create_from, creation_updates
from icefield.model.last_added import mark_last_added, resolve_last_added
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionField, PartitionSpec
from icefield.model.requirements import find_requirements, find_version
from icefield.model.snapshot import Snapshot, SnapshotRef
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
from icefield.model.updates_applied import MADE, updates_applied
from icefield.types.datatypes import LongType, NestedField, StringType
from icefield.types.schema import Schema
from icefield.types.transforms import Identity

SCHEMA = Schema((NestedField(1, "id", LongType()),))
WIDER = Schema((NestedField(1, "id", LongType()), NestedField(2, "s", StringType())), 1)
SPEC = PartitionSpec((PartitionField(1, 1000, "id", Identity()),), 1)
ORDER = SortOrder((SortField(1, Identity(), Direction.ASC, NullOrder.FIRST),), 1)


def snapshot(number: int, parent: int | None = None) -> Snapshot:
    return Snapshot(number, number, number, f"x://list-{number}", parent)


def table() -> TableMetadata:
    empty = TableMetadata(uuid.UUID(int=1), "x://t", 0, 1, (SCHEMA,), 0, properties={"old": "1"})
    return apply(empty, [AddSnapshot(snapshot(1)), SetSnapshotRef("main", SnapshotRef(1))], 1)


SAME = AssertTableUUID(uuid.UUID(int=1))


@pytest.mark.parametrize(
    ("update", "needs"),
    [
        (SetSnapshotRef("main", SnapshotRef(2)), [AssertRefSnapshotId("main", 1)]),
        (SetSnapshotRef("new", SnapshotRef(1)), [AssertRefSnapshotId("new", None)]),
        (RemoveSnapshotRef("main"), [AssertRefSnapshotId("main", 1)]),
        (RemoveSnapshots(frozenset({9})), [AssertRefSnapshotId("main", 1)]),
        (AddSchema(WIDER), [AssertLastAssignedFieldId(1)]),
        (SetCurrentSchema(1), [AssertCurrentSchemaId(0)]),
        (AddPartitionSpec(SPEC), [AssertLastAssignedPartitionId(999)]),
        (SetDefaultSpec(1), [AssertDefaultSpecId(0)]),
        (SetDefaultSortOrder(1), [AssertDefaultSortOrderId(0)]),
        (RemoveSchemas(frozenset({9})), [AssertCurrentSchemaId(0), AssertRefSnapshotId("main", 1)]),
        (RemovePartitionSpecs(frozenset({9})), [AssertDefaultSpecId(0), AssertRefSnapshotId("main", 1)]),
        (SetProperties({"a": "b"}), []),
        (AddSnapshot(snapshot(2)), []),
    ],
)
def test_what_an_update_touches_must_stand_as_in_the_base(update: Update, needs: list[object]) -> None:
    assert find_requirements(table(), [update, update]) == [SAME, *needs]


def test_what_a_change_states_of_a_state_that_another_made_is_told_by_the_base() -> None:
    stated: list[Requirement] = [
        AssertRefSnapshotId("main", 77),
        AssertCurrentSchemaId(5),
        AssertRefSnapshotId("dev", 78),
    ]
    assert find_requirements(table(), [], stated) == [
        SAME,
        AssertRefSnapshotId("main", 1),
        AssertCurrentSchemaId(0),
        AssertRefSnapshotId("dev", None),
    ]


def test_requirements_hold_on_their_base_and_not_once_what_is_touched_moved() -> None:
    base = table()
    updates: list[Update] = [AddSnapshot(snapshot(2, 1)), SetSnapshotRef("main", SnapshotRef(2))]
    needs = find_requirements(base, updates)
    check(base, needs)
    check(apply(base, [SetProperties({"a": "b"})], 2), needs)
    with pytest.raises(CommitConflict):
        check(apply(base, updates, 2), needs)
    with pytest.raises(CommitConflict):
        check(apply(base, updates, 2), find_version(base))
    with pytest.raises(CommitConflict):
        check(replace(base, table_uuid=uuid.UUID(int=2)), needs)


def test_what_was_just_added_is_meant_by_minus_one() -> None:
    updates: list[Update] = [
        SetCurrentSchema(1),
        AddSchema(WIDER),
        SetCurrentSchema(1),
        SetCurrentSchema(0),
        AddPartitionSpec(SPEC),
        SetDefaultSpec(1),
        AddSortOrder(ORDER),
        SetDefaultSortOrder(1),
    ]
    marked = mark_last_added(updates)
    ids = [u.schema_id for u in marked if isinstance(u, SetCurrentSchema)]
    assert (ids, SetDefaultSpec(-1) in marked, SetDefaultSortOrder(-1) in marked) == ([1, -1, 0], True, True)
    assert resolve_last_added(marked) == updates
    assert resolve_last_added([SetCurrentSchema(-1)]) == [SetCurrentSchema(-1)]


def test_a_table_is_made_again_from_what_made_it() -> None:
    metadata = TableMetadata(
        uuid.UUID(int=7),
        "x://t",
        5,
        2,
        (WIDER,),
        1,
        format_version=3,
        specs=(SPEC,),
        default_spec_id=1,
        last_partition_id=1000,
        sort_orders=(SortOrder(), ORDER),
        default_sort_order_id=1,
        properties={"k": "v"},
    )
    assert create_from(creation_updates(metadata), 5) == metadata
    with pytest.raises(InvalidInput, match="there is no AddSchema"):
        create_from([AssignUUID(uuid.UUID(int=1))], 5)


STATISTICS = StatisticsEntry(1, b"{}")
EFFECTS: list[list[Update]] = [
    [UpgradeFormatVersion(3)],
    [AddSchema(WIDER), SetCurrentSchema(1)],
    [AddPartitionSpec(SPEC), SetDefaultSpec(1)],
    [AddSortOrder(ORDER), SetDefaultSortOrder(1)],
    [AddSchema(WIDER), SetCurrentSchema(1), RemoveSchemas(frozenset({0}))],
    [AddPartitionSpec(SPEC), SetDefaultSpec(1), RemovePartitionSpecs(frozenset({0}))],
    [AddSnapshot(snapshot(2, 1)), SetSnapshotRef("main", SnapshotRef(2))],
    [SetSnapshotRef("tag", SnapshotRef(1))],
    [RemoveSnapshotRef("main")],
    [RemoveSnapshotRef("main"), RemoveSnapshots(frozenset({1}))],
    [SetLocation("x://else")],
    [SetProperties({"a": "b", "old": "2"})],
    [RemoveProperties(("old",))],
    [SetStatistics(STATISTICS)],
    [SetPartitionStatistics(STATISTICS)],
]


@pytest.mark.parametrize("updates", EFFECTS, ids=lambda updates: type(updates[-1]).__name__)
def test_updates_show_once_they_are_made_and_not_before(updates: list[Update]) -> None:
    base = table()
    wanted = apply(base, updates, 9)
    assert not updates_applied(base, updates, wanted)
    assert updates_applied(wanted, updates, wanted)
    later = apply(wanted, [SetProperties({"other": "x"})], 10)
    assert updates_applied(later, updates, wanted), "what others did beside it does not count"


@pytest.mark.parametrize(
    ("setting", "removing"),
    [
        (SetStatistics(STATISTICS), RemoveStatistics(1)),
        (SetPartitionStatistics(STATISTICS), RemovePartitionStatistics(1)),
    ],
)
def test_removed_statistics_show(setting: Update, removing: Update) -> None:
    base = apply(table(), [setting], 2)
    wanted = apply(base, [removing], 3)
    assert (updates_applied(base, [removing], wanted), updates_applied(wanted, [removing], wanted)) == (False, True)


def test_updates_have_a_rule_each() -> None:
    assert set(MADE) == set(Update.__args__)


def test_another_try_at_a_snapshot_is_not_this_one() -> None:
    base = table()
    other = replace(snapshot(2, 1), manifest_list="x://another")
    made = apply(base, [AddSnapshot(other)], 9)
    ours: list[Update] = [AddSnapshot(snapshot(2, 1))]
    assert not updates_applied(made, ours, apply(base, ours, 9))
