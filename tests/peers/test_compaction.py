"""Compacted tables, before, during and after: PyIceberg and DuckDB read the same rows."""

from collections.abc import Callable

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from tests.commit.racing import race
from tests.peers.duckdb_reader import DuckDBReader
from tests.peers.gallery import Gallery

from icefield import Table

Row = tuple[int, str, int]
EXPECTED: list[Row] = [(i, "ab"[i % 2], i % 7) for i in range(60) if i not in (5, 31)]
STEPS: dict[str, Callable[[Table], object]] = {
    "bin-pack": lambda t: t.compact(),
    "sort": lambda t: t.compact(strategy="sort"),
    "cluster": lambda t: t.compact(cluster_by=["id", "n"]),
    "manifests": lambda t: t.rewrite_manifests(),
    "all": lambda t: (t.compact(), t.compact(cluster_by=["n", "id"]), t.rewrite_manifests()),
}


AT_ONCE = {"icefield.gc.grace-ms": "0", "icefield.gc.foreign-readers": "false", "icefield.gc.orphan-age-ms": "0"}


def sorted_rows(table: pa.Table) -> list[Row]:
    return sorted((r["id"], r["p"], r["n"]) for r in table.to_pylist())


def build(gallery: Gallery, name: str, version: int) -> Table:
    table = gallery.lake.create_table(
        f"compacted.{name.replace('-', '_')}_{version}",
        "id long, p string, n long",
        partition_by=["p"],
        order_by=["n desc", "id"],
        format_version=version,
    )
    for start in range(0, 60, 10):
        keys = range(start, start + 10)
        table.append(pa.table({"id": list(keys), "p": ["ab"[i % 2] for i in keys], "n": [i % 7 for i in keys]}))
    table.delete("id = 5", mode="merge-on-read" if version > 1 else "copy-on-write")
    return table


def keep_up(table: Table, look: Callable[[str], object]) -> None:
    """Do all upkeep of a table, and look at its versions before, during and after each step: rows never change.

    look: reads the table from a metadata file, as somebody else who has it open.
    """
    seen = [table.metadata_location]

    def look_now(_: object = None) -> None:
        """Look at the newest version, and at that before it, which somebody may still have open."""
        newest = table.metadata_location
        for location in dict.fromkeys((seen[-1], newest)):
            look(location)
        seen.append(newest)

    look_now()
    for step in ("compact", "sort"):
        how = {"strategy": "sort"} if step == "sort" else {}
        commits = table.compact(options={"commit-size-bytes": "1"}, on_progress=look_now, **how).snapshots  # type: ignore[arg-type]
        assert len(commits) == 2, "the table was looked at between them"
        look_now()
    table.rewrite_manifests()
    look_now()
    before = table.metadata_location
    assert table.expire_snapshots("2100-01-01").files_marked
    for location in (before, seen[0]):
        look(location)  # within the grace period
    look_now()
    table.set_properties(AT_ONCE)
    gone: list[str] = []

    def look_between(location: str) -> None:
        """Look while files go, but not at each of them."""
        gone.append(location)
        if len(gone) % 10 == 1:
            look(table.metadata_location)

    assert table.sweep(progress=look_between).files_deleted == len(gone) > 0
    table.remove_orphans(unsafe=True)
    look_now()


def build_many(gallery: Gallery, name: str, version: int) -> Table:
    """Return a table with small files and deletes; PyIceberg reads none by equality, so those are converted."""
    table = build(gallery, name, version)
    table.delete("id = 31", mode="merge-on-read" if version > 1 else "copy-on-write")
    if version > 1:
        table.upsert(pa.table({"id": [6], "p": ["a"], "n": [6]}), on=["id"], mode="equality")
        table.convert_equality_deletes()
        table.rewrite_deletes("p = 'b'")
    return table


@pytest.mark.parametrize("version", [1, 2, 3])
def test_others_read_the_same_rows_before_during_and_after_upkeep(
    gallery: Gallery, duckdb_reader: DuckDBReader, version: int
) -> None:
    looks = []

    def look(location: str) -> None:
        looks.append(location)
        assert sorted_rows(StaticTable.from_metadata(location).scan().to_arrow()) == EXPECTED
        assert sorted_rows(duckdb_reader.read(location)) == EXPECTED

    keep_up(build_many(gallery, "upkeep", version), look)
    assert len(set(looks)) >= 7


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("step", STEPS)
def test_others_read_the_same_rows(gallery: Gallery, duckdb_reader: DuckDBReader, step: str, version: int) -> None:
    """A delete that was planned on the old files lands after the rewrite, by the row map if there is one."""
    table = build(gallery, step, version)
    before = table.metadata_location
    mode = "merge-on-read" if version > 1 else "copy-on-write"
    race(
        gallery.lake,
        lambda: STEPS[step](gallery.lake.table(str(table.name))),
        lambda: table.delete("id = 31", mode=mode),
    )
    STEPS[step](table)
    for location, rows in (
        (before, sorted([*EXPECTED, (31, "b", 3)])),
        (table.metadata_location, EXPECTED),
    ):
        assert sorted_rows(StaticTable.from_metadata(location).scan().to_arrow()) == rows
        assert sorted_rows(duckdb_reader.read(location)) == rows
