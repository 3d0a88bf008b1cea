"""Run statements that change rows, without a JVM unless asked, and read what they did."""

from typing import Any

import pyarrow as pa
import pytest

from icefield.engine.choose import EngineName
from icefield.errors import IcefieldError
from icefield.lake import Lake
from icefield.table.table import Table

Kinds = type[IcefieldError] | tuple[type[IcefieldError], ...]


def change(
    lake: Lake, text: str, args: Any = None, *, engine: EngineName | None = "local", **more: Any
) -> dict[str, Any]:
    """Run a statement, and return its counts that are not 0."""
    result = lake.sql(text, args, engine=engine, **more)
    table: pa.Table = result if engine == "local" else result.toArrow()
    (row,) = table.to_pylist()
    return {name: value for name, value in row.items() if value}


def counts(lake: Lake, text: str, args: Any = None, **more: Any) -> dict[str, int]:
    """Run a statement, and return the counts of rows that are not 0."""
    done = change(lake, text, args, **more)
    return {name.removeprefix("rows_"): value for name, value in done.items() if name.startswith("rows_")}


def refuse(lake: Lake, text: str, kind: Kinds, *, at: str, args: Any = None, **more: Any) -> IcefieldError:
    """Check that a statement fails with an error that points at a part of its text, the last one of its kind."""
    with pytest.raises(kind) as caught:
        change(lake, text, args, **more)
    error = caught.value
    where = text.rindex(at) if at else len(text.rstrip())
    line, column = text.count("\n", 0, where) + 1, where - (text.rfind("\n", 0, where) + 1)
    assert error.position == (line, column), error
    assert "icefield_" not in str(error)
    return error


def rows(table: Table, *columns: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table, in order of their first column."""
    found = table.scan(select=columns or None).to_arrow().read_all().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=lambda row: (row[0] is None, row[0], repr(row)))
