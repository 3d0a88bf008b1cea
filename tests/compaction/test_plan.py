"""Which files compaction rewrites: by levels, and for other reasons; as a pure function."""

from dataclasses import dataclass, replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort

from icefield.compaction.plan import CHEAP_BYTES, CompactionPlan, Reason, Thresholds, fold_levels, plan_compaction
from icefield.plan.planned_files import PLANNED_FILE_SCHEMA, PlannedFiles

MB = 1024 * 1024
TARGET = 512 * MB
LEVELS_OF_8 = Thresholds(TARGET, int(TARGET * 0.75), int(TARGET * 1.8), 8, 0.3)


def files_of(
    sizes: list[int],
    partition: str = "a",
    spec_id: int = 0,
    *,
    deletes: set[int] = frozenset(),  # type: ignore[assignment]
) -> PlannedFiles:
    """Return files in the order of their commits. deletes: those that have some."""
    columns: dict[str, list[object]] = {
        "file_path": [f"{partition}/{spec_id}/{at}" for at in range(len(sizes))],
        "record_count": [1000] * len(sizes),
        "file_size_in_bytes": list(sizes),
        "sequence_number": list(range(1, len(sizes) + 1)),
        "snapshot_id": [1] * len(sizes),
        "spec_id": [spec_id] * len(sizes),
        "partition": [f"p={partition}"] * len(sizes),
        "partition_key": [partition.encode()] * len(sizes),
        "manifest_path": ["m"] * len(sizes),
        "delete_keys": [{} if at in deletes else None for at in range(len(sizes))],
    }
    rows = [{name: values[at] for name, values in columns.items()} for at in range(len(sizes))]
    return PlannedFiles(pa.Table.from_pylist(rows, schema=PLANNED_FILE_SCHEMA))


def plan(
    files: PlannedFiles, delete_rows: list[int] | None = None, thresholds: Thresholds = LEVELS_OF_8
) -> CompactionPlan:
    counts = np.array(delete_rows or [0] * files.num_rows, np.int64)
    return plan_compaction(files, counts, thresholds, 0)


def rewritten(made: CompactionPlan) -> list[list[str]]:
    return [group.files.file_path.to_pylist() for group in made.groups]


def sizes_after(files: PlannedFiles, made: CompactionPlan, target: int = TARGET) -> list[int]:
    """Return the sizes of all files in the order of their commits, as if the new ones were as large as the old."""
    gone = {path for paths in rewritten(made) for path in paths}
    kept = [
        (at, size)
        for at, (path, size) in enumerate(
            zip(files.file_path.to_pylist(), files.file_size_in_bytes.to_pylist(), strict=True)
        )
        if path not in gone
    ]
    order = {path: at for at, path in enumerate(files.file_path.to_pylist())}
    for group in made.groups:
        at, left = order[group.files.file_path[0].as_py()], group.total_bytes
        while left > 0:
            kept.append((at, min(left, target)))
            left -= target
    return [size for _, size in sorted(kept)]


@dataclass(frozen=True)
class Rounds:
    """What appends and compactions in turn have cost. held: files before, and after each compaction."""

    amplification: float
    held: float
    held_after: float


def compact_in_rounds(appended: int, every: int, seed: int, rounds: int = 1_000) -> Rounds:
    """Append files of about one size, and compact after every so many of them."""
    rng, ingested, written = Random(seed), 0, 0
    sizes, held, held_after = list[int](), list[int](), list[int]()
    for number in range(1, rounds + 1):
        sizes.append(int(appended * rng.lognormvariate(0, 0.5)))
        ingested += sizes[-1]
        if number % every == 0:
            files = files_of(sizes)
            made = plan(files)
            written += made.bytes_to_rewrite
            sizes = sizes_after(files, made)
            held_after.append(len(sizes))
        held.append(len(sizes))
    return Rounds((ingested + written) / ingested, float(np.mean(held)), float(np.mean(held_after)))


