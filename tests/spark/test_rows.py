"""Rows through Spark: what is written comes back, by Spark and by Arrow, and faults change nothing."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.spark_places import explained

from icefield.errors import LocationRefused, SchemaMismatch
from icefield.lake import Lake
from icefield.storage.location import local_path
from icefield.table.table import Table

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("generated_code")]

COLUMNS = (
    "id",
    "timestamp_micros(1767225600000000 + id * 3600000000) AS ts",
    "cast(timestamp_micros(id * 1000001) AS timestamp_ntz) AS local",
    "date_add(DATE '1969-12-25', cast(id AS int)) AS day",
    "concat('name ', id % 7) AS name",
    "cast(id * 1.25 AS decimal(9, 2)) AS price",
    "if(id % 5 = 0, NULL, cast(id AS double) / 3) AS ratio",
    "array(cast(id AS string), NULL) AS tags",
    "named_struct('x', id, 'y', named_struct('z', cast(id AS string))) AS deep",
    "map('k', cast(id AS int)) AS pairs",
    "cast(cast(id AS string) AS binary) AS raw",
    "id % 2 = 0 AS even",
)


def orders(spark: SparkSession, first: int, last: int) -> DataFrame:
    return spark.range(first, last, 1, 3).selectExpr(*COLUMNS)


def files_on_disk(table: Table) -> set[Path]:
    return {p for p in Path(local_path(table.location)).rglob("*") if p.is_file()}


@pytest.fixture
def table(lake: Lake, spark: SparkSession) -> Table:
    made = lake.create_table("shop.orders", orders(spark, 0, 1), partition_by=["day(ts)"], order_by=["id"])
    made.append(orders(spark, 0, 100))
    return made


def test_spark_rows_come_back_through_spark_and_arrow(spark: SparkSession, table: Table) -> None:
    expected = sorted(map(str, orders(spark, 0, 100).collect()))
    assert sorted(map(str, table.scan().to_spark().collect())) == expected
    read = table.scan().to_arrow().read_all()
    assert sorted(read["id"].to_pylist()) == list(range(100))
    assert read.filter(pa.compute.equal(read["id"], 7)).to_pylist()[0]["deep"] == {"x": 7, "y": {"z": "7"}}


def test_arrow_rows_come_back_through_spark(spark: SparkSession, table: Table) -> None:
    table.append(table.scan(where="id < 10").to_arrow())
    rows = table.scan(where="id < 10").to_spark()
    assert rows.count() == 20
    assert {str(r) for r in rows.collect()} == {str(r) for r in orders(spark, 0, 10).collect()}


@pytest.mark.parametrize(
    "where",
    [
        "id < 10",
        "ts >= TIMESTAMP '2026-01-03 00:00:00' AND id != 60",
        "local < '1970-01-01T00:00:20'",
        "day = DATE '1969-12-30'",
        "name IN ('name 1', 'name 2')",
        "price > 100.5",
        "ratio IS NULL",
        "ratio > 20",
        "deep.y.z = '42'",
        "raw = X'3432'",
        "even = true AND NOT id = 4",
    ],
)
def test_spark_and_arrow_agree_on_filters(table: Table, where: str) -> None:
    by_spark = sorted(r.id for r in table.scan(where=where, select=["id"]).to_spark().collect())
    by_arrow = sorted(table.scan(where=where, select=["id"]).to_arrow().read_all()["id"].to_pylist())
    assert by_spark == by_arrow
    assert 0 < len(by_arrow) < 100
    assert table.scan(where=where).count() == len(by_arrow)


def test_rows_of_a_partition_land_in_one_file_and_in_order(table: Table) -> None:
    files = table.scan().files().to_pylist()
    assert len(files) == len({f["partition"] for f in files}) == 5
    (first,) = (f for f in files if f["partition"] == "ts_day=2026-01-01")
    read = table.scan(where="ts < '2026-01-02'", select=["id"]).to_arrow().read_all()["id"].to_pylist()
    assert read == sorted(read)
    assert first["record_count"] == 24


def test_native_reader_and_pushdown_are_used(table: Table) -> None:
    plan = explained(table.scan(where="id = 5").to_spark())
    assert "FileScan parquet" in plan
    assert "PushedFilters: [IsNotNull(id), EqualTo(id,5)]" in plan
    assert "Batched: true" in plan or "tags" in plan


def test_selected_nested_column_has_the_same_shape_in_spark_and_arrow(table: Table) -> None:
    scan = table.scan(where="id = 7", select=["deep.y", "id"])
    assert [r.asDict(recursive=True) for r in scan.to_spark().collect()] == scan.to_arrow().read_all().to_pylist()


def test_overwrite_by_filter_rewrites_in_spark(spark: SparkSession, table: Table) -> None:
    table.overwrite(orders(spark, 500, 503), where="id >= 50")
    ids = sorted(r.id for r in table.scan(select=["id"]).to_spark().collect())
    assert ids == [*range(50), 500, 501, 502]
    assert table.count() == 53
    snapshot = table.metadata.current_snapshot
    assert snapshot is not None
    assert snapshot.summary["total-records"] == "53"


def test_overwrite_keeps_null_rows_in_spark(spark: SparkSession, table: Table) -> None:
    nulls = table.scan(where="ratio IS NULL").count()
    table.overwrite(orders(spark, 0, 0), where="ratio > 0")
    assert table.count() == nulls
    assert table.scan().to_spark().where("ratio IS NOT NULL").count() == 0


def test_empty_frame_appends_nothing(spark: SparkSession, table: Table) -> None:
    assert table.append(orders(spark, 0, 0)) is None
    assert len(table.snapshots()) == 1


def test_reading_an_empty_table_gives_its_schema(lake: Lake, spark: SparkSession) -> None:
    frame = lake.create_table("s.t", "id long, name string").scan().to_spark()
    assert frame.dtypes == [("id", "bigint"), ("name", "string")]
    assert frame.count() == 0


def test_misfit_schema_is_refused_before_any_task_runs(spark: SparkSession, table: Table) -> None:
    before = files_on_disk(table)
    with pytest.raises(SchemaMismatch, match="column 'extra' is not in the table"):
        table.append(orders(spark, 0, 3).selectExpr("*", "1 AS extra"))
    with pytest.raises(SchemaMismatch, match="column 'name' is int, but the table has string"):
        table.append(orders(spark, 0, 3).drop("name").selectExpr("*", "1 AS name"))
    assert files_on_disk(table) == before


def test_null_in_a_required_column_is_one_clear_error_and_leaves_no_file(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("s.t", "id long not null, p long", partition_by=["p"])
    before, pointer = files_on_disk(table), table.metadata_location
    with pytest.raises(SchemaMismatch, match="required column 'id' holds 1 null") as caught:
        table.append(spark.range(50).selectExpr("if(id = 33, NULL, id) AS id", "id % 5 AS p"))
    assert "\n" not in str(caught.value)
    assert files_on_disk(table) == before
    assert table.metadata_location == pointer


def test_failure_in_the_users_own_query_passes_through_and_leaves_no_file(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("s.t", "id long")
    before = files_on_disk(table)
    with pytest.raises(PySparkException, match="boom"):
        table.append(spark.range(50).selectExpr("if(id = 33, raise_error('boom'), id) AS id"))
    assert files_on_disk(table) == before
    assert table.snapshots() == []


def test_a_frame_keeps_its_snapshot_while_writers_move_on(spark: SparkSession, table: Table) -> None:
    frame = table.scan(select=["id"]).to_spark()
    table.append(orders(spark, 100, 110))
    assert frame.count() == 100
    assert frame.selectExpr("max(id) AS m").first().m == 99
    assert table.scan().to_spark().count() == 110


def test_types_that_spark_lacks_are_shown_as_text_bytes_and_numbers(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("s.t", "id long, u uuid, f fixed[2], t time, us list<uuid>")
    text = "0123abcd-0000-4000-8000-00000000000f"
    raw = bytes.fromhex(text.replace("-", ""))
    uuids = pa.array([raw, None], pa.binary(16))
    lists = pa.array([[raw], []], pa.list_(pa.binary(16)))
    times = pa.array([61_000_001, None], pa.int64()).view(pa.time64("us"))
    fixed = pa.array([b"ab", None], pa.binary(2))
    table.append(pa.table({"id": [1, 2], "u": uuids, "f": fixed, "t": times, "us": lists}))
    rows = {r.id: r for r in table.scan().to_spark().collect()}
    assert (rows[1].u, bytes(rows[1].f), rows[1].t, rows[1].us) == (text, b"ab", 61_000_001, [text])
    assert (rows[2].u, rows[2].f, rows[2].t, rows[2].us) == (None, None, None, [])
    assert [r.id for r in table.scan(where=f"u = '{text}'").to_spark().collect()] == [1]
    table.append(spark.sql(f"SELECT 3L AS id, '{text}' AS u"))
    assert table.scan(where=f"u = '{text}'").count() == 2


def test_session_time_zone_does_not_move_partitions_or_filters(lake: Lake, spark: SparkSession) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    table = lake.create_table("s.t", "id long, ts timestamptz", partition_by=["day(ts)"])
    frame = spark.range(48).selectExpr("id", "timestamp_micros(1767225600000000 + id * 3600000000) AS ts")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Pacific/Auckland")
        table.append(frame)
        assert table.scan(where="ts < TIMESTAMP '2026-01-02 00:00:00Z'").to_spark().count() == 24
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))
    assert sorted(f["partition"] for f in table.scan().files().to_pylist()) == [
        "ts_day=2026-01-01",
        "ts_day=2026-01-02",
    ]


def test_evolved_columns_keep_their_values_under_pushdown(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("s.t", "id long, a long, b long, n struct<x: long, y: long>, w int")
    columns = "id", "id AS a", "id + 1000 AS b", "named_struct('x', id, 'y', -id) AS n", "cast(id AS int) AS w"
    table.append(spark.range(10).selectExpr(*columns))
    with table.evolve() as change:
        change.rename_column("a", "tmp")
        change.rename_column("b", "a")
        change.rename_column("tmp", "b")
        change.rename_column("n.x", "tmp")
        change.rename_column("n.y", "x")
        change.rename_column("n.tmp", "y")
        change.update_column_type("w", "long")
    table.append(
        spark.range(10, 12).selectExpr("id", "id + 1000 AS a", "id AS b", "named_struct('x', -id, 'y', id) AS n")
    )

    def ids(where: str) -> list[int]:
        found = sorted(r.id for r in table.scan(where=where).to_spark().collect())
        assert found == sorted(table.scan(where=where).to_arrow().read_all()["id"].to_pylist())
        # The same filter said in Spark, above the scan, travels down to Parquet too.
        assert found == sorted(r.id for r in table.scan().to_spark().where(where).collect())
        return found

    assert ids("a >= 1000") == list(range(12))
    assert ids("b < 5") == list(range(5))
    assert ids("n.x <= -5") == list(range(5, 12))
    assert ids("w = 3") == [3]
    assert ids("w IS NULL") == [10, 11]
    with table.evolve() as change:
        change.drop_column("a")
        change.add_column("a", "long")
    assert ids("a IS NULL") == list(range(12))
    assert ids("a >= 1000") == []


def test_nan_is_found_by_the_users_own_filters(lake: Lake, spark: SparkSession) -> None:
    table = lake.create_table("s.t", "id long, f double, n struct<g: float>")
    nan = float("nan")
    rows = {"id": [1, 2, 3], "f": [1.0, nan, None], "n": [{"g": 2.0}, {"g": nan}, None]}
    kind = pa.schema([("id", pa.int64()), ("f", pa.float64()), ("n", pa.struct([("g", pa.float32())]))])
    table.append(pa.table(rows, kind))
    frame = table.scan().to_spark()
    for filter_ in ("f > 5", "f >= 5", "f != 1", "f NOT IN (1, 2)", "n.g > 5", "isnan(f)"):
        assert [r.id for r in frame.where(filter_).collect()] == [2], filter_
    assert table.scan(where="f > 5").count() == 1
    assert table.scan(where="f < 0.5").files().num_rows == 0, "the manifest still has bounds"


def test_a_link_out_of_the_roots_is_refused_whoever_reads(lake: Lake, spark: SparkSession, tmp_path: Path) -> None:
    """A data file, its directory, and a delete file; a link that stays inside is followed."""
    table = lake.create_table("a.linked", "id long", properties={"write.delete.mode": "merge-on-read"})
    table.append(pa.table({"id": [1, 2, 3]}))
    table.delete("id = 2")
    assert sorted(row.id for row in table.scan().to_spark().collect()) == [1, 3]
    data = Path(local_path(table.location)) / "data"
    for path in (*data.iterdir(), data):
        moved = tmp_path / "outside" / path.name
        moved.parent.mkdir(exist_ok=True)
        path.rename(moved)
        path.symlink_to(moved)
        with pytest.raises(LocationRefused):
            table.scan().to_spark()
        with pytest.raises(LocationRefused):
            table.scan().to_arrow().read_all()
        path.unlink()
        moved.rename(path)
    inside = Path(local_path(table.location)) / "beside"
    data.rename(inside)
    data.symlink_to(inside)
    assert sorted(row.id for row in table.scan().to_spark().collect()) == [1, 3]
