"""Manifests are rewritten clustered by partition, without deleted entries, at a size that follows the table."""

from collections.abc import Mapping
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.commit.racing import files_of, race, reachable
from tests.effort import effort

import icefield
from icefield.codec.manifest.rows import Manifests
from icefield.commit.snapshot.merge_manifests import LEAST_TARGET_BYTES, target_bytes
from icefield.engine.rows import bind_filter
from icefield.lake import Lake
from icefield.plan.manifest_list import load_manifests, prune_manifests
from icefield.table.table import Table

NEVER_ON_COMMIT = {"commit.manifest-merge.enabled": "false"}
SMALL = {"commit.manifest.target-size-bytes": "12000"}


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


def fill(
    lake: Lake,
    version: int = 3,
    width: int = 10,
    partition_by: tuple[str, ...] = ("p", "q"),
    more: Mapping[str, str] | None = None,
) -> Table:
    """Write one file for each of width x width partitions, in random order, ten in each commit."""
    table = lake.create_table(
        "t.t",
        "id long, p int, q string",
        partition_by=partition_by,
        properties=NEVER_ON_COMMIT | dict(more or {}),
        format_version=version,
    )
    cells = [(p, q) for p in range(width) for q in range(width)]
    Random(1).shuffle(cells)
    for start in range(0, len(cells), 10):
        some = cells[start : start + 10]
        table.append(
            pa.table(
                {
                    "id": pa.array(range(start, start + len(some)), pa.int64()),
                    "p": pa.array([p for p, _ in some], pa.int32()),
                    "q": [f"q{q}" for _, q in some],
                }
            )
        )
    return table


def manifests_of(table: Table) -> Manifests:
    found = load_manifests(table._context, table.metadata.current_snapshot)
    assert found is not None
    return found


def opened_bytes(table: Table, where: str) -> int:
    """Return the size of the manifests that a query opens."""
    found, metadata = manifests_of(table), table.metadata
    keep = prune_manifests(found, bind_filter(where, metadata.schema), metadata, metadata.schema)
    return sum(found.choose(keep).manifest_length.to_pylist())


def rows(table: Table) -> list[str]:
    lineage = ["_row_id", "_last_updated_sequence_number"] if table.metadata.has_row_ids else []
    return sorted(map(repr, table.scan(select=["id", "p", "q", *lineage]).to_arrow().read_all().to_pylist()))


def entries(table: Table) -> list[str]:
    """Return what must be kept of each live file."""
    kept = (
        ["file_path", "record_count", "first_row_id"] if table.metadata.has_row_ids else ["file_path", "record_count"]
    )
    found = table.inspect("entries").to_arrow().read_all().to_pylist()
    return sorted(
        repr((e["snapshot_id"], e["sequence_number"], e["file_sequence_number"], [e["data_file"][k] for k in kept]))
        for e in found
        if e["status"] != 2
    )


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_query_for_one_partition_opens_less_than_before_and_files_are_the_same(lake: Lake, version: int) -> None:
    table = fill(lake, version, more=SMALL)
    queries = ["p = 3 and q = 'q4'", "p = 7 and q = 'q0'", "p = 3", "q = 'q4'"]
    before = {query: opened_bytes(table, query) for query in queries}
    kept, held = entries(table), rows(table)
    done = table.rewrite_manifests()
    assert done is not None
    after = {query: opened_bytes(table, query) for query in queries}
    assert all(after[query] <= before[query] for query in queries)
    assert all(after[query] < before[query] / 2 for query in queries[:2])
    assert (entries(table), rows(table)) == (kept, held)
    assert table.rewrite_manifests() is None


@pytest.mark.parametrize("partition_by", [(), ("p",), ("bucket(4, id)", "p"), ("truncate(1, q)",)])
def test_a_second_rewrite_has_nothing_to_do(lake: Lake, partition_by: tuple[str, ...]) -> None:
    table = fill(lake, partition_by=partition_by, more=SMALL)
    held = rows(table)
    assert table.rewrite_manifests() is not None
    assert table.rewrite_manifests() is None
    table.append(pa.table({"id": [1000], "p": pa.array([None], pa.int32()), "q": [None]}))
    table.rewrite_manifests()  # unless there is no other small one
    assert table.rewrite_manifests() is None
    assert len(rows(table)) == len(held) + 1


