"""Spark's format "icefield": the same rows as a scan gives, filters that reach the planner, writes that land once."""

import datetime
import pickle
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import datasource as pushed
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from pyspark.sql import types as spark_types
from pyspark.sql.datasource import CaseInsensitiveDict, InputPartition, WriterCommitMessage
from tests.spark_places import SparkPlace, chosen_place

import icefield
from icefield.commit.action import ProposedChange, WriteContext
from icefield.errors import (
    InvalidFilter,
    InvalidInput,
    NoSuchSnapshot,
    NoSuchTable,
    NotFound,
    SchemaMismatch,
    Unsupported,
)
from icefield.lake import Lake
from icefield.model.metadata import TableMetadata
from icefield.model.updates import RemovePartitionSpecs, RemoveSchemas
from icefield.plan.versions import resolve_version
from icefield.spark.data_source.data_source import IcefieldSource
from icefield.spark.data_source.read import FilteringReader, SourceReader, SourceTable
from icefield.spark.data_source.write import SourceWriter
from icefield.spark.session.session import is_remote
from icefield.storage.location import local_path
from icefield.table.table import Table

pytestmark = pytest.mark.spark

COLUMNS = (
    "id",
    "timestamp_micros(1767225600000000 + id * 3600000000) AS ts",
    "cast(timestamp_micros(id * 1000001) AS timestamp_ntz) AS local",
    "date_add(DATE '1969-12-25', cast(id AS int)) AS day",
    "concat('na_me% ', id % 7) AS name",
    "cast(id * 1.25 AS decimal(9, 2)) AS price",
    "if(id % 5 = 0, NULL, if(id = 1, double('NaN'), cast(id AS double) / 3)) AS ratio",
    "cast(id AS float) / 3 AS narrow",
    "array(cast(id AS string), NULL) AS tags",
    "named_struct('x', id, 'y', named_struct('z', cast(id AS string))) AS deep",
    "map('k', named_struct('v', cast(id AS int))) AS pairs",
    "cast(cast(id AS string) AS binary) AS raw",
    "id % 2 = 0 AS even",
)


FILTERS = (
    "id = 5",
    "id != 5 AND id <= 10 AND id > 2",
    "ts >= TIMESTAMP '2026-01-03 00:00:00Z'",
    "local < TIMESTAMP_NTZ '1970-01-01 00:00:20'",
    "day = DATE '1969-12-30'",
    "name IN ('na_me% 1', 'na_me% 2')",
    "name LIKE 'na\\_me\\% 3%'",
    "name LIKE '%% 3'",
    "name LIKE '%e\\% 3%'",
    "price > 100.5",
    "ratio IS NULL",
    "ratio IS NOT NULL AND NOT ratio <=> 2.0D",
    "ratio > 20",
    "isnan(ratio)",
    "narrow > 1.1",
    "narrow = cast(1 AS float) / 3",
    "deep.y.z = '42'",
    "deep IS NOT NULL AND id < 3",
    "raw = X'3432'",
    "even AND NOT id = 4",
    "tags[0] = '7'",
    "id < 3 OR id > 97",
)


UTC = datetime.UTC
PUSHED: dict[str, list[pushed.Filter]] = {
    "id = 5": [pushed.EqualTo(("id",), 5)],
    "id != 5 AND id <= 10 AND id > 2": [
        pushed.Not(pushed.EqualTo(("id",), 5)),
        pushed.LessThanOrEqual(("id",), 10),
        pushed.GreaterThan(("id",), 2),
    ],
    "ts >= TIMESTAMP '2026-01-03 00:00:00Z'": [
        pushed.GreaterThanOrEqual(("ts",), datetime.datetime(2026, 1, 3, tzinfo=UTC))
    ],
    "local < TIMESTAMP_NTZ '1970-01-01 00:00:20'": [
        pushed.LessThan(("local",), datetime.datetime(1970, 1, 1, 0, 0, 20))
    ],
    "day = DATE '1969-12-30'": [pushed.EqualTo(("day",), datetime.date(1969, 12, 30))],
    "name IN ('na_me% 1', 'na_me% 2')": [pushed.In(("name",), ("na_me% 1", "na_me% 2"))],
    "name LIKE 'na\\_me\\% 3%'": [pushed.StringStartsWith(("name",), "na_me% 3")],
    "name LIKE '%\\% 3'": [pushed.StringEndsWith(("name",), "% 3")],
    "name LIKE '%e\\% 3%'": [pushed.StringContains(("name",), "e% 3")],
    "ratio IS NULL": [pushed.IsNull(("ratio",))],
    "ratio IS NOT NULL AND NOT ratio <=> 2.0D": [
        pushed.IsNotNull(("ratio",)),
        pushed.Not(pushed.EqualNullSafe(("ratio",), 2.0)),
    ],
    "ratio > 20": [pushed.GreaterThan(("ratio",), 20.0)],
    "deep.y.z = '42'": [pushed.EqualTo(("deep", "y", "z"), "42")],
    "raw = X'3432'": [pushed.EqualTo(("raw",), b"42")],
    "even": [pushed.EqualTo(("even",), True)],
    "price > 100.5": [pushed.GreaterThan(("price",), Decimal("100.50"))],
}


