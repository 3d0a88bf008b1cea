"""The Spark session that verbs on rows use: the user's own if there is one, else a local one.

A local session needs nothing but this package: the Java runtime is found or comes with a wheel, and Python workers
run this very interpreter. Raises Unsupported where there is no usable Java runtime.
"""

import os
import sys
from pathlib import Path

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from icefield.spark.java import find_java_home

# Files are read by field id, so that renamed, moved and re-added columns keep their values.
READ_BY_FIELD_ID = "spark.sql.parquet.fieldId.read.enabled"
LOGGING = Path(__file__).with_name("log4j2.properties")


def session(master: str = "local[*]") -> SparkSession:
    """Return the session that is there, in whichever thread it was made, or start a local one."""
    try:
        spark = SparkSession.active()
    except PySparkRuntimeError:
        spark = _start(master)
    spark.conf.set(READ_BY_FIELD_ID, "true")
    return spark


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