@pytest.mark.parametrize("seed", range(3))
def test_each_byte_is_written_less_than_four_and_a_half_times(seed: int) -> None:
    """1,000 appends of 1 MB or so, with compaction after every 10: as levels of 8 promise."""
    found = compact_in_rounds(MB, 10, seed)
    assert found.amplification < 4.5
    assert found.held_after < 12
    assert found.held < 16


@pytest.mark.parametrize("every", [1, 3, 10])
@pytest.mark.parametrize("appended", [512, 1024, 4096, 64 * 1024, MB, 64 * MB])
def test_each_byte_is_written_less_than_four_and_a_half_times_however_small_and_often(
    appended: int, every: int
) -> None:
    """Also where the small files of a partition are few bytes, which are combined at once."""
    assert compact_in_rounds(appended, every, 1).amplification < 4.5


def test_what_the_bound_for_few_bytes_prevents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icefield.compaction.plan.MOST_OF_THEM", 1.0)
    assert compact_in_rounds(512, 1, 1).amplification > 10


def test_what_levels_prevent() -> None:
    """Combining all small files every time writes each byte as often as the table grows by the batch."""
    everything = replace(LEVELS_OF_8, min_input_files=2)
    ingested, written, sizes = 0, 0, list[int]()
    for number in range(1, 1001):
        sizes.append(MB)
        ingested += MB
        if number % 10 == 0:
            files = files_of(sizes)
            made = plan(files, thresholds=everything)
            written += made.bytes_to_rewrite
            sizes = sizes_after(files, made)
    assert (ingested + written) / ingested > 4.5


def test_a_level_is_full_with_as_many_files_as_the_threshold() -> None:
    assert rewritten(plan(files_of([MB] * 7))) == []
    assert [len(group) for group in rewritten(plan(files_of([MB] * 8)))] == [8]
    assert [len(group) for group in rewritten(plan(files_of([MB] * 15)))] == [8]


def test_levels_that_get_full_are_folded_into_one_rewrite() -> None:
    made = plan(files_of([MB] * 100))
    assert sorted(len(group) for group in rewritten(made)) == [8, 8, 8, 8, 68], "64 and what was left of their level"
    assert (made.files, made.files_good, made.files_to_rewrite) == (100, 0, 100)
    assert made.reasons == {Reason.LEVEL_FULL: 100}


def test_files_of_a_level_are_taken_in_the_order_of_commits() -> None:
    files = files_of([MB] * 20).take(list(reversed(range(20))))
    (first, second) = rewritten(plan(files))
    assert (first, second) == ([f"a/0/{at}" for at in range(8)], [f"a/0/{at}" for at in range(8, 16)])


def test_files_of_different_levels_are_not_combined() -> None:
    assert rewritten(plan(files_of([MB] * 7 + [64 * MB] * 7))) == []


def test_partitions_are_planned_apart() -> None:
    both = PlannedFiles.concat([files_of([MB] * 7, "a"), files_of([MB] * 9, "b")])
    made = plan(both)
    assert [set(group.files.partition.to_pylist()) for group in made.groups] == [{"p=b"}]
    assert [(each.partition, each.files, each.files_to_rewrite, each.groups) for each in made.partitions] == [
        ("p=a", 7, 0, 0),
        ("p=b", 9, 8, 1),
    ]


def test_what_costs_less_than_a_commit_is_combined_at_once() -> None:
    few = CHEAP_BYTES // 4
    assert plan(files_of([few] * 3)).reasons == {Reason.FEW_BYTES: 3}
    assert plan(files_of([few])).groups == ()
    assert plan(files_of([few * 2] * 3)).groups == ()
    assert plan(files_of([few], deletes={0}), [1]).reasons == {Reason.FEW_BYTES: 1}


def test_deletes_count_from_their_share_on() -> None:
    files = files_of([TARGET] * 3, deletes={0, 1})
    assert rewritten(plan(files, [299, 300, 0])) == [["a/0/1"]]
    assert plan(files, [299, 300, 0]).reasons == {Reason.DELETED_ROWS: 1}
    assert rewritten(plan(files, [1, 0, 0], replace(LEVELS_OF_8, delete_ratio=0.0))) == [["a/0/0"]]


