"""A lake that is put back to how it was before every crash, and the process that crashes in it."""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from tests.crash.operations import OPERATIONS, prepare, rows
from tests.crash.steps import Hit
from tests.crash.wholeness import Content, Fingerprint, check_whole, content, fingerprint, sweep

import icefield
from icefield.ambient import SeededAmbient
from icefield.lake import Lake

ROOT = Path(__file__).parents[2]
DOOMED = "doomed"  # the application name of the sessions that die
CATALOG_TABLES = ("iceberg_tables", "iceberg_namespace_properties")
BASE_SEED, DOOMED_SEED, LATER_SEED = 1, 2, 3
SESSIONS_END_S = 30


@dataclass(frozen=True)
class Crash:
    """What the doomed process reported before its end: the steps it took, the signal it got, the error it met."""

    steps: list[tuple[str, bool]]
    signal: int
    error: dict[str, Any] | None


class Zygote:
    """The warm process that children are forked from."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.crash.zygote"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, request: dict[str, Any]) -> Crash:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        report = json.loads(self._process.stdout.readline())
        return Crash([(label, effect) for label, effect in report["steps"]], report["signal"], report["error"])

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


class Scene:
    """One operation on one catalog, in SQLite or at a PostgreSQL server's URL: crashed, looked at, and put back."""

    def __init__(self, zygote: Zygote, operation: str, folder: Path, url: str | None) -> None:
        self._zygote = zygote
        self._operation = operation
        self._url = url
        self._server = psycopg.connect(url, autocommit=True) if url else None
        self.folder = folder / "lake"
        self._saved = folder / "saved"
        self._seen: dict[Fingerprint, Content] = {}  # what was looked at closely, and need not be again
        with self.open(BASE_SEED) as lake:
            prepare(lake)
            self.old: Content = content(lake)
        shutil.copytree(self.folder, self._saved)
        self._rows = {table: self._query(f"SELECT * FROM {table}") for table in CATALOG_TABLES} if url else {}
        unharmed = self.crash(Hit.NOTHING, -1)
        assert unharmed.error is None, unharmed.error["text"]
        self.steps = unharmed.steps
        with self.open(LATER_SEED) as lake:
            self.new: Content = content(lake)
        assert self.new != self.old

    @property
    def is_on_server(self) -> bool:
        return self._url is not None

    def close(self) -> None:
        if self._server:
            self._server.close()

    @contextmanager
    def open(self, seed: int) -> Iterator[Lake]:
        """Open the lake with a clock that does not wait for the dead."""
        ambient = SeededAmbient(seed)
        if self._url is None:
            with icefield.connect(self.folder, ambient=ambient, durable=False) as lake:
                yield lake
        else:
            with icefield.connect(self._url, warehouse=self.folder, ambient=ambient, durable=False) as lake:
                yield lake

    def crash(self, hit: Hit, at: int, planted: str = "nothing") -> Crash:
        """Put the lake back, and run the operation in a process that is hit at a step."""
        self._put_back()
        target = f"{self._url}&application_name={DOOMED}" if self._url else str(self.folder)
        request: dict[str, Any] = {
            "target": target,
            "warehouse": str(self.folder) if self._url else None,
            "folder": str(self.folder),
        }
        request |= {"operation": self._operation, "hit": hit.value, "at": at, "planted": planted}
        crash = self._zygote.ask({**request, "seed": DOOMED_SEED})
        if self._url is not None:
            self._await_end_of_sessions()
        return crash

    def kill(self, at: int, planted: str = "nothing") -> bool:
        """Kill the operation before a step, check what is left, and return whether it was done."""
        with self._explained(at):
            crash = self.crash(Hit.KILL, at, planted)
            assert crash.signal == signal.SIGKILL
            return self._check() == self.new

    def fail(self, at: int, hit: Hit, planted: str = "nothing") -> None:
        """Let a step fail, and check what is left and what was said of it."""
        with self._explained(at):
            crash = self.crash(hit, at, planted)
            assert crash.signal == 0
            found = self._check()
            if crash.error is None:
                assert found == self.new, "it said that it was done"
            else:
                assert crash.error["ours"], crash.error["text"]
                assert found == self.old or not crash.error["cleanable"], f"it was done: {crash.error['text']}"

    def tear(self, after_bytes: int) -> tuple[int, bool]:
        """Kill SQLite after so many bytes of a COMMIT, and return the signal and whether the operation was done."""
        crash = self.crash(Hit.TEAR, after_bytes)
        return crash.signal, self._check() == self.new

    def _check(self) -> Content:
        """Check that the lake is as before or as after, whole, and can go on; return which it was."""
        # A dead writer in the queue is passed, but only after a while, which the tests of the queue check.
        shutil.rmtree(self.folder / "catalog.queue", ignore_errors=True)
        with self.open(LATER_SEED) as lake:
            files = fingerprint(lake, self.folder)
            if files in self._seen:
                lake.table("a.t").set_properties({"the next commit": "works"})
            else:
                self._seen[files] = self._look_closely(lake)
        return self._seen[files]

    def _look_closely(self, lake: Lake) -> Content:
        found = content(lake)
        assert found in (self.old, self.new), "neither the old state nor the new one"
        check_whole(lake)
        self._check_can_go_on(lake, found)
        return found

    @contextmanager
    def _explained(self, at: int) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            error.add_note(f"{self._operation}, hit at step {at}: {self.steps[at][0]}")
            raise

    def _check_can_go_on(self, lake: Lake, found: Content) -> None:
        operation = OPERATIONS[self._operation]
        if operation.repeatable or found == self.old:
            operation.run(lake)
            assert content(lake) == self.new, "doing it again does not do it once"
        for name in lake.tables():
            lake.table(name).append(rows(100))
        sweep(lake, self.folder)
        for name, (_, known, *_) in content(lake).items():
            assert [row["id"] for row in known] == [*(row["id"] for row in self.new[name][1]), 100]
        check_whole(lake)

    def _put_back(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self._saved, self.folder)
        for table, saved in self._rows.items():
            self._query(f"DELETE FROM {table}")
            for row in saved:
                self._query(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", row)

    def _query(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        assert self._server
        cursor = self._server.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []

    def _await_end_of_sessions(self) -> None:
        """Wait until the server has noticed: what was sent before the death may still be on its way."""
        deadline = time.monotonic() + SESSIONS_END_S
        while self._query("SELECT 1 FROM pg_stat_activity WHERE application_name = %s", (DOOMED,)):
            assert time.monotonic() < deadline, "the server does not notice the death"
            time.sleep(0.002)
