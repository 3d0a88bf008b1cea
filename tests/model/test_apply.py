"""Updates are a pure fold with invariants that hold after any sequence; requirements name what moved."""

import pickle
import uuid
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort

from icefield.errors import CommitConflict, IcefieldError, InvalidInput, NoSuchSnapshot, Unsupported
from icefield.model.apply import APPLY, CHECK, apply, check
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionField, PartitionSpec, parse_partition_by
from icefield.model.snapshot import MAIN, RefKind, Snapshot, SnapshotLogEntry, SnapshotRef
from icefield.model.sort_order import SortOrder, parse_order_by
from icefield.model.updates import (
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssertCurrentSchemaId,
    AssertDefaultSpecId,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemovePartitionSpecs,
    RemoveProperties,
    RemoveSchemas,
    RemoveSnapshotRef,
    RemoveSnapshots,
    Requirement,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetProperties,
    SetSnapshotRef,
    Update,
    UpgradeFormatVersion,
)
from icefield.types.schema import Schema
from icefield.types.text import parse_schema
from icefield.types.transforms import Identity

SCHEMA = parse_schema("id long, ts timestamp, name string")
EMPTY = TableMetadata(uuid.UUID(int=1), "memory://t", 1000, 3, (SCHEMA,), 0, properties={"a": "1"})


def snapshot(snapshot_id: int, sequence_number: int, timestamp_ms: int = 2000, parent: int | None = None) -> Snapshot:
    return Snapshot(snapshot_id, sequence_number, timestamp_ms, f"memory://t/{snapshot_id}", parent, 0)


def committed(base: TableMetadata, made: Snapshot, ref: str = MAIN) -> TableMetadata:
    """Commit a snapshot as the head of a branch, at its own time."""
    return apply(base, [AddSnapshot(made), SetSnapshotRef(ref, SnapshotRef(made.snapshot_id))], made.timestamp_ms)


ONE = committed(EMPTY, snapshot(1, 1, 2000))
TWO = committed(ONE, snapshot(2, 2, 3000, parent=1))
THREE = committed(TWO, snapshot(3, 3, 4000, parent=2))


def log_of(metadata: TableMetadata) -> list[tuple[int, int]]:
    return [(e.timestamp_ms, e.snapshot_id) for e in metadata.snapshot_log]


# Schemas, specs and orders.


def test_a_schema_is_added_and_then_made_current() -> None:
    wider = replace(parse_schema("a int, b struct<c int, d list<int>>"), schema_id=1)
    added = apply(EMPTY, [AddSchema(wider)], 2000)
    assert added.schema == SCHEMA
    assert added.last_column_id == wider.highest_field_id == 5
    assert apply(added, [SetCurrentSchema(1)], 2000).schema == wider
    assert apply(added, [SetCurrentSchema(1), SetCurrentSchema(0)], 2000).schema == SCHEMA


def test_the_last_column_id_never_falls() -> None:
    narrower = Schema(SCHEMA.fields[:1], schema_id=1)
    assert apply(EMPTY, [AddSchema(narrower), SetCurrentSchema(1)], 2000).last_column_id == 3


def test_a_spec_is_added_and_then_made_the_default() -> None:
    spec = replace(parse_partition_by(["day(ts)", "bucket(4, id)"], SCHEMA), spec_id=1)
    added = apply(EMPTY, [AddPartitionSpec(spec)], 2000)
    assert (added.default_spec_id, added.last_partition_id) == (0, 1001)
    assert apply(added, [SetDefaultSpec(1)], 2000).spec == spec
    again = apply(added, [AddPartitionSpec(PartitionSpec((), 2))], 2000)
    assert again.last_partition_id == 1001


def test_a_sort_order_is_added_and_then_made_the_default() -> None:
    order = parse_order_by(["id desc"], SCHEMA)
    changed = apply(EMPTY, [AddSortOrder(order), SetDefaultSortOrder(1)], 2000)
    assert changed.sort_order == order
    assert apply(changed, [SetDefaultSortOrder(0)], 2000).sort_order.is_unsorted


@pytest.mark.parametrize(
    "update",
    [
        AddSchema(SCHEMA),
        SetCurrentSchema(9),
        SetCurrentSchema(-2),
        AddPartitionSpec(PartitionSpec()),
        SetDefaultSpec(9),
        AddSortOrder(SortOrder()),
        SetDefaultSortOrder(9),
        UpgradeFormatVersion(1),
        AddSnapshot(replace(snapshot(3, 3), first_row_id=0, added_rows=1)),
        AddSnapshot(snapshot(3, -1)),
        AddSnapshot(snapshot(1, 3)),
        AddSnapshot(snapshot(2, 3)),
        SetSnapshotRef(MAIN, SnapshotRef(1, RefKind.TAG)),
    ],
    ids=repr,
)
def test_an_update_that_does_not_fit_is_refused(update: Update) -> None:
    with pytest.raises(InvalidInput):
        apply(TWO, [update], 4000)


