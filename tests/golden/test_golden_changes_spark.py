"""Golden tables are changed by every verb, in every mode, on Spark: see test_golden_changes.py."""

from pathlib import Path

import pytest
from tests.golden.changing import check_change
from tests.golden.expected import Expected
from tests.golden.test_golden_changes import CASES
from tests.peers.duckdb_reader import DuckDBReader

from icefield.errors import SchemaMismatch

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


# Arrow rows with nanoseconds that microseconds cannot hold are refused as the source of a change on Spark.
NANOSECONDS = pytest.mark.xfail(raises=SchemaMismatch, strict=False, reason="nanoseconds in Arrow sources on Spark")
ON_SPARK = [
    pytest.param(*case.values, marks=[*case.marks, *[NANOSECONDS] * ("nanoseconds" in str(case.id))], id=case.id)
    for case in CASES
]


@pytest.mark.parametrize(("expected", "verb", "mode"), ON_SPARK)
def test_a_change_on_spark(expected: Expected, verb: str, mode: str, tmp_path: Path) -> None:
    with DuckDBReader() as duckdb:
        check_change(expected, verb, mode, "spark", tmp_path, duckdb)
