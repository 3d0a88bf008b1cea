"""Errors of Spark's Python workers, as one line instead of a stack trace.

A task that cannot return an error as a value raises it encoded as text, which the driver decodes.
"""

import base64
import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from pyspark.errors import PySparkException

from icefield.errors import IcefieldError, SourceLost, StorageError, Unsupported, WorkerLost

_MISSING = "No module named 'icefield'"
_LOST = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"
_DIED = "Python worker exited unexpectedly"
# Spark raises its own errors as they come from the JVM. The class is known by name: Spark Connect works without py4j.
_FROM_JVM = "Py4JJavaError"
_PACKED = re.compile(r"icefield-error:([A-Za-z0-9+/=]+):")
_STORE_FAILED = re.compile(r"^icefield\.errors\.StorageError: (.+)$", re.MULTILINE)


def raise_packed(error: IcefieldError) -> NoReturn:
    """Raise an error in a worker so that `explain_worker_error` finds it in Spark's message."""
    raise RuntimeError(f"icefield-error:{base64.b64encode(pickle.dumps(error)).decode()}: {error}") from None


def explain_worker_error(error: BaseException) -> IcefieldError | None:
    """Return the error to raise instead of Spark's: one of ours, of the store, or of the setup of workers."""
    if not isinstance(error, PySparkException) and type(error).__name__ != _FROM_JVM:
        return None
    text = str(error)
    if _LOST in text:
        return SourceLost(
            "Spark lost rows of the source, which it kept in executors",
            hint="Run it again; if executors are lost often, write the source to a table first",
        )
    if packed := _PACKED.search(text):
        found: IcefieldError = pickle.loads(base64.b64decode(packed[1]))  # noqa: S301 - our own tasks pickled it
        return found
    if _MISSING in text:
        return Unsupported(
            "the Python of Spark's executors has no icefield",
            hint="Install the version of this process there, or ship the package with spark.submit.pyFiles, "
            "spark.archives or, over Spark Connect, spark.addArtifacts(..., pyfile=True)",
        )
    # Tasks raise it because a retry may succeed. Spark has already retried.
    if failed := _STORE_FAILED.findall(text):
        return StorageError(failed[-1])
    if _DIED in text:
        return WorkerLost(
            "a Python worker of Spark ended in the middle of its work; it was killed, or ran out of memory",
            hint="Run it again; if it happens again, give workers more memory (spark.executor.memoryOverhead)",
        )
    return None


@contextmanager
def explained_worker_errors() -> Iterator[None]:
    """Raise the error that explains an error of Spark, if there is one."""
    try:
        yield
    except Exception as error:
        if explained := explain_worker_error(error):
            raise explained from error
        raise
