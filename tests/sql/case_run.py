"""Run SQL cases through `lake.sql`, on any engine, and check what they return."""

from typing import Any

import pyarrow as pa
import pytest

from icefield import errors
from icefield.engine.choose import LOCAL, EngineName
from icefield.lake import Lake
from tests.sql.case_file import Case, ExpectedError, Step, difference, fixtures, plain, with_values


def run_case(case: Case, lake: Lake, engine: EngineName | None = None) -> None:
    """Run the fixtures of a case, and then its statements, in a lake with an empty namespace `shop`."""
    kept: dict[str, object] = {}
    lake.sql("CREATE NAMESPACE shop", engine="local")
    for step in (*(step for name in case.fixtures for step in fixtures()[name]), *case.steps):
        run_step(step, lake, kept, engine)


def run_step(step: Step, lake: Lake, kept: dict[str, object], engine: EngineName | None = None) -> None:
    """Run a statement and check what it returns."""
    text = with_values(step.text, kept)
    try:
        rows = rows_of(lake.sql(text, step.arguments, engine=engine))
    except Exception as error:
        # Spark's errors are not imported: cases run without it too.
        needs_spark = engine == LOCAL and isinstance(error, errors.NeedsSpark)
        if (
            step.error is None
            or needs_spark
            or not (isinstance(error, errors.IcefieldError) or hasattr(error, "getCondition"))
        ):
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
    table = result if isinstance(result, pa.Table) else result.toArrow()
    columns = [[plain(value) for value in column.to_pylist()] for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def check_error(error: Any, expected: ExpectedError, text: str) -> None:
    """Check the class of an error, where it points, and that it is for the author of the statement."""
    shown = f"{text}\nfailed with {type(error).__name__}: {error}"
    if not isinstance(error, errors.IcefieldError):
        assert (expected.kind, expected.part) == ("Spark", error.getCondition()), shown
        return
    assert isinstance(error, getattr(errors, expected.kind, ())), f"{shown}\nand not with {expected.kind}"
    assert expected.part is None or expected.part in error.message, f"{shown}\nwithout {expected.part}"
    assert error.position == expected.position, f"{shown}\nat {error.position} and not {expected.position}"
    assert "icefield_" not in str(error), f"{shown}\nwith a name that nobody wrote"
    assert "\tat " not in str(error), f"{shown}\nwith a stack"
