"""What Spark pushes into Parquet, by name and by stored type, loses no rows: whoever wrote the files, whatever the
table's schemas still tell, and whoever made the filter."""

import datetime as dt
import itertools
from collections.abc import Iterator, Sequence
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from tests.equality_deletes import delete_keys
from tests.spark.foreign_files import add_file, check, forget_schemas, stored
from tests.spark_places import INTERPRETED, changed

from icefield.lake import Lake
from icefield.spark.read import file_names
from icefield.table.table import Table

pytestmark = pytest.mark.spark
IN_PLACE = {"write.delete.mode": "merge-on-read"}
LONG, STRING, DOUBLE = pa.int64(), pa.string(), pa.float64()
OF_TWO = ["x > 2", "y > 2", "x = 1", "x IS NULL", "y IS NULL", "y IN (10, 1)", "y < 5 OR x < 5"]
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


@pytest.fixture(autouse=True)
def plain_plans(spark: SparkSession) -> Iterator[None]:
    """Many small queries: to compile each would take longer than to run it."""
    with changed(spark, INTERPRETED):
        yield


@pytest.fixture(params=[0, file_names.LEAST_BYTES], ids=["with footers", "without footers"])
def footers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_names, "LEAST_BYTES", request.param)


def two_columns(lake: Lake, name: str, version: int = 2) -> Table:
    table = lake.create_table(name, "id long, x long, y long", format_version=version, properties=IN_PLACE)
    table.append(pa.table({"id": [0, 1, 2], "x": [1, 2, None], "y": [10, 20, 30]}))
    return table


def swap(table: Table, one: str, other: str) -> None:
    steps = ((one, "between"), (other, one.rpartition(".")[2]), (one.replace(one.rpartition(".")[2], "between"), ""))
    for old, new in steps:
        with table.evolve() as change:
            change.rename_column(old, new or other.rpartition(".")[2])


def test_widened_decimals(lake: Lake) -> None:
    cases = []
    # A number whose digits, as an integer of the old size, are a negative one.
    widenings = [((9, 2), (18, 2), "30000000.00"), ((9, 2), (38, 2), "30000000.00")]
    widenings.append(((18, 2), (38, 2), "100000000000000000.00"))
    for at, (old, new, wide) in enumerate(widenings):
        kind = f"decimal({old[0]}, {old[1]})"
        table = lake.create_table(f"d.t{at}", f"id long, d {kind}, s struct<d: {kind}>", properties=IN_PLACE)
        values = [Decimal(1), Decimal(10) ** (old[0] - old[1] - 1), None, Decimal(-1)]
        rows = {"id": [0, 1, 2, 3], "d": values, "s": [{"d": value} for value in values]}
        arrow = pa.decimal128(*old)
        types = pa.schema([("id", LONG), ("d", arrow), ("s", pa.struct([("d", arrow)]))])
        table.append(pa.table(rows, types))
        with table.evolve() as change:
            for name in ("d", "s.d"):
                change.update_column_type(name, f"decimal({new[0]}, {new[1]})")
        strings = (f"< {wide}", f"> -{wide}", f"> {wide}", f"IN (1, {wide})", "= 1", "IS NULL")
        filters = [f"{name} {text}" for text in strings for name in ("d", "s.d")]
        cases.append((table, filters if at == 0 else filters[:4]))
        if at == 0:
            table.delete("id = 3")
    check(cases)


def test_names_that_the_schemas_no_longer_explain(lake: Lake, footers: None) -> None:
    cases = []
    for version in (1, 2, 3):
        table = two_columns(lake, f"h.swapped{version}", version)
        swap(table, "x", "y")
        table = forget_schemas(lake, table)
        table.append(pa.table({"id": [3], "x": [7], "y": [3]}))
        if version > 1:
            table.delete("id = 0")
        cases.append((table, OF_TWO))
    again = two_columns(lake, "h.again")
    with again.evolve() as change:
        change.drop_column("x")
    with again.evolve() as change:
        change.add_column("x", "long")
    cases.append((forget_schemas(lake, again), OF_TWO))
    check(cases)


def test_names_inside_structs_that_the_schemas_no_longer_explain(lake: Lake) -> None:
    table = lake.create_table("h.nested", "id long, s struct<x: long, y: long, deep: struct<x: long, y: long>>")
    inner: list[dict[str, object]] = [{"x": 1, "y": 10}, {"x": 2, "y": 20}, {"x": None, "y": 30}]
    table.append(pa.table({"id": [0, 1, 2], "s": [row | {"deep": row} for row in inner]}))
    swap(table, "s.x", "s.y")
    swap(table, "s.deep.x", "s.deep.y")
    filters = [text.replace("x", f"{p}.x").replace("y", f"{p}.y") for p in ("s", "s.deep") for text in OF_TWO]
    check([(table, filters)])
    check([(forget_schemas(lake, table), filters)])


