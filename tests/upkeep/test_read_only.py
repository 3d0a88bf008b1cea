"""A dry run changes nothing, so it works where nothing can be written; also where changes need a lease."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.upkeep.fixtures import FUTURE, Yard, make_yard, rows

from icefield.backend import Backend
from icefield.errors import StorageError
from icefield.lake import Lake
from icefield.table.table import Table

REFUSAL = "the store is read-only"


class ReadOnly:
    """A store that nobody may write to."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        if name in ("put_new", "open_new", "delete", "delete_many"):
            return _refuse
        return getattr(self._real, name)


def _refuse(*_: object) -> None:
    raise StorageError(REFUSAL)


def read_only(yard: Yard) -> Lake:
    store: Any = ReadOnly(yard.store)
    return Lake(Backend(yard.lake.catalog, store, yard.ambient), "memory://lake")


def fill(yard: Yard, **properties: str) -> Table:
    """A table with something to do for every verb, and a dropped one."""
    table = yard.table(write__delete__mode="merge-on-read", **properties)
    for n in range(10):
        table.append(rows(n))
    table.delete("id = 1")
    table.delete("id = 2")
    table.expire_snapshots(FUTURE, keep_last=3)
    table.overwrite(rows(*range(5)), "id < 5")
    yard.store.put_new(f"{table.location}/data/00000-0-{'a' * 32}.parquet", b"orphan")
    yard.table("t.dropped", icefield__gc__undrop_ms="0")
    yard.lake.drop_table("t.dropped", purge=True)
    return table


DRY_RUNS: dict[str, Callable[[Lake, Table], object]] = {
    "expire": lambda _, table: table.expire_snapshots(FUTURE, dry_run=True),
    "orphans": lambda _, table: table.remove_orphans(dry_run=True, unsafe=True),
    "sweep": lambda _, table: table.sweep(dry_run=True),
    "compact": lambda _, table: table.compact(dry_run=True),
    "rewrite-deletes": lambda _, table: table.rewrite_deletes(dry_run=True),
    "rewrite-manifests": lambda _, table: table.rewrite_manifests(dry_run=True),
    "forget": lambda _, table: table.forget("id = 7", dry_run=True),
    "delete": lambda _, table: table.delete("id = 7", dry_run=True),
    "update": lambda _, table: table.update({"n": 1}, "id = 7", dry_run=True),
    "upsert": lambda _, table: table.upsert(rows(7, 70), on=["id"], dry_run=True),
    "fsck": lambda _, table: table.fsck(repair=True, dry_run=True),
    "report": lambda lake, _: [lake.report(), [each.error for each in lake.report().tables]],
    "upkeep": lambda lake, _: [step for table in lake.upkeep(dry_run=True).tables for step in table.steps],
    "leases": lambda _, table: table.leases(),
    "purge": lambda lake, _: lake.purge_dropped(dry_run=True),
}
KEPT = {"icefield__gc__grace_ms": "60000"}
LONG = {"icefield__gc__grace_ms": str(30 * 24 * 3600 * 1000), "icefield__gc__orphan_age_ms": "864000000"}


@pytest.mark.every_case
@pytest.mark.parametrize("properties", [{}, KEPT, LONG], ids=["no grace", "short", "long"])
@pytest.mark.parametrize("verb", DRY_RUNS)
def test_a_dry_run_works_where_nothing_can_be_written(verb: str, properties: dict[str, str]) -> None:
    yard, other = make_yard(), make_yard()
    fill(yard, **properties)
    writable = fill(other, **properties)
    lake = read_only(yard)
    before = {file.location: file.modified_ms for file in yard.store.list("memory://lake")}
    found = DRY_RUNS[verb](lake, lake.table("t.t"))
    assert {file.location: file.modified_ms for file in yard.store.list("memory://lake")} == before
    assert without_chance(found) == without_chance(DRY_RUNS[verb](other.lake, writable))


def without_chance(found: object) -> str:
    """The result without ids and times."""
    return re.sub(r"\d{6,}|[0-9a-f]{8}[0-9a-f-]{8,}|\d+\.\d+|0x\w+", "#", str(found))


CHANGES: dict[str, Callable[[Table], object]] = {
    "append": lambda table: table.append(rows(99)),
    "delete": lambda table: table.delete("id = 7"),
    "upsert": lambda table: table.upsert(rows(7), on=["id"]),
    "compact": lambda table: table.compact(),
    "properties": lambda table: table.set_properties({"a": "b"}),
}


@pytest.mark.parametrize("properties", [{}, LONG], ids=["no grace", "long"])
@pytest.mark.parametrize("verb", CHANGES)
def test_a_change_says_that_nothing_can_be_written(verb: str, properties: dict[str, str]) -> None:
    yard = make_yard()
    fill(yard, **properties)
    with pytest.raises(StorageError, match=REFUSAL):
        CHANGES[verb](read_only(yard).table("t.t"))


def test_a_change_without_its_lease_names_no_file() -> None:
    """A store that refuses only the lease: the change would write files that nobody protects."""
    yard = make_yard()
    fill(yard)
    real, is_failing = yard.store.put_new, [True]

    def put_new(location: str, data: bytes) -> None:
        if "/gc/leases/" in location and is_failing[0]:
            raise StorageError(REFUSAL)
        real(location, data)

    yard.store.put_new = put_new  # type: ignore[method-assign]
    before = yard.files()
    for change in CHANGES.values():
        with pytest.raises(StorageError, match=REFUSAL):
            change(yard.lake.table("t.t"))
    assert yard.files() == before
    is_failing[0] = False
    yard.lake.table("t.t").append(rows(99))
