"""Errors of Spark's Python workers: told in one line, not in a stack trace.

A task that cannot hand an error back as a value raises it as text, from which the driver makes it again.
"""

import base64
import pickle
import re
from typing import NoReturn

from pyspark.errors import PySparkException

from icefield.errors import IcefieldError, StorageError, Unsupported

_MISSING = "No module named 'icefield'"
_PACKED = re.compile(r"icefield-error:([A-Za-z0-9+/=]+):")
_STORE_FAILED = re.compile(r"^icefield\.errors\.StorageError: (.+)$", re.MULTILINE)


def raise_packed(error: IcefieldError) -> NoReturn:
    """Raise an error in a worker so that `explain_worker_fault` finds it in what Spark says."""
    raise RuntimeError(f"icefield-error:{base64.b64encode(pickle.dumps(error)).decode()}: {error}") from None


def explain_worker_fault(error: BaseException) -> IcefieldError | None:
    """Return the error to raise in place of Spark's: one of ours, of the store, or of how the workers are set up."""
    if not isinstance(error, PySparkException):
        return None
    text = str(error)
    if packed := _PACKED.search(text):
        found: IcefieldError = pickle.loads(base64.b64decode(packed[1]))  # noqa: S301 - our own tasks pickled it
        return found
    if _MISSING in text:
        return Unsupported(
            "the Python of Spark's executors has no icefield",
            hint="Install the version of this process there, or ship the package with spark.submit.pyFiles, "
            "spark.archives or, over Spark Connect, spark.addArtifacts(..., pyfile=True)",
        )
    # Tasks raise it, for it may pass when they are tried again. Spark has tried.
    failed = _STORE_FAILED.findall(text)
    return StorageError(failed[-1]) if failed else None
