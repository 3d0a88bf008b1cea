"""What Spark says when a row cannot be computed, as one line; the rest of its errors is left as it is."""

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkRuntimeError
from pyspark.sql import SparkSession

from icefield.errors import InvalidInput
from icefield.lake import Lake
from icefield.spark.arrow_rows import arrow_of_frame
from icefield.spark.session.analysis_errors import error_of_value

# Only a row tells that there is more than one.
MANY = "SELECT (SELECT id FROM range(2)) AS id"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("[DIVIDE_BY_ZERO] Division\nby zero. SQLSTATE: 22012\n== SQL ==", "[DIVIDE_BY_ZERO] Division by zero"),
        ("[USER_RAISED_EXCEPTION] no. SQLSTATE: P0001", "[USER_RAISED_EXCEPTION] no"),
        ("[SCALAR_SUBQUERY_TOO_MANY_ROWS] More. SQLSTATE: 21000", "[SCALAR_SUBQUERY_TOO_MANY_ROWS] More"),
        ("[DUPLICATED_MAP_KEY] Key a. SQLSTATE: 23505", "[DUPLICATED_MAP_KEY] Key a"),
        ("[RECURSION_LEVEL_LIMIT_EXCEEDED] 100. SQLSTATE: 42836", "[RECURSION_LEVEL_LIMIT_EXCEEDED] 100"),
        ("[COLLECTION_SIZE_LIMIT_EXCEEDED.F] 9. SQLSTATE: 54000", "[COLLECTION_SIZE_LIMIT_EXCEEDED.F] 9"),
        (
            "[TASK_WRITE_FAILED] x. SQLSTATE: 58030 by: [CAST_INVALID_INPUT] y. SQLSTATE: 22018",
            "[CAST_INVALID_INPUT] y",
        ),
        ("[FAILED_READ_FILE.NO_HINT] x. SQLSTATE: KD001", None),
        ("[INTERNAL_ERROR] x. SQLSTATE: XX000", None),
        ("[PYTHON_EXCEPTION] x. SQLSTATE: 38000", None),
        ("Job aborted", None),
    ],
)
@pytest.mark.every_case
def test_an_error_of_a_row_has_one_line(said: str, expected: str | None) -> None:
    assert error_of_value(PySparkRuntimeError(said)) == expected


def test_what_is_wrong_with_a_text_is_no_error_of_a_row() -> None:
    assert error_of_value(AnalysisException("[UNRESOLVED_COLUMN] x. SQLSTATE: 42703")) is None


def test_an_argument_that_spark_refuses_is_an_error_of_a_row() -> None:
    error = IllegalArgumentException("requirement failed: Illegal sequence boundaries")
    assert error_of_value(error) == "requirement failed: Illegal sequence boundaries"


@pytest.mark.spark
@pytest.mark.every_case
@pytest.mark.parametrize(
    ("query", "condition"),
    [
        ("SELECT (SELECT id FROM range(2)) AS one", "SCALAR_SUBQUERY_TOO_MANY_ROWS"),
        ("SELECT map('a', 1, substr('ab', int(id), 1), 2) AS m FROM range(2)", "DUPLICATED_MAP_KEY"),
        ("SELECT sequence(1, 10, 0) AS s", "requirement failed"),
        ("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT * FROM r", "RECURSION_"),
    ],
)
def test_rows_that_cannot_be_computed_are_an_error_of_the_query(
    spark: SparkSession, query: str, condition: str
) -> None:
    with pytest.raises(InvalidInput, match=rf"^cannot evaluate the query: \[?{condition}") as caught:
        arrow_of_frame(spark.sql(query))
    assert "\n" not in caught.value.message


@pytest.mark.spark
@pytest.mark.every_case
@pytest.mark.parametrize(
    ("statement", "verb"),
    [
        (f"MERGE INTO shop.t USING ({MANY}) AS s ON t.id = s.id WHEN MATCHED THEN DELETE", "merge"),
        (f"INSERT INTO shop.t REPLACE ON t.id = s.id ({MANY}) AS s", "insert"),
        (f"CACHE TABLE many AS {MANY}", "cache the rows"),
        (f"UPDATE shop.t SET id = ({MANY})", "update"),
        (f"CREATE TABLE shop.u AS {MANY}", "create the table"),
    ],
)
def test_statements_whose_queries_fail_for_a_row_change_nothing(
    lake: Lake, spark: SparkSession, statement: str, verb: str
) -> None:
    lake.create_table("shop.t", "id long").append(pa.table({"id": [1]}))
    before = lake.table("shop.t").snapshots()
    with pytest.raises(InvalidInput, match=rf"^cannot {verb}: a subquery that is used as a value") as caught:
        lake.sql(statement)
    assert "icefield_" not in str(caught.value)
    assert (lake.tables(), lake.table("shop.t").snapshots()) == (["shop.t"], before)