# Snapshots and refs.


def test_a_commit_moves_main_and_the_sequence_number() -> None:
    assert (TWO.current_snapshot_id, TWO.last_sequence_number, TWO.last_updated_ms) == (2, 2, 3000)
    assert TWO.refs == {MAIN: SnapshotRef(2)}
    assert log_of(TWO) == [(2000, 1), (3000, 2)]
    assert [s.snapshot_id for s in TWO.snapshots] == [1, 2]


def test_a_staged_snapshot_moves_the_sequence_number_but_not_main() -> None:
    staged = apply(TWO, [AddSnapshot(snapshot(3, 7, 4000))], 4000)
    assert (staged.current_snapshot_id, staged.last_sequence_number) == (2, 7)
    assert staged.snapshot_log == TWO.snapshot_log


def test_other_refs_leave_main_and_its_log_alone() -> None:
    tagged = apply(TWO, [SetSnapshotRef("q1", SnapshotRef(1, RefKind.TAG, max_ref_age_ms=5))], 4000)
    assert tagged.refs == {MAIN: SnapshotRef(2), "q1": SnapshotRef(1, RefKind.TAG, max_ref_age_ms=5)}
    assert (tagged.current_snapshot_id, tagged.snapshot_log) == (2, TWO.snapshot_log)
    assert apply(tagged, [RemoveSnapshotRef("q1")], 5000).refs == TWO.refs
    assert apply(tagged, [RemoveSnapshotRef("never there")], 5000).refs == tagged.refs


def test_a_ref_to_a_snapshot_that_is_not_there_is_refused() -> None:
    for name in (MAIN, "dev"):
        with pytest.raises(NoSuchSnapshot, match="no snapshot 9"):
            apply(TWO, [SetSnapshotRef(name, SnapshotRef(9))], 4000)
    with pytest.raises(NoSuchSnapshot):  # the order counts
        apply(TWO, [SetSnapshotRef(MAIN, SnapshotRef(3)), AddSnapshot(snapshot(3, 3, 4000))], 4000)


def test_removing_main_leaves_a_table_without_a_current_snapshot() -> None:
    gone = apply(TWO, [RemoveSnapshotRef(MAIN)], 4000)
    assert (gone.current_snapshot_id, dict(gone.refs)) == (None, {})
    back = apply(gone, [SetSnapshotRef(MAIN, SnapshotRef(2))], 5000)
    assert log_of(back) == [(2000, 1), (3000, 2), (5000, 2)]


def test_a_rollback_is_logged_with_the_time_at_which_it_happened() -> None:
    rolled = apply(TWO, [SetSnapshotRef(MAIN, SnapshotRef(1))], 9000)
    assert log_of(rolled) == [(2000, 1), (3000, 2), (9000, 1)]
    assert rolled.last_updated_ms == 9000


def test_a_new_snapshot_is_logged_with_its_own_time_though_the_change_took_longer() -> None:
    updates: list[Update] = [AddSnapshot(snapshot(3, 3, 3000)), SetSnapshotRef(MAIN, SnapshotRef(3))]
    late = apply(TWO, updates, 3500)
    assert log_of(late)[-1] == (3000, 3)
    assert late.last_updated_ms == 3500
    assert late.snapshot_as_of(3000).snapshot_id == 3


def test_a_branch_of_the_same_millisecond_that_is_published_later_is_logged_later() -> None:
    branched = committed(ONE, snapshot(2, 2, 2000), ref="dev")
    published = apply(branched, [SetSnapshotRef(MAIN, SnapshotRef(2))], 9000)
    assert log_of(published) == [(2000, 1), (9000, 2)]
    assert published.snapshot_as_of(5000).snapshot_id == 1


def test_changing_the_retention_of_main_is_no_move() -> None:
    kept = apply(TWO, [SetSnapshotRef(MAIN, SnapshotRef(2, min_snapshots_to_keep=5))], 9000)
    assert kept.refs[MAIN].min_snapshots_to_keep == 5
    assert kept.snapshot_log == TWO.snapshot_log


