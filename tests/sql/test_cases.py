"""Every case of tests/sql/cases through `lake.sql`, on Spark: see case_file.py for their format.

A run without names has a sample of each file; `-k merge-05`, `-k merge` and ICEFIELD_DEEP=1 run those cases, or all.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import icefield
from icefield import errors
from icefield.lake import Lake
from tests.effort import is_sampled, sample
from tests.sql.case_file import Case, ExpectedError, Step, all_cases, difference, fixtures, plain, with_values

pytestmark = [pytest.mark.spark, pytest.mark.every_case]

SAMPLE = 2


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    cases = all_cases()
    chosen = sample(cases, SAMPLE, lambda case: case.section) if is_sampled(metafunc.config) else cases
    metafunc.parametrize("case", chosen, ids=[case.name for case in chosen])


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, whose settings, temporary views and cache are those of before when the case ends."""
    before = dict(spark.conf.getAll)
    yield spark
    for key, value in spark.conf.getAll.items():
        if before.get(key) != value:
            spark.conf.set(key, before[key]) if key in before else spark.conf.unset(key)
    for row in spark.sql("SHOW TABLES").collect():
        if row.isTemporary:
            spark.catalog.dropTempView(row.tableName)
    spark.catalog.clearCache()


def test_a_case(case: Case, session: SparkSession, tmp_path: Path) -> None:
    with icefield.connect(tmp_path / "lake", catalog="lake", durable=False) as lake:
        lake.use(session)
        lake.sql("CREATE NAMESPACE shop")
        kept: dict[str, object] = {}
        for name in case.fixtures:
            for step in fixtures()[name]:
                run_step(step, lake, kept)
        for step in case.steps:
            run_step(step, lake, kept)


def run_step(step: Step, lake: Lake, kept: dict[str, object]) -> None:
    """Run a statement and check what it returns."""
    text = with_values(step.text, kept)
    try:
        rows = rows_of(lake.sql(text, step.arguments))
    except (errors.IcefieldError, PySparkException) as error:
        if step.error is None:
            raise
        check_error(error, step.error, text)
        return
    assert step.error is None, f"{text}\nshould fail: {step.error}, but returned {rows}"
    if step.keeps is not None:
        kept[step.keeps] = rows[0][0]
    elif step.is_checked and (wrong := difference(step, rows, kept)):
        pytest.fail(f"{text}\n  {wrong}", pytrace=False)


def rows_of(result: Any) -> list[list[Any]]:
    """Read the rows of a result, column by column: names may occur twice."""
    table = result.toArrow()
    columns = [[plain(value) for value in column.to_pylist()] for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def check_error(error: Exception, expected: ExpectedError, text: str) -> None:
    """Check the class of an error, where it points, and that it is for the author of the statement."""
    shown = f"{text}\nfailed with {type(error).__name__}: {error}"
    if isinstance(error, PySparkException):
        assert (expected.kind, expected.part) == ("Spark", error.getCondition()), shown
        return
    assert isinstance(error, getattr(errors, expected.kind, ())), f"{shown}\nand not with {expected.kind}"
    assert isinstance(error, errors.IcefieldError)
    assert expected.part is None or expected.part in error.message, f"{shown}\nwithout {expected.part}"
    assert error.position is not None, f"{shown}\nand points at nothing"
    assert expected.position in (None, error.position), f"{shown}\nat {error.position} and not {expected.position}"
    assert "icefield_" not in str(error), f"{shown}\nwith a name that nobody wrote"
    assert "\tat " not in str(error), f"{shown}\nwith a stack"
