"""Check that Spark's Python workers can run tasks of this package: once per session, before the first task.

A user's session runs the Python that its environment named at the start: `python3` on the PATH of a cron job, say.
Raises Unsupported, with a hint what to set; other errors of Spark are raised unchanged.
"""

import re
import sys
from importlib import metadata

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from icefield.errors import Unsupported
from icefield.spark.session import worker_probe

# Stored in the session itself, because there may be several objects of one session.
_CHECKED = "icefield.workers.checked"
_HINT = (
    "Set PYSPARK_PYTHON to {python}, or to a Python with the same packages on every executor, before Spark is started "
    "(over Spark Connect: for its server); or ship the package with spark.submit.pyFiles, spark.archives or "
    "spark.addArtifacts"
)
# Spark's messages if a worker does not start, and the part of them that gives the reason.
_FAULTS = re.compile(
    r"\[PYTHON_VERSION_MISMATCH\][^\n]*?driver: [\d.]+|No module named '[\w.]+'|"
    r"Cannot run program[^\n]*|\[PACKAGE_NOT_INSTALLED\][^\n]*|\[UNSUPPORTED_PACKAGE_VERSION\][^\n]*|"
    r"Python worker exited unexpectedly[^\n]*"
)


def check_workers(spark: SparkSession) -> None:
    """Raise Unsupported for workers without this package, or with another version of it."""
    if spark.conf.get(_CHECKED, None) is not None:
        return
    ours = metadata.version("icefield")
    cloudpickle.register_pickle_by_value(worker_probe)  # type: ignore[no-untyped-call]
    try:
        (found,) = spark.range(1).coalesce(1).mapInArrow(worker_probe.look, worker_probe.FOUND).collect()
    except Exception as error:  # a worker that does not start raises an error of Java, not of pyspark
        if why := _FAULTS.search(str(error)):
            raise _refusal(why[0]) from error
        raise
    finally:
        cloudpickle.unregister_pickle_by_value(worker_probe)  # type: ignore[no-untyped-call]
    if found.reason is not None:
        raise _refusal(f"{found.python} cannot import icefield: {found.reason}")
    if found.version not in (ours, None):
        raise _refusal(f"{found.python} has icefield {found.version}, but this process has {ours}")
    spark.conf.set(_CHECKED, ours)


def _refusal(why: str) -> Unsupported:
    return Unsupported(
        f"the Python of Spark's workers cannot run icefield's tasks: {why}", hint=_HINT.format(python=sys.executable)
    )
