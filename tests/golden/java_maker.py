"""What the recipes of Iceberg Java share: SQL, records and data files through its Java API, and its own readings.

Runs in the environment of the interop tests. `WriteContext` makes one table in /icefield-golden and describes it.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.golden.expected import Expected, in_order, rows_of
from tests.golden.java_values import java_value, make_record, parse_record
from tests.interop.iceberg_java import FOR_MANY_SMALL_QUERIES, start_spark

ROOT = "/icefield-golden"
LINEAGE = ("_row_id", "_last_updated_sequence_number")
FILE_LOCATIONS, PLAIN_LOCATIONS = "java", "plain"  # catalogs, by how they spell the root


@dataclass(frozen=True)
class Recipe:
    """How to make a table; its name and what it shows are the function's.

    by_spark: Spark can read its types. history: keep every snapshot and read each. as_written: nothing here can read
    it, so that the rows expected are those that were written. catalog: how locations are spelt.
    """

    make: Callable[["WriteContext"], None]
    filters: Sequence[str] = ()
    by_spark: bool = True
    history: bool = False
    as_written: bool = False
    catalog: str = FILE_LOCATIONS

    @property
    def name(self) -> str:
        return f"java_{self.make.__name__}"

    @property
    def shows(self) -> str:
        return " ".join((self.make.__doc__ or "").split())


def start() -> Any:
    """Start Spark with both catalogs."""
    spark = start_spark(ROOT, FOR_MANY_SMALL_QUERIES)
    spark.conf.set("spark.sql.catalog.plain", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.plain.type", "hadoop")
    spark.conf.set("spark.sql.catalog.plain.warehouse", ROOT)
    spark.conf.set("spark.sql.catalog.plain.cache-enabled", "false")
    return spark


class WriteContext:
    """One table in the making."""

    def __init__(self, spark: Any, recipe: Recipe) -> None:
        self.spark = spark
        self.iceberg = spark._jvm.org.apache.iceberg
        self.recipe = recipe
        self.folder = Path(ROOT, recipe.name)
        self.name = f"{recipe.catalog}.{recipe.name}"
        self._written: list[Any] = []
        shutil.rmtree(self.folder, ignore_errors=True)

    def sql(self, *statements: str) -> None:
        """Run statements; {t} is the table, {procedure} the place of Iceberg's procedures."""
        for text in statements:
            self.spark.sql(
                text.replace("{t}", self.name)
                .replace("{procedure}", f"{self.recipe.catalog}.system")
                .replace("{name}", self.recipe.name)
                .replace("{folder}", str(self.folder))
            )

    def create(self, schema: dict[str, Any], version: int, transforms: Sequence[tuple[Any, ...]] = ()) -> Any:
        """Create a table by Java's API from a schema in the JSON of the format; return it."""
        parsed = self.iceberg.SchemaParser.fromJson(json.dumps({"type": "struct", "schema-id": 0, **schema}))
        builder = self.iceberg.PartitionSpec.builderFor(parsed)
        for method, *arguments in transforms:
            builder = getattr(builder, method)(*arguments)
        properties = {"format-version": str(version), "write.metadata.delete-after-commit.enabled": "false"}
        catalog = self.iceberg.spark.Spark3Util.loadIcebergCatalog(self.spark._jsparkSession, self.recipe.catalog)
        identifier = self.iceberg.catalog.TableIdentifier.parse(self.recipe.name)
        return catalog.createTable(identifier, parsed, builder.build(), properties)

    def table(self) -> Any:
        """Load the table as Java's API has it."""
        return self.iceberg.spark.Spark3Util.loadIcebergTable(self.spark._jsparkSession, self.name)

    def write_data(self, table: Any, name: str, rows: Iterable[dict[str, Any]], partition: Any = None) -> Any:
        """Write a data file by Java's generic writer; return its description."""
        factory = self.iceberg.data.GenericAppenderFactory(table.schema(), table.spec())
        writer = factory.newDataWriter(self._output(table, name), self.iceberg.FileFormat.PARQUET, partition)
        kind = table.schema().asStruct()
        for row in rows:
            record = make_record(self.spark, kind, row)
            writer.write(record)
            self._written.append(java_value(self.spark, kind, record))
        writer.close()
        return writer.toDataFile()

    def append(self, table: Any, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Append rows by Java's generic writer, one file per row where the table is partitioned."""
        append = table.newAppend()
        if table.spec().isUnpartitioned():
            append.appendFile(self.write_data(table, name, rows)).commit()
            return
        for number, row in enumerate(rows):
            append.appendFile(self.write_data(table, f"{name}-{number}", [row], self.partition_of(table, row)))
        append.commit()

    def partition_of(self, table: Any, row: dict[str, Any]) -> Any:
        """Return the partition of a row by the table's spec."""
        key = self.iceberg.PartitionKey(table.spec(), table.schema())
        key.partition(parse_record(self.spark, table.schema().asStruct(), row))
        return key

    def delete_equal(
        self, table: Any, name: str, keys: Sequence[dict[str, Any]], *, spec: Any = None, partition: Any = None
    ) -> None:
        """Commit an equality delete file; the columns are those of the first key."""
        columns = self.spark._jvm.java.util.ArrayList(list(keys[0]))
        schema = table.schema().select(columns)
        ids = self._ints([table.schema().findField(column).fieldId() for column in keys[0]])
        spec = spec or table.spec()
        factory = self.iceberg.data.GenericAppenderFactory(table.schema(), spec, ids, schema, None)
        writer = factory.newEqDeleteWriter(self._output(table, name), self.iceberg.FileFormat.PARQUET, partition)
        for key in keys:
            writer.write(make_record(self.spark, schema.asStruct(), key))
        writer.close()
        table.newRowDelta().addDeletes(writer.toDeleteFile()).commit()

    def expire(self) -> None:
        """Leave only the snapshots that a branch or a tag points at."""
        table = self.table()
        if table.currentSnapshot() is not None:
            now = self.spark._jvm.java.lang.System.currentTimeMillis()
            table.expireSnapshots().expireOlderThan(now + 1000).retainLast(1).commit()

    def metadata_path(self) -> Path:
        """Return the newest metadata file."""
        number = (self.folder / "metadata" / "version-hint.text").read_text().strip()
        (found,) = self.folder.glob(f"metadata/v{number}.*metadata.json")
        return found

    def describe(self) -> Expected:
        """Read the table as Java does, and put down what it says; without history, expire it first."""
        if not self.recipe.history:
            self.expire()
        table = self.iceberg.hadoop.HadoopTables(self.spark._jsc.hadoopConfiguration()).load(self._metadata())
        version = table.operations().current().formatVersion()
        described: Expected = {
            "name": self.recipe.name,
            "maker": f"Iceberg Java {self.iceberg.IcebergBuild.version()}",
            "format_version": version,
            "shows": self.recipe.shows,
            "metadata": f"{ROOT}/{self.recipe.name}/metadata/{self.metadata_path().name}",
            "columns": [f.name() for f in table.schema().columns()],
            "rows": self._rows(table, {}),
        }
        if self.recipe.by_spark:
            described["filters"] = [{"where": w, "rows": self._spark_rows({}, where=w)} for w in self.recipe.filters]
        if version >= 3 and self.recipe.by_spark:
            described["lineage"] = self._spark_rows({}, columns=("*", *LINEAGE))
        described["points"] = [self._point(table, options) for options in self._points(table)]
        return described | self._contents(table)

    def _metadata(self) -> str:
        return f"file://{self.metadata_path()}"

    def _rows(self, table: Any, options: dict[str, str]) -> list[Any]:
        if self.recipe.by_spark:
            return self._spark_rows(options)
        if self.recipe.as_written:
            return in_order(self._written)
        scan = self.iceberg.data.IcebergGenerics.read(table)
        if "snapshot-id" in options:
            scan = scan.useSnapshot(int(options["snapshot-id"]))
        kind = table.schema().asStruct()
        return in_order(java_value(self.spark, kind, row) for row in _each(scan.build()))

    def _spark_rows(
        self, options: dict[str, str], columns: Sequence[str] = ("*",), where: str | None = None
    ) -> list[Any]:
        frame = self.spark.read.format("iceberg").options(**options).load(self._metadata()).select(*columns)
        batches = (frame.where(where) if where else frame)._collect_as_arrow()
        read = pa.Table.from_batches(batches) if batches else None
        return rows_of(read, read.schema) if read is not None else []

    def _points(self, table: Any) -> list[dict[str, str]]:
        refs = [
            {"branch" if ref.isBranch() else "tag": name}
            for name, ref in sorted(table.refs().items())
            if name != "main"
        ]
        snapshots = (
            [{"snapshot-id": str(s.snapshotId())} for s in _each(table.snapshots())] if self.recipe.history else []
        )
        return refs + snapshots

    def _point(self, table: Any, options: dict[str, str]) -> dict[str, Any]:
        ((kind, value),) = options.items()
        as_of = int(value) if kind == "snapshot-id" else value
        if self.recipe.by_spark:
            columns = self.spark.read.format("iceberg").options(**options).load(self._metadata()).columns
        else:
            columns = [f.name() for f in table.schema().columns()]
        return {"as_of": as_of, "columns": columns, "rows": self._rows(table, options)}

    def _contents(self, table: Any) -> dict[str, Any]:
        """List the manifests of every snapshot, and the live files of every manifest."""
        snapshots, manifests = {}, {}
        for snapshot in _each(table.snapshots()):
            listed = list(snapshot.allManifests(table.io()))
            snapshots[str(snapshot.snapshotId())] = [m.path() for m in listed]
            manifests.update({m.path(): self._manifest(table, m) for m in listed if m.path() not in manifests})
        return {"snapshots": snapshots, "manifests": manifests}

    def _manifest(self, table: Any, manifest: Any) -> dict[str, Any]:
        deletes = manifest.content().id() == 1
        files = self.iceberg.ManifestFiles
        if deletes:
            reader = files.readDeleteManifest(manifest, table.io(), table.specs())
        else:
            reader = files.read(manifest, table.io(), table.specs())
        live = [self._file(table, file) for file in _each(reader)]
        reader.close()
        counts = (manifest.addedFilesCount(), manifest.existingFilesCount(), manifest.deletedFilesCount())
        return {
            "content": int(deletes),
            "spec_id": manifest.partitionSpecId(),
            "sequence_number": manifest.sequenceNumber(),
            "counts": list(counts),
            "files": live,
        }

    def _file(self, table: Any, file: Any) -> dict[str, Any]:
        spec = table.specs()[file.specId()]
        kind = spec.partitionType()
        partition = java_value(self.spark, kind, file.partition())
        return {
            "path": file.location(),
            "content": file.content().id(),
            "record_count": file.recordCount(),
            "partition": {f.fieldId(): value for f, value in zip(kind.fields(), partition, strict=True)},
        }

    def _output(self, table: Any, name: str) -> Any:
        return table.encryption().encrypt(table.io().newOutputFile(f"{table.location()}/data/{name}.parquet"))

    def _ints(self, values: Sequence[int]) -> Any:
        array = self.spark.sparkContext._gateway.new_array(self.spark._jvm.int, len(values))
        for at, value in enumerate(values):
            array[at] = value
        return array


def _each(iterable: Any) -> Iterator[Any]:
    found = iterable.iterator()
    while found.hasNext():
        yield found.next()