def test_time_never_runs_backwards() -> None:
    assert apply(TWO, [], 1).last_updated_ms == 3000
    early = apply(TWO, [SetSnapshotRef(MAIN, SnapshotRef(1))], 1)
    assert log_of(early)[-1] == (3000, 1)
    skewed = apply(TWO, [AddSnapshot(snapshot(3, 3, 5)), SetSnapshotRef(MAIN, SnapshotRef(3))], 1)
    assert log_of(skewed)[-1] == (3000, 3)
    ahead = apply(TWO, [AddSnapshot(snapshot(3, 3, 7777)), SetSnapshotRef(MAIN, SnapshotRef(3))], 4000)
    assert log_of(ahead)[-1] == (7777, 3)
    assert ahead.last_updated_ms == 7777


def test_an_empty_change_only_touches_the_time() -> None:
    assert apply(TWO, [], 9999) == replace(TWO, last_updated_ms=9999)


def test_a_stale_sequence_number_is_a_conflict_that_can_be_retried() -> None:
    with pytest.raises(CommitConflict, match="has sequence number 2, but the table is at 2") as caught:
        apply(TWO, [AddSnapshot(snapshot(3, 2, 4000, parent=1))], 4000)
    assert caught.value.retryable


def test_a_snapshot_without_a_parent_may_have_a_stale_sequence_number() -> None:
    """Replace transactions of Iceberg Java send one; the table's own number never goes back."""
    replaced = committed(THREE, snapshot(4, 1, 5000))
    assert (replaced.current_snapshot_id, replaced.last_sequence_number) == (4, 3)
    assert committed(replaced, snapshot(5, 4, 6000, parent=4)).last_sequence_number == 4


# Schemas and specs that nothing uses.


def test_schemas_and_specs_are_removed_but_never_the_current_ones() -> None:
    evolved = apply(
        TWO,
        [
            AddSchema(replace(SCHEMA, schema_id=1)),
            SetCurrentSchema(1),
            AddPartitionSpec(PartitionSpec((PartitionField(1, 1000, "id", Identity()),), 1)),
            SetDefaultSpec(1),
        ],
        4000,
    )
    cleaned = apply(evolved, [RemoveSchemas(frozenset({0})), RemovePartitionSpecs(frozenset({0, 7}))], 5000)
    assert [s.schema_id for s in cleaned.schemas] == [1]
    assert [s.spec_id for s in cleaned.specs] == [1]
    assert cleaned.last_column_id == evolved.last_column_id, "ids of columns that are gone are never used again"
    with pytest.raises(InvalidInput, match="schema 1: it is the current schema"):
        apply(evolved, [RemoveSchemas(frozenset({0, 1}))], 5000)
    with pytest.raises(InvalidInput, match="spec 1: it is the default spec"):
        apply(evolved, [RemovePartitionSpecs(frozenset({1}))], 5000)


# Properties.


def test_properties_are_set_and_removed_in_order() -> None:
    changed = apply(EMPTY, [SetProperties({"a": "2", "b": "3"}), RemoveProperties(("a", "missing"))], 2000)
    assert changed.properties == {"b": "3"}
    assert apply(EMPTY, [RemoveProperties(("a",)), SetProperties({"a": "9"})], 2000).properties == {"a": "9"}


# Requirements.


@pytest.mark.parametrize(
    ("requirement", "why"),
    [
        (AssertTableUUID(uuid.UUID(int=2)), "uuid"),
        (AssertRefSnapshotId(MAIN, 1), "'main' is 2, but the change requires 1"),
        (AssertRefSnapshotId(MAIN, None), "'main' is 2"),
        (AssertRefSnapshotId("dev", 2), "'dev' is None"),
        (AssertCurrentSchemaId(1), "current schema id is 0"),
        (AssertDefaultSpecId(3), "partition spec id is 0"),
    ],
)
def test_a_requirement_that_does_not_hold_is_a_conflict(requirement: Requirement, why: str) -> None:
    with pytest.raises(CommitConflict, match=why):
        check(TWO, [AssertTableUUID(TWO.table_uuid), requirement])


def test_requirements_that_hold_pass() -> None:
    check(TWO, [])
    check(
        TWO,
        [
            AssertTableUUID(uuid.UUID(int=1)),
            AssertRefSnapshotId(MAIN, 2),
            AssertRefSnapshotId("dev", None),
            AssertCurrentSchemaId(0),
            AssertDefaultSpecId(0),
        ],
    )
    check(EMPTY, [AssertRefSnapshotId(MAIN, None)])


def test_every_update_and_every_requirement_has_a_rule() -> None:
    assert set(APPLY) == set(Update.__args__)
    assert set(CHECK) == set(Requirement.__args__)