def orders(spark: SparkSession, first: int, last: int) -> DataFrame:
    return spark.range(first, last, 1, 3).selectExpr(*COLUMNS)


def read(lake: Lake, **options: str) -> DataFrame:
    found: DataFrame = lake.spark.read.format("icefield").options(**options).load("shop.orders")
    return found


def struct(name: str, kind: str | spark_types.DataType) -> spark_types.StructType:
    """Return a schema of one column; Spark's own parser of schemas needs a session."""
    return spark_types.StructType().add(name, kind)


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(map(str, frame.collect()))


def source_table(lake: Lake) -> SourceTable:
    metadata = lake.table("shop.orders").metadata
    return SourceTable(lake.backend.reading, metadata, resolve_version(metadata, None))


def source(lake: Lake, /, **options: str) -> IcefieldSource:
    kind = type("IcefieldSource", (IcefieldSource,), {"default_lake": lake.opener})
    made: IcefieldSource = kind(CaseInsensitiveDict({"table": "shop.orders", **options}))
    return made


def reader(lake: Lake, **options: str) -> SourceReader:
    loaded = source(lake, **options)
    made = loaded.reader(loaded.schema())
    assert isinstance(made, SourceReader)
    return made


def batches_of(planned: SourceReader) -> pa.Table:
    travelled = pickle.loads(pickle.dumps(planned))
    return pa.Table.from_batches([b for p in planned.partitions() for b in travelled.read(p)])


def files_on_disk(table: Table) -> set[Path]:
    return {p for p in Path(local_path(table.location)).rglob("*") if p.is_file()}


@pytest.fixture(scope="module")
def hundred(spark: SparkSession) -> pa.Table:
    """A hundred orders, made by Spark once."""
    return orders(spark, 0, 100).toArrow()


@pytest.fixture
def table(lake: Lake, hundred: pa.Table) -> Table:
    made = lake.create_table("shop.orders", hundred, partition_by=["day(ts)"], format_version=3)
    made.append(hundred)
    return made


def test_rows_and_types_are_those_of_a_scan(lake: Lake, table: Table) -> None:
    frame = read(lake)
    native = table.scan().to_spark()
    assert frame.schema.simpleString() == native.schema.simpleString()
    assert rows_of(frame) == rows_of(native) == rows_of(lake.read("shop.orders"))


def test_lake_read_takes_what_a_scan_takes(lake: Lake, table: Table) -> None:
    first = table.metadata.current_snapshot
    assert first
    table.delete("id < 50")
    assert [r.id for r in lake.read("shop.orders", "id = 60", ["id"]).collect()] == [60]
    assert lake.read("shop.orders", select=["id"], as_of=first.snapshot_id).count() == 100


def test_deleted_rows_are_not_read_and_metadata_columns_are_there(lake: Lake, table: Table) -> None:
    table.set_properties({"write.delete.mode": "merge-on-read"})
    table.delete("name = 'na_me% 3'")
    frame = read(lake, columns="id, _file, _pos, _row_id, deep.y")
    native = table.scan(select=["id", "_file", "_pos", "_row_id", "deep.y"]).to_spark()
    assert frame.columns == ["id", "_file", "_pos", "_row_id", "deep"]
    assert rows_of(frame) == rows_of(native)
    assert frame.count() == table.count() == 86


def found_by(frames: Callable[[str], DataFrame]) -> dict[str, list[int]]:
    """Return which ids each filter finds, in one job."""
    parts = [frames(where).selectExpr("id", f"{at} AS filter") for at, where in enumerate(FILTERS)]
    rows = reduce(DataFrame.union, parts).collect()
    return {where: sorted(r.id for r in rows if r.filter == at) for at, where in enumerate(FILTERS)}


