"""A MERGE that meets the removal of a row that it matched: it fails, or its rows are those of one after the other."""

from collections.abc import Callable
from itertools import product

import pyarrow as pa
import pytest
from tests.effort import sample

from icefield.errors import ConcurrentChange
from icefield.lake import Lake
from icefield.table.merge import MergeBuilder
from icefield.table.table import Table

Rows = dict[int, int]

MATCHED: dict[str, Callable[[MergeBuilder], MergeBuilder]] = {
    "delete": lambda merge: merge.when_matched().delete(),
    "update": lambda merge: merge.when_matched().update({"n": "source.n"}),
    "either": lambda merge: merge.when_matched("source.n = 50").delete().when_matched().update({"n": "source.n"}),
}
# The row of key 5 is alone in its file, with a row that was deleted before, or with one that the merge matches, too.
FILES = {"alone": ((5,), ()), "with a deleted row": ((5, 6), (6,)), "with a row": ((5, 7), ())}
OTHERS: dict[str, Callable[[Table], object]] = {
    "delete": lambda table: table.delete("id = 5", mode="merge-on-read"),
    "copy-on-write delete": lambda table: table.delete("id = 5", mode="copy-on-write"),
    "merge": lambda table: table.merge(rows({5: 1}), on=["id"]).when_matched().delete().execute(),
    "overwrite": lambda table: table.overwrite(rows({}), where="id = 5"),
}
MODES = ("merge-on-read", "copy-on-write")
SOURCE = {5: 50, 7: 50, 9: 90}
CASES = sample(
    list(product(FILES, MATCHED, (True, False), OTHERS, MODES, ("serializable", "snapshot"), (2, 3))),
    2,
    lambda case: (case[0] == "with a row", *case[1:3]),
)


def rows(of: Rows) -> pa.Table:
    return pa.table({"id": pa.array(of.keys(), pa.int64()), "n": pa.array(of.values(), pa.int64())})


def read(table: Table) -> Rows:
    return {row["id"]: row["n"] for row in table.scan().to_arrow().read_all().to_pylist()}


def merged(before: Rows, matched: str, *, inserts: bool) -> Rows:
    after = dict(before)
    for key, n in SOURCE.items():
        if key not in before:
            after |= {key: n} if inserts else {}
        elif matched == "delete" or (matched == "either" and n == 50):
            del after[key]
        else:
            after[key] = n
    return after


@pytest.mark.parametrize(("layout", "matched", "inserts", "other", "mode", "isolation", "version"), CASES)
@pytest.mark.every_case
def test_a_merge_and_the_removal_of_a_row_that_it_matched(
    layout: str,
    matched: str,
    inserts: bool,
    other: str,
    mode: str,
    isolation: str,
    version: int,
    memory_lake: Lake,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    levels = {f"write.{verb}.isolation-level": isolation for verb in ("delete", "merge")}
    table = memory_lake.create_table("t.t", "id long, n long", properties=levels, format_version=version)
    keys, deleted = FILES[layout]
    table.append(rows(dict.fromkeys(keys, 0)))
    table.append(rows({1: 0}))
    for key in deleted:
        table.delete(f"id = {key}", mode="merge-on-read")
    without = {key: n for key, n in read(table).items() if key != 5}
    swap = memory_lake.catalog.swap

    def let_the_other_go_first(changes: object) -> None:
        monkeypatch.setattr(memory_lake.catalog, "swap", swap)
        OTHERS[other](memory_lake.table("t.t"))
        swap(changes)  # type: ignore[arg-type]

    merging = MATCHED[matched](table.merge(rows(SOURCE), on=["id"], mode=mode))
    if inserts:
        merging = merging.when_not_matched().insert_all()
    monkeypatch.setattr(memory_lake.catalog, "swap", let_the_other_go_first)
    try:
        merging.execute()
    except ConcurrentChange:
        assert read(table) == without
    else:
        assert read(table) == merged(without, matched, inserts=inserts)


def test_a_merge_does_not_drop_a_file_that_lost_a_row_before(
    memory_lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The merge drops the file of rows 5 and 7; the delete of row 5 before it wrote a position."""
    case = ("with a row", "delete", True, "delete", "merge-on-read", "snapshot", 2)
    test_a_merge_and_the_removal_of_a_row_that_it_matched(*case, memory_lake, monkeypatch)
    assert 9 not in read(memory_lake.table("t.t"))
