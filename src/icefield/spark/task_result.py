"""What a task of a change returns to the driver: one small row, with its result or the error to raise.

An error that a retry cannot fix is returned as a value, so that Spark neither retries it nor buries it in a stack
trace.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from icefield.errors import IcefieldError

RESULTS = "result binary, error binary"


def packed_result(run: Callable[[], object], abort: Callable[[], None]) -> pa.RecordBatch:
    """Run a task in a worker, and return its row. abort: removes what it wrote, after an error."""
    result, error = None, None
    try:
        result = pickle.dumps(run())
    except IcefieldError as found:
        abort()
        if found.retryable:
            raise
        error = pickle.dumps(found)
    except BaseException:
        abort()
        raise
    return pa.RecordBatch.from_arrays(
        [pa.array([result], pa.binary()), pa.array([error], pa.binary())], names=["result", "error"]
    )


def unpacked_results(rows: Iterable[Any]) -> Iterator[Any]:
    """Yield the results of tasks; raise the error that one of them returned."""
    for row in rows:
        if row["error"] is not None:
            raise pickle.loads(bytes(row["error"]))  # noqa: S301 - our own tasks pickled it
        yield pickle.loads(bytes(row["result"]))  # noqa: S301
