"""The Spark session for operations on rows: the user's own if there is one, else a local one.

A local session needs only this package: the Java runtime is found or comes with a wheel, and Python workers run this
interpreter. A Spark Connect session works as well; if SPARK_REMOTE names a server, one is opened there. Raises
Unsupported if there is no usable Java runtime, if Spark is too old, and for a session that is not alive.
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

from icefield.engine.rows import is_spark
from icefield.errors import InvalidInput, Unsupported
from icefield.spark.session.java import find_java_home

# Files are read by field id, so that renamed, moved and re-added columns keep their values.
READ_BY_FIELD_ID = "spark.sql.parquet.fieldId.read.enabled"
OLDEST_MAJOR = 4
FORGOTTEN = ("INVALID_HANDLE", "SESSION_CHANGED", "SESSION_CLOSED", "SESSION_NOT_FOUND", "NO_ACTIVE_SESSION")
HAND_IN = "Create a session, and pass it: lake.use(spark), or to_spark(session=spark)"
LOGGING = Path(__file__).with_name("log4j2.properties")


def session(chosen: SparkSession | None = None, *, master: str = "local[*]") -> SparkSession:
    """Return the chosen session, else the active one of any thread; start one if there is none.

    A session that is stopped, or unknown to its server, is an error if it was chosen, and skipped otherwise.
    """
    spark = _check_alive(chosen) if chosen is not None else _find_alive() or _new(master)
    check_version(spark.version)
    if spark.conf.get(READ_BY_FIELD_ID) != "true":
        spark.conf.set(READ_BY_FIELD_ID, "true")
    return spark


def find_session(chosen: SparkSession | None = None) -> SparkSession | None:
    """Return the chosen session, else the active one, if it can be used; do not start one."""
    if chosen is not None:
        return chosen if is_alive(chosen) else None
    return _find_alive()


def check_version(version: str = pyspark.__version__) -> None:
    """Raise Unsupported if Spark is too old: that of this process, or of a server."""
    if int(version.partition(".")[0]) < OLDEST_MAJOR:
        raise Unsupported(
            f"Spark {version} is too old: Spark {OLDEST_MAJOR}.0 or newer is required",
            hint="Spark 3.5 cannot read columns that were widened and has no variants; scan.to_arrow() needs no Spark",
        )


def is_remote(spark: SparkSession) -> bool:
    """Return whether a session is a Spark Connect session."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def is_on_this_machine(spark: SparkSession) -> bool:
    """Return whether the server of a Spark Connect session has a loopback address."""
    return spark.client.host in {"localhost", "127.0.0.1", "::1", "[::1]"}


def is_alive(spark: SparkSession) -> bool:
    """Return whether a session can still be used; a Spark Connect server is asked."""
    if not is_remote(spark):
        classic: Any = spark
        context = classic._sc._jsc  # noqa: SLF001 - a session has no property for this
        return context is not None and not context.sc().isStopped()
    if spark.is_stopped:  # type: ignore[attr-defined]
        return False
    try:
        spark.conf.get(READ_BY_FIELD_ID)
    except PySparkException as error:
        # A restarted server does not know its earlier sessions; any other error may be temporary.
        if any(word in str(error) for word in FORGOTTEN):
            return False
        raise
    return True


@contextmanager
def active_in_jvm(spark: SparkSession) -> Iterator[None]:
    """Make a session the active one of Spark's own thread, for the duration of a block."""
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
    if not is_spark(chosen):
        raise InvalidInput(f"expected a Spark session, not {type(chosen).__name__}")
    if not is_alive(chosen):
        raise Unsupported("the chosen Spark session is stopped, or its server was restarted", hint=HAND_IN)
    return chosen


def _find_alive() -> SparkSession | None:
    """Find a usable session of this thread, or of the process."""
    while (found := _active()) is not None:
        if is_alive(found):
            return found
        # Otherwise pyspark would keep returning it in this process.
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
        raise Unsupported(
            "this process uses Spark Connect, but has no session that is known to its server", hint=HAND_IN
        )
    return _start(master)


def _start(master: str) -> SparkSession:
    os.environ["JAVA_HOME"] = str(find_java_home().path)
    # Only the environment sets the Python of the workers; the setting of the same name is for spark-submit.
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
