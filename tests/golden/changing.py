"""Golden tables as tables of a lake, which can be changed: copies, whose metadata names where they are.

The changes are about the column `id`. Other values come from rows that the table has, so that what must be in it
afterwards is known for any type.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import StaticTable
from tests.golden.expected import Expected
from tests.golden.store import FOLDER, ROOT
from tests.peers.duckdb_reader import DuckDBReader
from tests.peers.normal import Row, normal_rows, sorted_rows

import icefield
from icefield.catalog.catalog import PointerSwap
from icefield.engine.choose import EngineName
from icefield.lake import Lake
from icefield.model.names import TableName
from icefield.table.table import Table
from icefield.types.arrow import arrow_schema

KEY = "id"
MOVED, NEW = 1_000, 5_000


def open_copy(expected: Expected, directory: Path) -> tuple[Lake, Table]:
    """Copy a golden table into a new lake."""
    name = TableName(("golden",), expected["name"])
    lake = icefield.connect(directory, durable=False)
    lake.create_namespace("golden")
    shutil.copytree(FOLDER / "tables" / expected["name"], directory / expected["name"])
    lake.catalog.swap([PointerSwap(name, None, expected["metadata"])])
    lake.relocate(ROOT)
    return lake, lake.table(str(name))


def rows_of(table: Table) -> list[Row]:
    """Return the rows of a table in the form in which they are compared."""
    return normal_rows(table.scan().to_arrow().read_all(), arrow_schema(table.schema))


def source_rows(table: Table, keys: Sequence[int]) -> pa.Table:
    """Return rows with some keys of the table, and as many with new keys; their other values are of the first row."""
    first = table.scan().to_arrow().read_all().slice(0, 1)
    ids = pa.array([*keys, *(key + NEW for key in keys)]).cast(first.schema.field(KEY).type)
    rows = first.take(pa.array([0] * len(ids)))
    return rows.set_column(rows.column_names.index(KEY), first.schema.field(KEY), ids)


def _list(keys: Sequence[int]) -> str:
    return f"{KEY} IN ({', '.join(map(str, keys))})"


def change(table: Table, verb: str, keys: Sequence[int], mode: str, engine: EngineName) -> None:
    """Change the rows with some keys, and check the rows of the table afterwards."""
    at = [f.name for f in table.schema.fields].index(KEY)
    before, given = rows_of(table), source_rows(table, keys)
    chosen, others = [r for r in before if r[at] in keys], [r for r in before if r[at] not in keys]
    new = [row for row in normal_rows(given, arrow_schema(table.schema)) if row[at] not in keys]
    options: dict[str, Any] = {"mode": mode, "engine": engine}
    if verb == "delete":
        done = table.delete(_list(keys), **options)
        after = others
    elif verb == "update":
        done = table.update({KEY: f"{KEY} + {MOVED}"}, _list(keys), **options)
        after = others + [_with(row, at, row[at] + MOVED) for row in chosen]
    elif verb == "merge":
        begun = table.merge(given, [KEY], **options).when_matched(f"target.{KEY} = {keys[0]}").delete()
        begun = begun.when_matched().update({KEY: f"target.{KEY} + {MOVED}"})
        done = begun.when_not_matched().insert_all().execute()
        after = others + [_with(r, at, r[at] + MOVED) for r in chosen if r[at] != keys[0]] + new
    else:
        done = table.upsert(given, [KEY], **options)
        like = _with(normal_rows(given.slice(0, 1), arrow_schema(table.schema))[0], at, None)
        after = others + [_with(like, at, row[at]) for row in chosen] + new
    assert rows_of(table) == sorted_rows(after), done
    assert done.rows_updated + done.rows_deleted == len(chosen)


def _with(row: Row, at: int, value: object) -> Row:
    return (*row[:at], value, *row[at + 1 :])


def keys_of(table: Table) -> list[int]:
    """Return some keys of a table, of which others remain; none if it has no column for that."""
    if KEY not in {f.name for f in table.schema.fields}:
        return []
    ids = table.scan(select=[KEY]).to_arrow().read_all()[KEY]
    if not pa.types.is_integer(ids.type):
        return []
    keys = sorted(pc.unique(ids.drop_null()).to_pylist())
    return keys[:: max(2, len(keys) // 3)]


def check_change(
    expected: Expected, verb: str, mode: str, engine: EngineName, directory: Path, duckdb: DuckDBReader
) -> None:
    """Change a golden table, and check that who could read it before still can."""
    lake, table = open_copy(expected, directory / "lake")
    with lake:
        able = [read for read in (_read_by_pyiceberg, duckdb.read) if _reads(read, table)]
        change(table, verb, keys_of(table), mode, engine)
        assert [read for read in able if not _reads(read, table)] == []


def _reads(read: Any, table: Table) -> bool:
    """Return whether another engine reads the rows of a table."""
    try:
        found = read(table.metadata_location)
    except Exception:  # whatever another engine makes of what it does not know
        return False
    return bool(normal_rows(found, arrow_schema(table.schema)) == rows_of(table))


def _read_by_pyiceberg(location: str) -> Any:
    return StaticTable.from_metadata(location).scan().to_arrow()
