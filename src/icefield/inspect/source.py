"""What metadata tables share: the version that they read, the request, and the result.

A metadata table has its own schema and yields its rows as a stream of Arrow tables, each at most as large as a few
manifests. It assigns its own field ids, since the table that it describes may use any id.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa

from icefield.cache.reading import ReadContext
from icefield.codec.manifest.rows import Manifests
from icefield.expr.bind.bound import Bound
from icefield.model.metadata import TableMetadata
from icefield.plan.manifest_list import load_manifests, load_many_manifests
from icefield.plan.versions import ResolvedVersion
from icefield.types.arrow import arrow_schema
from icefield.types.schema import Schema

ROWS_PER_STEP = 10_000
MICROS_PER_MILLI = 1_000


@dataclass(frozen=True)
class Inspected:
    """One version of a table to inspect, and the location of its metadata file."""

    context: ReadContext
    metadata: TableMetadata
    metadata_location: str
    version: ResolvedVersion


@dataclass(frozen=True)
class Request:
    """A request to a metadata table.

    columns: the columns to return, in this order, perhaps with only some fields of a struct. where: rows that do not
    match it may be omitted if that saves work.
    """

    columns: Schema
    where: Bound


@dataclass(frozen=True)
class MetadataTable:
    """The columns of a metadata table, and the function that loads its rows."""

    schema: Schema
    load: Callable[[Request], Iterator[pa.Table]]


# The manifests that a metadata table covers, in batches.
ManifestsOf = Callable[[Inspected], Iterator[Manifests]]


def table_of_rows(schema: Schema, rows: Callable[[], Iterator[Mapping[str, object]]]) -> MetadataTable:
    """Return a metadata table with few enough rows to be built one by one."""

    def load(request: Request) -> Iterator[pa.Table]:
        target, left = arrow_schema(request.columns), rows()
        while step := list(islice(left, ROWS_PER_STEP)):
            yield pa.Table.from_pylist(step, schema=target)

    return MetadataTable(schema, load)


def manifests_of_version(source: Inspected) -> Iterator[Manifests]:
    """Yield the manifests of the version."""
    manifests = load_manifests(source.context, source.version.snapshot)
    if manifests is not None:
        yield manifests


def manifests_of_all_snapshots(source: Inspected) -> Iterator[Manifests]:
    """Yield the manifests of every snapshot of the table, each manifest once, the newest snapshots first."""
    seen: set[str] = set()
    for _, manifests in load_many_manifests(source.context, reversed(list(source.metadata.snapshots))):
        paths = manifests.manifest_path.to_pylist()
        fresh = manifests.filter(pa.array([path not in seen for path in paths], pa.bool_()))
        seen.update(paths)
        if fresh.num_rows:
            yield fresh
