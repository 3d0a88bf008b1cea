"""Checks of users' expressions that Spark makes for its own statements, and not for DataFrames."""

import re
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame

from icefield.errors import InvalidInput
from icefield.spark.change.expressions import as_column

# A string, a quoted name, or a comment.
_QUOTED = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|--[^\n]*|/\*.*?\*/", re.DOTALL)
_SUBQUERY = re.compile(r"\(\s*(?:select|with|from|values|table)\b", re.IGNORECASE)


def refuse_subqueries(expressions: Sequence[object]) -> None:
    """Refuse subqueries, as Spark does in MERGE."""
    for text in expressions:
        if isinstance(text, str) and _SUBQUERY.search(_QUOTED.sub(" ", text)):
            raise InvalidInput(
                f"cannot merge: {text!r} contains a subquery, and a merge cannot", hint="Join it to the source first"
            )


def check_expressions(left: DataFrame, right: DataFrame, expressions: Sequence[object]) -> None:
    """Let Spark refuse what must not decide on rows: `rand()`, aggregates, window functions.

    Spark refuses these in the condition of a join. A task that runs again would otherwise decide differently.
    """
    columns = [as_column(each).isNull() for each in expressions]
    if columns:
        # Over Spark Connect a plan is analysed when its schema is needed.
        _ = left.join(right, reduce(Column.__or__, columns)).schema
