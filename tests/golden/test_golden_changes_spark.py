"""Golden tables are changed by every verb, in every mode, on Spark: see test_golden_changes.py."""

from pathlib import Path

import pytest
from tests.golden.changing import check_change
from tests.golden.expected import Expected
from tests.golden.test_golden_changes import CASES
from tests.peers.duckdb_reader import DuckDBReader

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.mark.parametrize(("expected", "verb", "mode"), CASES)
def test_a_change_on_spark(expected: Expected, verb: str, mode: str, tmp_path: Path) -> None:
    with DuckDBReader() as duckdb:
        check_change(expected, verb, mode, "spark", tmp_path, duckdb)
