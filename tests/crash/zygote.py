"""Run operations in children that are forked from one warm process: a line of JSON in, a line of JSON out.

A request has target, warehouse (or null), folder, operation, hit, at, seed and planted. The answer has the steps that
the child took, the signal that killed it, and the error that it met. This process opens no catalog itself.
"""

import json
import os
import sys
import traceback
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.crash.hooks import install
from tests.crash.operations import OPERATIONS, prepare
from tests.crash.planted import PLANTED
from tests.crash.steps import Hit, Steps
from tests.crash.torn import tear_commit

import icefield
from icefield.ambient import SeededAmbient
from icefield.errors import IcefieldError


def main() -> None:
    warm_up()
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


def warm_up() -> None:
    """Have everything compiled that the children need."""
    for operation in OPERATIONS.values():
        with icefield.connect("memory:") as lake:
            prepare(lake)
            operation.run(lake)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            run(request, writing)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        report = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {"steps": [], "error": None, **(json.loads(report) if report else {}), "signal": -status}


def run(request: dict[str, Any], writing: int) -> None:
    PLANTED[request["planted"]]()
    steps = Steps(Hit(request["hit"]), request["at"])
    install(steps, Path(request["folder"]))
    if request["hit"] == Hit.TEAR.value:
        tear_commit(Path(request["folder"]) / "catalog.db-wal", request["at"])
    error: dict[str, Any] | None = None
    ambient = SeededAmbient(request["seed"])
    with closing(icefield.connect(request["target"], warehouse=request["warehouse"], ambient=ambient)) as lake:
        try:
            OPERATIONS[request["operation"]].run(lake)
        except BaseException as raised:
            error = describe(raised)
        # The end is a step too: everything was done, and nobody knows.
        steps.take("end", lambda: None, RuntimeError, effect=True)
        steps.end()
    os.write(writing, json.dumps({"steps": steps.taken, "error": error}).encode())


def describe(error: BaseException) -> dict[str, Any]:
    ours = isinstance(error, IcefieldError)
    text = "".join(traceback.format_exception(error))
    return {"name": type(error).__name__, "ours": ours, "cleanable": getattr(error, "cleanable", None), "text": text}


if __name__ == "__main__":
    main()
