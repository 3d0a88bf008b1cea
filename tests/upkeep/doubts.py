"""Scenarios of catalogs and metadata that cannot be trusted, and bugs with which they do harm (`test_guards`)."""

from dataclasses import replace

import pyarrow as pa
import pytest
from tests.upkeep.fixtures import FUTURE, Yard, ids, rows

from icefield.backend import Backend
from icefield.catalog.memory import MemoryCatalog
from icefield.errors import CatalogError
from icefield.lake import Lake
from icefield.marks.files import FileKind
from icefield.model.names import parse_table_name
from icefield.model.statistics import StatisticsFile
from icefield.upkeep import orphans, sweep
from icefield.upkeep.owned import Ownership


def catalog_restored_from_a_copy(yard: Yard) -> None:
    """The catalog points at a version before two commits; their files are not orphan files."""
    table = yard.table()
    table.append(rows(1))
    old = yard.lake.catalog.entries()
    for n in (2, 3):
        table.append(rows(n))
    entries = yard.lake.catalog._entries  # type: ignore[attr-defined]
    new = dict(entries)
    entries.update(old)
    with pytest.raises(CatalogError, match="restored from a copy"):
        yard.lake_again().table("t.t").remove_orphans(unsafe=True)
    entries.update(new)
    assert ids(yard.lake_again().table("t.t")) == [1, 2, 3]


def catalog_deleted(yard: Yard) -> None:
    """The catalog is gone, and somebody registers a version of the table that is not the newest."""
    table = yard.table()
    table.append(rows(1))
    old = table.metadata_location
    for n in (2, 3):
        table.append(rows(n))
    lake = Lake(Backend(MemoryCatalog("another"), yard.store, yard.ambient), "memory://lake")
    lake.create_namespace("t")
    with pytest.raises(CatalogError, match="restored from a copy"):
        lake.register_table("t.t", old).remove_orphans(unsafe=True)
    assert ids(table) == [1, 2, 3]


def two_names_for_one_table(yard: Yard) -> None:
    table = yard.table()
    table.append(rows(1))
    entries = yard.lake.catalog._entries  # type: ignore[attr-defined]
    entries[parse_table_name("t.u")] = entries[parse_table_name("t.t")]
    table.append(rows(2))  # of which the other name does not know
    with pytest.raises(CatalogError, match="not their only owner"):
        yard.lake.table("t.u").remove_orphans(unsafe=True)
    assert ids(table) == [1, 2]


def table_inside_another(yard: Yard) -> None:
    """A client without guards has made a table in the directory of another one, which takes its files for orphans."""
    table, other = yard.table(), yard.table("t.inner")
    other.append(rows(2))
    inside = f"{table.location}/inner"
    moved = {file: file.replace(other.location, inside) for file in yard.files(other.location)}
    for old, new in moved.items():
        data = yard.store.read(old)
        yard.store.put_new(
            new, data.replace(other.location.encode(), inside.encode()) if old.endswith("json") else data
        )
    entries = yard.lake.catalog._entries  # type: ignore[attr-defined]
    name = parse_table_name("t.inner")
    entries[name] = replace(entries[name], pointer=moved[other.metadata_location])
    with pytest.raises(CatalogError, match="not their only owner"):
        table.remove_orphans(unsafe=True)
    assert set(moved.values()) <= yard.files()


def hostile_statistics(yard: Yard) -> None:
    """A table says that a file of another one has its statistics, and the snapshot expires."""
    one, two = yard.table("t.one"), yard.table("t.two")
    two.append(rows(2))
    (victim,) = two.scan().files()["file_path"].to_pylist()
    one.append(rows(1))
    snapshot_id = one.snapshots()[-1].snapshot_id
    one.set_statistics(StatisticsFile(snapshot_id, victim, 4, 2))
    one.overwrite(rows(3))
    one.expire_snapshots(FUTURE)
    assert ids(two) == [2]


def one_owner_taken_for_granted(patch: pytest.MonkeyPatch) -> None:
    for module in (orphans, sweep):
        patch.setattr(module, "check_identity", lambda *_: None)


def ownership_by_what_metadata_says(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ownership, "kinds", lambda _, locations: pa.array([int(FileKind.DATA)] * len(locations), pa.int8()))
