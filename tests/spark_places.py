"""Where the Spark of the tests runs: in threads of one JVM, in executor processes, or behind Spark Connect.

    ICEFIELD_SPARK=cluster python -m pytest -m spark

Each place is real: the executors are processes of their own, and the server of Spark Connect is one that this process
only talks to over a port. What is started ends with this process, also when that is killed.
"""

import io
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, redirect_stdout
from enum import StrEnum
from pathlib import Path

import pyspark
from pyspark.sql import DataFrame, SparkSession

from icefield.spark.session.java import find_java_home
from icefield.spark.session.session import LOGGING, session
from tests import jvm
from tests.effort import DEEP

VARIABLE = "ICEFIELD_SPARK"
# The address of the server, where Spark runs behind Spark Connect.
REMOTE = "ICEFIELD_SPARK_REMOTE"
# Few, because the tests have few rows.
SHUFFLE_PARTITIONS = "4"
# To compile each of many small plans takes a fifth of the time, and changes no row. Tests of the fixture
# `generated_code` have what users have, and in `make deep` all do.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
GENERATED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}

_SPARK_HOME = Path(pyspark.__file__).parent
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_WATCH = '"$@" & server=$!; read -r _; kill -9 "$server"; wait "$server"'
_START_SECONDS = 300


class SparkPlace(StrEnum):
    """Where Spark runs."""

    LOCAL = "local"
    CLUSTER = "cluster"
    CONNECT = "connect"


def chosen_place() -> SparkPlace:
    """Return the place that the environment names."""
    return SparkPlace(os.environ.get(VARIABLE, SparkPlace.LOCAL))


@contextmanager
def running_spark(place: SparkPlace) -> Iterator[SparkSession]:
    """Run Spark at a place, and stop it in the end."""
    with _PLACES[place]() as spark:
        own = {"spark.sql.shuffle.partitions": SHUFFLE_PARTITIONS, **(GENERATED if DEEP else INTERPRETED)}
        for key, value in own.items():
            spark.conf.set(key, value)
        yield spark


@contextmanager
def changed(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Change settings of a session for the time of a block."""
    before = {key: spark.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, was in before.items():
            if was is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, was)


def explained(frame: DataFrame) -> str:
    """Return what Spark says of a DataFrame's plans, as any kind of session tells it."""
    with redirect_stdout(io.StringIO()) as said:
        frame.explain(extended=True)
    return said.getvalue()


@contextmanager
def running_hosts() -> Iterator[str]:
    """Run a cluster of two addresses, and yield its master: a task runs twice at a time only on different hosts."""
    port = _free_port()
    master = f"spark://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory(prefix="icefield-hosts-") as home:
        _link_spark(Path(home))
        started = [_start_daemon(home, "master.Master", "127.0.0.1", "--port", str(port))]
        try:
            _wait_for(started[0], port, Path(home, "master.Master.log"))
            for host in ("127.0.0.1", "127.0.0.2"):
                options = ("--cores", "1", "--memory", "1g", "--work-dir", f"{home}/work", master)
                started.append(_start_daemon(home, "worker.Worker", host, *options))
            yield master
        finally:
            for daemon in started:
                daemon.kill()
                daemon.wait()


@contextmanager
def running_server(port: int | None = None) -> Iterator[int]:
    """Run a server of Spark Connect, and yield its port."""
    port = port or _free_port()
    with tempfile.TemporaryDirectory(prefix="icefield-connect-") as directory:
        process = _start_server(Path(directory), port)
        try:
            _wait_for(process, port, Path(directory) / "log")
            yield port
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(60)


@contextmanager
def _local() -> Iterator[SparkSession]:
    spark = session(master="local[2]")
    yield spark
    spark.stop()


@contextmanager
def _cluster() -> Iterator[SparkSession]:
    # Executors work in a directory below Spark's home, which must not be that of the package.
    with tempfile.TemporaryDirectory(prefix="icefield-spark-") as home:
        _link_spark(Path(home))
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"{jvm.executor_options()} pyspark-shell"
        spark = session(master="local-cluster[2,1,1024]")
        yield spark
        spark.stop()


@contextmanager
def _connect() -> Iterator[SparkSession]:
    with running_server() as port:
        os.environ[REMOTE] = f"sc://127.0.0.1:{port}"
        SparkSession.builder.remote(os.environ[REMOTE]).getOrCreate()
        spark = session()
        yield spark
        spark.stop()


_PLACES: dict[SparkPlace, Callable[[], AbstractContextManager[SparkSession]]] = {
    SparkPlace.LOCAL: _local,
    SparkPlace.CLUSTER: _cluster,
    SparkPlace.CONNECT: _connect,
}


def _link_spark(home: Path) -> None:
    """Make a home for executors, and let this process use it."""
    for part in ("bin", "jars", "python", "sbin"):
        (home / part).symlink_to(_SPARK_HOME / part)
    os.environ |= {"SPARK_HOME": str(home), "PYTHONPATH": _python_path()}


def _start_daemon(home: str, name: str, host: str, *options: str) -> "subprocess.Popen[bytes]":
    program = [f"{home}/bin/spark-class", f"org.apache.spark.deploy.{name}"]
    command = [*program, "--host", host, "--webui-port", "0", *options]
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java_home().path),
        "SPARK_DAEMON_JAVA_OPTS": f"-Dspark.master.rest.enabled=false {jvm.options()}",
        "SPARK_LOCAL_IP": host,
    }
    with Path(home, f"{name}.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment)


def _start_server(directory: Path, port: int) -> "subprocess.Popen[bytes]":
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f'"-Dlog4j2.configurationFile={LOGGING}"',
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(directory),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.ui.enabled": "false",
    }
    options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    submit = [str(_SPARK_HOME / "bin" / "spark-submit"), "--master", "local[2]", "--class", _SERVER, *options]
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java_home().path),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": _python_path(),
        "SPARK_HOME": str(_SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with (directory / "log").open("wb") as log:
        return subprocess.Popen(
            ["/bin/sh", "-c", _WATCH, "sh", *submit, "spark-internal"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd=directory,
            env=environment,
        )


def _wait_for(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        try:
            with socket.create_connection(("127.0.0.1", port), 1):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(log.read_text())


def _python_path() -> str:
    """Let workers, which do not run in this directory, find stores that the tests made."""
    given = os.environ.get("PYTHONPATH", "")
    return os.pathsep.join(filter(None, [str(Path(__file__).parent.parent), given]))


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])
