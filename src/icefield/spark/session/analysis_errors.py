"""Errors of Spark's analyser, as one line instead of a plan."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger

_POSITION = re.compile(r"[;.]? *(SQLSTATE: \w+)?[;.]? *(line \d+ pos \d+)?;?$")


def first_line(error: AnalysisException) -> str:
    """Return the reason that Spark gives."""
    lines = (line.strip() for line in str(error).splitlines())
    # The position refers to the text that Spark got, which the user did not write.
    return _POSITION.sub("", next(filter(None, lines), "no reason given"))


@contextmanager
def logged_once() -> Iterator[None]:
    """Keep pyspark from logging, with its stack, the error that it raises."""
    logger = PySparkLogger.getLogger("SQLQueryContextLogger")
    was, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = was
