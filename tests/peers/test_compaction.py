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
