"""A healthy table has no finding: of every format version, after every verb, and of other writers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.fsck.damage import edit_metadata, make_table, open_lake
from tests.golden.expected import Expected
from tests.golden.reading import EXPECTED, cases
from tests.golden.store import GoldenStore

import icefield
from icefield.ambient import SystemAmbient
from icefield.backend import Backend
from icefield.catalog.catalog import PointerSwap
from icefield.catalog.memory import MemoryCatalog
from icefield.dml.head import LiveHead
from icefield.fsck.check import FsckOptions, fsck_table
from icefield.fsck.finding import Check
from icefield.fsck.stored import FEW_FILES
from icefield.lake import Lake
from icefield.model.names import TableName
from icefield.table.table import Table

# What is in a table that compaction of Iceberg Java left so.
HARMLESS_OF_JAVA = {"java_deletes_after_compaction": {Check.DANGLING_DELETES}}


def rows(*ids: int) -> pa.Table:
    names = [f"text {each}" for each in ids]
    return pa.table({"id": pa.array(ids, pa.int64()), "p": ["x" if each % 2 else "y" for each in ids], "text": names})


def evolve(table: Table) -> None:
    with table.evolve() as change:
        change.add_column("more", "long")
        change.add_partition_field("bucket(4, id)")
    table.append(rows(70, 71))


def branch(table: Table) -> None:
    table.create_branch("b")
    table.at("b").append(rows(80))
    table.at("b").delete("id = 2")


VERBS: dict[str, Callable[[Table], object]] = {
    "append": lambda table: table.append(rows(40, 41)),
    "delete": lambda table: table.delete("id = 2"),
    "delete all": lambda table: table.delete("true"),
    "update": lambda table: table.update({"text": "'new'"}, "id > 20"),
    "upsert": lambda table: table.upsert(rows(1, 2, 50), on=["id"]),
    "overwrite": lambda table: table.overwrite(rows(60, 61), where="id > 10"),
    "overwrite partitions": lambda table: table.overwrite_partitions(rows(90)),
    "compact": lambda table: table.compact(),
    "rewrite manifests": lambda table: table.rewrite_manifests(),
    "expire": lambda table: table.expire_snapshots("2100-01-01", keep_last=2),
    "rollback": lambda table: table.rollback(table.snapshots()[-2].snapshot_id),
    "evolve": evolve,
    "branch": branch,
    "replace": lambda table: table.replace("other string"),
}


@pytest.mark.parametrize("partitioned", [False, True], ids=["whole", "partitioned"])
@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_leaves_a_healthy_table(verb: str, version: int, *, partitioned: bool) -> None:
    lake = open_lake()
    table = make_table(lake, version, partitioned=partitioned)
    VERBS[verb](table)
    assert without_dangling(lake, table) == []
    if verb != "replace":
        table.append(rows(100))
        assert without_dangling(lake, table) == []


def without_dangling(lake: Lake, table: Table) -> list[str]:
    """Return what was found; deletes of files that were rewritten may stay in version 2. (spec: Scan Planning)"""
    found = table.fsck(deep=True).findings
    version = table.metadata.format_version
    return [str(each) for each in found if version == 3 or each.check is not Check.DANGLING_DELETES]


@pytest.mark.parametrize("version", [1, 2])
def test_an_upgraded_table(version: int) -> None:
    lake = open_lake()
    table = make_table(lake, version)
    for later in range(version + 1, 4):
        table.upgrade_format_version(later)
        table.append(rows(5, 6))
        table.delete("id = 5")
        assert without_dangling(lake, table) == []


@pytest.mark.every_case
@pytest.mark.parametrize("expected", cases())
def test_tables_of_other_writers(expected: Expected) -> None:
    catalog = MemoryCatalog()
    catalog.create_namespace(("golden",))
    name = TableName(("golden",), expected["name"])
    catalog.swap([PointerSwap(name, None, expected["metadata"])])
    found = fsck_table(LiveHead(Backend(catalog, GoldenStore(), SystemAmbient()), name), FsckOptions(deep=True))
    assert {each.check for each in found.findings} == HARMLESS_OF_JAVA.get(expected["name"], set()), str(found)
    assert found.is_healthy
    assert found.metadata_location == expected["metadata"]


def test_the_harmless_ones_are_there() -> None:
    assert {expected["name"] for expected in EXPECTED} >= HARMLESS_OF_JAVA.keys()


def test_an_empty_table_and_an_empty_lake() -> None:
    lake = open_lake()
    assert (lake.fsck().tables, lake.fsck().is_healthy) == ([], True)
    found = lake.create_table("a.t", "id long").fsck(deep=True)
    assert (found.findings, found.snapshots, found.files) == ((), 0, 0)


def test_many_files_are_listed_and_those_elsewhere_looked_at(tmp_path: Path) -> None:
    with icefield.connect(tmp_path / "lake", durable=False) as lake:
        table = lake.create_table("a.t", "id long", partition_by=["bucket(90, id)"])
        table.append(pa.table({"id": range(2_000)}))
        table.set_location(f"{table.location}-moved")
        table.append(pa.table({"id": [5]}))
        found = table.fsck(deep=True)
        assert found.files > FEW_FILES
        assert found.findings == ()
        first = sorted((tmp_path / "lake").rglob("*.parquet"))[0]
        first.unlink()
        (finding,) = table.fsck().findings
        assert finding.check is Check.MISSING_FILES
        assert str(finding.location).endswith(first.name)


def test_a_lake_is_checked_table_by_table() -> None:
    lake = open_lake()
    make_table(lake, 2)
    lost = make_table(lake, 3, "a.u")
    lake.store.delete(lost.metadata_location)
    seen: list[str] = []
    found = lake.fsck(progress=seen.append)
    assert seen == [each.table for each in found.tables] == ["a.t", "a.u"]
    assert [each.is_healthy for each in found.tables] == [True, False]
    assert [each.check for each in found.tables[1].findings] == [Check.POINTER]
    assert not found.is_healthy
    with pytest.raises(icefield.NoSuchTable):
        lake.fsck(["a.missing"])


@pytest.mark.parametrize("repair", [False, True])
def test_a_table_that_cannot_be_checked_does_not_hide_the_others(repair: bool) -> None:
    lake = open_lake()
    odd, whole = make_table(lake, 2), make_table(lake, 3, "a.u")

    def change(document: dict[str, Any]) -> None:
        if repair:
            document["snapshots"][0] = 7
        else:
            document["location"] = "x"

    edit_metadata(lake, odd, change)
    lake.store.delete(f"{whole.location}/metadata/a.stats")
    found = lake.fsck(repair=repair)
    assert [(finding.check, "cannot be checked" in finding.message) for finding in found.tables[0].findings] == [
        (Check.POINTER, True)
    ]
    assert (found.tables[1].counts, len(found.tables[1].repairs)) == ({"missing-files": 1}, int(repair))


def test_a_table_that_is_dropped_meanwhile_is_left_out() -> None:
    lake = open_lake()
    make_table(lake, 2)
    make_table(lake, 3, "a.u")
    found = lake.fsck(progress=lambda name: lake.drop_table("a.u") if name == "a.t" else None)
    assert ([each.table for each in found.tables], found.is_healthy) == (["a.t"], True)


def test_a_transaction_is_not_checked() -> None:
    lake = open_lake()
    make_table(lake, 2)
    with lake.transaction() as tx, pytest.raises(icefield.InvalidInput, match="transaction"):
        tx.table("a.t").fsck()
