"""Swap where the system refuses: `failing_worker.py <what> <path>`; prints the error's class and message.

what: `read` or `swap` as a user without rights, `full` as a process that may write no more bytes.
"""

import os
import resource
import signal
import sqlite3
import sys

from icefield.catalog.catalog import PointerSwap
from icefield.catalog.sql.sqlite import SqliteDatabase, open_sqlite_catalog
from icefield.errors import IcefieldError
from icefield.model.names import parse_table_name

TABLE = parse_table_name("a.t")
NOBODY = 65534


def main(what: str, path: str) -> None:
    if what == "full":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        SqliteDatabase.send_commit = send_commit_without_room  # type: ignore[method-assign]
    elif os.geteuid() == 0:
        os.setuid(NOBODY)
    catalog = open_sqlite_catalog(path)
    try:
        print(catalog.pointer(TABLE))
        if what != "read":
            catalog.swap([PointerSwap(TABLE, "0", "1")])
            print("swapped")
    except IcefieldError as error:
        print(type(error).__name__, error)


def send_commit_without_room(self: SqliteDatabase, connection: sqlite3.Connection) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        connection.execute("COMMIT")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
