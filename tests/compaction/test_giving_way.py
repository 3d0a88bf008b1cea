"""Nobody's change fails for compaction's sake, and compaction fails for nobody's.

Every change is planned, then another writer compacts, then the change commits: by the row map of the compaction, or by
running again if there is none. The rows must be those of the change alone.
"""

from collections.abc import Callable
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.commit.racing import files_of, race, reachable
from tests.effort import seeds

import icefield
from icefield.commit.snapshot.moved_rows import MovedRows
from icefield.compaction.result import CompactionResult
from icefield.errors import ConcurrentChange, RowsMoved
from icefield.lake import Lake
from icefield.model.snapshot import Operation
from icefield.table.table import Table

Row = tuple[int, str, int]
ROWS: list[Row] = [(i, "a" if i < 20 else "b", 0) for i in range(24)]
MODES = ("copy-on-write", "merge-on-read")


def arrow(*found: Row) -> pa.Table:
    ids, parts, values = zip(*found, strict=True) if found else ((), (), ())
    return pa.table(
        {"id": pa.array(ids, pa.int64()), "p": pa.array(parts, pa.string()), "n": pa.array(values, pa.int64())}
    )


def rows_of(table: Table) -> list[Row]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().read_all().to_pylist())


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


def make(lake: Lake, version: int = 3, mode: str = "merge-on-read", **more: str) -> Table:
    """Four files of five rows in one partition, with a deleted row each, and one file in another partition."""
    modes = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")} if version > 1 else {}
    table = lake.create_table(
        "t.t",
        "id long, p string, n long",
        partition_by=["p"],
        order_by=["n", "id"],
        format_version=version,
        properties=modes | more,
    )
    for start in range(0, 20, 4):
        table.append(arrow(*ROWS[start : start + 4], (1000 + start, "a", 0)))
    table.append(arrow(*ROWS[20:]))
    table.delete("id >= 1000")
    return table


def file_of(table: Table, key: int) -> list[str]:
    found: list[str] = table.scan(f"id = {key}", ["_file"]).to_arrow().read_all()["_file"].to_pylist()
    return found


def merge(table: Table) -> object:
    merging = table.merge(arrow((2, "a", 7), (50, "a", 7)), on=["id"]).when_matched().update({"n": "source.n"})
    return merging.when_not_matched().insert_all().execute()


def without(*keys: int) -> list[Row]:
    return [row for row in ROWS if row[0] not in keys]


UPDATED = sorted([*without(2), (2, "a", 7)])
CHANGES: dict[str, tuple[Callable[[Table], object], list[Row]]] = {
    "delete": (lambda t: t.delete("id in (2, 9, 21)"), without(2, 9, 21)),
    "delete a whole file": (lambda t: t.delete("id >= 4 and id < 8"), without(4, 5, 6, 7)),
    "delete all": (lambda t: t.delete("TRUE"), []),
    "update": (lambda t: t.update({"n": 7}, "id = 2"), UPDATED),
    "merge": (merge, sorted([*UPDATED, (50, "a", 7)])),
    "upsert": (lambda t: t.upsert(arrow((2, "a", 7)), on=["id"]), UPDATED),
    "equality upsert": (lambda t: t.upsert(arrow((2, "a", 7)), on=["id"], mode="equality"), UPDATED),
    "overwrite": (lambda t: t.overwrite(arrow((2, "a", 7)), where="id = 2"), UPDATED),
    "overwrite a stream": (lambda t: t.overwrite(arrow((2, "a", 7)).to_reader(), where="id = 2"), UPDATED),
    "overwrite all": (lambda t: t.overwrite(arrow((2, "a", 7))), [(2, "a", 7)]),
    "overwrite partitions": (lambda t: t.overwrite_partitions(arrow((2, "a", 7))), [(2, "a", 7), *ROWS[20:]]),
    "delete files": (lambda t: t.delete_files(file_of(t, 5)), without(4, 5, 6, 7)),
    "append": (lambda t: t.append(arrow((50, "a", 7))), sorted([*ROWS, (50, "a", 7)])),
}
NEEDS_MAP = ("overwrite a stream", "delete files")
REWRITES: dict[str, Callable[[Table], object]] = {
    "compact": lambda t: t.compact(),
    "compact twice": lambda t: (t.compact(), t.append(arrow((99, "z", 0))), t.compact(), t.delete("id = 99")),
    "rewrite manifests": lambda t: t.rewrite_manifests(),
    "sort": lambda t: t.compact(strategy="sort"),
    "cluster": lambda t: t.compact(cluster_by=["n", "id"]),
}
VERSIONS = [(1, "copy-on-write"), *((version, mode) for version in (2, 3) for mode in MODES)]


