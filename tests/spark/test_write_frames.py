"""Frames of every make are written as the same rows through Arrow are: names, defaults, keys, and the order claimed."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread, Timer
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.matrix.writing_order import false_claims
from tests.spark_places import SparkPlace, chosen_place

from icefield.errors import IcefieldError, InvalidInput, SchemaMismatch
from icefield.lake import Lake
from icefield.parquet.write.plan import plan_write
from icefield.spark.write.write import remove_files_of_write
from icefield.table.table import Table

pytestmark = pytest.mark.spark

ORDERED = 1


@contextmanager
def settings(spark: SparkSession, **changed: str) -> Iterator[None]:
    names = {name: f"spark.sql.{name.replace('__', '.')}" for name in changed}
    before = {name: spark.conf.get(key, None) for name, key in names.items()}
    for name, value in changed.items():
        spark.conf.set(names[name], value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(names[name]) if old is None else spark.conf.set(names[name], old)


def rows_of(table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.scan().to_arrow().read_all().to_pylist()
    return sorted(found, key=repr)


def claims(table: Table) -> set[int | None]:
    return set(table.inspect("files").to_arrow().read_all()["sort_order_id"].to_pylist())


# ---- columns that frames do not have


@pytest.mark.parametrize("version", [2, 3])
def test_a_frame_may_lack_optional_partition_and_sort_columns(lake: Lake, spark: SparkSession, version: int) -> None:
    schema = "id long, p string, s struct<a: int, t: timestamp>, o double"
    terms = {"partition_by": ["p", "bucket(4, s.a)", "day(s.t)"], "order_by": ["o desc", "truncate(2, p)", "s.a"]}
    table = lake.create_table("s.t", schema, **terms, format_version=version)  # type: ignore[arg-type]
    table.append(spark.range(5).selectExpr("id"))
    table.append(spark.range(5).selectExpr("id", "named_struct('a', cast(id AS int)) AS s"))
    same = lake.create_table("s.u", schema, **terms, format_version=version)  # type: ignore[arg-type]
    same.append(spark.range(5).selectExpr("id").toArrow())
    same.append(spark.range(5).selectExpr("id", "named_struct('a', cast(id AS int)) AS s").toArrow())
    assert rows_of(table) == rows_of(same)
    assert not false_claims(table)


def with_defaults(lake: Lake, name: str) -> Table:
    table = lake.create_table(name, "id long, s struct<a: int>", format_version=3)
    with table.evolve() as change:
        change.add_column("n", "int", required=True, default=7)
        change.add_column("word", "string", default="new")
        change.add_column("s.b", "long", default=11)
    return table


@pytest.mark.parametrize("order_by", [None, ["word", "s.b"]])
def test_what_an_overwrite_does_not_name_gets_its_default(
    lake: Lake, spark: SparkSession, order_by: list[str] | None
) -> None:
    tables = [with_defaults(lake, "s.t"), with_defaults(lake, "s.u")]
    for table, as_arrow in zip(tables, [False, True], strict=True):
        if order_by:
            with table.evolve() as change:
                change.set_sort_order(order_by)
        table.append(
            spark.range(6).selectExpr(
                "id", "cast(NULL AS string) AS word", "3 AS n", "named_struct('a', 1, 'b', cast(NULL AS long)) AS s"
            )
        )
        rows = spark.range(10, 12).selectExpr("id", "named_struct('a', 2) AS s")
        table.overwrite(rows.toArrow() if as_arrow else rows, where="id = 2 OR id = 10 OR id = 11")
    found = rows_of(tables[0])
    assert found == rows_of(tables[1])
    assert {"id": 10, "n": 7, "word": "new", "s": {"a": 2, "b": 11}} in found
    assert {"id": 1, "n": 3, "word": None, "s": {"a": 1, "b": None}} in found  # a null that was written stays
    assert len(found) == 7


# ---- names


@pytest.mark.parametrize(
    "names", [("icefield_key_0", "ICEFIELD_KEY_0", "${y}"), ("Id", "ID", "a.b`c"), ("c0", "p0", "r1")]
)
def test_a_column_of_any_name_keeps_its_values(lake: Lake, spark: SparkSession, names: tuple[str, ...]) -> None:
    schema = pa.schema([("id", pa.int64()), *((name, pa.int64()) for name in names), ("p", pa.string())])
    table = lake.create_table("s.t", schema, partition_by=["bucket(3, id)", "p"], order_by=["p desc"])
    columns = ("id", *(f"id * {at}" for at in range(len(names))), "cast(id % 3 AS string)")
    frame = spark.range(40).selectExpr(*columns).toDF("id", *names, "p")
    rows = [{"id": i, **{name: i * at for at, name in enumerate(names)}, "p": str(i % 3)} for i in range(40)]
    expected = sorted(rows, key=repr)
    table.append(frame)
    assert rows_of(table) == expected
    table.overwrite(frame.where(frame["p"] == "1"), where="p = '1' AND id > -1")
    assert rows_of(table) == expected


RESERVED = ("_row_id", "_last_updated_sequence_number", "_file", "_pos", "_spec_id", "_deleted", "_partition")


@pytest.mark.parametrize(("version", "upper"), [(2, False), (3, False), (3, True)])
def test_columns_named_like_metadata_columns_are_columns(
    lake: Lake, spark: SparkSession, version: int, upper: bool
) -> None:
    names = [name.upper() if upper else name for name in RESERVED]
    schema = pa.schema([("id", pa.int64()), *((name, pa.int64()) for name in names)])
    table = lake.create_table("s.t", schema, format_version=version)
    frame = spark.range(20).selectExpr("id", *(f"id * {at + 10} AS {name}" for at, name in enumerate(names)))
    expected = {i: {"id": i, **{name: i * (at + 10) for at, name in enumerate(names)}} for i in range(20)}

    def check() -> None:
        wanted = sorted(expected.values(), key=repr)
        assert rows_of(table) == wanted
        assert sorted((row.asDict() for row in table.scan().to_spark().collect()), key=repr) == wanted
        found = table.scan(select=[names[0], names[2]], where=f"{names[1]} = 33").to_arrow().read_all().to_pylist()
        assert found == [{names[0]: 30, names[2]: 36}]

    table.append(frame.where("id < 10"))
    table.append(frame.where("id >= 10").toArrow())
    check()
    table.delete("id = 1")  # copy-on-write
    del expected[1]
    check()
    if version > 1:
        table.set_properties({"write.delete.mode": "merge-on-read", "write.merge.mode": "merge-on-read"})
        table.delete("id = 12")
        del expected[12]
        check()
    change = pa.Table.from_pylist([expected[4] | {names[0]: -1}], schema)
    table.upsert(change, on=["id"])
    expected[4] = expected[4] | {names[0]: -1}
    check()
    table.set_properties({"write.merge.mode": "copy-on-write"})
    change = pa.Table.from_pylist([expected[5] | {names[0]: -2}], schema)
    table.upsert(change, on=["id"])
    expected[5] = expected[5] | {names[0]: -2}
    check()
    table.overwrite(frame.where("id = 6"), where="id = 6")
    check()
    table.compact()
    check()


def test_rows_keep_their_ids_beside_a_column_of_that_name(lake: Lake, spark: SparkSession) -> None:
    plain = lake.create_table("s.t", "id long, x long", format_version=3)
    odd = lake.create_table("s.u", "id long, _row_id long", format_version=3)
    for table, name in ((plain, "x"), (odd, "_row_id")):
        table.append(spark.range(0, 10, 1, 1).selectExpr("id", f"id * 2 AS {name}"))
        table.delete("id = 3")
        table.compact()
    # Under its own name the column hides the row ids: they are read once it is renamed.
    with odd.evolve() as change:
        change.rename_column("_row_id", "x")
    read = [table.scan(select=["id", "x", "_row_id"]).to_arrow().read_all().to_pylist() for table in (plain, odd)]
    assert read[0] == read[1]


def test_two_columns_of_one_name_are_refused_in_clear_words(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("s.t", "id long, s struct<a: int>")
    twice = spark.range(3).selectExpr("id", "id AS id")
    with pytest.raises(IcefieldError, match="id"):
        table.append(twice)
    inside = spark.range(3).selectExpr("id", "named_struct('a', 1, 'a', 2) AS s")
    with pytest.raises(IcefieldError, match="a"):
        table.append(inside)
    for other in ("ID", "Id"):
        with pytest.raises(SchemaMismatch, match=f"column '{other}' is not in the table"):
            table.append(spark.range(3).toDF(other))


@pytest.mark.parametrize(
    "column", ["INTERVAL '1' DAY AS x", "INTERVAL '1' YEAR AS x", "parse_json('1') AS x", "NULL AS x"]
)
def test_types_that_no_table_has_are_refused_in_clear_words(lake: Lake, spark: SparkSession, column: str) -> None:
    table = lake.create_table("s.t", "id long, x long")
    with pytest.raises(SchemaMismatch, match="x"):
        table.append(spark.range(3).selectExpr("id", column))


# ---- transforms: values at the ends of their types

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
EDGES = {
    "int": ("int", "cast(x AS int)", [-(1 << 31), 0, 1, (1 << 31) - 1]),
    "long": ("long", "x", [LOWEST, LOWEST + 1, -1, 0, HIGHEST]),
    "narrow": ("decimal(38, 0)", "cast(x AS decimal(38, 0))", [LOWEST, -5, 0, HIGHEST]),
    "deep": ("decimal(38, 30)", "cast(x AS decimal(38, 30))", [-5, 0, 5]),
    "far": ("timestamp", "cast(timestamp_micros(x) AS timestamp_ntz)", [-(1 << 55), -1, 0, 1 << 56]),
    "farz": ("timestamptz", "timestamp_micros(x)", [-(1 << 55), -1, 0, 1 << 56]),
}


@pytest.mark.parametrize(
    ("name", "transforms", "ansi"),
    [
        ("int", ["truncate(10, v)", "bucket(5, v)"], "true"),
        ("int", ["truncate(2147483647, v)"], "false"),
        ("long", ["truncate(10, v)", "bucket(7, v)"], "true"),
        ("narrow", ["truncate(10, v)", "bucket(7, v)"], "true"),
        ("deep", ["truncate(10, v)", "bucket(7, v)"], "false"),
        ("far", ["year(v)", "bucket(5, v)"], "true"),
        ("far", ["month(v)", "bucket(5, v)"], "false"),
        ("farz", ["day(v)", "bucket(5, v)"], "true"),
        ("farz", ["hour(v)", "bucket(5, v)"], "false"),
    ],
)
def test_values_at_the_ends_are_written(
    lake: Lake, spark: SparkSession, name: str, transforms: list[str], ansi: str
) -> None:
    kind, column, values = EDGES[name]
    table = lake.create_table("s.t", f"x long, v {kind}", partition_by=transforms, order_by=transforms[::-1])
    with settings(spark, ansi__enabled=ansi, session__timeZone="America/New_York"):
        frame = spark.createDataFrame([(v,) for v in values] * 2, "x long").selectExpr("x", f"{column} AS v")
        table.append(frame)
    found = table.scan(select=["x"]).to_arrow().read_all().column("x").to_pylist()
    assert sorted(found) == sorted(values * 2)
    assert not false_claims(table)
    # One file for each partition: rows came together by the same values that they are written by.
    assert table.scan().files().num_rows == len(table.inspect("partitions").to_arrow().read_all())


def test_a_value_that_has_no_partition_is_refused_in_clear_words(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("s.t", "v decimal(4, 0)", partition_by=["truncate(1000, v)"])
    with pytest.raises(InvalidInput, match="does not fit"):
        table.append(spark.sql("SELECT cast(-9999 AS decimal(4, 0)) AS v"))
    late = lake.create_table("s.u", "v timestamptz", order_by=["hour(v)"])
    with pytest.raises(InvalidInput, match="hour"):
        late.append(spark.sql("SELECT timestamp_micros(9223372036854775807) AS v"))


# ---- the order that files claim


ORDERS = {
    "hour of local time": ("v timestamp", "hour(v)", "cast(timestamp_micros(x * 1234567890) AS timestamp_ntz) AS v"),
    "gap": ("v timestamp", "hour(v)", "TIMESTAMP_NTZ'2026-03-08 00:10:00' + make_dt_interval(0, 0, x * 7) AS v"),
    "bucket of moments": ("v timestamptz", "bucket(16, v)", "timestamp_micros(x * 1234567) AS v"),
    "bucket of local times": ("v timestamp", "bucket(16, v)", "cast(timestamp_micros(x * 97) AS timestamp_ntz) AS v"),
    "hour far away": ("v timestamptz", "hour(v)", "timestamp_micros(4611686018427387904 + x * 3599999999) AS v"),
    "day far away": ("v timestamptz", "day(v)", "timestamp_micros(-4611686018427387904 + x * 86399999999) AS v"),
    "double": (
        "v double",
        "v desc nulls first",
        "element_at(array(double('NaN'), -0.0D, 0.0D, NULL, double('inf'), -1.5D), int(id % 6) + 1) AS v",
    ),
    "uuid": ("v uuid", "v", "if(id % 2 = 0, uuid(), upper(uuid())) AS v"),
    "text": ("v string", "v desc", "element_at(array('\U0001f600', '￿', 'é', 'z', NULL), int(id % 5) + 1) AS v"),
    "collated": ("v string", "v", "element_at(array('a', 'B', 'c', 'D'), int(id % 4) + 1) COLLATE UNICODE_CI AS v"),
    "bytes": ("v binary", "v nulls last", "unhex(element_at(array('80', '7f', 'ff00', NULL), int(id % 4) + 1)) AS v"),
    "decimal": ("v decimal(38, 10)", "truncate(7, v)", "cast(id * 37 % 91 - 40 AS decimal(38, 10)) AS v"),
    "nested": ("v struct<a: int>", "v.a desc nulls last", "named_struct('a', nullif(int(id * 37 % 91), 5)) AS v"),
    "null struct": ("v struct<a: int>", "v.a", "if(id % 3 = 0, NULL, named_struct('a', int(id * 37 % 91))) AS v"),
    "wrapped": ("v long", "truncate(10, v)", "if(id % 2 = 0, -9223372036854775808 + id, id) AS v"),
}


@pytest.mark.parametrize("name", ORDERS)
def test_files_have_the_order_that_they_claim(lake: Lake, spark: SparkSession, name: str) -> None:
    column, order, values = ORDERS[name]
    mode = "range" if len(name) % 2 else "none"
    table = lake.create_table("s.t", f"id long, {column}", order_by=[order])
    with settings(spark, session__timeZone="America/New_York"):
        frame = spark.range(0, 300, 1, 2).selectExpr("id", "pmod(id * 37, 300) AS x").selectExpr("id", values)
        table.append(frame, options={"distribution-mode": mode})
    assert not false_claims(table)
    assert claims(table) == {ORDERED}


# ---- tasks that outlive their job


@pytest.mark.skipif(
    chosen_place() is SparkPlace.CONNECT, reason="a client of Spark Connect does not know which tasks run"
)
def test_a_file_that_a_task_opens_when_another_has_failed_is_removed(
    lake: Lake, spark: SparkSession, tmp_path: Path
) -> None:
    """Spark stops the tasks of a job that failed, but does not wait for them."""
    table = lake.create_table("s.t", "id long")
    plan = plan_write(table.metadata, "a" * 32, moves_rows=False)
    runs, location = tmp_path / "runs", f"{plan.layout.folder}/00001-1-{plan.write_id}-00001.parquet"

    def late(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        runs.touch()
        time.sleep(1)
        (tmp_path / "late").touch()
        yield from batches

    task = Thread(target=spark.range(0, 1, 1, 1).mapInArrow(late, "id long").collect)
    task.start()
    while not runs.exists():
        time.sleep(0.01)
    opening = Timer(0.5, lake.store.put_new, (location, b""))
    opening.start()
    remove_files_of_write(lake.store, plan)
    assert (tmp_path / "late").exists()
    task.join()
    opening.join()
    assert [file.location for file in lake.store.list(plan.layout.folder)] == []