def test_filters_of_spark_on_one_frame_do_not_disturb_each_other(spark: SparkSession, lake: Lake, table: Table) -> None:
    given, frame = orders(spark, 0, 100), read(lake)
    expected = found_by(given.where)
    assert found_by(frame.where) == expected
    assert all(0 < len(ids) < 100 for ids in expected.values())
    assert frame.count() == 100


def test_an_option_filters_rows_and_prunes_files(lake: Lake, table: Table) -> None:
    frame = read(lake, columns="name", where="id >= 24 AND id < 40 AND name LIKE '% 2'")
    assert [r.name for r in frame.collect()] == ["na_me% 2"] * 2
    planned = reader(lake, where="id = 30")
    ((held, tasks),) = (pickle.loads(p.value) for p in planned.partitions())
    assert held is None, "the grace period protects it"
    assert len(tasks) == 1, "statistics leave one file of five"
    assert batches_of(planned).column("id").to_pylist() == [30]


def test_filters_that_a_spark_pushes_mean_the_same_here(spark: SparkSession, lake: Lake, table: Table) -> None:
    for where, filters in PUSHED.items():
        expected = sorted(r.id for r in orders(spark, 0, 100).where(where).collect())
        planned = FilteringReader(source_table(lake), source(lake).schema(), None, source(lake)._load_newest)
        assert list(planned.pushFilters(filters)) == [], where
        assert sorted(batches_of(planned).column("id").to_pylist()) == expected, where
        assert 0 < len(expected) < 100, where


