"""Check that a session interprets a query as it was checked.

`expr.select` writes queries that every session interprets alike, except for what is checked here: settings that change
the meaning of strings and quoted names, and session functions that replace Spark's own. If Spark runs in this process
(not over Spark Connect), its own parser parses the query too: an independent second check.

Raises Unsupported for a session that would interpret the query differently, and for a plan with anything that was not
checked.
"""

import json
from collections.abc import Iterator
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from icefield.errors import Unsupported
from icefield.expr.query.functions import ALLOWED_FUNCTIONS, GRAMMAR_FUNCTIONS, OPERATORS
from icefield.expr.query.select import Query
from icefield.spark.session.session import is_remote

_QUOTED_NAMES_ARE_PATTERNS = "spark.sql.parser.quotedRegexColumnNames"
_BACKSLASHES_ARE_LITERAL = "spark.sql.parser.escapedStringLiterals"
_OWN_FUNCTIONS = "org.apache.spark.sql.catalyst."
_CALLS = {"UnresolvedFunction": "nameParts", "UnresolvedTableValuedFunction": "name", "UnresolvedGenerator": "name"}
_PLANS = "org.apache.spark.sql.catalyst."
_REFUSED_NODES = (
    "Command",
    "ScriptTransformation",
    "PlanWithUnresolvedIdentifier",
    "ExpressionWithUnresolvedIdentifier",
)


def check_session(spark: SparkSession, query: Query) -> None:
    """Raise Unsupported for a session in which the query would have another meaning."""
    meanings = [(_QUOTED_NAMES_ARE_PATTERNS, "quoted names as patterns")]
    if query.has_escapes:
        meanings.append((_BACKSLASHES_ARE_LITERAL, "backslashes in strings as they are"))
    for setting, meaning in meanings:
        if str(spark.conf.get(setting, "false")).strip().lower() == "true":
            raise Unsupported(f"views cannot be read while {setting} is set: it reads {meaning}", hint="Unset it")
    # If Spark's parser is available, it shows which keywords it parses as functions.
    keywords = query.keywords if is_remote(spark) else frozenset[str]()
    for name in sorted(query.functions - GRAMMAR_FUNCTIONS | keywords):
        if not _is_sparks_own(spark, name):
            raise Unsupported(
                f"the view uses Spark's function {name}, but the session has its own function of that name",
                hint="Register it under another name",
            )


def check_plan(spark: SparkSession, text: str, scope: str) -> None:
    """Compare Spark's parse of a query with the checked one, if the parser is in this process."""
    if is_remote(spark):
        return
    parser = spark._jsparkSession.sessionState().sqlParser()  # noqa: SLF001 - pyspark has no other way to it
    plan = parser.parsePlan(text)
    for node in _nodes(json.loads(plan.toJSON())):
        kind = str(node["class"])
        short = kind.rpartition(".")[2]
        if not kind.startswith(_PLANS) or short.endswith(_REFUSED_NODES):
            raise _refused(f"a {short}")
        if short == "UnresolvedRelation" and not node["multipartIdentifier"].startswith(f"[icefield_{scope}_"):
            raise _refused(f"the relation {node['multipartIdentifier']}")
        if short in _CALLS and _called(node[_CALLS[short]]) not in ALLOWED_FUNCTIONS | OPERATORS:
            raise _refused(f"the function {_called(node[_CALLS[short]])}")


def _is_sparks_own(spark: SparkSession, name: str) -> bool:
    try:
        return str(spark.catalog.getFunction(name).className or "").startswith(_OWN_FUNCTIONS)
    except AnalysisException:
        # Either this version of Spark has it in its grammar, or none does: the query shows which.
        return True


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the nodes of a plan, its expressions and the plans in those."""
    if isinstance(value, dict):
        if "class" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _nodes(each)


def _called(name: Any) -> str:
    """Return a function's name as it is in a plan: `[upper]`, or a FunctionIdentifier."""
    return str(name["funcName"] if isinstance(name, dict) else name.strip("[]")).lower()


def _refused(what: str) -> Unsupported:
    return Unsupported(f"Spark finds {what} in the query of a view, which the check did not find")
