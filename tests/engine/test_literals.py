"""Literals in columns of every type on the local engine: the value of the model, or a refusal; never another value."""

import pyarrow as pa
import pytest
from tests.engine.literal_cases import LITERALS, REFUSED, TYPES, stored

from icefield import lit
from icefield.errors import IcefieldError
from icefield.lake import Lake
from icefield.table.table import Table


@pytest.fixture
def table(memory_lake: Lake) -> Table:
    columns = ", ".join(f"c{at} {kind}" for at, kind in enumerate(TYPES))
    made = memory_lake.create_table("a.t", f"id long, {columns}", format_version=3)
    made.append(pa.table({"id": pa.array([1], pa.int64())}))
    return made


def refusal(table: Table, column: str, given: object) -> str | None:
    """Update a column; return the error, if there is one."""
    try:
        table.update({column: given}, engine="local")
    except IcefieldError as error:
        return str(error)
    return None


@pytest.mark.every_case
@pytest.mark.parametrize("literal", LITERALS)
def test_a_literal_is_stored_as_the_model_says_or_refused(table: Table, literal: str) -> None:
    value, sql = LITERALS[literal]
    for at, kind in enumerate(TYPES):
        expected = stored(literal, kind)
        for given in (lit(value), *([] if sql is None else [sql])):
            if (why := refusal(table, f"c{at}", given)) is not None:
                assert expected is REFUSED or "only Spark can evaluate" in why, (kind, given, why)
                continue
            column = table.scan(select=[f"c{at}"]).to_arrow().read_all().column(0)
            found = column.cast(pa.int64()) if kind.endswith("_ns") else column
            assert found.to_pylist() == [expected], (kind, given)
