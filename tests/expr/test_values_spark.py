"""Random expressions have the same values, nulls, types and errors on Arrow data as in Spark."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.effort import scaled, seeds
from tests.expr.test_spark_meaning import session_settings
from tests.expr.value_cases import ASSIGNABLE, LEAVES, TYPES, chain, expression, rows

from icefield.errors import InvalidInput, NeedsSpark
from icefield.expr.values.bind import parse_value
from icefield.expr.values.scope import Scope, Side
from icefield.expr.values.value import Value
from icefield.types.arrow import arrow_type, physical_array, schema_from_arrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 40
EXPRESSIONS = 300
CHUNK = 100
# Each is a job of its own.
FAILURES = 12
# It evaluates the rows in the middle of the optimization.
NOT_OPTIMIZED = "ConvertToLocalRelation"
SPARK_FAILS = "Spark fails"
# With these Spark does not evaluate parts that it finds to be without effect, or in another order, so that
# it fails for other rows.
SHORTCUTS = (
    *(
        "BooleanSimplification",
        "PushFoldableIntoBranches",
        "ReorderAssociativeOperator",
        "SimplifyConditionals",
        "SimplifyBinaryComparison",
    ),
    *("UnwrapCastInBinaryComparison", "OptimizeIn", "ReplaceNullWithFalseInPredicate"),
)


class Case:
    """An expression, our values, and the rows for which it fails: all of them, if it cannot be bound."""

    def __init__(self, text: str, scope: Scope, batch: pa.RecordBatch, ours: str | None = None) -> None:
        self.text = text
        self.type: pa.DataType | None = None
        self.values: list[Any] = [None] * batch.num_rows
        self.failed: list[int] = []
        try:
            value = parse_value(ours or text, scope)
        except InvalidInput:
            self.failed += range(batch.num_rows)
            return
        self.type = arrow_type(value.type)
        try:
            self.values = plain(value.evaluate({"target": batch}, batch.num_rows))
        except InvalidInput:
            self._row_by_row(value, batch)

    def _row_by_row(self, value: Value, batch: pa.RecordBatch) -> None:
        for row in range(batch.num_rows):
            try:
                (self.values[row],) = plain(value.evaluate({"target": batch.slice(row, 1)}, 1))
            except InvalidInput:
                self.failed.append(row)

    @property
    def spark_text(self) -> str:
        """The expression for the rows for which it does not fail."""
        if not self.failed:
            return self.text
        return f"CASE WHEN at NOT IN ({', '.join(map(str, self.failed))}) THEN {self.text} END"


def plain(array: pa.Array) -> list[Any]:
    """Return values with dates and times as numbers: Python's end with the year 9999."""
    return physical_array(array).to_pylist()  # type: ignore[no-any-return]


def frame_of(spark: "SparkSession", batch: pa.RecordBatch) -> "DataFrame":
    """Return the rows in Spark, which reads Arrow's timestamps without a zone as those of the session's."""
    columns = [f"CAST({name} AS TIMESTAMP_NTZ)" if name == "ts" else name for name in batch.schema.names]
    return spark.createDataFrame(pa.Table.from_batches([batch])).selectExpr(*columns).toDF(*batch.schema.names)


def cases(random: Random, batch: pa.RecordBatch, count: int) -> tuple[list[Case], Counter[str]]:
    scope = Scope((Side("target", schema_from_arrow(batch.schema)),))
    found, outcomes = [], Counter[str]()
    for _ in range(count):
        is_chain = random.random() < 0.2
        text = chain(random) if is_chain else expression(random, random.choice(list(LEAVES)), random.randint(1, 4))
        try:
            found.append(Case(text, scope, batch))
            outcomes["failed" if found[-1].failed else "evaluated"] += 1
        except NeedsSpark:
            outcomes["needs Spark"] += 1
    return found, outcomes


def differences(frame: "DataFrame", some: list[Case]) -> list[tuple[Case, str]]:
    """Return the expressions for which Spark has another type or other values."""
    try:
        table = frame.selectExpr("at", *(f"{case.spark_text} AS c{i}" for i, case in enumerate(some))).toArrow()
    except Exception as error:
        if len(some) == 1:
            return [(some[0], f"{some[0].text}: {SPARK_FAILS}: {str(error)[:300]}")]
        middle = len(some) // 2
        return [*differences(frame, some[:middle]), *differences(frame, some[middle:])]
    table = table.sort_by("at")
    compared = [(case, _difference(case, table[f"c{i}"])) for i, case in enumerate(some)]
    return [(case, f"{case.text}: {difference}") for case, difference in compared if difference]


