"""Changes across commits whose snapshots expire before the change lands: rows are never lost or doubled."""

from collections.abc import Callable
from itertools import product

import pyarrow as pa
import pytest
from tests.commit.racing import race
from tests.effort import sample

from icefield.errors import ConcurrentChange
from icefield.lake import Lake
from icefield.table.table import Table

Rows = dict[int, int]


def row(key: int, n: int) -> pa.Table:
    return pa.table({"id": pa.array([key], pa.int64()), "n": pa.array([n], pa.int64())})


# What others do first: each is one commit that adds rows, or none.
RIVALS: dict[str, tuple[Callable[[Table], object], Rows]] = {
    "add the key": (lambda t: t.append(row(1, 100)), {1: 100}),
    "add another": (lambda t: t.append(row(2, 100)), {2: 100}),
    "compact": (lambda t: t.compact(options={"rewrite-all": "true"}), {}),
}
SEQUENCES = [
    *product(RIVALS),
    ("add the key", "add another"),
    ("add another", "compact"),
    ("add the key", "compact"),
    ("compact", "add the key"),
    ("compact", "compact"),
]
# What was planned before that: what it makes of the rows that the others have left.
CHANGES: dict[str, tuple[Callable[[Table], object], Callable[[Rows], Rows]]] = {
    "upsert": (lambda t: t.upsert(row(1, 5), on=["id"]), lambda rows: {**rows, 1: 5}),
    "merge-on-read upsert": (
        lambda t: t.upsert(row(1, 5), on=["id"], mode="merge-on-read"),
        lambda rows: {**rows, 1: 5},
    ),
    "equality upsert": (lambda t: t.upsert(row(1, 5), on=["id"], mode="equality"), lambda rows: {**rows, 1: 5}),
    "overwrite": (lambda t: t.overwrite(row(1, 5), where="id = 1"), lambda rows: {**rows, 1: 5}),
    "delete": (lambda t: t.delete("id in (1, 9)"), lambda rows: {k: n for k, n in rows.items() if k not in (1, 9)}),
    "update": (lambda t: t.update({"n": 5}, "id in (1, 9)"), lambda rows: rows | {k: 5 for k in rows if k in (1, 9)}),
}
BY_EXPIRY, BY_COMMITS = "expire", "max-snapshots"


def make(lake: Lake, *, is_empty: bool, trimmed: str) -> Table:
    properties = {"icefield.history.max-snapshots": "1"} if trimmed == BY_COMMITS else {}
    table = lake.create_table("a.t", "id long, n long", properties=properties)
    if not is_empty:
        table.append(row(9, 0))
    return table


def rows_of(table: Table) -> list[tuple[int, int]]:
    return sorted((each["id"], each["n"]) for each in table.scan().to_arrow().read_all().to_pylist())


CASES = [
    (change, rivals, is_empty, trimmed)
    for change, rivals, is_empty, trimmed in product(CHANGES, SEQUENCES, (True, False), (BY_EXPIRY, BY_COMMITS))
    if not (is_empty and change in ("delete", "update"))  # nothing is found, and nothing committed
]


@pytest.mark.every_case
@pytest.mark.parametrize(("change", "rivals", "is_empty", "trimmed"), sample(CASES, 30))
def test_a_change_lands_after_the_others_or_fails(
    memory_lake: Lake, change: str, rivals: tuple[str, ...], *, is_empty: bool, trimmed: str
) -> None:
    _check(memory_lake, change, rivals, is_empty=is_empty, trimmed=trimmed)


@pytest.mark.parametrize("change", [name for name in CHANGES if name not in ("equality upsert", "delete", "update")])
def test_a_row_of_an_expired_snapshot_that_an_empty_table_got_is_not_overlooked(memory_lake: Lake, change: str) -> None:
    assert not _check(memory_lake, change, ("add the key", "add another"), is_empty=True, trimmed=BY_EXPIRY)


@pytest.mark.parametrize("trimmed", [BY_EXPIRY, BY_COMMITS])
@pytest.mark.parametrize("change", CHANGES)
def test_the_expiry_of_the_snapshot_that_was_read_is_no_conflict(memory_lake: Lake, change: str, trimmed: str) -> None:
    for rivals in (("compact",), ("add another",)):
        assert _check(memory_lake, change, rivals, is_empty=False, trimmed=trimmed)
        memory_lake.drop_table("a.t")


def _check(lake: Lake, change: str, rivals: tuple[str, ...], *, is_empty: bool, trimmed: str) -> bool:
    """Make a change across what other writers commit; return whether it landed."""
    table = make(lake, is_empty=is_empty, trimmed=trimmed)

    def others() -> None:
        other = lake.table("a.t")
        for rival in rivals:
            RIVALS[rival][0](other)
        if trimmed == BY_EXPIRY and other.snapshots():
            other.expire_snapshots("2100-01-01T00:00:00Z", keep_last=1)

    run, make_of = CHANGES[change]
    before: Rows = {} if is_empty else {9: 0}
    for rival in rivals:
        before |= RIVALS[rival][1]
    try:
        race(lake, others, lambda: run(table))
        landed = True
    except ConcurrentChange:
        landed = False
    assert rows_of(table) == sorted((make_of(before) if landed else before).items())
    return landed
