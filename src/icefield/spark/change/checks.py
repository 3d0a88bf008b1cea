"""Checks of users' expressions that Spark makes for its own statements, and not for DataFrames."""

from collections.abc import Sequence
from functools import reduce

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame

from icefield.expr.query.subqueries import Subqueries, has_subquery
from icefield.spark.change.expressions import as_column

_CORRELATED = "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY.UNSUPPORTED_CORRELATED_SCALAR_SUBQUERY"


def check_expressions(left: DataFrame, right: DataFrame, expressions: Sequence[object]) -> None:
    """Let Spark refuse what must not decide on rows: `rand()`, aggregates, window functions.

    Spark refuses these in the condition of a join, also inside subqueries. A task that runs again would otherwise
    decide differently.
    """
    plain = [each for each in expressions if not has_subquery(each)]
    if plain:
        _check(left, right, plain)
    for text in expressions:
        if isinstance(text, str) and has_subquery(text):
            _check_subqueries(left, right, text)


def _check_subqueries(left: DataFrame, right: DataFrame, text: str) -> None:
    try:
        _check(left, right, [text])
    except AnalysisException as error:
        if error.getCondition() != _CORRELATED:
            raise
        # A join cannot have it, but a projection can.
        _check(left, right, _apart(left.join(right), Subqueries(text)))


def _apart(pairs: DataFrame, found: Subqueries) -> list[str]:
    """Return what a join can have instead of scalar subqueries: whether they have rows, and the rest with nulls."""
    scalar = [query for query, is_scalar in zip(found.queries, found.are_scalar, strict=True) if is_scalar]
    kinds = {query: pairs.selectExpr(f"({query})").schema.fields[0].dataType.simpleString() for query in scalar}
    rest = [f"CAST(NULL AS {kinds[query]})" if query in kinds else query for query in found.queries]
    return [*(f"EXISTS ({query})" for query in scalar), found.replace(rest)]


def _check(left: DataFrame, right: DataFrame, expressions: Sequence[object]) -> None:
    # Over Spark Connect a plan is analysed when its schema is needed.
    _ = left.join(right, reduce(Column.__or__, (as_column(each).isNull() for each in expressions))).schema