def _difference(case: Case, theirs: pa.ChunkedArray) -> str | None:
    if theirs.type != case.type:
        return f"our type is {case.type}, Spark's {theirs.type}"
    # By text, so that NaN equals itself and -0.0 is not 0.0.
    values = plain(theirs.combine_chunks())
    wrong = [row for row, (a, b) in enumerate(zip(case.values, values, strict=True)) if repr(a) != repr(b)]
    return f"row {wrong[0]} is {case.values[wrong[0]]!r}, in Spark {values[wrong[0]]!r}" if wrong else None


@contextmanager
def without_rules(spark: "SparkSession", *names: str) -> Iterator[None]:
    """Leave rules of the optimizer out; and interpret expressions, since compiling hundreds takes longer."""
    rules = ",".join(f"org.apache.spark.sql.catalyst.optimizer.{name}" for name in names)
    from tests.spark_places import INTERPRETED, changed  # noqa: PLC0415 - only tests that ask for Spark load it

    with changed(spark, {"spark.sql.optimizer.excludedRules": rules, **INTERPRETED}):
        yield


def spark_fails(frame: "DataFrame", case: Case) -> bool:
    try:
        frame.where(f"at = {case.failed[0]}").selectExpr(f"{case.text} AS c").collect()
    except Exception:
        return True
    return False


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_random_expressions_are_those_of_spark(spark: "SparkSession", seed: int) -> None:
    random = Random(seed)
    batch = rows(random, ROWS).combine_chunks().to_batches()[0]
    found, outcomes = cases(random, batch, scaled(EXPRESSIONS))
    assert outcomes["evaluated"] > outcomes.total() // 2, outcomes
    # No value depends on the zone of the session.
    with session_settings(spark, "true", "America/New_York"):
        frame = frame_of(spark, batch)
        with without_rules(spark, NOT_OPTIMIZED):
            bound = [case for case in found if case.type is not None]
            differing = [
                each for at in range(0, len(bound), CHUNK) for each in differences(frame, bound[at : at + CHUNK])
            ]
        with without_rules(spark, NOT_OPTIMIZED, *SHORTCUTS):
            wrong = [text for case, text in differing if SPARK_FAILS not in text or differences(frame, [case])]
            failing = [case for case in found if case.failed][:FAILURES]
            silent = [case for case in failing if not spark_fails(frame, case)]
    wrong += [f"{case.text}: Spark does not fail for row {case.failed[0]}" for case in silent]
    assert not wrong, "\n".join(wrong)


def test_spark_assigns_the_types_that_we_assign(spark: "SparkSession", tmp_path: Path) -> None:
    columns = ", ".join(f"c{i} {word}" for i, word in enumerate(TYPES))
    spark.sql(f"CREATE TABLE assigned ({columns}) USING parquet LOCATION '{tmp_path}'")
    try:
        for source, assignable in ASSIGNABLE.items():
            plans = {
                target: spark.sql(f"EXPLAIN INSERT INTO assigned (c{i}) SELECT CAST(NULL AS {source})").collect()[0][0]
                for i, target in enumerate(TYPES)
            }
            # The text of a statement that is refused is an error.
            assert {target for target, plan in plans.items() if "Physical Plan" in plan} == assignable
    finally:
        spark.sql("DROP TABLE assigned")


def test_the_comparison_can_fail(spark: "SparkSession") -> None:
    batch = rows(Random(0), ROWS).combine_chunks().to_batches()[0]
    scope = Scope((Side("target", schema_from_arrow(batch.schema)),))
    frame = frame_of(spark, batch)
    case = Case("d + 1D", scope, batch, "d + 2D")
    assert "in Spark" in differences(frame, [case])[0][1]
    case = Case("at + 1L", scope, batch, "d + 1")
    assert "our type" in differences(frame, [case])[0][1]
    case = Case("d / 1D", scope, batch, "d / d")
    assert case.failed
    assert not spark_fails(frame, case)