def test_files_that_are_too_large_are_split() -> None:
    made = plan(files_of([TARGET, 2 * TARGET]))
    assert (rewritten(made), made.reasons) == ([["a/0/1"]], {Reason.TOO_LARGE: 1})


def test_files_of_an_old_spec_are_rewritten() -> None:
    both = PlannedFiles.concat([files_of([TARGET] * 2, spec_id=0), files_of([TARGET], spec_id=1)])
    made = plan_compaction(both, np.zeros(3, np.int64), LEVELS_OF_8, 1)
    assert (rewritten(made), made.reasons) == ([["a/0/0", "a/0/1"]], {Reason.OLD_SPEC: 2})


def test_partitions_of_old_specs_are_rewritten_together() -> None:
    """Each group makes a file in each new partition, so there should be few of them."""
    old = [files_of([TARGET] * 3, partition, spec_id) for partition in "abcd" for spec_id in (0, 2)]
    both = PlannedFiles.concat([*old, files_of([TARGET], "a", spec_id=1)])
    made = plan_compaction(both, np.zeros(25, np.int64), LEVELS_OF_8, 1)
    assert [group.files.num_rows for group in made.groups] == [8, 8, 8]
    assert (made.files_to_rewrite, made.files_good, made.reasons) == (24, 1, {Reason.OLD_SPEC: 24})
    by_spec = {(each.spec_id, each.partition): each for each in made.partitions}
    assert {key[0]: each.files_to_rewrite for key, each in by_spec.items()} == {0: 3, 1: 0, 2: 3}
    assert [by_spec[0, f"p={partition}"].groups for partition in "abcd"] == [1, 1, 2, 1]
    little = plan_compaction(both, np.zeros(25, np.int64), LEVELS_OF_8, 1, most_bytes=2 * TARGET)
    assert {group.files.num_rows for group in little.groups} == {2}, "a larger group would be left"


def test_a_file_that_cannot_be_split_is_good() -> None:
    """One row may be larger than a file should be, or as large as two that fit."""
    files = files_of([5 * TARGET, int(1.9 * TARGET), int(1.9 * TARGET)])
    assert rewritten(plan(files.replaced({"record_count": pa.array([1, 2, 3], pa.int64())}))) == [["a/0/2"]]


def test_good_files_are_left_alone() -> None:
    made = plan(files_of([TARGET, int(TARGET * 0.8), int(TARGET * 1.7)]))
    assert (made.groups, made.files_good) == ((), 3)
    assert plan(files_of([])).groups == ()


def test_a_large_group_is_cut_into_tasks() -> None:
    made = plan(files_of([300 * MB] * 64))
    assert all(group.total_bytes <= 8 * TARGET for group in made.groups)
    assert made.files_to_rewrite == 64


def test_rows_that_are_put_in_order_stay_together() -> None:
    made = plan_compaction(files_of([TARGET] * 20), np.zeros(20, np.int64), LEVELS_OF_8, 0, every=Reason.ORDER)
    assert ([group.files.num_rows for group in made.groups], made.reasons) == ([20], {Reason.ORDER: 20})


@effort(50)
@given(
    st.lists(st.integers(1, 2 * TARGET), max_size=200),
    st.integers(2, 20),
)
def test_a_file_is_in_one_group_and_planning_ends(sizes: list[int], width: int) -> None:
    thresholds = replace(LEVELS_OF_8, min_input_files=width)
    runs = fold_levels([size for size in sizes if size < thresholds.min_file_bytes], thresholds)
    placed = [at for run in runs for at in run]
    assert sorted(placed) == list(range(len(placed)))
    assert all(len(run) == 1 or len(run) >= width for run in runs)
    files = files_of(sizes)
    for _ in range(12):
        made = plan(files, thresholds=thresholds)
        paths = [path for group in rewritten(made) for path in group]
        assert len(paths) == len(set(paths))
        if not made.groups:
            return
        assert made.bytes_to_rewrite <= sum(sizes)
        files = files_of(sizes_after(files, made))
    raise AssertionError("compaction of a table that does not change does not end")