def test_a_default_for_a_name_that_was_another_column(lake: Lake) -> None:
    table = two_columns(lake, "h.default", version=3)
    with table.evolve() as change:
        change.drop_column("x")
    with table.evolve() as change:
        change.add_column("x", "long", default=42)
    table.append(pa.table({"id": [3], "x": [7], "y": [3]}))
    table = forget_schemas(lake, table)
    check([(table, [*OF_TWO, "x = 42", "x = 7", "x IN (42, 10)"])])


def test_names_of_other_writers(lake: Lake, footers: None) -> None:
    """Field ids tell which column is which; names may be those of other columns, at any depth."""
    table = lake.create_table("n.swapped", "id long, x long, y long, s struct<x: long, y: long>", properties=IN_PLACE)
    add_file(
        table,
        [
            stored("id", LONG, 1),
            stored("y", LONG, 2),
            stored("x", LONG, 3),
            stored("s", pa.struct([stored("y", LONG, 5), stored("x", LONG, 6)]), 4),
        ],
        [[0, 1, 2], [1, 2, None], [10, 20, 30], [{"y": 1, "x": 10}, {"y": 2, "x": 20}, {"y": None, "x": 30}]],
    )
    table.append(pa.table({"id": [3], "x": [5], "y": [3], "s": [{"x": 5, "y": 3}]}))
    cased = lake.create_table("n.cased", "id long, x long, y long")
    add_file(
        cased,
        [stored("ID", LONG, 1), stored("Y", LONG, 2), stored("X", LONG, 3)],
        [[0, 1, 2], [1, 2, None], [10, 20, 30]],
    )
    nested = [text.replace("x", "s.x").replace("y", "s.y") for text in OF_TWO]
    cases: list[tuple[Table, list[str]]] = [(table, [*OF_TWO, *nested]), (cased, OF_TWO)]
    check(cases)
    table.delete("id = 1")
    delete_keys(table, {"y": [30]})
    check(cases[:1])


def test_zeros_and_nan(lake: Lake) -> None:
    filters = ["d = 0", "d IN (0, 5)", "d >= 0", "d <= 0", "d > 100", "d IS NULL", "f = 0", "f > 100", "s.d = 0"]
    kind = "id long, d double, f float, s struct<d: double>"
    cases = []
    for at, values in enumerate(([-0.0, -1.0, None], [0.0, 1.0, None], [-0.0, float("nan"), None])):
        own = lake.create_table(f"z.own{at}", kind)
        repeated = values * 4
        structs = [{"d": value} for value in repeated]
        rows: dict[str, Sequence[object]] = {"id": range(12), "d": repeated, "f": repeated, "s": structs}
        types = pa.schema([("id", LONG), ("d", DOUBLE), ("f", pa.float32()), ("s", pa.struct([("d", DOUBLE)]))])
        own.append(pa.table(rows, types))
        foreign = lake.create_table(f"z.foreign{at}", kind)
        fields = [stored("id", LONG, 1), stored("d", DOUBLE, 2), stored("f", pa.float32(), 3)]
        fields.append(stored("s", pa.struct([stored("d", DOUBLE, 5)]), 4))
        add_file(foreign, fields, [*rows.values()])
        cases += [(own, filters), (foreign, filters[-5:])]
    check(cases)
    negative_zero = [F.col("d") == -0.0, F.col("d") <= -0.0, F.col("d").isin(-0.0)]
    for condition in negative_zero:
        assert lake.table("z.own1").scan().to_spark().where(condition).count() == 4


def test_moments_of_milliseconds(lake: Lake, footers: None) -> None:
    kind = "id long, ts timestamptz, plain timestamp, s struct<ts: timestamptz>"
    table = lake.create_table("m.ms", kind, properties=IN_PLACE)
    zoned, plain = pa.timestamp("ms", "UTC"), pa.timestamp("ms")
    fields = [stored("id", LONG, 1), stored("ts", zoned, 2), stored("plain", plain, 3)]
    moments = [NOON, NOON + dt.timedelta(milliseconds=1), None]
    naive = [moment and moment.replace(tzinfo=None) for moment in moments]
    columns: list[Sequence[object]] = [[0, 1, 2], moments, naive, [{"ts": moment} for moment in moments]]
    add_file(table, [*fields, stored("s", pa.struct([stored("ts", zoned, 5)]), 4)], columns)
    filters = ["ts IS NULL"]
    for op, part in itertools.product(("<", "<=", ">", "="), ("0005", "001")):
        text = f"2026-01-01 12:00:00.{part}"
        filters += [f"{name} {op} TIMESTAMP '{text}+00:00'" for name in ("ts", "s.ts")]
        filters.append(f"plain {op} TIMESTAMP_NTZ '{text}'")
    check([(table, filters)])


