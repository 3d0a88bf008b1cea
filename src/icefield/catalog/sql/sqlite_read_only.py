"""Read a SQLite file that cannot be written: on a read-only mount, or without permission.

A file with a write-ahead log must be writable even for reading. There are three ways around that:

- another process has it open, so the log and its index exist: the file is opened read-only with them;
- there is no log, or an empty one: the file is read as `immutable`, with a new connection for each transaction;
- there is a log without an index, left by a crash: both are copied and recovered in a temporary directory.

The last two are valid only if nothing was written concurrently, so the files are checked before and after, and read
again if they changed. Raises SQLite's errors, and CatalogError if the file keeps changing.
"""

import os
import shutil
import sqlite3
import tempfile
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TypeVar

from icefield.errors import CatalogError

Result = TypeVar("Result")
COPY = "catalog.db"
_TRIES = 20


def is_unwritable(path: Path) -> bool:
    """Return whether a file exists that this process can read but not write, because of the file or its directory."""
    if not path.exists():
        return False
    return not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK)


def read_unwritable(path: Path, work: Callable[[sqlite3.Connection], Result]) -> Result:
    """Run work in a read transaction on a file that cannot be written."""
    for _ in range(_TRIES):
        before = _state(path)
        with _opened(path) as (connection, is_live):
            connection.execute("BEGIN")
            result = work(connection)
        if is_live or _state(path) == before:
            return result
    raise CatalogError(
        f"the catalog {path} changes too often to be read from a read-only file system", hint="Try again"
    )


@contextmanager
def _opened(path: Path) -> Iterator[tuple[sqlite3.Connection, bool]]:
    """Open the file; the flag says whether SQLite itself detects concurrent writers."""
    log, index = Path(f"{path}-wal"), Path(f"{path}-shm")
    if not log.exists() or log.stat().st_size == 0:
        with closing(_connect(path, "mode=ro&immutable=1")) as connection:
            yield connection, False
    elif index.exists() and _works(path):
        with closing(_connect(path, "mode=ro")) as connection:
            yield connection, True
    else:
        with _copied(path, log) as folder, closing(_connect(Path(folder) / COPY, "mode=rw")) as connection:
            yield connection, False


def _copied(path: Path, log: Path) -> tempfile.TemporaryDirectory[str]:
    """Copy the file and its log to a temporary directory."""
    with ExitStack() as undo:
        try:
            folder = tempfile.TemporaryDirectory(prefix="icefield-catalog-")
            undo.callback(folder.cleanup)
            shutil.copyfile(path, Path(folder.name) / COPY)
            shutil.copyfile(log, Path(folder.name) / f"{COPY}-wal")
        except OSError as error:
            raise CatalogError(
                f"cannot copy the catalog {path}, to read it without writing beside it: {error}",
                hint="Free some space for temporary files, or set TMPDIR to a directory that has some",
            ) from error
        undo.pop_all()
    return folder


def _works(path: Path) -> bool:
    try:
        with closing(_connect(path, "mode=ro")) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except sqlite3.Error:
        return False
    return True


def _connect(path: Path, options: str) -> sqlite3.Connection:
    uri = f"file:{urllib.parse.quote(str(path))}?{options}"
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=1)


def _state(path: Path) -> list[tuple[int, int, int] | None]:
    """Return what shows that the file or its log has changed."""
    found: list[tuple[int, int, int] | None] = []
    for each in (path, Path(f"{path}-wal")):
        try:
            status = each.stat()
        except FileNotFoundError:
            found.append(None)
        else:
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return found
