"""Errors of Spark about a text: the condition, one line of explanation, and the part of the text that is wrong."""

import re
from contextlib import suppress

from pyspark.errors import PySparkException, QueryContextType

from icefield.engine.queries.sql import RefusedBySpark

_LINE_AND_POSITION = re.compile(r"\(?line (\d+),? pos(?:ition:?)? ?(\d+)\)?")
_CONDITION = re.compile(r"^\[([A-Z0-9_.]+)\] ?")
# What follows the explanation: the plan, the text with a marker, or the position.
_REST = re.compile(
    r"[;.]? *SQLSTATE:.*|;?\s*line \d+,? pos(?:ition)? \d+.*|\s*== SQL.*|\s*\(line \d+, pos.*", re.DOTALL
)


def refusal_of(error: PySparkException, text: str) -> RefusedBySpark:
    """Return what Spark says about a text."""
    message = _message_of(error)
    condition = error.getCondition() or (found[1] if (found := _CONDITION.search(message)) else "")
    said = " ".join(_REST.sub("", _CONDITION.sub("", message)).split())
    start, stop = _place_of(error, message, text)
    return RefusedBySpark(condition, said or type(error).__name__, start, stop)


def _message_of(error: PySparkException) -> str:
    with suppress(Exception):  # the message of an error that pyspark itself raises may be missing
        found = error.getMessage()
        if found:
            return str(found).strip()
    return str(error).strip()


def _place_of(error: PySparkException, message: str, text: str) -> tuple[int | None, int | None]:
    with suppress(Exception):  # some versions have no context for some errors
        for context in error.getQueryContext():
            if context.contextType() == QueryContextType.SQL and not str(context.objectName()).strip("`"):
                return int(context.startIndex()), int(context.stopIndex()) + 1
    found = _LINE_AND_POSITION.search(message) or _LINE_AND_POSITION.search(str(error))
    if found is None:
        return None, None
    lines = text.split("\n")
    line, column = int(found[1]), int(found[2])
    if line > len(lines):
        return None, None
    start = sum(len(each) + 1 for each in lines[: line - 1]) + column
    return start, start
