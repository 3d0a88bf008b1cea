"""Run statements without a JVM, and read their results and errors."""

from typing import Any

import pyarrow as pa
import pytest

from icefield.errors import IcefieldError
from icefield.lake import Lake

Row = tuple[Any, ...]


def run(lake: Lake, text: str, args: Any = None, **more: Any) -> list[Row]:
    """Return the rows of a statement."""
    table: pa.Table = lake.sql(text, args, engine="local", **more)
    return [tuple(row.values()) for row in table.to_pylist()]


def columns(lake: Lake, text: str) -> list[str]:
    """Return the columns of a statement's result."""
    names: list[str] = lake.sql(text, engine="local").schema.names
    return names


def refused(lake: Lake, text: str, kind: type[IcefieldError], *, at: str, match: str | None = None) -> IcefieldError:
    """Check that a statement fails with a kind of error that points at a part of its text."""
    with pytest.raises(kind, match=match) as caught:
        run(lake, text)
    error = caught.value
    assert error.position == (1, text.index(at)), error
    return error
