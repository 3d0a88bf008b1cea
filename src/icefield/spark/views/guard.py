"""Whether a session reads a checked query as it was checked.

`expr.select` writes queries that every session reads alike, but for what is looked at here: settings that give strings
and quoted names another meaning, and functions of the session in place of Spark's own. Where Spark runs in this process
(not over Spark Connect), its own parser is asked too what it makes of the text: a second check that shares nothing with
the first.

Raises Unsupported for a session that would read the query differently, and for a plan with anything but what was
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
    """Refuse a session in which the query would not mean what its author wrote."""
    meanings = [(_QUOTED_NAMES_ARE_PATTERNS, "quoted names as patterns")]
    if query.has_escapes:
        meanings.append((_BACKSLASHES_ARE_LITERAL, "backslashes in strings as they are"))
    for setting, meaning in meanings:
        if str(spark.conf.get(setting, "false")).strip().lower() == "true":
            raise Unsupported(f"views cannot be read while {setting} is set: it reads {meaning}", hint="Unset it")
    # Where Spark's parser can be asked, it tells which keywords it takes for functions.
    keywords = query.keywords if is_remote(spark) else frozenset[str]()
    for name in sorted(query.functions - GRAMMAR_FUNCTIONS | keywords):
        if not _is_sparks_own(spark, name):
            raise Unsupported(
                f"the view uses Spark's function {name}, and the session has a function of its own by that name",
                hint="Register it under another name",
            )


def check_plan(spark: SparkSession, text: str, scope: str) -> None:
    """Compare what Spark's parser makes of a query with what was checked, where the parser is in this process."""
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
        # The grammar of this version of Spark has it, or no version: the query shows that.
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
    """Return a function's name as a plan tells it: `[upper]`, or a FunctionIdentifier."""
    return str(name["funcName"] if isinstance(name, dict) else name.strip("[]")).lower()


def _refused(what: str) -> Unsupported:
    return Unsupported(f"Spark finds {what} in the query of a view, where none was found before")
