"""Queries over named DataFrames, and their results with the columns of a view.

The query holds the DataFrames themselves, so that the result consists of plans, not of names that must persist: also
over Spark Connect, where a query is analysed again for each action. No job runs here.

Raises InvalidInput for a query that Spark rejects, SchemaMismatch for a result that no longer matches the view.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows

from icefield.errors import InvalidInput, SchemaMismatch
from icefield.expr.query.select import Parts, Query
from icefield.spark.session.analysis_errors import first_line, logged_once
from icefield.spark.types import NO_ID, plain_type, schema_from_spark
from icefield.spark.views.guard import check_plan, check_session
from icefield.types.datatypes import NestedField, StringType, Type, UUIDType, children, with_children
from icefield.types.evolve import can_widen
from icefield.types.schema import Schema


def run_query(spark: SparkSession, query: Query, frames: Mapping[Parts, DataFrame], scope: str) -> DataFrame:
    """Analyse a query in which each name refers to a DataFrame; `scope` is unique to the query."""
    given: dict[str, Any] = {f"icefield_{scope}_{index}": frame for index, frame in enumerate(frames.values())}
    names = dict(zip(frames, given, strict=True))
    # Here Spark's grammar accepts a query and nothing else.
    text = f"SELECT * FROM (\n{query.write(names.__getitem__, scope)}\n)"  # noqa: S608 - it is a query that is run
    check_session(spark, query)
    try:
        with logged_once():
            check_plan(spark, text, scope)
            return spark.sql(_as_template(text, given), **given) if given else spark.sql(text)
    except AnalysisException as error:
        raise InvalidInput(f"Spark cannot read the query: {first_line(error)}") from error
    except Exception as error:
        if "StackOverflowError" in str(error):
            raise InvalidInput("the query is too large for Spark to parse") from error
        # A plan of Spark Connect is one message, and messages must not be nested more than a hundred levels deep.
        if type(error).__module__ == "google.protobuf.message" or "deserializing response" in str(error):
            raise InvalidInput("the query is nested in too many views for Spark Connect") from error
        raise


def conform_to_view(frame: DataFrame, schema: Schema, query_columns: Sequence[str] | None) -> DataFrame:
    """Give the columns of a query, by position, the names and types of a view.

    query_columns: the names of its columns when the view was created; other names now mean other columns.
    """
    # (view spec: SQL representation: aliases are part of the schema)
    wanted = schema.fields
    found = frame.columns[: len(wanted)]
    if len(found) < len(wanted) or (query_columns is not None and list(query_columns) != found):
        raise SchemaMismatch(
            f"the query now returns the columns {', '.join(found)}, but the view was created with "
            f"{', '.join(query_columns or [f.name for f in wanted])}",
            hint="Replace the view",
        )
    # By position, because a query may have two columns of one name.
    placed = frame.toDF(*(str(index) for index in range(len(frame.columns))))
    placed = placed.select([F.col(str(index)) for index in range(len(wanted))])
    given = schema_from_spark(placed.schema).fields
    return placed.select(
        [_conformed(F.col(have.name), have.type, want) for have, want in zip(given, wanted, strict=True)]
    )


def _as_template(text: str, names: Iterable[str]) -> str:
    """Return the text with Spark's own names for DataFrames instead of ours in backticks."""
    template = text.replace("{", "{{").replace("}", "}}")
    for name in names:
        template = template.replace(f"`{name}`", f"`{{{name}}}`")
    return template


def _conformed(column: Column, given: Type, want: NestedField) -> Column:
    target = _shown(want.type)
    wide = plain_type(target)
    if plain_type(given).simpleString() != wide.simpleString() and not can_widen(given, target):
        raise SchemaMismatch(
            f"column {want.name!r} of the view has type {want.type}, but its query now returns {given}",
            hint="Replace the view",
        )
    comment = {"comment": want.doc} if want.doc else {}
    return column.cast(wide).alias(want.name, metadata=NO_ID | comment)


def _shown(kind: Type) -> Type:
    """Return the type that Spark users see, where a uuid is a string."""
    if isinstance(kind, UUIDType):
        return StringType()
    inner = tuple(replace(child, type=_shown(child.type)) for child in children(kind))
    return with_children(kind, inner) if inner else kind
