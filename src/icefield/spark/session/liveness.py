"""Whether a DataFrame, or one that is derived from it, can still be read.

In a session of this process, derived DataFrames share the plan of the first one, and physical plans (of `df.rdd`) share
its relations of files; both are in the JVM, where weak references to them are cleared once nobody has them. Over Spark
Connect plans are Python objects that reference what they were derived from.
"""

import weakref
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import DataFrame

from icefield.spark.session.session import is_remote

_OF_FILES = "LogicalRelation"


def liveness_of(frame: DataFrame) -> Callable[[], bool]:
    """Return a function that tells whether anything is left that can read a DataFrame; it keeps nothing alive."""
    if is_remote(frame.sparkSession):
        plan: Any = frame._plan  # noqa: SLF001 - its plan may outlive a DataFrame
        left = weakref.ref(plan)
        return lambda: left() is not None
    java: Any = frame.sparkSession._jvm  # noqa: SLF001 - there is no other way to the JVM
    references = [java.java.lang.ref.WeakReference(each) for each in _needed(frame)]

    def is_alive() -> bool:
        try:
            return not all(reference.refersTo(None) for reference in references)
        except Exception:  # py4j has errors of its own, and is not there with Spark Connect
            return False  # the JVM is gone

    return is_alive


def _needed(frame: DataFrame) -> Iterator[Any]:
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001 - there is no other way to the plan
    yield plan
    leaves = plan.collectLeaves()
    for at in range(leaves.size()):
        leaf = leaves.apply(at)
        if leaf.getClass().getSimpleName() == _OF_FILES:
            yield leaf.relation()