def test_what_means_something_else_here_is_left_to_spark(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("shop.orders", "id long, u uuid, t time, n timestamp_ns, f fixed[2]", format_version=3)
    upper = "0123ABCD-0000-4000-8000-00000000000F"
    table.append(
        pa.table(
            {
                "id": [1, 2],
                "u": pa.array([bytes.fromhex(upper.replace("-", "")), None], pa.binary(16)),
                "t": pa.array([61_000_001, None], pa.int64()).view(pa.time64("us")),
                "n": pa.array([5, None], pa.timestamp("ns")),
                "f": pa.array([b"ab", None], pa.binary(2)),
            }
        )
    )
    frame = read(lake)
    assert frame.where(f"u = '{upper}'").count() == 0, "Spark sees a text, in lower case"
    assert frame.where(f"u = lower('{upper}')").count() == 1
    assert frame.where("u > '0'").count() == frame.where("t = 61000001").count() == frame.where("n < 6").count() == 1
    assert frame.where("f = X'6162'").count() == 1
    assert rows_of(frame) == rows_of(table.scan().to_spark())
    given = [pushed.EqualTo(("u",), upper), pushed.EqualTo(("t",), 1), pushed.LessThan(("n",), 6)]
    planned = FilteringReader(source_table(lake), source(lake).schema(), None, source(lake)._load_newest)
    assert list(planned.pushFilters(given)) == given


def test_a_schema_chooses_columns_also_inside_structs(lake: Lake, spark: SparkSession, table: Table) -> None:
    chosen = spark.read.format("icefield").schema("deep struct<y: struct<z: string>>, id long not null, _pos long")
    lake.spark  # noqa: B018 - registers the format
    frame = chosen.load("shop.orders")
    assert frame.columns == ["deep", "id", "_pos"]
    assert rows_of(frame.where("id = 7")) == ["Row(deep=Row(y=Row(z='7')), id=7, _pos=7)"]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (struct("id", "integer"), "the schema asks for id int, but the table has id bigint"),
        (struct("deep", struct("w", "long")), "the table has no column deep.w"),
        (struct("nobody", "string"), "nobody"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused(
    lake: Lake, table: Table, schema: spark_types.StructType, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        source(lake).reader(schema)


def test_sql_reads_through_a_temporary_view(lake: Lake, table: Table) -> None:
    spark = lake.spark
    spark.sql("CREATE OR REPLACE TEMP VIEW v USING icefield OPTIONS (table 'shop.orders', columns 'id,even')")
    assert [r.id for r in spark.sql("SELECT id FROM v WHERE id > 96 AND even").collect()] == [98]
    spark.catalog.dropTempView("v")


def test_a_table_of_sparks_own_catalog_is_refused_for_it_loses_its_options(lake: Lake, table: Table) -> None:
    with pytest.raises(PySparkException, match="CREATE TEMP VIEW … USING icefield"):
        lake.spark.sql("CREATE TABLE from_lake USING icefield OPTIONS (table 'shop.orders')")


def test_an_entry_in_sparks_own_catalog_says_what_to_do_at_its_first_use(lake: Lake, tmp_path: Path) -> None:
    """With a list of columns Spark makes the entry without asking the source, and later tells it nothing."""
    spark = lake.spark
    with pytest.raises(PySparkException, match="does not create a table of a lake"):
        spark.sql(f"CREATE TABLE from_location USING icefield LOCATION '{tmp_path}/x'")
    spark.sql("CREATE TABLE entry (id BIGINT) USING icefield")
    try:
        for statement in ("SELECT * FROM entry", "INSERT INTO entry VALUES (1)"):
            with pytest.raises(PySparkException, match="drop it. Create tables with lake.create_table"):
                spark.sql(statement).collect()
    finally:
        spark.sql("DROP TABLE entry")


def test_a_frame_keeps_its_version_and_options_choose_another(lake: Lake, table: Table) -> None:
    frame = read(lake, columns="id")
    first = table.metadata.current_snapshot
    assert first
    table.create_tag("q1")
    table.create_branch("side")
    table.at("side").delete("id < 90")
    table.delete("id < 50")
    # A server of Spark Connect loads a format again for each action; lake.read keeps its version there too.
    kept = 50 if is_remote(lake.spark) else 100
    assert frame.count() == kept
    assert frame.where("id < 50").count() == kept - 50
    assert read(lake, columns="id").count() == 50
    assert read(lake, **{"snapshot-id": str(first.snapshot_id)}).count() == 100
    assert read(lake, **{"as-of-timestamp": str(first.timestamp_ms)}).count() == 100
    assert read(lake, tag="q1").count() == 100
    assert read(lake, branch="side").count() == 10


@pytest.mark.skipif(chosen_place() is SparkPlace.CONNECT, reason="a server loads a format again for each action")
def test_a_frame_outlives_the_expiry_of_its_snapshot_and_of_its_schema(lake: Lake, table: Table) -> None:
    """As a frame of `lake.read` does: expiry removes no file."""
    first = table.metadata.current_snapshot
    assert first
    frame, native = read(lake, columns="id"), lake.read("shop.orders", select=["id"])
    with table.evolve() as change:
        change.rename_column("id", "number")
    table.delete("number < 50")
    table.remove_snapshots([first.snapshot_id])
    assert frame.count() == native.count() == 100
    assert frame.where("id < 50").count() == 50
    # Also where the metadata file is gone, as that of the hundredth commit before is.
    held = lake.read("shop.orders").count()
    frame = read(lake, columns="number")
    location = table.metadata_location
    table.delete("number < 60")
    lake.store.delete(location)
    assert frame.count() == held


class CleanExpiredMetadata:
    """Removes the schema and the partition spec of expired snapshots, as Iceberg Java does on request."""

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        return ProposedChange([RemoveSchemas(frozenset({0})), RemovePartitionSpecs(frozenset({0}))])

    def reusable_files(self) -> Sequence[str]:
        return ()


def test_a_loaded_source_outlives_the_partition_spec_of_its_files(lake: Lake) -> None:
    table = lake.create_table("shop.orders", "id long, p long", partition_by=["p"])
    first = table.append(pa.table({"id": [1, 2], "p": [1, 2]}))
    assert first
    loaded = source(lake, where="p = 2")
    columns = loaded.schema()
    with table.evolve() as change:
        change.drop_partition_field("p")
        change.rename_column("id", "number")
    table.overwrite(pa.table({"number": [3], "p": [2]}))
    table.remove_snapshots([first.snapshot_id])
    lake.head("shop.orders").commit([CleanExpiredMetadata()])
    made = loaded.reader(columns)
    assert isinstance(made, SourceReader)
    assert batches_of(made).to_pylist() == [{"id": 2, "p": 2}]


def test_an_empty_table_and_a_filter_that_nothing_matches_give_no_rows(lake: Lake, table: Table) -> None:
    lake.create_table("shop.empty", "id long, name string")
    empty = lake.spark.read.format("icefield").load("shop.empty")
    assert empty.dtypes == [("id", "bigint"), ("name", "string")]
    assert empty.count() == 0
    assert read(lake).where("id = 12345").count() == 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"table": "shop.nothing"}, NoSuchTable, "no table shop.nothing in .*Tables in shop: orders"),
        ({"snapshot-id": "x"}, InvalidInput, "option snapshot-id must be a number"),
        ({"snapshot-id": "1"}, NoSuchSnapshot, "no snapshot 1"),
        ({"tag": "2026-01-01"}, NoSuchSnapshot, "no branch or tag '2026-01-01'"),
        ({"tag": "a", "branch": "b"}, InvalidInput, "branch and tag each name a version"),
        ({"collumns": "id"}, InvalidInput, "no option 'collumns' here. Did you mean 'columns'?"),
        ({"columns": "idd"}, InvalidInput, "idd"),
        ({"where": "idd > 3"}, InvalidFilter, "Did you mean 'id'"),
        ({"path": "shop.orders"}, InvalidInput, "names two tables"),
        ({"table": ""}, InvalidInput, "needs the name of a table"),
        ({"lake": "/nowhere/at/all"}, NotFound, "there is no lake at /nowhere/at/all"),
        ({"lake": "memory:"}, Unsupported, "a lake in memory exists only in its process"),
        ({"warehouse": "w"}, InvalidInput, "no lake was named"),
    ],
)
def test_wrong_options_are_one_clear_error(
    lake: Lake, table: Table, options: dict[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        source(lake, **options).schema()


def test_errors_reach_the_user_through_spark(lake: Lake, table: Table) -> None:
    with pytest.raises(PySparkException, match=r"no table shop.nothing in .* Tables in shop: orders"):
        _ = lake.spark.read.format("icefield").load("shop.nothing").schema
    with pytest.raises(PySparkException, match="column 'extra' is not in the table"):
        lake.spark.range(3).selectExpr("id", "1 AS extra").write.format("icefield").mode("append").save("shop.orders")


def test_a_named_lake_is_read_whatever_the_default_is(spark: SparkSession, table: Table, tmp_path: Path) -> None:
    with icefield.connect(tmp_path / "other", durable=False) as other:
        other.create_table("shop.orders", "id long")
        icefield.register(spark, tmp_path / "other")
        named = spark.read.format("icefield").option("table", "shop.orders")
        assert named.load().count() == 0
        assert named.option("lake", str(tmp_path / "lake")).load().count() == 100


def test_append_and_overwrite(lake: Lake, spark: SparkSession, table: Table) -> None:
    orders(lake.spark, 100, 110).write.format("icefield").mode("append").save("shop.orders")
    assert rows_of(table.scan().to_spark()) == rows_of(orders(spark, 0, 110))
    days = orders(spark, 0, 200).where("id IN (1, 150)")
    days.write.format("icefield").option("table", "shop.orders").option("overwrite-mode", "dynamic").mode(
        "overwrite"
    ).save()
    left = sorted(r.id for r in lake.read("shop.orders", select=["id"]).collect())
    assert left == [1, *range(24, 110), 150]
    orders(spark, 5, 7).write.format("icefield").mode("overwrite").save("shop.orders")
    assert rows_of(lake.read("shop.orders")) == rows_of(orders(spark, 5, 7))
    assert len(table.snapshots()) == 4


def test_a_write_goes_to_its_branch_and_under_its_idempotency_key_once(
    lake: Lake, spark: SparkSession, table: Table
) -> None:
    table.create_branch("side")
    lake.spark  # noqa: B018 - registers the format
    for _ in range(2):
        frame = orders(spark, 100, 101).write.format("icefield").mode("append").option("branch", "side")
        frame.option("idempotency-key", "job-7").save("shop.orders")
    assert table.count() == 100
    assert table.at("side").count() == 101


def test_columns_that_rows_have_more_are_added_if_asked_for(lake: Lake) -> None:
    table = lake.create_table("shop.orders", "id int")
    frame = lake.spark.range(3).selectExpr("id", "concat('a', id) AS note").write.format("icefield")
    with pytest.raises(PySparkException, match="column 'note' is not in the table"):
        frame.mode("append").save("shop.orders")
    frame.option("merge-schema", "true").mode("append").save("shop.orders")
    assert table.schema.find_field("note").name == "note"
    assert rows_of(lake.read("shop.orders", "id = 2")) == ["Row(id=2, note='a2')"]


def test_options_go_before_the_write_properties_of_the_table(lake: Lake) -> None:
    table = lake.create_table("shop.orders", "id long")
    writer, messages = written(lake, [1, 2], **{"write.parquet.compression-codec": "gzip"})
    writer.commit(messages)
    (path,) = table.scan().files()["file_path"].to_pylist()
    assert pq.ParquetFile(local_path(path)).metadata.row_group(0).column(0).compression == "GZIP"


def test_null_in_a_required_column_is_named_and_leaves_no_file(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("shop.orders", "id long not null, p long", partition_by=["p"])
    before = files_on_disk(table)
    frame = lake.spark.range(50).selectExpr("if(id = 33, NULL, id) AS id", "id % 5 AS p")
    with pytest.raises(PySparkException, match="required column 'id' holds 1 null"):
        frame.write.format("icefield").mode("append").save("shop.orders")
    assert files_on_disk(table) == before


def test_failure_in_the_users_own_query_leaves_no_file(lake: Lake, spark: SparkSession, table: Table) -> None:
    before = files_on_disk(table)
    frame = orders(lake.spark, 0, 50).withColumn("id", F.expr("if(id = 33, raise_error('boom'), id)"))
    with pytest.raises(PySparkException, match="boom"):
        frame.write.format("icefield").mode("append").save("shop.orders")
    assert files_on_disk(table) == before


def written(lake: Lake, ids: list[int], **options: str) -> tuple[SourceWriter, list[WriterCommitMessage | None]]:
    schema = struct("id", "long")
    overwrite = "overwrite-mode" in options
    writer = source(lake, **options).writer(schema, overwrite)
    assert isinstance(writer, SourceWriter)
    return writer, [writer.write(iter([pa.record_batch({"id": ids})]))]


def test_a_commit_that_is_asked_for_twice_lands_once(lake: Lake) -> None:
    table = lake.create_table("shop.orders", "id long")
    writer, messages = written(lake, [1, 2])
    again = pickle.loads(pickle.dumps(writer))
    writer.commit(messages)
    again.commit(pickle.loads(pickle.dumps(messages)))
    assert table.scan().to_arrow().read_all()["id"].to_pylist() == [1, 2], "the files are still there"
    assert len(table.snapshots()) == 1


def test_abort_removes_files_but_not_those_of_a_commit_that_may_have_landed(lake: Lake) -> None:
    table = lake.create_table("shop.orders", "id long")
    before = files_on_disk(table)
    writer, messages = written(lake, [1, 2])
    writer.abort([*messages, None])
    assert files_on_disk(table) == before
    writer, messages = written(lake, [1, 2])
    writer.commit(messages)
    writer.abort(messages)
    assert table.scan().to_arrow().read_all().num_rows == 2


def test_overwrite_fails_if_rows_came_concurrently(lake: Lake) -> None:
    table = lake.create_table("shop.orders", "id long")
    table.append(pa.table({"id": [0]}))
    before = files_on_disk(table)
    writer, messages = written(lake, [1, 2], **{"overwrite-mode": "static"})
    table.append(pa.table({"id": [5]}))
    with pytest.raises(icefield.IcefieldError, match="overwrite"):
        writer.commit(messages)
    assert sorted(table.scan().to_arrow().read_all()["id"].to_pylist()) == [0, 5]
    assert not any("-" + writer.plan.write_id in str(path) for path in files_on_disk(table) - before)


def test_wrong_rows_are_refused_before_any_task_runs(lake: Lake, table: Table) -> None:
    with pytest.raises(SchemaMismatch, match="column 'id' is string, but the table has long"):
        source(lake).writer(struct("id", "string"), overwrite=False)
    with pytest.raises(InvalidInput, match="overwrite-mode must be static or dynamic"):
        source(lake, **{"overwrite-mode": "all"}).writer(struct("id", "long"), overwrite=True)
    with pytest.raises(InvalidInput, match="merge-schema must be false or true"):
        source(lake, **{"merge-schema": "yes"}).writer(struct("id", "long"), overwrite=False)
    with pytest.raises(InvalidInput, match="no option 'snapshot-id' here"):
        source(lake, **{"snapshot-id": "1"}).writer(struct("id", "long"), overwrite=False)


def test_a_partition_without_files_is_read_as_nothing(lake: Lake) -> None:
    lake.create_table("shop.orders", "id long")
    travelled = pickle.loads(pickle.dumps(reader(lake)))
    assert list(travelled.read(InputPartition(None))) == []
