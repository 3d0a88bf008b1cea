"""Processes of the demo, controlled through lines on their pipes.

A process signals that it is ready, waits to start, and reports each step as a line of JSON. A failure is reported as
one more line, from which the demo raises its own error. A process that goes on until it is stopped looks at an
event, which is set when its standard input is closed.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Self, TypeVar

from icefield.errors import CommitError, IcefieldError

READY, GO = "ready", "go"
ERROR, HINT = "error", "hint"  # keys of the line by which a process tells why it stopped

Event = dict[str, Any]
Item = TypeVar("Item")


class DemoProcess:
    """A process of the demo, seen from the demo."""

    def __init__(self, name: str, module: str, argument: Mapping[str, object]) -> None:
        self.name = name
        command = [sys.executable, "-P", "-m", module, json.dumps(argument)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def events(self) -> Iterator[Event]:
        """Start it, and yield what it reports."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() == READY:
            self._process.stdin.write(f"{GO}\n")
            self._process.stdin.flush()
            for line in self._process.stdout:
                yield self._checked(json.loads(line))
        code = self._process.wait()
        if code:
            raise CommitError(f"the process {self.name} stopped with exit code {code}")

    def stop(self) -> None:
        """Tell it to stop after the step that it is in."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def _checked(self, event: Event) -> Event:
        if ERROR in event:
            raise CommitError(f"the process {self.name} stopped: {event[ERROR]}", hint=event[HINT])
        return event

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        with self._process:  # closes the pipes and waits
            pass


def serve(work: Callable[[Event, threading.Event], Iterator[Event]]) -> None:
    """Be such a process: do the work that the first argument describes, and report each of its steps."""
    stopped = threading.Event()

    def wait_for_the_end() -> None:
        sys.stdin.read()
        stopped.set()

    print(READY, flush=True)
    sys.stdin.readline()
    threading.Thread(target=wait_for_the_end, daemon=True).start()
    try:
        for event in work(json.loads(sys.argv[1]), stopped):
            print(json.dumps(event), flush=True)
    except IcefieldError as error:
        print(json.dumps({ERROR: error.message, HINT: error.hint}), flush=True)
        sys.exit(1)


def interleave(streams: Sequence[Iterator[Item]]) -> Iterator[Item]:
    """Run all streams at the same time, and yield their items as they come; raise the first failure at the end."""
    items: SimpleQueue[Item | None] = SimpleQueue()

    def run(stream: Iterator[Item]) -> None:
        try:
            for item in stream:
                items.put(item)
        finally:
            items.put(None)

    with ThreadPoolExecutor(len(streams)) as pool:
        runs = [pool.submit(run, stream) for stream in streams]
        for _ in streams:
            yield from iter(items.get, None)
        for done in runs:
            done.result()


def perform(workers: Sequence[DemoProcess], watchers: Sequence[DemoProcess]) -> Iterator[tuple[str, Event]]:
    """Run processes at the same time, and yield what they report, with their names.

    The watchers stop when the last of the workers has ended.
    """
    running, lock = {worker.name for worker in workers}, threading.Lock()

    def reports(process: DemoProcess) -> Iterator[tuple[str, Event]]:
        try:
            for event in process.events():
                yield process.name, event
        finally:
            with lock:
                running.discard(process.name)
                if not running:
                    for watcher in watchers:
                        watcher.stop()

    yield from interleave([reports(process) for process in (*workers, *watchers)])
