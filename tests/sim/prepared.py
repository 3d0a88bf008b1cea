"""Lakes as collectors find them, made once for each shape: copying one takes a fraction of the time of making it.

sim.a, sim.b    the tables whose rows are judged, with the rows of two appends and of a file from elsewhere
sim.c           the table that is dropped, restored, renamed and purged
foreign files   in their directories and elsewhere: no collector may ever delete them
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow.parquet as pq
from tests.sim.actor import TABLES, arrow
from tests.sim.reading import Rows
from tests.sim.simulation import WAREHOUSE, Simulation, StoreClock

from icefield.backend import Backend
from icefield.catalog.catalog import Entry
from icefield.catalog.memory import MemoryCatalog
from icefield.commit.operations.retired_metadata import LEAST_COMMITS
from icefield.lake import Lake
from icefield.model.names import TableName

TTL_S = 20
AT_ONCE = {
    "icefield.gc.grace-ms": "0",
    "icefield.gc.foreign-readers": "false",
    "icefield.gc.orphan-age-ms": "0",
    "icefield.gc.lease-ttl-ms": str(TTL_S * 1000),
    "icefield.gc.undrop-ms": "0",
}
DROPPED = "sim.c"
OUTSIDE = f"{WAREHOUSE}/elsewhere"
FIRST_ROWS: tuple[Rows, ...] = (((0, 1), (1, 2), (0, 3)), ((1, 4), (0, 5)))
ADDED_ROWS: Rows = ((1, 6), (0, 7))
FIRST_FREE_ROW = 100


@dataclass(frozen=True)
class Shape:
    """What a lake is like. properties: of all tables. looks_soon: for metadata files that left the log."""

    format_version: int
    properties: tuple[tuple[str, str], ...]
    looks_soon: bool = True


@dataclass(frozen=True)
class Prepared:
    """A lake: its files, its catalog, and what the judge knows of it."""

    files: Mapping[str, Any]
    entries: Mapping[TableName, Entry]
    tables: Mapping[str, Any]
    pointers: Mapping[str, str]
    known: Mapping[str, Any]
    foreign: frozenset[str]

    def put_into(self, simulation: Simulation) -> None:
        """Begin a run with this lake."""
        simulation.store._files.update(self.files)
        simulation.catalog = MemoryCatalog("simulated", self.entries, {("sim",): {}})
        simulation.catalog.identity = "memory:simulated"
        judge = simulation.judge
        judge.pointers.update(self.pointers)
        judge.history[-1].update(self.tables)
        judge.reading.learn(self.known)
        judge.foreign = self.foreign


@cache
def prepare(shape: Shape) -> Prepared:
    """Make the lake of a shape."""
    simulation = Simulation(0)
    catalog = MemoryCatalog("simulated")
    catalog.identity = "memory:simulated"
    simulation.catalog = catalog
    clock = StoreClock(simulation)
    simulation.store._ambient = clock
    lake = Lake(Backend(catalog, simulation.store, clock), WAREHOUSE)
    properties = {**AT_ONCE, **dict(shape.properties)}
    for name in (*TABLES, DROPPED):
        table = lake.create_table(name, "id long, n long", properties=properties, format_version=shape.format_version)
        for rows in FIRST_ROWS:
            table.append(arrow(rows))
        # The next commit, or the one after it, looks for metadata files that left the log; or only the fifth or sixth.
        for count in range(LEAST_COMMITS - 2 - len(FIRST_ROWS) if shape.looks_soon else 0):
            table.set_properties({"prepared": str(count)})
        if name == TABLES[0]:
            table.add_files([_write_outside(simulation)])
        if name in TABLES:
            simulation.judge.begin(name, table.metadata_location)
    foreign = frozenset([f"{OUTSIDE}/rows.parquet", *_write_foreign(simulation, lake)])
    judge = simulation.judge
    kept = {key: file for key, file in simulation.store._files.items() if "/metadata/gc/" not in key}
    return Prepared(kept, catalog.entries(), judge.tables, judge.pointers, judge.reading.known(), foreign)


def _write_outside(simulation: Simulation) -> str:
    location = f"{OUTSIDE}/rows.parquet"
    with simulation.store.open_new(location) as file:
        pq.write_table(arrow(ADDED_ROWS), file)
    return location


def _write_foreign(simulation: Simulation, lake: Lake) -> list[str]:
    """Write files that are not the table's own, beside those that are."""
    base = lake.table(TABLES[0]).location
    names = ("data/part-00000-6a4f1ec1-3f0b-4a1f-9d53-0c6f2b8f7f11-c000.parquet", "metadata/notes.txt", "data/_SUCCESS")
    for name in names:
        simulation.store.put_new(f"{base}/{name}", b"foreign")
    return [f"{base}/{name}" for name in names]
