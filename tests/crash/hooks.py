"""Put a step before every I/O call that a commit makes: files, the commit queue, and the statements of both databases.

Only for a process that is thrown away afterwards: nothing is put back.
"""

import errno
import fcntl
import io
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
from tests.crash.steps import Steps

CHANGING = ("IMMEDIATE", "READ WRITE", "INSERT", "UPDATE", "DELETE", "CREATE", "COMMIT")


def install(steps: Steps, folder: Path) -> None:
    """Hook this process; of calls that name a file, those count that name one below the folder."""
    _hook_files(steps, str(folder))
    _hook_descriptors(steps)
    _hook_sqlite(steps)
    _hook_postgres(steps)


def no_room() -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _hook_files(steps: Steps, folder: str) -> None:
    for module, name, has_effect in (
        (os, "open", lambda flags: bool(flags & os.O_CREAT)),
        (os, "link", _always),
        (os, "unlink", _always),
        (os, "mkdir", _always),
        (os, "scandir", _never),
        (io, "open", _never),
        (pa, "OSFile", _never),
    ):
        _replace(module, name, _for_paths(steps, folder, name, getattr(module, name), has_effect))


def _always(_: object) -> bool:
    return True


def _never(_: object) -> bool:
    return False


def _for_paths(
    steps: Steps, folder: str, name: str, real: Callable[..., Any], has_effect: Callable[[Any], bool]
) -> Callable[..., Any]:
    def call(path: Any, *rest: Any, **options: Any) -> Any:
        if not isinstance(path, str | Path) or not str(path).startswith(folder):
            return real(path, *rest, **options)
        label = f"{name} {Path(path).name}"
        effect = has_effect(rest[0] if rest else None)
        return steps.take(label, lambda: real(path, *rest, **options), no_room, effect=effect)

    return call


def _hook_descriptors(steps: Steps) -> None:
    real_write, real_read, real_lock = os.write, os.pread, fcntl.flock

    class Raw(io.FileIO):
        def write(self, data: Any) -> int:
            call = super().write
            return int(steps.take("write data", lambda: call(data), no_room, effect=True))

    def write(descriptor: int, data: Any) -> Any:
        return steps.take("write", lambda: real_write(descriptor, data), no_room, effect=True)

    def read(descriptor: int, length: int, offset: int) -> Any:
        return steps.take("pread", lambda: real_read(descriptor, length, offset), no_room, effect=False)

    def sync(descriptor: int) -> Any:
        # The death of a process loses nothing that was written, so that the disk need not be waited for.
        return steps.take("fsync", lambda: None, no_room, effect=False)

    def lock(file: Any, how: int) -> Any:
        return steps.take("flock", lambda: real_lock(file, how), no_room, effect=True)

    for module, name, hooked in (
        (os, "write", write),
        (os, "pread", read),
        (os, "fsync", sync),
        (fcntl, "flock", lock),
        (io, "FileIO", Raw),
    ):
        _replace(module, name, hooked)


def _hook_sqlite(steps: Steps) -> None:
    real = sqlite3.connect

    def lost() -> Exception:
        return sqlite3.OperationalError("disk I/O error")

    class Hooked(sqlite3.Connection):
        def execute(self, statement: str, *values: Any) -> Any:
            call = super().execute
            return steps.take(statement, lambda: call(statement, *values), lost, effect=_changes(statement))

    def connect(*place: Any, **options: Any) -> Any:
        return steps.take("open SQLite", lambda: real(*place, factory=Hooked, **options), lost, effect=False)

    _replace(sqlite3, "connect", connect)


def _hook_postgres(steps: Steps) -> None:
    real_connect, real_execute = psycopg.connect, psycopg.Connection.execute

    def connect(*place: Any, **options: Any) -> Any:
        return steps.take("open PostgreSQL", lambda: real_connect(*place, **options), _cut_off, effect=False)

    def execute(self: Any, statement: Any, *values: Any, **options: Any) -> Any:
        def cut() -> Exception:
            self.close()
            return _cut_off()

        def call() -> Any:
            return real_execute(self, statement, *values, **options)

        text = statement.decode() if isinstance(statement, bytes) else str(statement)
        return steps.take(text, call, cut, effect=_changes(text))

    _replace(psycopg, "connect", connect)
    _replace(psycopg.Connection, "execute", execute)


def _cut_off() -> Exception:
    return psycopg.OperationalError("server closed the connection unexpectedly")


def _changes(statement: str) -> bool:
    return any(word in statement for word in CHANGING)


def _replace(owner: Any, name: str, value: Any) -> None:
    setattr(owner, name, value)
