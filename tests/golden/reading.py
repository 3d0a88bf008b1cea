"""Golden tables as icefield reads them, in the form of `expected`."""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from tests.golden.expected import Expected, load_all, rows_of
from tests.golden.store import GoldenStore

from icefield.cache.reading import ReadContext
from icefield.commit.load import load_table_metadata
from icefield.model.metadata import TableMetadata
from icefield.model.names import TableName
from icefield.plan.versions import AsOf, resolve_version
from icefield.table.scan import TableScan
from icefield.types.arrow import arrow_schema

LINEAGE = ("_row_id", "_last_updated_sequence_number")
Read = Callable[[TableScan], pa.Table]
EXPECTED = tuple(load_all())


def names(key: str = "name") -> set[str]:
    """Return the names of the tables of which something is expected."""
    return {expected["name"] for expected in EXPECTED if key in expected}


def cases(*, without: Collection[str] = ()) -> list[Any]:
    """Return every table as a parameter, but for some."""
    return [pytest.param(e, id=e["name"]) for e in EXPECTED if e["name"] not in without]


@cache
def load(location: str) -> TableMetadata:
    """Open a golden table."""
    return load_table_metadata(ReadContext(GoldenStore()), location)


def scan(
    expected: Expected, as_of: AsOf | None = None, where: str | None = None, select: Sequence[str] | None = None
) -> TableScan:
    """Plan a read of a golden table."""
    metadata = load(expected["metadata"])
    name = TableName(("golden",), expected["name"])
    return TableScan(ReadContext(GoldenStore()), name, metadata, resolve_version(metadata, as_of), where, select)


def differences(expected: Expected, read: Read) -> dict[str, Any]:
    """Compare every reading that the maker gave with ours; return (ours, the maker's) where they differ."""
    return {
        what: (ours, theirs)
        for what, planned, columns, theirs in _readings(expected)
        if (ours := _seen(planned, read)) != (columns, theirs)
    }


def _readings(expected: Expected) -> Iterator[tuple[str, TableScan, list[str], list[Any]]]:
    columns = expected["columns"]
    yield "rows", scan(expected), columns, expected["rows"]
    for version in expected["points"]:
        yield f"as of {version['as_of']}", scan(expected, version["as_of"]), version["columns"], version["rows"]
    for filtered in expected.get("filters", ()):
        yield filtered["where"], scan(expected, where=filtered["where"]), columns, filtered["rows"]


def _seen(planned: TableScan, read: Read) -> tuple[list[str], list[Any]]:
    rows = read(planned)
    return rows.column_names, rows_of(rows, arrow_schema(planned.schema))
