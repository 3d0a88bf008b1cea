"""The Spark session that verbs on rows use: the user's own if there is one, else a local one.

A local session needs nothing but this package: the Java runtime is found or comes with a wheel, and Python workers
run this very interpreter. A session of Spark Connect is as good as any other; where SPARK_REMOTE names a server, one is
opened there. Raises Unsupported where there is no usable Java runtime, for a Spark that is too old, and for a session
that is not alive.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyspark
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote as is_in_connect_mode

from icefield.errors import Unsupported
from icefield.spark.session.java import find_java_home

# Files are read by field id, so that renamed, moved and re-added columns keep their values.
READ_BY_FIELD_ID = "spark.sql.parquet.fieldId.read.enabled"
OLDEST_MAJOR = 4
FORGOTTEN = ("INVALID_HANDLE", "SESSION_CHANGED", "SESSION_CLOSED", "SESSION_NOT_FOUND", "NO_ACTIVE_SESSION")
HAND_IN = "Make a session, and hand it in: lake.use(spark), or to_spark(session=spark)"
LOGGING = Path(__file__).with_name("log4j2.properties")


def session(chosen: SparkSession | None = None, *, master: str = "local[*]") -> SparkSession:
    """Return the session that was chosen, else the one that is there, in whichever thread it was made, or start one.

    One that is stopped, or that its server has forgotten, is refused if it was chosen and passed over otherwise.
    """
    spark = _check_alive(chosen) if chosen is not None else _find_alive() or _new(master)
    check_version(spark.version)
    if spark.conf.get(READ_BY_FIELD_ID) != "true":
        spark.conf.set(READ_BY_FIELD_ID, "true")
    return spark


def find_session(chosen: SparkSession | None = None) -> SparkSession | None:
    """Return the session that was chosen, else the one that is there, if it can be used; none is started."""
    if chosen is not None:
        return chosen if is_alive(chosen) else None
    return _find_alive()


def check_version(version: str = pyspark.__version__) -> None:
    """Refuse a Spark that is too old: this process's, or that of a server."""
    if int(version.partition(".")[0]) < OLDEST_MAJOR:
        raise Unsupported(
            f"this is Spark {version}, and rows need Spark {OLDEST_MAJOR}.0 or newer",
            hint="Spark 3.5 cannot read columns that were widened and has no variants; scan.to_arrow() needs no Spark",
        )


def is_remote(spark: SparkSession) -> bool:
    """Say whether a session is one of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def is_on_this_machine(spark: SparkSession) -> bool:
    """Say whether the server of a session of Spark Connect has an address of this machine only."""
    return spark.client.host in {"localhost", "127.0.0.1", "::1", "[::1]"}


def is_alive(spark: SparkSession) -> bool:
    """Return whether a session can still be used; over Spark Connect the server is asked."""
    if not is_remote(spark):
        classic: Any = spark
        context = classic._sc._jsc  # noqa: SLF001 - a session does not say whether it was stopped
        return context is not None and not context.sc().isStopped()
    if spark.is_stopped:  # type: ignore[attr-defined]
        return False
    try:
        spark.conf.get(READ_BY_FIELD_ID)
    except PySparkException as error:
        # A server that was restarted knows none of its sessions; any other fault may pass.
        if any(word in str(error) for word in FORGOTTEN):
            return False
        raise
    return True


@contextmanager
def active_in_jvm(spark: SparkSession) -> Iterator[None]:
    """Make a session the active one of Spark's own thread, for the time of a block."""
    if is_remote(spark):
        yield
        return
    classic: Any = spark
    sessions = classic._jvm.org.apache.spark.sql.classic.SparkSession  # noqa: SLF001 - pyspark has no such call
    before = sessions.getActiveSession()
    sessions.setActiveSession(classic._jsparkSession)  # noqa: SLF001
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def _check_alive(chosen: SparkSession) -> SparkSession:
    if not is_alive(chosen):
        raise Unsupported("the Spark session that was chosen is stopped, or its server was restarted", hint=HAND_IN)
    return chosen


def _find_alive() -> SparkSession | None:
    """Find the session of this thread, or of the process, that can be used."""
    while (found := _active()) is not None:
        if is_alive(found):
            return found
        # Or else pyspark would go on giving it to everybody in this process.
        with suppress(PySparkException):
            found.stop()
        if _active() is found:
            break
    return None


def _active() -> SparkSession | None:
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def _new(master: str) -> SparkSession:
    if "SPARK_REMOTE" in os.environ:
        return SparkSession.builder.getOrCreate()
    if is_in_connect_mode():
        raise Unsupported("this process uses Spark Connect, and has no session whose server knows it", hint=HAND_IN)
    return _start(master)


def _start(master: str) -> SparkSession:
    os.environ["JAVA_HOME"] = str(find_java_home().path)
    # Only the environment decides which Python the workers run; the setting of the same name is for spark-submit.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master(master).appName("icefield")
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.driver.extraJavaOptions": f'"-Dlog4j2.configurationFile={LOGGING}"',
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark
