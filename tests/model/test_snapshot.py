"""The list of snapshots: found without decoding the rest, shared when one is added."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort

from icefield.model.snapshot import Operation, Snapshot, SnapshotEntry, Snapshots


def snapshot(snapshot_id: int, parent: int | None = None) -> Snapshot:
    return Snapshot(snapshot_id, snapshot_id, 1000 + snapshot_id, f"memory://t/{snapshot_id}.avro", parent)


@dataclass
class Carried:
    """A stored snapshot that counts how often it is decoded."""

    inner: Snapshot
    loads: list[int] = field(default_factory=list)

    @property
    def snapshot_id(self) -> int:
        return self.inner.snapshot_id

    def holds(self, text: bytes) -> bool:
        # As the stored form does: digits may be anywhere, also in the parent's id or in a path.
        return text.decode() in repr(self.inner)

    def load(self) -> Snapshot:
        self.loads.append(self.inner.snapshot_id)
        return self.inner


def carried(count: int) -> list[Carried]:
    return [Carried(snapshot(1000 + i, 999 + i if i else None)) for i in range(count)]


def test_a_snapshot_is_found_without_decoding_those_that_cannot_be_it() -> None:
    entries = carried(100)
    found = Snapshots(tuple(entries)).find(1042)
    assert found == entries[42].inner
    assert [i for i, e in enumerate(entries) if e.loads] == [42]


def test_a_missing_snapshot_is_none_and_decodes_nothing() -> None:
    entries = carried(100)
    assert Snapshots(tuple(entries)).find(7777) is None
    assert not any(e.loads for e in entries)


def test_each_snapshot_is_decoded_once() -> None:
    entries = carried(10)
    snapshots = Snapshots(tuple(entries))
    assert list(snapshots) == list(snapshots) == [e.inner for e in entries]
    assert snapshots.find(1003) is snapshots.find(1003)
    assert all(e.loads == [e.inner.snapshot_id] for e in entries)


def test_adding_shares_what_was_there_and_decodes_nothing() -> None:
    entries = carried(5)
    before = Snapshots(tuple(entries))
    after = before.with_added(snapshot(7))
    assert len(before) == 5
    assert after.entries[:5] == before.entries
    assert after.find(7) == snapshot(7)
    assert not any(e.loads for e in entries)


def test_removing_keeps_the_stored_form_of_the_rest() -> None:
    entries = carried(5)
    kept = Snapshots(tuple(entries)).without([1001, 1003, 5])
    assert kept.entries == (entries[0], entries[2], entries[4])
    assert len(Snapshots(tuple(entries)).without([])) == 5


def test_the_newest_of_two_with_the_same_id_is_found() -> None:
    older, newer = snapshot(1), Snapshot(1, 9, 9, "x")
    assert Snapshots((older, newer)).find(1) is newer


def test_lists_are_equal_when_their_snapshots_are_whatever_their_form() -> None:
    entries = carried(3)
    assert Snapshots(tuple(entries)) == Snapshots(tuple(e.inner for e in entries))
    assert Snapshots(tuple(entries)) != Snapshots(tuple(entries[:2]))
    assert Snapshots() != ()


def test_a_snapshot_says_what_it_did() -> None:
    assert Snapshot(1, 1, 1, "x", summary={"operation": "append"}).operation == Operation.APPEND
    assert Snapshot(1, 1, 1, "x").operation is None


@pytest.mark.parametrize("order", [range(300), range(299, -1, -1), [*range(0, 300, 2), *range(1, 300, 2)]])
def test_the_ids_of_a_long_history_are_looked_at_once(order: Sequence[int]) -> None:
    asked: list[int] = []

    class Counted(Carried):
        @property
        def snapshot_id(self) -> int:
            asked.append(self.inner.snapshot_id)
            return self.inner.snapshot_id

    entries = carried(300)
    snapshots = Snapshots(tuple(Counted(entries[at].inner) for at in order))
    head = snapshots.find(1299)
    assert head
    for _ in range(3):
        assert [s.snapshot_id for s in snapshots.ancestors(head)] == list(range(1299, 999, -1))
        assert snapshots.find(7) is None
    later = snapshots.with_added(snapshot(5000, 1299))
    assert [later.find(each) is not None for each in (5000, 1000, 7)] == [True, True, False]
    assert snapshots.find(5000) is None
    assert len(asked) == 300


@pytest.mark.parametrize("order", [(1, 2, 3, 4), (4, 3, 2, 1), (2, 4, 1, 3)])
def test_ancestors_are_found_in_a_list_of_any_order(order: tuple[int, ...]) -> None:
    by_id = {i: snapshot(i, i - 1 or None) for i in range(1, 5)}
    snapshots = Snapshots(tuple(by_id[i] for i in order))
    assert [s.snapshot_id for s in snapshots.ancestors(by_id[4])] == [4, 3, 2, 1]


@effort(60)
@given(st.dictionaries(st.integers(1, 6), st.integers(1, 8), max_size=6), st.randoms(use_true_random=False))
def test_ancestors_always_end(parents: dict[int, int], random: st.DrawFn) -> None:
    made: list[SnapshotEntry] = [snapshot(i, parent) for i, parent in parents.items()]
    random.shuffle(made)  # type: ignore[attr-defined]
    snapshots = Snapshots(tuple(made))
    for start in snapshots:
        walked = [s.snapshot_id for s in snapshots.ancestors(start)]
        assert len(set(walked)) == len(walked)
        assert walked[0] == start.snapshot_id
        for child, parent in pairwise(walked):
            assert parents[child] == parent
        last = parents[walked[-1]]
        assert last in walked or last not in parents


def test_a_snapshot_is_found_by_its_summary_and_others_stay_undecoded() -> None:
    entries = [
        Carried(Snapshot(i, i, i, "memory://l", summary={"idempotency_key": f"batch-{i}", "other": "batch-3"}))
        for i in range(20)
    ]
    snapshots = Snapshots(tuple(entries))
    found = next(snapshots.find_all_by_summary("idempotency_key", "batch-3"))
    assert found is not None
    assert found.snapshot_id == 3
    assert list(snapshots.find_all_by_summary("idempotency_key", "batch")) == []
