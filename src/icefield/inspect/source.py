"""What metadata tables have in common: the version they look at, what is asked of them, and what they give.

A metadata table has a schema of its own and gives its rows as a stream of Arrow tables, each as large as a few
manifests at most. Its field ids are counted anew: what it describes may use any id itself.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa

from icefield.expr.bind.bound import Bound
from icefield.model.metadata import TableMetadata
from icefield.plan.manifest_list import load_manifests, load_many_manifests
from icefield.plan.versions import ResolvedVersion
from icefield.storage.store import Store
from icefield.types.arrow import arrow_schema
from icefield.types.schema import Schema

ROWS_PER_STEP = 10_000
MICROS_PER_MILLI = 1_000


@dataclass(frozen=True)
class Inspected:
    """One version of a table to look inside, and where its metadata file is."""

    store: Store
    metadata: TableMetadata
    metadata_location: str
    version: ResolvedVersion


@dataclass(frozen=True)
class Request:
    """What is asked of a metadata table.

    columns: those to make, in this order; of a struct perhaps only some fields. where: rows that do not match it may
    be left out, where that saves work, and need not be.
    """

    columns: Schema
    where: Bound


@dataclass(frozen=True)
class MetadataTable:
    """The columns of a metadata table, and what loads its rows."""

    schema: Schema
    load: Callable[[Request], Iterator[pa.Table]]


# Which manifests a metadata table is about, piece by piece.
Manifests = Callable[[Inspected], Iterator[pa.Table]]


def table_of_rows(schema: Schema, rows: Callable[[], Iterator[Mapping[str, object]]]) -> MetadataTable:
    """Return a metadata table of rows that are few enough to be made one by one."""

    def load(request: Request) -> Iterator[pa.Table]:
        target, left = arrow_schema(request.columns), rows()
        while step := list(islice(left, ROWS_PER_STEP)):
            yield pa.Table.from_pylist(step, schema=target)

    return MetadataTable(schema, load)


def manifests_of_version(source: Inspected) -> Iterator[pa.Table]:
    """Yield the manifests of the version that is looked at."""
    manifests = load_manifests(source.store, source.version.snapshot)
    if manifests is not None:
        yield manifests


def manifests_of_all_snapshots(source: Inspected) -> Iterator[pa.Table]:
    """Yield the manifests of every snapshot of the table, each manifest once, the newest snapshots first."""
    seen: set[str] = set()
    for _, manifests in load_many_manifests(source.store, reversed(list(source.metadata.snapshots))):
        paths = manifests.column("manifest_path").to_pylist()
        fresh = manifests.filter(pa.array([path not in seen for path in paths], pa.bool_()))
        seen.update(paths)
        if fresh.num_rows:
            yield fresh