# Format versions.

V1, V3 = replace(EMPTY, format_version=1), replace(EMPTY, format_version=3)


def with_ids(snapshot_id: int, sequence_number: int, first_row_id: int | None, added_rows: int | None) -> Snapshot:
    return replace(snapshot(snapshot_id, sequence_number), first_row_id=first_row_id, added_rows=added_rows)


def test_an_upgrade_leaves_history_and_starts_counting_where_nothing_was_counted() -> None:
    old = committed(V1, snapshot(1, 0))
    two = apply(old, [UpgradeFormatVersion(2)], 3000)
    three = apply(two, [UpgradeFormatVersion(3)], 3000)
    assert (two.format_version, two.last_sequence_number, two.next_sequence_number) == (2, 0, 1)
    assert (three.format_version, three.next_row_id, three.snapshots) == (3, 0, old.snapshots)
    assert apply(old, [UpgradeFormatVersion(3)], 3000) == three
    assert apply(three, [UpgradeFormatVersion(3)], 3000) == three


@pytest.mark.parametrize("version", [0, 4, -1, 99])
def test_an_upgrade_to_an_unknown_version_is_refused_by_its_number(version: int) -> None:
    with pytest.raises(Unsupported, match=f"format version {version}; icefield supports versions 1, 2, 3"):
        apply(EMPTY, [UpgradeFormatVersion(version)], 3000)


def test_version_1_has_no_sequence_numbers() -> None:
    twice = committed(committed(V1, snapshot(1, 0)), snapshot(2, 0, parent=1))
    assert (twice.last_sequence_number, twice.next_sequence_number, len(twice.snapshots)) == (0, 0, 2)
    with pytest.raises(InvalidInput, match="format version 1 has none"):
        apply(V1, [AddSnapshot(snapshot(1, 1))], 3000)


def test_row_ids_are_handed_out_once_though_a_snapshot_takes_more_than_it_must() -> None:
    table = apply(V3, [AddSnapshot(with_ids(1, 1, 0, 10))], 3000)
    assert table.next_row_id == 10
    assert apply(table, [AddSnapshot(with_ids(2, 2, 10, 0))], 3000).next_row_id == 10
    assert apply(table, [AddSnapshot(with_ids(2, 2, 40, 5))], 3000).next_row_id == 45


def test_row_ids_that_were_taken_meanwhile_are_a_conflict() -> None:
    table = apply(V3, [AddSnapshot(with_ids(1, 1, 0, 10))], 3000)
    with pytest.raises(CommitConflict, match="from 9 on, but the table's next is 10"):
        apply(table, [AddSnapshot(with_ids(2, 2, 9, 5))], 3000)


@pytest.mark.parametrize("ids", [(None, None), (0, None), (None, 3), (0, -1)])
def test_a_snapshot_of_version_3_says_which_row_ids_it_takes(ids: tuple[int | None, int | None]) -> None:
    with pytest.raises(InvalidInput, match="does not say which row ids it assigns"):
        apply(V3, [AddSnapshot(with_ids(1, 1, *ids))], 3000)


# Any sequence.

