"""Questions to a table's metadata: by id, by ref, by time, and back through history."""

import uuid
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort

from icefield.errors import InvalidInput, NoSuchSnapshot
from icefield.model.metadata import TableMetadata
from icefield.model.partition import UNPARTITIONED, parse_partition_by
from icefield.model.snapshot import MAIN, RefKind, Snapshot, SnapshotLogEntry, SnapshotRef, Snapshots
from icefield.model.sort_order import UNSORTED, parse_order_by
from icefield.types.schema import Schema
from icefield.types.text import parse_schema

SCHEMA = parse_schema("id long, ts timestamp, name string")
EMPTY = TableMetadata(uuid.UUID(int=1), "memory://t", 1000, 3, (SCHEMA,), 0)


def snapshot(snapshot_id: int, parent: int | None = None, timestamp_ms: int = 0) -> Snapshot:
    return Snapshot(snapshot_id, snapshot_id, timestamp_ms, f"memory://t/{snapshot_id}", parent)


def with_history(*moments: tuple[int, int], missing: tuple[int, ...] = ()) -> TableMetadata:
    """A table whose main moved to these (snapshot id, time) pairs."""
    kept = {i: snapshot(i, timestamp_ms=t) for i, t in moments if i not in missing}
    return replace(
        EMPTY,
        snapshots=Snapshots(tuple(kept.values())),
        snapshot_log=tuple(SnapshotLogEntry(t, i) for i, t in moments),
        current_snapshot_id=moments[-1][0],
        refs={MAIN: SnapshotRef(moments[-1][0])},
    )


def test_r24_of_snapshots_in_one_millisecond_the_last_wins() -> None:
    table = with_history((1, 100), (2, 200), (3, 200), (4, 200), (5, 300))
    assert [table.snapshot_as_of(t).snapshot_id for t in (100, 199, 200, 299, 300, 10**15)] == [1, 1, 4, 4, 5, 5]


def test_r24_without_the_order_of_the_log_another_snapshot_is_found() -> None:
    table = with_history((1, 100), (2, 200), (3, 200), (4, 200), (5, 300))
    by_time_and_id = tuple(sorted(table.snapshot_log, key=lambda entry: (entry.timestamp_ms, -entry.snapshot_id)))
    assert replace(table, snapshot_log=by_time_and_id).snapshot_as_of(200).snapshot_id != 4


def test_a_time_before_history_is_refused_with_its_beginning() -> None:
    with pytest.raises(
        NoSuchSnapshot, match=r"no snapshot at 1970-01-01T00:00:00.099Z; its history begins at 1970-01-01T00:00:00.100Z"
    ):
        with_history((1, 100)).snapshot_as_of(99)
    with pytest.raises(NoSuchSnapshot, match=r"no snapshot at 1970-01-01T00:00:00.099Z$"):
        EMPTY.snapshot_as_of(99)


def test_a_rollback_is_part_of_history() -> None:
    table = with_history((1, 100), (2, 200), (1, 300))
    assert [table.snapshot_as_of(t).snapshot_id for t in (150, 250, 350)] == [1, 2, 1]


def test_a_moment_whose_snapshot_was_expired_is_refused_as_such() -> None:
    table = with_history((1, 100), (2, 200), missing=(1,))
    with pytest.raises(NoSuchSnapshot, match="no snapshot 1.*newest: 2.*expired"):
        table.snapshot_as_of(150)
    assert table.snapshot_as_of(200).snapshot_id == 2


@effort(60)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=8), st.integers(-1, 30))
def test_as_of_is_the_last_entry_not_after_the_time(steps: list[int], when: int) -> None:
    times = [sum(steps[: i + 1]) for i in range(len(steps))]
    table = with_history(*((i + 1, t) for i, t in enumerate(times)))
    expected = [i + 1 for i, t in enumerate(times) if t <= when]
    if expected:
        assert table.snapshot_as_of(when).snapshot_id == expected[-1]
    else:
        with pytest.raises(NoSuchSnapshot):
            table.snapshot_as_of(when)


