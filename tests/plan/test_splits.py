"""Splits: every row group of every planned file is in exactly one task, and tasks have about the size asked for."""

from itertools import chain, pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort

from icefield.expr.bind.bound import TRUE
from icefield.lake import Lake
from icefield.parquet.read.read import table_reader
from icefield.parquet.read.task import FileTask
from icefield.plan.splits import Split, SplitSettings, pack_splits, split_file, split_settings
from icefield.table.table import Table
from icefield.types.metadata_columns import with_metadata_columns

ROWS = 4_000
sizes = st.integers(1, 500)
settings = st.builds(
    SplitSettings,
    target_bytes=st.integers(1, 300),
    lookback=st.integers(1, 4),
    open_file_bytes=st.integers(0, 50),
)


@given(st.lists(st.tuples(sizes, st.lists(sizes, max_size=5)), max_size=20), settings)
@effort(200)
def test_the_pieces_of_a_file_cover_it_once_whatever_they_are_packed_with(
    files: list[tuple[int, list[int]]], wanted: SplitSettings
) -> None:
    cut = [split_file(f"f{n}", size, offsets, wanted.target_bytes) for n, (size, offsets) in enumerate(files)]
    packed = list(pack_splits(chain.from_iterable(cut), wanted))
    assert all(packed)
    for number, (size, _) in enumerate(files):
        pieces = sorted((s for s in chain.from_iterable(packed) if s.location == f"f{number}"), key=lambda s: s.start)
        assert pieces[0].start == 0
        assert pieces[-1].end == size
        assert all(first.end == second.start for first, second in pairwise(pieces))


@given(st.lists(sizes, max_size=30), settings)
@effort(200)
def test_a_task_of_more_than_one_piece_is_within_its_size(lengths: list[int], wanted: SplitSettings) -> None:
    splits = [Split(f"f{n}", 0, length) for n, length in enumerate(lengths)]
    for task in pack_splits(splits, wanted):
        weight = sum(max(split.length, wanted.open_file_bytes) for split in task)
        assert len(task) == 1 or weight <= wanted.target_bytes


def test_a_large_file_is_cut_at_its_row_groups() -> None:
    assert split_file("f", 100, [4, 40, 80], 50) == [Split("f", 0, 40), Split("f", 40, 40), Split("f", 80, 20)]


@pytest.mark.parametrize("offsets", [None, [], [40, 4], [4, 4], [4, 100], [-1, 4]])
def test_offsets_that_cannot_be_true_are_not_used(offsets: list[int] | None) -> None:
    assert split_file("f", 100, offsets, 60) == [Split("f", 0, 60), Split("f", 60, 40)]


def test_a_small_file_is_one_piece() -> None:
    assert split_file("f", 100, [4, 40, 80], 100) == [Split("f", 0, 100)]


def test_neighbouring_pieces_of_a_file_are_one_again() -> None:
    pieces = [Split("f", 0, 10), Split("f", 10, 20), Split("g", 0, 5)]
    assert list(pack_splits(pieces, SplitSettings(100, 10, 0))) == [[Split("f", 0, 30), Split("g", 0, 5)]]


def test_small_files_count_as_much_as_opening_them_costs() -> None:
    files = [Split(f"f{n}", 0, 1) for n in range(6)]
    assert [len(task) for task in pack_splits(files, SplitSettings(30, 10, 10))] == [3, 3]


def test_the_fullest_task_is_done_when_too_many_are_open() -> None:
    files = [Split(f"f{n}", 0, length) for n, length in enumerate((6, 9, 7, 4))]
    packed = list(pack_splits(files, SplitSettings(10, 2, 0)))
    assert [[split.length for split in task] for task in packed] == [[9], [6, 4], [7]]


def test_the_settings_are_iceberg_s_properties() -> None:
    assert split_settings({}) == SplitSettings(128 * 1024**2, 10, 4 * 1024**2)
    given = {"read.split.target-size": "7", "read.split.planning-lookback": "3", "read.split.open-file-cost": "0"}
    assert split_settings(given) == SplitSettings(7, 3, 0)


@pytest.fixture
def table(memory_lake: Lake) -> Table:
    """One file of several row groups."""
    properties = {"read.split.target-size": "4000", "read.split.open-file-cost": "0"}
    properties |= {"write.parquet.row-group-size-bytes": "8000"}
    made = memory_lake.create_table("a.t", "id long", properties=properties)
    made.append(pa.table({"id": range(ROWS)}))
    return made


def test_a_scan_is_cut_at_the_offsets_that_the_manifest_has(table: Table, memory_lake: Lake) -> None:
    tasks = table.scan().splits()
    (size,) = table.scan().files()["file_size_in_bytes"].to_pylist()
    assert len(tasks) > 1
    assert sum(split.length for task in tasks for split in task) == size


def test_parts_of_a_file_hold_each_row_once_at_its_place(table: Table, memory_lake: Lake) -> None:
    schema, reader = with_metadata_columns(table.schema), table_reader(memory_lake.store, table.metadata)
    seen: list[tuple[int, int]] = []
    for split in chain.from_iterable(table.scan().splits()):
        part = FileTask(split.location, ROWS, 1, 0, start=split.start, end=split.end)
        batches = list(reader.read(part, schema, ["id", "_pos"], TRUE))
        assert sum(batch.num_rows for batch in batches) < ROWS
        seen += [(row["id"], row["_pos"]) for batch in batches for row in batch.to_pylist()]
    assert sorted(seen) == [(n, n) for n in range(ROWS)]
