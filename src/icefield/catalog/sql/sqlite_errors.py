"""Translate SQLite's errors."""

import sqlite3
from pathlib import Path

from icefield.errors import CatalogError

# Python's sqlite3 raises this if SQLite's message quotes bytes of a corrupt file.
SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})


def is_busy(error: sqlite3.Error | UnicodeDecodeError) -> bool:
    """Return whether another process or thread held the file, so that waiting helps."""
    return _code(error) in _BUSY


def is_read_only(error: sqlite3.Error | UnicodeDecodeError) -> bool:
    """Return whether the file could not be written."""
    return _code(error) == sqlite3.SQLITE_READONLY


def is_rolled_back(error: sqlite3.Error | UnicodeDecodeError, *, in_transaction: bool) -> bool:
    """Return whether a COMMIT that failed certainly did not happen.

    Locked: the transaction is still open. Full: the last page, which makes a transaction a commit, was not written, so
    SQLite rolled back. Read-only: nothing was written. Any other failure, above all of a sync, may occur after that
    page was written, and the next recovery of the log may find it.
    """
    if is_busy(error):
        return in_transaction
    return _code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY)


def explain(error: sqlite3.Error | UnicodeDecodeError, path: Path, waited_s: float) -> CatalogError:
    """Return the error to show for one of SQLite's, which changed nothing."""
    if is_busy(error):
        hint = "Look for a process that holds the file, or give a longer busy_timeout_s"
        return CatalogError(f"the catalog {path} was locked by other connections for {waited_s:g} s", hint=hint)
    if _code(error) == sqlite3.SQLITE_CANTOPEN:
        return _explain_unopened(path)
    if is_read_only(error):
        return read_only(path)
    if _code(error) == sqlite3.SQLITE_FULL or _whole_code(error) == sqlite3.SQLITE_IOERR_SHMSIZE:
        hint = "Nothing was changed; free some space and run it again"
        return CatalogError(f"the disk of the catalog {path} is full", hint=hint)
    if _code(error) == sqlite3.SQLITE_NOTADB:
        return CatalogError(f"{path} is not a SQLite database", hint="Give the path of the catalog's own file")
    if _code(error) == sqlite3.SQLITE_CORRUPT or isinstance(error, UnicodeDecodeError):
        return CatalogError(f"the catalog {path} is corrupt: {error}", hint="Restore it from a backup")
    return CatalogError(f"the catalog {path} failed: {error}")


def read_only(path: Path) -> CatalogError:
    """Return the error for a change to a catalog that cannot be written."""
    return CatalogError(
        f"cannot change the lake: its catalog {path} is read-only for this process",
        hint="Check the mount and the permissions of the file and of its directory",
    )


def _explain_unopened(path: Path) -> CatalogError:
    if not path.parent.is_dir():
        return CatalogError(
            f"cannot open the catalog {path}: there is no directory {path.parent}", hint="Create it first"
        )
    if path.is_dir():
        return CatalogError(f"cannot open the catalog {path}: it is a directory", hint="Give the path of a file in it")
    if not path.exists():
        return CatalogError(f"there is no catalog at {path}", hint="Check the path")
    hint = "Check the permissions of the file and of its directory"
    return CatalogError(f"cannot open the catalog {path}", hint=hint)


def _code(error: sqlite3.Error | UnicodeDecodeError) -> int:
    return _whole_code(error) & 0xFF


def _whole_code(error: sqlite3.Error | UnicodeDecodeError) -> int:
    # The low byte is the primary code, the rest extends it. Errors of the Python module itself have no code.
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE)
    return code
