"""An Arrow writer of the demo in its own process: signals that it is ready, waits to start, reports each commit.

A failure is reported as one more line, from which the demo raises its own error.
"""

import json
import sys
from dataclasses import asdict

from icefield.cli.demo.orders import arrow_orders
from icefield.cli.demo.race import ERROR, HINT, READY, Task, append_slices
from icefield.errors import IcefieldError


def main() -> None:
    """Append the slices that the first argument names, as JSON."""
    given = json.loads(sys.argv[1])
    task = Task(**{**given, "slices": tuple((start, stop) for start, stop in given["slices"])})
    print(READY, flush=True)
    sys.stdin.readline()
    try:
        for landed in append_slices(task, lambda start, stop: arrow_orders(start, stop, task.total)):
            print(json.dumps(asdict(landed)), flush=True)
    except IcefieldError as error:
        print(json.dumps({ERROR: error.message, HINT: error.hint}), flush=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