def test_ancestors_end_where_the_parent_was_expired() -> None:
    table = replace(EMPTY, snapshots=Snapshots((snapshot(3, 2), snapshot(4, 3), snapshot(9, 1), snapshot(5, 4))))
    assert [s.snapshot_id for s in table.ancestors(table.snapshots.find(5))] == [5, 4, 3]
    assert list(table.ancestors(None)) == []


def test_current_things_are_found_by_their_ids() -> None:
    newer = replace(parse_schema("id long"), schema_id=7)
    spec = replace(parse_partition_by(["day(ts)"], SCHEMA), spec_id=3)
    order = parse_order_by(["id"], SCHEMA)
    table = replace(
        EMPTY,
        schemas=(SCHEMA, newer),
        current_schema_id=7,
        specs=(UNPARTITIONED, spec),
        default_spec_id=3,
        sort_orders=(UNSORTED, order),
        default_sort_order_id=1,
    )
    assert (table.schema, table.spec, table.sort_order) == (newer, spec, order)
    assert (table.schema_by_id(0), table.spec_by_id(0), table.sort_order_by_id(0)) == (SCHEMA, UNPARTITIONED, UNSORTED)


@pytest.mark.parametrize(
    ("broken", "ask"),
    [
        (replace(EMPTY, current_schema_id=9), lambda m: m.schema),
        (replace(EMPTY, default_spec_id=9), lambda m: m.spec),
        (replace(EMPTY, default_sort_order_id=9), lambda m: m.sort_order),
    ],
)
def test_an_id_that_is_not_there_is_refused(broken: TableMetadata, ask: object) -> None:
    with pytest.raises(InvalidInput, match="id 9"):
        ask(broken)  # type: ignore[operator]


def test_the_schema_of_a_spec_is_the_newest_that_still_has_its_sources() -> None:
    spec = parse_partition_by(["day(ts)"], SCHEMA)
    renamed = Schema((SCHEMA.fields[0], replace(SCHEMA.fields[1], name="seen")), schema_id=1)
    dropped = Schema((SCHEMA.fields[0],), schema_id=2)
    table = replace(EMPTY, schemas=(SCHEMA, renamed, dropped), current_schema_id=2, specs=(spec,))
    assert table.schema_of_spec(spec) == renamed
    assert table.schema_of_spec(UNPARTITIONED) == dropped
    back = replace(table, current_schema_id=0)
    assert back.schema_of_spec(spec) == SCHEMA
    with pytest.raises(InvalidInput, match="no schema of the table has all source columns"):
        replace(table, schemas=(dropped,)).schema_of_spec(spec)


def test_refs_lead_to_their_snapshots() -> None:
    table = replace(with_history((1, 100), (2, 200)), refs={MAIN: SnapshotRef(2), "q1": SnapshotRef(1, RefKind.TAG)})
    assert [head.snapshot_id for ref in (MAIN, "q1") if (head := table.ref_head(ref))] == [2, 1]
    assert table.current_snapshot == table.ref_head(MAIN)
    with pytest.raises(NoSuchSnapshot, match=r"no branch or tag 'q2' \(refs: main, q1\)"):
        table.ref_head("q2")


def test_only_main_of_an_empty_table_leads_nowhere() -> None:
    assert EMPTY.ref_head(MAIN) is None
    assert EMPTY.current_snapshot is None
    with pytest.raises(NoSuchSnapshot, match="refs: none"):
        EMPTY.ref_head("dev")


def test_a_missing_snapshot_is_refused_with_what_is_left() -> None:
    with pytest.raises(NoSuchSnapshot, match=r"no snapshot 9 \(newest: 2, 3, 4\)"):
        with_history((1, 1), (2, 2), (3, 3), (4, 4)).snapshot_by_id(9)
    with pytest.raises(NoSuchSnapshot, match="newest: none"):
        EMPTY.snapshot_by_id(9)
