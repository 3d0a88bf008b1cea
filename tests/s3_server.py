"""A real S3 server for tests: SeaweedFS from its wheel, on loopback and free ports, one per test process.

It is started when first asked for and stopped when the process ends, also when that is killed: the shell around it
waits for the end of its input.
"""

import atexit
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

BUCKET = "lake"
ACCESS_KEY, SECRET_KEY = "icefield", "not-a-secret"  # of a server that lives as long as a test run

_PORTS = ("master", "volume", "filer", "s3", "admin")
_WATCH = '"$@" & server=$!; read -r _; kill -9 "$server"; wait "$server"'
_START_SECONDS = 60
_PREFIXES = count()


@dataclass(frozen=True)
class S3Server:
    """A running server with an empty bucket."""

    endpoint: str

    @property
    def properties(self) -> dict[str, str]:
        """What an ObjectStore needs to reach it."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.region": "us-east-1",
            "s3.access-key-id": ACCESS_KEY,
            "s3.secret-access-key": SECRET_KEY,
        }

    def new_root(self) -> str:
        """Return a location with nothing below it."""
        return f"s3://{BUCKET}/{next(_PREFIXES)}"


@cache
def s3_server() -> S3Server:
    """Return the server of this process."""
    directory = Path(tempfile.mkdtemp(prefix="icefield-s3-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    for _ in range(3):  # A port that was free may be taken before the server has it.
        if server := _start(directory):
            return server
    raise RuntimeError((directory / "log").read_text())


def _start(directory: Path) -> S3Server | None:
    ports = _free_ports(2 * len(_PORTS))
    flags = [f"-{name}.port={port}" for name, port in zip(_PORTS, ports, strict=False)]
    flags += [f"-{name}.port.grpc={port}" for name, port in zip(_PORTS, ports[len(_PORTS) :], strict=True)]
    flags += ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false", "-webdav=false", "-admin.ui=false"]
    flags += ["-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.autoCreateBucket=false", f"-bucket={BUCKET}"]
    flags += [f"-{name}.localSocket={directory}/{name}.sock" for name in ("filer", "s3")]
    weed = Path(sys.executable).with_name("weed")
    environment = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "HOME": str(directory)}
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, "sh", str(weed), "mini", f"-dir={directory}", *flags],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd=directory,
            env=environment,
        )
    server = S3Server(f"http://127.0.0.1:{ports[_PORTS.index('s3')]}")
    if _wait(process, server):
        atexit.register(_stop, process)
        return server
    _stop(process)
    return None


def _wait(process: "subprocess.Popen[bytes]", server: S3Server) -> bool:
    config = {key.removeprefix("s3.").replace("-", "_"): value for key, value in server.properties.items()}
    client = S3Store(BUCKET, config=config, client_options={"allow_http": True}, retry_config={"max_retries": 0})  # type: ignore[arg-type]
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            obstore.put(client, "is-up", b"", mode="overwrite")
            obstore.delete(client, "is-up")
        except (BaseError, FileNotFoundError):
            time.sleep(0.05)
        else:
            return True
    return False


def _stop(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdin is not None
    process.stdin.close()
    process.wait(30)


def _free_ports(number: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
