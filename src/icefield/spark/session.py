"""The Spark session that verbs on rows use: the user's own if there is one, else a local one.

A local session needs nothing but this package: the Java runtime is found or comes with a wheel, and Python workers
run this very interpreter. A session of Spark Connect is as good as any other; where SPARK_REMOTE names a server, one is
opened there. Raises Unsupported where there is no usable Java runtime, and for a Spark that is too old.
"""

import os
import sys
from pathlib import Path

import pyspark
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from icefield.errors import Unsupported
from icefield.spark.java import find_java_home

# Files are read by field id, so that renamed, moved and re-added columns keep their values.
READ_BY_FIELD_ID = "spark.sql.parquet.fieldId.read.enabled"
OLDEST_MAJOR = 4
LOGGING = Path(__file__).with_name("log4j2.properties")


def session(master: str = "local[*]") -> SparkSession:
    """Return the session that is there, in whichever thread it was made, or start one: a local one if none is named."""
    try:
        spark = SparkSession.active()
    except PySparkRuntimeError:
        spark = SparkSession.builder.getOrCreate() if "SPARK_REMOTE" in os.environ else _start(master)
    check_version(spark.version)
    if spark.conf.get(READ_BY_FIELD_ID) != "true":
        spark.conf.set(READ_BY_FIELD_ID, "true")
    return spark


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
