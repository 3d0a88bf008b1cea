"""DataFrames of tables carry no field ids: Spark would write them to the user's own files, and find columns by them."""

import datetime
import decimal
import json
import uuid
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from tests.spark.foreign_files import add_file, stored

from icefield.lake import Lake
from icefield.table.table import Table

pytestmark = pytest.mark.spark

SHAPE = (
    "id long, i int, t string, f float, d double, n decimal(20, 2), b binary, x fixed[2], u uuid, day date, "
    "z timestamptz, at timestamp, s struct<a: int, g: struct<a: double, t: string>>, p struct<a: int, t: string>, "
    "l list<struct<a: int, b: float>>, m map<string, struct<a: long>>"
)
ROW = {
    "id": 1,
    "i": 2,
    "t": "t",
    "f": 0.5,
    "d": 1.5,
    "n": decimal.Decimal("1.25"),
    "b": b"b",
    "x": b"xy",
    "u": uuid.UUID(int=7).bytes,
    "day": datetime.date(2026, 1, 2),
    "z": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
    "at": datetime.datetime(2026, 1, 2),
    "s": {"a": 1, "g": {"a": 2.5, "t": "in"}},
    "p": {"a": 3, "t": "p"},
    "l": [{"a": 1, "b": 0.5}],
    "m": [("k", {"a": 9})],
}


@pytest.fixture
def table(lake: Lake) -> Table:
    """A table with our own files, deletes, columns that changed, and a file of another writer."""
    made = lake.create_table("a.t", SHAPE, properties={"write.delete.mode": "merge-on-read"})
    schema = made.scan().to_arrow().schema
    made.append(pa.Table.from_pylist([{**ROW, "id": at} for at in range(3)], schema=schema))
    made.delete("id = 2")
    with made.evolve() as change:
        change.rename_column("i", "j")
        change.update_column_type("f", "double")
        change.rename_column("s.g.t", "w")
        change.add_column("new", "struct<q: int>")
    add_file(made, [stored("other", pa.int64(), 1)], [[10]])
    return lake.table("a.t")


def frames_of(table: Table, lake: Lake) -> dict[str, DataFrame]:
    lake.create_view("a.v", "SELECT * FROM t")
    lake.create_view("a.parts", "SELECT s.g.a AS a, p, l, d FROM t")
    frame = table.scan().to_spark()
    return {
        "table": frame,
        "filtered": table.scan("d > 0").to_spark(),
        "narrowed": table.scan(select=["id", "s.g", "d", "_file", "_pos"]).to_spark(),
        "view": lake.view("a.v").to_spark(),
        "view of parts": lake.view("a.parts").to_spark(),
        "renamed": frame.toDF(*(f"c{at}" for at in range(len(frame.columns)))),
        "aliased": frame.select(F.col("d").alias("e"), F.col("id"), F.col("s").alias("r")).select("e", "r", "id"),
        "parts": frame.selectExpr("s.g.a", "s.a AS a2", "p.t", "struct(p.a, d) AS made", "l[0].a AS a3"),
    }


def test_frames_carry_no_field_ids_and_write_none(table: Table, lake: Lake, tmp_path: Path) -> None:
    for name, frame in frames_of(table, lake).items():
        assert "parquet.field.id" not in json.dumps(frame.schema.jsonValue()), name
        folder = tmp_path / name
        frame.write.parquet(str(folder))
        for file in folder.glob("*.parquet"):
            assert _ids_in(pq.ParquetFile(file).schema_arrow) == set(), name
        assert frame.sparkSession.read.parquet(str(folder)).count() == frame.count(), name


def test_tables_that_were_joined_can_be_written_and_read_back(lake: Lake, spark: SparkSession, tmp_path: Path) -> None:
    left = lake.create_table("a.left", "id long, d double, s struct<a: int>")
    right = lake.create_table("a.right", "id long, e double, r struct<b: int>")
    left.append(pa.Table.from_pylist([{"id": 1, "d": 1.5, "s": {"a": 2}}], schema=left.scan().to_arrow().schema))
    right.append(pa.Table.from_pylist([{"id": 1, "e": 9.5, "r": {"b": 8}}], schema=right.scan().to_arrow().schema))
    both = left.scan().to_spark().join(right.scan().to_spark(), "id")
    both = both.select("*", F.struct("s.a", "r.b").alias("parts"), "s.a", "r.b")
    both.write.parquet(str(tmp_path / "joined"))
    (row,) = spark.read.parquet(str(tmp_path / "joined")).collect()
    assert row.asDict(recursive=True) == {
        "id": 1,
        "d": 1.5,
        "s": {"a": 2},
        "e": 9.5,
        "r": {"b": 8},
        "parts": {"a": 2, "b": 8},
        "a": 2,
        "b": 8,
    }


def test_rows_that_were_written_elsewhere_are_added_by_their_names(lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table("a.t", "id long, x double, y double")
    table.append(pa.table({"id": [1], "x": [2.0], "y": [3.0]}))
    table.scan().to_spark().write.parquet(str(tmp_path / "lake" / "out"))
    other = lake.create_table("a.other", "id long, y double, x double")
    other.add_files(str(tmp_path / "lake" / "out"))
    assert other.scan().to_arrow().read_all().to_pylist() == [{"id": 1, "y": 3.0, "x": 2.0}]


def test_the_schema_of_a_frame_reads_other_files(lake: Lake, spark: SparkSession, tmp_path: Path) -> None:
    table = lake.create_table("a.t", "id long, x double, s struct<a: int>")
    table.append(pa.table({"id": [1]}))
    spark.sql("SELECT 3.5D AS x, named_struct('a', 4) AS s, 7L AS id").write.parquet(str(tmp_path / "plain"))
    frame = table.scan().to_spark()
    (row,) = spark.read.schema(frame.schema).parquet(str(tmp_path / "plain")).collect()
    assert (row.id, row.x, row.s.a) == (7, 3.5, 4)


def _ids_in(kind: pa.Schema | pa.DataType) -> set[bytes]:
    """Return the field ids in a schema, at any depth."""
    fields = list(kind) if isinstance(kind, pa.Schema) else [kind.field(at) for at in range(kind.num_fields)]
    own = {(f.metadata or {}).get(b"PARQUET:field_id", b"") for f in fields} - {b""}
    return own.union(*(_ids_in(f.type) for f in fields)) if fields else own
