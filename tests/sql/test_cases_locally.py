"""The cases again, without a JVM: each gives the same results, up to a statement that says that it needs Spark.

Queries run with DuckDB, whose semantics differ from Spark's: where a case shows a difference, DIFFERENT says which.
"""

from contextlib import suppress
from pathlib import Path

import pytest

import icefield
from icefield.errors import NeedsSpark
from tests.effort import is_sampled, sample
from tests.sql.case_file import Case, all_cases
from tests.sql.case_run import run_case

pytestmark = pytest.mark.every_case

SAMPLE = 3
DIFFERENT = {
    "ctas-01": "a product has the digits that DuckDB gives it",
    "ctas-05": "raise_error is a function of Spark",
    "more-11": "a division by zero is null",
    "over-02": "SET is a statement of Spark",
    "over-05": "SET is a statement of Spark",
    "over-06": "SET is a statement of Spark",
    "over-09": "SET is a statement of Spark",
    "over-10": "SET is a statement of Spark",
    "query-08": "PIVOT counts 0 where Spark has null",
    "query-13": "WHERE is not an alias",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    cases = [case for case in all_cases() if case.name not in DIFFERENT]
    chosen = sample(cases, SAMPLE, lambda case: case.section) if is_sampled(metafunc.config) else cases
    metafunc.parametrize("case", chosen, ids=[case.name for case in chosen])


def test_a_case_without_a_jvm(case: Case, tmp_path: Path) -> None:
    with icefield.connect(tmp_path / "lake", catalog="lake", durable=False) as lake, suppress(NeedsSpark):
        run_case(case, lake, "local")
