"""Errors of expressions, in Spark's analyser or in a task, as one line instead of a plan or a stack trace."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkTypeError
from pyspark.logger import PySparkLogger

from icefield.errors import IcefieldError, InvalidInput

_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_TOO_MANY_ROWS = "SCALAR_SUBQUERY_TOO_MANY_ROWS"
_CONDITION = r"(\[[A-Z0-9_.]+\] (?:(?!SQLSTATE:).)*?)\.? SQLSTATE: "
# A data exception, or an error that an expression raises.
_OF_A_VALUE = re.compile(rf"{_CONDITION}(?:22\w{{3}}|P0001)", re.DOTALL)
# What else is found when rows are read: too many rows of a subquery, keys that occur twice, a recursion without an end,
# and limits. Other classes are errors of the machine, of files, and of Spark itself.
_OF_A_RUN = re.compile(rf"{_CONDITION}(?:21|23|42|54)\w{{3}}", re.DOTALL)
# The frames of an exception in a Python worker, and what it says.
_RAISED = re.compile(r"Traceback \(most recent call last\):\n((?:[ \t]+\S[^\n]*\n)+)(\S[^\n]*)")
_OWN_FRAME = re.compile(r'File "[^"]*[/\\]icefield[/\\](?:engine|parquet|spark)[/\\]')
_POSITION = re.compile(r"[;.]? *(SQLSTATE: \w+)?[;.]? *(line \d+ pos \d+)?;?$")


def first_line(error: Exception) -> str:
    """Return the reason that Spark gives."""
    lines = (line.strip() for line in str(error).splitlines())
    # The position refers to the text that Spark got, which the user did not write.
    return _POSITION.sub("", next(filter(None, lines), "no reason given"))


@contextmanager
def logged_once() -> Iterator[None]:
    """Keep pyspark from logging, with its stack, the error that it raises."""
    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, was in zip(loggers, before, strict=True):
            logger.disabled = was


def error_of_value(error: Exception) -> str | None:
    """Return the reason if an expression failed for a row: a division by zero, an invalid cast, `raise_error`."""
    found = _OF_A_VALUE.search(str(error))
    if found is None and not isinstance(error, AnalysisException):
        found = _OF_A_RUN.search(str(error))
    if found is None and isinstance(error, IllegalArgumentException | PySparkTypeError):
        return first_line(error)
    return " ".join(found[1].split()) if found else None


def error_of_function(error: Exception) -> str | None:
    """Return what a Python function of the user raised; None for an error of our own tasks."""
    found = _RAISED.findall(str(error))
    if not found or any(_OWN_FRAME.search(frames) for frames, _ in found):
        return None
    return str(found[-1][1]).strip()


@contextmanager
def explained_analysis(verb: str) -> Iterator[None]:
    """Raise InvalidInput for an expression that Spark rejects, or that fails for a row."""
    try:
        with logged_once():
            yield
    except IcefieldError:
        raise
    except Exception as error:
        # Depending on the plan, Spark raises errors of values as errors of the JVM, too.
        if _TOO_MANY_ROWS in str(error):
            raise InvalidInput(
                f"cannot {verb}: a subquery that is used as a value returned more than one row",
                hint="Aggregate it, or use IN",
            ) from error
        if reason := error_of_value(error) or error_of_function(error):
            raise InvalidInput(f"cannot {verb}: an expression fails: {reason}") from error
        if not isinstance(error, AnalysisException):
            raise
        reason, _, _ = first_line(error).partition(" Did you mean one of the following?")
        raise InvalidInput(f"cannot {verb}: Spark rejects an expression: {reason}") from error