def lands(change: str, version: int, rewrite: str) -> bool:
    """Return whether a change can be made after a rewrite; the tests below have those that cannot."""
    if version == 1 and change in ("equality upsert", *NEEDS_MAP):
        return False  # it has no delete files
    if rewrite in ("sort", "cluster") and change in NEEDS_MAP:
        return False  # it is not known where rows went
    # The append in between is a conflict.
    return not (rewrite == "compact twice" and change in ("delete all", "overwrite all"))


@pytest.mark.parametrize(
    ("change", "version", "mode", "rewrite"),
    [
        (change, version, mode, rewrite)
        for change, (version, mode), rewrite in product(CHANGES, VERSIONS, REWRITES)
        if lands(change, version, rewrite)
    ],
)
def test_a_change_lands_after_a_rewrite(lake: Lake, change: str, version: int, mode: str, rewrite: str) -> None:
    table = make(lake, version, mode)
    run, expected = CHANGES[change]
    race(lake, lambda: REWRITES[rewrite](lake.table("t.t")), lambda: run(table))
    assert rows_of(table) == expected
    assert files_of(lake) == reachable(table), "files are left that nothing refers to"
    # The result is one that can be compacted and changed again.
    table.compact()
    assert rows_of(table) == expected


@pytest.mark.parametrize("change", NEEDS_MAP)
def test_a_change_that_cannot_run_again_says_so_if_rows_were_sorted(lake: Lake, change: str) -> None:
    table = make(lake)
    run, _ = CHANGES[change]
    with pytest.raises(RowsMoved, match="removed or rewritten"):
        race(lake, lambda: lake.table("t.t").compact(strategy="sort"), lambda: run(table))
    assert rows_of(table) == ROWS


