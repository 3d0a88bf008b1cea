"""Let SQLite die in the middle of its own writing, which no step can reach: after so many bytes of the log."""

import resource
import signal
import sqlite3
from pathlib import Path

from icefield.catalog.sql.sqlite import SqliteDatabase


def tear_commit(log: Path, after_bytes: int) -> None:
    """Have the next COMMIT of this process killed by the system when the log has grown by more than this."""

    def send_commit(self: SqliteDatabase, connection: sqlite3.Connection) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + after_bytes, most))
        connection.execute("COMMIT")

    SqliteDatabase.send_commit = send_commit  # type: ignore[method-assign]
