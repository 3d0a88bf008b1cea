"""Statements that are nested too deeply end in one error of ours, and change nothing."""

import pytest

import icefield
from icefield.errors import InvalidInput

DEPTH = 3000


@pytest.mark.every_case
@pytest.mark.parametrize(
    "text",
    [
        "(" * DEPTH,
        f"SELECT {'(' * DEPTH}1{')' * DEPTH}",
        f"DELETE FROM t.t WHERE {'(' * DEPTH}id = 1{')' * DEPTH}",
        f"UPDATE t.t SET name = {'upper(' * DEPTH}name{')' * DEPTH}",
        f"INSERT INTO t.t VALUES (1, {'(' * DEPTH}'a'{')' * DEPTH})",
        f"EXPLAIN DELETE FROM t.t WHERE {'(' * DEPTH}id = 1{')' * DEPTH}",
        f"MERGE INTO t.t USING t.t AS s ON {'(' * DEPTH}t.id = s.id{')' * DEPTH} WHEN MATCHED THEN DELETE",
    ],
    ids=lambda text: text.split("(")[0].strip() or "parentheses",
)
def test_a_statement_that_is_nested_too_deeply_is_refused(text: str) -> None:
    lake = icefield.connect("memory:")
    table = lake.create_table("t.t", "id long, name string")
    before = table.metadata_location
    with pytest.raises(InvalidInput, match="nested too deeply"):
        lake.sql(text, engine="local")
    table.refresh()
    assert table.metadata_location == before