@pytest.mark.parametrize("change", [name for name in CHANGES if name not in NEEDS_MAP])
def test_without_a_row_map_a_change_runs_again(lake: Lake, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icefield.commit.actions.rewrite.encode_row_map", lambda _: None)
    table = make(lake)
    run, expected = CHANGES[change]
    race(lake, lambda: lake.table("t.t").compact(), lambda: run(table))
    assert rows_of(table) == expected


def test_with_a_row_map_no_row_is_read_again(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(lake)
    runs = []
    begin = Table._begin

    def count(table: Table, *args: Any, **more: Any) -> Any:
        runs.append(1)
        return begin(table, *args, **more)

    monkeypatch.setattr(Table, "_begin", count)
    race(lake, lambda: lake.table("t.t").compact(), lambda: table.delete("id = 2"))
    assert (len(runs), rows_of(table)) == (2, without(2)), "one for the delete, one for the compaction"


@pytest.mark.parametrize("change", ["delete", "update", "merge", "overwrite", "delete a whole file"])
@pytest.mark.parametrize("mode", MODES)
def test_a_transaction_lands_after_a_compaction(lake: Lake, change: str, mode: str) -> None:
    table = make(lake, mode=mode)
    run, expected = CHANGES[change]
    with lake.transaction() as tx:
        run(tx.table("t.t"))
        tx.table("t.t").delete("id = 3")
        lake.table("t.t").compact()
    assert rows_of(table) == [row for row in expected if row[0] != 3]


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("change", ["delete", "update", "merge", "upsert", "overwrite"])
def test_a_real_conflict_stays_one_across_a_compaction(
    lake: Lake, change: str, when: str, mode: str, version: int
) -> None:
    """The other writer changes row 2 before or after it compacts: the change of row 2 must not win silently."""
    table = make(lake, version, mode)
    run, _ = CHANGES[change]
    changed = sorted([*without(2), (2, "a", 9)])

    def others() -> None:
        other = lake.table("t.t")
        if when == "after":
            other.compact()
        other.update({"n": 9}, "id = 2")
        if when == "before":
            other.compact()

    with pytest.raises(ConcurrentChange):
        race(lake, others, lambda: run(table))
    assert rows_of(table) == changed


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_delete_of_another_row_across_a_compaction_is_not_a_conflict(lake: Lake, when: str, version: int) -> None:
    table = make(lake, version)

    def others() -> None:
        other = lake.table("t.t")
        if when == "after":
            other.compact()
        other.delete("id in (1, 20)")
        if when == "before":
            other.compact()

    race(lake, others, lambda: table.delete("id in (2, 9, 21)"))
    assert rows_of(table) == without(1, 2, 9, 20, 21)


def test_a_copied_file_does_not_bring_back_a_row_that_was_deleted_after_the_compaction(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copy-on-write of file (0, 1, 2, 3) without row 2, while row 1 is deleted where compaction put it."""

    def others() -> None:
        other = lake.table("t.t")
        other.compact()
        other.delete("id = 1", mode="merge-on-read")

    table = make(lake, mode="copy-on-write")
    with pytest.raises(ConcurrentChange, match="concurrently deleted or changed"):
        race(lake, others, lambda: table.delete("id = 2"))
    assert rows_of(table) == without(1)


@pytest.mark.parametrize("version", [2, 3])
def test_a_copied_file_keeps_the_deletes_of_other_rows_in_the_compacted_file(lake: Lake, version: int) -> None:
    """Copy-on-write of file (0, 1, 2, 3) without row 2, while row 9 of another file is deleted after the compaction."""

    def others() -> None:
        other = lake.table("t.t")
        other.compact()
        other.delete("id = 9", mode="merge-on-read")

    table = make(lake, version, "copy-on-write")
    race(lake, others, lambda: table.delete("id = 2"))
    assert rows_of(table) == without(2, 9)


def test_what_the_check_of_deleted_rows_prevents(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def others() -> None:
        other = lake.table("t.t")
        other.compact()
        other.delete("id = 1", mode="merge-on-read")

    table = make(lake, mode="copy-on-write")
    monkeypatch.setattr(np, "intersect1d", lambda *_: np.zeros(0))
    race(lake, others, lambda: table.delete("id = 2"))
    assert rows_of(table) == without(2), "the row that another writer deleted is back"


def test_what_the_row_map_prevents(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions of the old file, taken for those of the new one, delete other rows."""
    monkeypatch.setattr(MovedRows, "trace", lambda self, source, at: {self.targets[0]: (np.arange(len(at)), at)})
    table = make(lake)
    race(lake, lambda: lake.table("t.t").compact(), lambda: table.delete("id = 9"))
    assert rows_of(table) != without(9)


REPLACED = "id long, p string, n long, more string"


@pytest.mark.parametrize("rewrite", REWRITES)
def test_a_table_is_replaced_after_a_rewrite(lake: Lake, rewrite: str) -> None:
    table = make(lake)
    if rewrite == "compact twice":
        with pytest.raises(ConcurrentChange):
            race(lake, lambda: REWRITES[rewrite](lake.table("t.t")), lambda: table.replace(REPLACED))
        return
    race(lake, lambda: REWRITES[rewrite](lake.table("t.t")), lambda: table.replace(REPLACED))
    assert (table.count(), len(table.schema.fields)) == (0, 4)


@pytest.mark.parametrize(
    ("change", "version", "mode"),
    [
        (change, version, mode)
        for change, (version, mode) in product([*CHANGES, "replace", "evolve", "roll back"], VERSIONS)
        if (change, version) != ("equality upsert", 1)  # which has no delete files
    ],
)
@pytest.mark.parametrize("strategy", ["bin-pack", "sort"])
def test_compaction_gives_way(lake: Lake, change: str, version: int, mode: str, strategy: str) -> None:
    table = make(lake, version, mode)

    def evolve() -> None:
        with lake.table("t.t").evolve() as evolving:
            evolving.drop_partition_field("p") if version > 1 else evolving.add_column("more", "int")

    others: dict[str, Callable[[], object]] = {
        "replace": lambda: lake.table("t.t").replace("id long, p string, n long", partition_by=["p"]),
        "evolve": evolve,
        "roll back": lambda: lake.table("t.t").rollback(lake.table("t.t").snapshots()[0].snapshot_id),
    }
    own = others.get(change) or (lambda: CHANGES[change][0](lake.table("t.t")))
    done: list[CompactionResult] = []
    race(lake, own, lambda: done.append(table.compact(strategy=strategy)))
    found = lake.table("t.t").scan(select=["id", "p", "n"]).to_arrow().read_all().to_pylist()
    first = [*ROWS[:4], (1000, "a", 0)]
    expected = {"replace": [], "evolve": ROWS, "roll back": first}.get(change) or CHANGES.get(change, (None, []))[1]
    assert sorted(tuple(row.values()) for row in found) == expected
    assert done[0].groups_left_out == 0 or change == "replace"
    data = {path for path in files_of(lake) if "/data/" in path}
    assert data <= reachable(table), "data files of groups that were left out remain"


def test_groups_that_others_left_alone_are_committed(lake: Lake) -> None:
    table = make(lake)
    table.append(arrow((30, "b", 0)))
    done: list[CompactionResult] = []
    race(
        lake,
        lambda: lake.table("t.t").overwrite(arrow((2, "a", 7)), where="id = 2"),
        lambda: done.append(table.compact()),
    )
    assert rows_of(table) == sorted([*UPDATED, (30, "b", 0)])
    replaced = [s for s in table.snapshots() if s.operation == Operation.REPLACE]
    assert (len(replaced), done[0].groups_done) == (2, 2), "the group of b, and that of a on the second try"
    assert {path for path in files_of(lake) if "/data/" in path} <= reachable(table)


@pytest.mark.parametrize("seed", seeds(12, 300))
def test_random_races_end_as_if_in_some_order(seed: int) -> None:
    """Deletes and updates of random rows, planned before several rewrites and deletes of other rows."""
    rng = Random(seed)
    lake = icefield.connect("memory:")
    mode = rng.choice(MODES)
    table = make(lake, rng.choice((2, 3)), mode, **{"write.delete.granularity": rng.choice(("file", "partition"))})
    mine = set(rng.sample(range(24), rng.randint(1, 6)))
    theirs = set(rng.sample(sorted(set(range(24)) - mine), rng.randint(0, 4)))
    deletes = rng.random() < 0.5

    def others() -> None:
        other = lake.table("t.t")
        left = sorted(theirs)
        for _ in range(rng.randint(1, 4)):
            step = rng.random()
            if step < 0.5:
                other.compact()
            elif step < 0.6:
                other.compact(strategy="sort")
            elif step < 0.7:
                other.rewrite_manifests()
            elif left:
                other.delete(f"id = {left.pop()}", mode="merge-on-read")
        for key in left:
            other.delete(f"id = {key}", mode="merge-on-read")

    keys = ", ".join(map(str, sorted(mine)))
    after_others = without(*theirs)
    changed = [row for row in after_others if row[0] not in mine]
    expected = changed if deletes else sorted([*changed, *((*row[:2], 5) for row in ROWS if row[0] in mine)])
    conflict: ConcurrentChange | None = None
    try:
        race(
            lake,
            others,
            lambda: table.delete(f"id in ({keys})") if deletes else table.update({"n": 5}, f"id in ({keys})"),
        )
    except ConcurrentChange as error:
        conflict, expected = error, after_others
    # A file that is copied must not have lost other rows; positions of other rows never conflict.
    assert conflict is None or (mode == "copy-on-write" and theirs and not isinstance(conflict, RowsMoved))
    assert rows_of(table) == sorted(expected)
    assert files_of(lake) >= reachable(table)