def test_widened_numbers(lake: Lake) -> None:
    table = lake.create_table("w.numbers", "id long, n int, f float, s struct<n: int>")
    types = pa.schema([("id", LONG), ("n", pa.int32()), ("f", pa.float32()), ("s", pa.struct([("n", pa.int32())]))])
    numbers = [1, -1, None]
    table.append(
        pa.table({"id": [0, 1, 2], "n": numbers, "f": [1.5, 0.1, None], "s": [{"n": n} for n in numbers]}, types)
    )
    with table.evolve() as change:
        for name, kind in (("n", "long"), ("f", "double"), ("s.n", "long")):
            change.update_column_type(name, kind)
    strings = ("< 4294967297", "> 4294967295", "> -4294967297", "= 4294967297", "IN (1, 8589934593)", "IS NULL", "!= 1")
    filters = [f"{name} {text}" for name in ("n", "s.n") for text in strings]
    check([(table, [*filters, "f > 0.1", "f = 0.1", "f <= 0.1", "f IN (1.5, 0.1)"])])


def test_units_that_spark_does_not_look_at(lake: Lake) -> None:
    """A time is read as an integer: in files of other writers it may count milliseconds, or days."""
    times = lake.create_table("u.time", "id long, t time")
    add_file(times, [stored("id", LONG, 1), stored("t", pa.time32("ms"), 2)], [[0, 1], [dt.time(1), None]])
    add_file(times, [stored("id", LONG, 1), stored("t", pa.time64("us"), 2)], [[2, 3], [dt.time(2), None]])
    hour = 3_600_000_000
    assert sorted(map(tuple, times.scan().to_spark().collect()), key=str) == [
        (0, hour),
        (1, None),
        (2, 2 * hour),
        (3, None),
    ]
    dates = lake.create_table("u.date", "id long, t date", format_version=3)
    dates.append(pa.table({"id": [0, 1], "t": [dt.date(1970, 1, 2), None]}))
    with dates.evolve() as change:
        change.update_column_type("t", "timestamp_ns")
    day = 86_400_000_000_000
    for table in (dates, forget_schemas(lake, dates)):
        assert sorted(map(tuple, table.scan().to_spark().collect())) == [(0, day), (1, None)]


def test_a_file_with_the_name_that_spark_has_for_row_numbers(lake: Lake) -> None:
    name = file_names.INNER_ROW_NUMBER
    for written in (name, name.upper()):
        table = lake.create_table(f"r.{written}", f"id long, {written} long", properties=IN_PLACE)
        fields = [stored("id", LONG, 1), stored(written, LONG, 2)]
        add_file(table, fields, [[0, 1, 2, 3], [7, 7, 7, 7]])
        with table.evolve() as change:
            change.drop_column(written)
        table.delete("id = 2")
        table = forget_schemas(lake, table)
        rows = table.scan(select=["id", "_pos"]).to_spark().collect()
        assert sorted(map(tuple, rows)) == [(0, 0), (1, 1), (3, 3)]
        assert sorted(row.id for row in table.scan().to_spark().collect()) == [0, 1, 3]


def test_names_of_our_own_are_in_no_file(lake: Lake) -> None:
    """Whatever a scan called its columns once, or a table calls them now."""
    names = ["icefield_column_2", "icefield_file", "icefield_row", "icefield_key_2", "icefield_applies", "_metadata"]
    table = lake.create_table("o.names", "id long, " + ", ".join(f"{n} long" for n in names), properties=IN_PLACE)
    fields = [stored("id", LONG, 1), *(stored(name, LONG, at + 2) for at, name in enumerate(names))]
    add_file(table, fields, [[0, 1, 2, 3], *([at, at + 1, at + 2, at + 3] for at in range(len(names)))])
    delete_keys(table, {"icefield_key_2": [4]})
    table.delete("id = 3")
    filters = [f"{name} = 3" for name in names] + [f"{name} < 2" for name in names]
    check([(table, filters)])
    with table.evolve() as change:
        for name in names:
            change.rename_column(name, f"{name}_once")
    with table.evolve() as change:
        for name in reversed(names):
            change.add_column(name, "long")
    everything = [f"{name} IS NULL AND {name}_once > 1" for name in names]
    check([(table, everything), (forget_schemas(lake, table), everything)])