def test_entries_of_deleted_files_are_dropped(lake: Lake) -> None:
    table = fill(lake)
    table.rewrite_manifests()
    table.delete("p = 3")
    assert sum(manifests_of(table).deleted_files_count.to_pylist()) == 10
    table.rewrite_manifests()
    found = manifests_of(table)
    assert (sum(found.deleted_files_count.to_pylist()), sum(found.existing_files_count.to_pylist())) == (0, 90)
    table.delete("TRUE")
    done = table.rewrite_manifests()
    assert done is None or manifests_of(table).num_rows == 0
    assert table.count() == 0


def test_delete_manifests_are_rewritten_too(lake: Lake) -> None:
    table = fill(lake, 2)
    for number in range(5):
        table.delete(f"id = {number}", mode="merge-on-read")
    table.upsert(
        pa.table({"id": [50], "p": pa.array([1], pa.int32()), "q": ["x"]}), on=["id", "p", "q"], mode="equality"
    )
    held = rows(table)
    table.rewrite_manifests()
    contents = manifests_of(table).content.to_pylist()
    assert (contents.count(0), contents.count(1)) == (1, 1) or contents.count(1) == 1
    assert rows(table) == held


def test_specs_stay_apart(lake: Lake) -> None:
    table = fill(lake)
    with table.evolve() as change:
        change.drop_partition_field("q")
    for number in range(3):
        table.append(pa.table({"id": [2000 + number], "p": pa.array([1], pa.int32()), "q": ["x"]}))
    held = rows(table)
    table.rewrite_manifests()
    assert set(manifests_of(table).partition_spec_id.to_pylist()) == {0, 1}
    assert rows(table) == held


def test_a_rewrite_is_repeated_on_every_base(lake: Lake) -> None:
    table = fill(lake)
    race(lake, lambda: lake.table("t.t").delete("p = 3"), table.rewrite_manifests)
    assert table.count() == 90
    assert files_of(lake) == reachable(table)


def test_a_dry_run_writes_nothing(lake: Lake) -> None:
    table = fill(lake)
    before = files_of(lake)
    would = table.rewrite_manifests(dry_run=True)
    assert would is not None
    assert files_of(lake) == before
    done = table.rewrite_manifests()
    assert done is not None
    keys = ("manifests-created", "manifests-replaced", "manifests-kept")
    assert [would.summary[key] for key in keys] == [done.summary[key] for key in keys]
    assert table.rewrite_manifests(dry_run=True) is None


def test_commits_cluster_small_manifests_by_partition(lake: Lake) -> None:
    table = fill(lake, width=20)
    before = manifests_of(table)
    target = 2 * max(before.manifest_length.to_pylist()) + 2
    few = {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "8"}
    table.set_properties(few | {"commit.manifest.target-size-bytes": str(target)})
    table.append(pa.table({"id": [1000], "p": pa.array([3], pa.int32()), "q": ["q4"]}))
    assert 2 < manifests_of(table).num_rows < before.num_rows
    assert opened_bytes(table, "p = 17 and q = 'q4'") < sum(manifests_of(table).manifest_length.to_pylist()) / 2
    assert len(rows(table)) == 401


def test_the_target_size_follows_the_table_unless_it_is_set(lake: Lake) -> None:
    table = lake.create_table("t.t", "id long")
    sizes = [target_bytes(total, table.metadata) for total in (0, 10**6, 10**8, 10**12)]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (LEAST_TARGET_BYTES, 8 * 1024 * 1024)
    table.set_properties({"commit.manifest.target-size-bytes": "777"})
    assert target_bytes(10**8, table.metadata) == 777


@effort(20)
@given(st.lists(st.tuples(st.integers(0, 5) | st.none(), st.sampled_from(["a", "b", None])), min_size=1, max_size=30))
def test_no_file_is_lost_or_listed_twice(cells: list[tuple[int | None, str | None]]) -> None:
    lake = icefield.connect("memory:")
    table = lake.create_table(
        "t.t", "id long, p int, q string", partition_by=["p", "q"], properties=NEVER_ON_COMMIT | SMALL
    )
    for number, (p, q) in enumerate(cells):
        table.append(pa.table({"id": [number], "p": pa.array([p], pa.int32()), "q": pa.array([q], pa.string())}))
    kept = entries(table)
    table.rewrite_manifests()
    assert entries(table) == kept
    assert table.rewrite_manifests() is None
