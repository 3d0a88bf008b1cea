"""A small lake in memory whose store and collector share one clock, and properties that let files go at once."""

import datetime
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from icefield.ambient import SeededAmbient
from icefield.backend import Backend
from icefield.catalog.memory import MemoryCatalog
from icefield.lake import Lake
from icefield.leases.lease import dead_version
from icefield.leases.record import decode_record, encode_record, version_location
from icefield.storage.memory import MemoryStore
from icefield.table.table import Table

FUTURE = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)
AT_ONCE = {
    "icefield.gc.grace-ms": "0",
    "icefield.gc.foreign-readers": "false",
    "icefield.gc.orphan-age-ms": "0",
}


@dataclass
class Yard:
    """A lake, its store and its clock."""

    lake: Lake
    store: MemoryStore
    ambient: SeededAmbient

    def table(self, name: str = "t.t", **properties: Any) -> Table:
        """Create a table; `version` is its format version, and properties have `_` for `-` and `__` for a dot."""
        version = properties.pop("version", 2)
        given = {key.replace("__", ".").replace("_", "-"): value for key, value in properties.items()}
        return self.lake.create_table(name, "id long, n long", properties={**AT_ONCE, **given}, format_version=version)

    def files(self, below: str = "memory://lake") -> set[str]:
        """Every file but the collector's own."""
        return {file.location for file in self.store.list(below) if "/metadata/gc/" not in file.location}

    def lake_again(self) -> Lake:
        """Open the lake as another process."""
        return Lake(Backend(self.lake.catalog, self.store, self.ambient), "memory://lake")


def make_yard(seed: int = 1) -> Yard:
    ambient = SeededAmbient(seed)
    store = MemoryStore(ambient)
    return Yard(Lake(Backend(MemoryCatalog("c"), store, ambient), "memory://lake"), store, ambient)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array(ids, pa.int64())})


def ids(table: Table, as_of: object = None) -> list[int]:
    read = table.scan(as_of=as_of).to_arrow().read_all()  # type: ignore[arg-type]
    return sorted(read["id"].to_pylist())


def declare_dead(table: Table) -> None:
    """Do as a collector that did not see the lease renewed in time."""
    (lease,) = table.leases()
    folder, store = f"{table.location}/metadata/gc", table._context.store
    record = decode_record(store.read(version_location(folder, lease.lease, lease.renewals + 1)))
    assert record is not None
    store.put_new(version_location(folder, lease.lease, lease.renewals + 2), encode_record(dead_version(record)))
