"""What Spark's Python workers are: run in one of them, before anything of this package is.

Nothing of this package may be imported here: a worker gets the function itself, for it may not have the module.
"""

import sys
from collections.abc import Iterator
from importlib import metadata

import pyarrow as pa

FOUND = "python string, version string, fault string"


def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Tell the interpreter of a worker, the version of the package that it has, or why it cannot be imported."""
    for _ in batches:
        pass
    version, fault = None, None
    try:
        __import__("icefield.spark.write.task")
        version = metadata.version("icefield")
    except metadata.PackageNotFoundError:
        pass  # it was shipped as plain files
    except Exception as error:
        places = list(getattr(sys.modules.get("icefield"), "__path__", ()))
        fault = f"{type(error).__name__}: {error}" + (f" (its icefield is {places[0]})" if places else "")
    yield pa.RecordBatch.from_pylist([{"python": sys.executable, "version": version, "fault": fault}])
