"""Tables whose files do not look as the table's schemas tell, and rows found in them by every path of reading."""

import itertools
import json
from collections.abc import Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from tests.effort import sample

from icefield.lake import Lake
from icefield.storage.location import local_path
from icefield.table.table import Table

MOST_FRAMES = 40  # in one job
MOST_FILTERS = 6  # of a table
_NUMBERS = itertools.count()


def stored(name: str, kind: pa.DataType, field_id: int | None) -> pa.Field:
    """Return a column of a file, as another writer would have it."""
    return pa.field(name, kind, metadata=None if field_id is None else {"PARQUET:field_id": str(field_id)})


def add_file(table: Table, fields: Sequence[pa.Field], columns: Sequence[Sequence[object]], **options: Any) -> str:
    """Add a file of another writer; return its location."""
    arrays = [pa.array(values, f.type) for values, f in zip(columns, fields, strict=True)]
    location = f"{table.location}/data/foreign-{next(_NUMBERS)}.parquet"
    rows = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    with pa.BufferOutputStream() as sink:
        pq.write_table(rows, sink, **({"store_schema": False} | options))
        table._context.store.put_new(location, sink.getvalue().to_pybytes())
    table.add_files([location])
    return location


def forget_schemas(lake: Lake, table: Table) -> Table:
    """Keep the current schema alone, as engines do that trim a table's metadata."""
    with open(local_path(table.metadata_location)) as file:  # noqa: PTH123
        content = json.load(file)
    current = content["current-schema-id"]
    content["schemas"] = [schema for schema in content["schemas"] if schema["schema-id"] == current]
    if content["format-version"] == 1:
        for key in ("schemas", "current-schema-id"):
            del content[key]
        for snapshot in content["snapshots"]:
            snapshot.pop("schema-id", None)
    location = f"{table.location}/metadata/{next(_NUMBERS):05d}-trimmed.metadata.json"
    lake.store.put_new(location, json.dumps(content).encode())
    name = str(table.name)
    lake.drop_table(name)
    return lake.register_table(name, location)


def check(cases: Sequence[tuple[Table, Sequence[str]]]) -> None:
    """Compare the ids that filters find: in Spark above a scan and, of some, inside it, and in Arrow.

    A normal run has some of each table's filters.
    """
    frames: list[DataFrame] = []
    expected: list[list[int]] = []
    labels: list[str] = []
    for table, filters in cases:
        for where in sample(filters, MOST_FILTERS, lambda _, name=str(table.name): name):
            ids = sorted(table.scan(where, ["id"]).to_arrow().read_all()["id"].to_pylist())
            inside = [("inside", table.scan(where).to_spark())] if len(frames) % 3 == 0 else []
            for label, frame in [("above", table.scan().to_spark().where(where)), *inside]:
                frames.append(frame.select(F.lit(len(frames)).alias("case"), "id"))
                expected.append(ids)
                labels.append(f"{table.name} {label}: {where}")
    found: list[list[int]] = [[] for _ in frames]
    for start in range(0, len(frames), MOST_FRAMES):
        for row in reduce(DataFrame.union, frames[start : start + MOST_FRAMES]).collect():
            found[row.case].append(row.id)
    wrong = {
        label: f"{sorted(ids)} instead of {wanted}"
        for label, ids, wanted in zip(labels, found, expected, strict=True)
        if sorted(ids) != wanted
    }
    assert not wrong, wrong


def scanned_rows(frame: DataFrame) -> tuple[list[Any], int]:
    """Return the rows of a DataFrame in this process, and how many its scans read from their files."""
    rows = frame.collect()
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    counts = [leaves.apply(at).metrics().apply("numOutputRows").value() for at in range(leaves.size())]
    return rows, sum(counts)