IDS, REFS, TIMES = st.integers(1, 6), st.sampled_from([MAIN, "dev", "q1"]), st.integers(0, 20_000)
UPDATES: st.SearchStrategy[Update] = st.one_of(
    st.builds(AddSnapshot, st.builds(snapshot, IDS, st.integers(-1, 9), TIMES, st.none() | IDS)),
    st.builds(SetSnapshotRef, REFS, st.builds(SnapshotRef, IDS, st.sampled_from(RefKind), st.none() | st.just(3))),
    st.builds(RemoveSnapshotRef, REFS),
    st.builds(AddSchema, st.builds(Schema, st.just(SCHEMA.fields[:2]), st.integers(0, 3))),
    st.builds(SetCurrentSchema, st.integers(0, 3)),
    st.builds(AddPartitionSpec, st.builds(PartitionSpec, st.just(()), st.integers(0, 2))),
    st.builds(SetDefaultSpec, st.integers(0, 2)),
    st.builds(AddSortOrder, st.builds(SortOrder, st.just(()), st.integers(0, 2))),
    st.builds(SetDefaultSortOrder, st.integers(0, 2)),
    st.builds(SetProperties, st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"))),
    st.builds(RemoveProperties, st.tuples(st.sampled_from("ab"))),
)


def assert_invariants(before: TableMetadata, after: TableMetadata) -> None:
    kept = {s.snapshot_id: s for s in after.snapshots}
    assert len(kept) == len(after.snapshots)
    main = after.refs.get(MAIN)
    assert after.current_snapshot_id == (main.snapshot_id if main else None)
    assert main is None or main.kind is RefKind.BRANCH
    assert all(ref.snapshot_id in kept for ref in after.refs.values())
    assert after.last_sequence_number == max([0, *(s.sequence_number for s in kept.values())])
    numbers = [s.sequence_number for s in after.snapshots]
    # One without a parent depends on no version, and may come with an older number.
    based = [at for at, s in enumerate(after.snapshots) if s.parent_snapshot_id is not None]
    assert all(numbers[at] > max([0, *numbers[:at]]) for at in based)
    assert all(e.snapshot_id in kept for e in after.snapshot_log)
    assert after.current_snapshot_id is None or after.snapshot_log[-1].snapshot_id == after.current_snapshot_id
    times = [e.timestamp_ms for e in after.snapshot_log]
    assert times == sorted(times)
    assert after.last_updated_ms >= max([before.last_updated_ms, *times])
    assert after.snapshot_log[: len(before.snapshot_log)] == before.snapshot_log
    assert after.snapshots.entries[: len(before.snapshots)] == before.snapshots.entries
    assert after.last_column_id >= before.last_column_id
    for ids in ([s.schema_id for s in after.schemas], [s.spec_id for s in after.specs]):
        assert len(set(ids)) == len(ids)
    assert after.schema in after.schemas
    assert after.spec in after.specs
    assert after.sort_order in after.sort_orders


@effort(80)
@given(st.lists(st.tuples(st.lists(UPDATES, min_size=1, max_size=4), TIMES), max_size=10))
def test_invariants_hold_after_any_sequence_and_inputs_stay_as_they_were(
    changes: Sequence[tuple[list[Update], int]],
) -> None:
    table = EMPTY
    for updates, now_ms in changes:
        frozen = pickle.loads(pickle.dumps((table, updates)))
        try:
            after = apply(table, updates, now_ms)
        except IcefieldError:
            assert (table, updates) == frozen
            continue
        assert (table, updates) == frozen
        assert_invariants(table, after)
        table = after


@effort(60)
@given(st.lists(UPDATES, max_size=6), st.integers(0, 6))
def test_the_fold_does_not_depend_on_where_it_is_cut(updates: list[Update], at: int) -> None:
    def run(*parts: list[Update]) -> object:
        table = TWO
        try:
            for part in parts:
                table = apply(table, part, 30_000)
        except IcefieldError as error:
            return type(error), str(error)
        # When main moves to a snapshot of an earlier part, that is a return, and logged with its own time.
        return replace(table, snapshot_log=tuple(SnapshotLogEntry(0, e.snapshot_id) for e in table.snapshot_log))

    assert run(updates) == run(updates[:at], updates[at:])


# Removing snapshots.


def test_removed_snapshots_are_gone_and_the_log_has_no_hole() -> None:
    table = THREE
    after = apply(table, [RemoveSnapshots(frozenset({1}))], 5000)
    assert [s.snapshot_id for s in after.snapshots] == [2, 3]
    assert [e.snapshot_id for e in after.snapshot_log] == [2, 3]
    middle = apply(table, [RemoveSnapshots(frozenset({2}))], 5000)
    assert [e.snapshot_id for e in middle.snapshot_log] == [3]


def test_r08_a_snapshot_that_a_ref_points_at_cannot_be_removed() -> None:
    table = apply(TWO, [SetSnapshotRef("keep", SnapshotRef(1, RefKind.TAG))], 5000)
    with pytest.raises(CommitConflict, match="keep"):
        apply(table, [RemoveSnapshots(frozenset({1}))], 5000)
    with pytest.raises(CommitConflict, match="main"):
        apply(table, [RemoveSnapshots(frozenset({2}))], 5000)


def test_r08_without_the_guard_a_tag_points_at_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    guarded = APPLY[RemoveSnapshots]
    monkeypatch.setitem(
        APPLY, RemoveSnapshots, lambda m, u, c: replace(guarded(replace(m, refs={}), u, c), refs=m.refs)
    )
    table = apply(TWO, [SetSnapshotRef("keep", SnapshotRef(1, RefKind.TAG))], 5000)
    after = apply(table, [RemoveSnapshots(frozenset({1}))], 5000)
    with pytest.raises(NoSuchSnapshot):
        after.ref_head("keep")


def test_a_location_is_set_without_a_slash_at_its_end() -> None:
    assert apply(ONE, [SetLocation("memory://lake/new/")], 5000).location == "memory://lake/new"
