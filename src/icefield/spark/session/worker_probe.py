"""Probe Spark's Python workers, before any task of this package runs.

This module must not import the package: a worker gets the function by value, since it may not have the module.
"""

import sys
from collections.abc import Iterator
from importlib import metadata

import pyarrow as pa

FOUND = "python string, version string, reason string"


def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the interpreter of a worker, and the version of its package or why it cannot be imported."""
    for _ in batches:
        pass
    version, reason = None, None
    try:
        __import__("icefield.spark.write.task")
        version = metadata.version("icefield")
    except metadata.PackageNotFoundError:
        pass  # it was shipped as plain files
    except Exception as error:
        paths = list(getattr(sys.modules.get("icefield"), "__path__", ()))
        reason = f"{type(error).__name__}: {error}" + (f" (its icefield is {paths[0]})" if paths else "")
    yield pa.RecordBatch.from_pylist([{"python": sys.executable, "version": version, "reason": reason}])
