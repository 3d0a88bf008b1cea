"""Marks and audits: which are found, and how long audits are kept."""

from pathlib import Path

import pytest
from tests.upkeep.fixtures import FUTURE, Yard, make_yard, rows

from icefield import connect
from icefield.errors import StorageError
from icefield.leases.folder import gc_folder
from icefield.marks import mark
from icefield.marks.files import NO_TABLE_FILES
from icefield.marks.mark import list_marks, read_audits
from icefield.table.table import Table

DAY_S = 24 * 3600
FEW_DAYS = str(3 * DAY_S * 1000)


def audits(yard: Yard, table: Table) -> list[str]:
    return sorted(file.location for file in yard.store.list(f"{gc_folder(table.metadata)}/audit"))


def expire(table: Table) -> None:
    table.overwrite(rows(1))
    assert table.expire_snapshots(FUTURE).swept is not None


def test_audits_go_when_they_are_older_than_the_table_keeps_them() -> None:
    yard = make_yard()
    table = yard.table(icefield__gc__audit_retention_ms=FEW_DAYS)
    table.append(rows(0))
    expire(table)
    first = audits(yard, table)
    assert len(first) == 2
    yard.ambient.sleep(2 * DAY_S)
    expire(table)
    both = audits(yard, table)
    assert len(both) == 4
    table.sweep()
    assert audits(yard, table) == both
    yard.ambient.sleep(DAY_S)
    assert table.sweep(dry_run=True).files_deleted == 0
    assert audits(yard, table) == both
    table.sweep()
    assert audits(yard, table) == sorted(set(both) - set(first))


def test_a_commit_that_looks_removes_old_audits_too() -> None:
    yard = make_yard()
    table = yard.table(icefield__gc__audit_retention_ms=FEW_DAYS, write__metadata__previous_versions_max="1")
    for n in range(8):
        table.set_properties({"n": str(n)})
    first = audits(yard, table)
    assert len(first) == 2
    yard.ambient.sleep(3 * DAY_S)
    for n in range(8):
        table.set_properties({"n": str(n)})
    assert set(first).isdisjoint(audits(yard, table))


def test_a_removal_that_stops_in_between_is_finished_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record that a sweep has finished goes last: without it the audit would be one that is not finished."""
    yard = make_yard()
    table = yard.table(icefield__gc__audit_retention_ms="0")
    table.append(rows(0))
    real, is_failing = yard.store.delete, [True]

    def delete(location: str) -> None:
        if location.endswith(".done") and is_failing[0]:
            raise StorageError("no")
        real(location)

    monkeypatch.setattr(yard.store, "delete", delete)
    expire(table)
    with pytest.raises(StorageError, match="no"):
        table.sweep()
    assert [each.endswith(".done") for each in audits(yard, table)] == [True]
    is_failing[0] = False
    table.sweep()
    assert audits(yard, table) == []


def test_an_audit_that_is_not_finished_is_kept() -> None:
    yard = make_yard()
    table = yard.table(icefield__gc__audit_retention_ms="0")
    place = f"{gc_folder(table.metadata)}/audit/expired-{'0' * 32}/{'1' * 32}.parquet"
    yard.store.put_new(place, b"")
    table.sweep()
    assert audits(yard, table) == [place]


def test_a_look_at_one_mark_lists_only_its_own_audits(monkeypatch: pytest.MonkeyPatch) -> None:
    yard = make_yard()
    table = yard.table()
    table.append(rows(0))
    for _ in range(3):
        expire(table)
    owner, folder = table.metadata.table_uuid, gc_folder(table.metadata)
    mark.write_mark(yard.store, yard.ambient, folder, owner, mark.ORPHAN, NO_TABLE_FILES)
    listed, real = list[str](), yard.store.list

    def listing(prefix: str) -> object:
        found = list(real(prefix))
        listed.extend(file.location for file in found)
        return iter(found)

    (open_mark,) = list_marks(yard.store, [folder])
    monkeypatch.setattr(yard.store, "list", listing)
    assert read_audits(yard.store, open_mark, owner)[0] == []
    assert listed == []
    assert len(audits(yard, table)) == 6


def test_no_empty_directory_is_left(tmp_path: Path) -> None:
    at_once = {"icefield.gc.grace-ms": "0", "icefield.gc.foreign-readers": "false"}
    with connect(str(tmp_path), durable=False) as lake:
        properties = {**at_once, "icefield.gc.audit-retention-ms": "0"}
        table = lake.create_table("t.t", "id long, n long", properties=properties)
        table.append(rows(0))
        expire(table)
        table.sweep()
        assert [path for path in tmp_path.rglob("gc/audit/*") if path.is_dir()] == []
