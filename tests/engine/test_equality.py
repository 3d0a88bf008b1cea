"""Upserts by equality deletes and their conversion: the same rows on both engines, for keys of every type."""

import random
from collections.abc import Iterator
from typing import Literal

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.effort import DEEP
from tests.engine.test_key_types import CASES, IDS, UUIDS, Case, check, frame_of, make, sql, values_of

from icefield.engine.choose import EngineName
from icefield.errors import InvalidInput, SchemaMismatch
from icefield.lake import Lake
from icefield.table.table import Table

EQUALITY: Literal["equality"] = "equality"
EQUALITY_DELETES = 2
SCHEMA = "id long, p string, n long"
ON_SPARK = ("uuid in braces", "timestamptz to nanoseconds", "wider decimal", "binary")
Row = tuple[int, str, int]


def rows(*given: Row) -> pa.Table:
    kinds = (("id", pa.int64()), ("p", pa.string()), ("n", pa.int64()))
    return pa.table({name: pa.array([r[at] for r in given], kind) for at, (name, kind) in enumerate(kinds)})


def rows_of(table: Table) -> list[Row]:
    return sorted((r["id"], r["p"], r["n"]) for r in table.scan().to_arrow().read_all().to_pylist())


def contents_of(table: Table) -> set[int]:
    return set(table.inspect("delete_files").to_arrow().read_all()["content"].to_pylist())


def files_of(lake: Lake) -> set[str]:
    return {file.location for file in lake.store.list(lake.warehouse)}


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_keys_of_every_type_in_this_process(lake: Lake, case: Case) -> None:
    table = make(lake, case)
    table.upsert(pa.table({"k": case.arrow, "x": ["new"] * len(case.arrow)}), on=["k"], mode=EQUALITY, engine="local")
    check(table, case)
    table.convert_equality_deletes(engine="local")
    check(table, case)
    assert EQUALITY_DELETES not in contents_of(table)


@pytest.mark.parametrize("case", [c for c in CASES if c.kind != "boolean"], ids=lambda case: str(case.name))
def test_keys_of_every_type_that_determine_the_partition(lake: Lake, case: Case) -> None:
    table = lake.create_table("a.t", f"k {case.kind}, x string", partition_by=["k"], format_version=case.version)
    table.append(pa.table({"k": case.table, "x": ["old"] * len(case.table)}))
    table.upsert(pa.table({"k": case.arrow, "x": ["new"] * len(case.arrow)}), on=["k"], mode=EQUALITY)
    assert [x for _, x in values_of(table)] == ["new"] * len(case.table)
    assert [spec.spec_id for spec in table.metadata.specs] == [0], "no delete applies to the whole table"
    table.convert_equality_deletes()
    assert [x for _, x in values_of(table)] == ["new"] * len(case.table)


@pytest.mark.spark
@pytest.mark.parametrize("case", [c for c in CASES if DEEP or c.name in ON_SPARK], ids=lambda case: str(case.name))
def test_keys_of_every_type_on_spark(lake: Lake, spark: SparkSession, case: Case) -> None:
    table = make(lake, case)
    if case.spark is not None:
        table.upsert(frame_of(spark, case.spark, "new"), on=["k"], mode=EQUALITY)
    else:
        new = pa.table({"k": case.arrow, "x": ["new"] * len(case.arrow)})
        table.upsert(new, on=["k"], mode=EQUALITY, engine="spark")
    check(table, case)
    table.convert_equality_deletes(engine="spark")
    check(table, case)
    assert EQUALITY_DELETES not in contents_of(table)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("partition_by", [["p"], ["bucket(3, id)"]], ids=str)
def test_both_engines_write_and_convert_the_same(
    lake: Lake, engine: EngineName, partition_by: list[str], version: int
) -> None:
    table = lake.create_table("a.t", SCHEMA, partition_by=partition_by, format_version=version)
    table.append(rows(*((key, "ab"[key % 2], 0) for key in range(40))))
    with table.evolve() as change:
        change.add_partition_field("truncate(10, id)")
    table.append(rows(*((key, "ab"[key % 2], 0) for key in range(40, 60))))
    table.delete("id in (3, 43)", engine="local")
    keys = random.Random(1).sample(range(80), 30)
    table.upsert(rows(*((key, "c", 1) for key in keys)), on=["id"], mode=EQUALITY, engine=engine)
    old = [(key, "ab"[key % 2], 0) for key in range(60) if key not in (3, 43, *keys)]
    expected = sorted([*old, *((key, "c", 1) for key in keys)])
    assert rows_of(table) == expected
    assert EQUALITY_DELETES in contents_of(table)
    assert table.convert_equality_deletes(engine=engine) is not None
    assert rows_of(table) == expected
    assert contents_of(table) == {1}
    table.delete("id in (4, 44)", mode="merge-on-read", engine="local")
    expected = [row for row in expected if row[0] not in (4, 44)]
    assert rows_of(table) == expected
    assert table.rewrite_deletes(engine=engine).snapshots
    assert rows_of(table) == expected
    assert table.rewrite_deletes(engine=engine).snapshots == ()


@pytest.fixture
def table(lake: Lake) -> Iterator[Table]:
    made = lake.create_table("a.t", SCHEMA, partition_by=["p"])
    made.append(rows((1, "a", 0)))
    yield made
    assert rows_of(made) == [(1, "a", 0)]


@pytest.mark.spark
class TestRefusedOnSpark:
    """Bad rows of a DataFrame change nothing, and leave no file."""

    def refuse(self, lake: Lake, table: Table, frame: DataFrame, error: type[Exception], why: str) -> None:
        before = (files_of(lake), table.metadata_location)
        with pytest.raises(error, match=why):
            table.upsert(frame, on=["id"], mode=EQUALITY)
        assert (files_of(lake), table.metadata_location) == before

    def test_a_key_twice(self, lake: Lake, table: Table, spark: SparkSession) -> None:
        frame = spark.range(6).selectExpr("id % 5 AS id", "'a' AS p", "id AS n")
        self.refuse(lake, table, frame, InvalidInput, r"two rows to upsert have the key \{'id': 0\}")

    def test_a_null_key(self, lake: Lake, table: Table, spark: SparkSession) -> None:
        frame = spark.range(3).selectExpr("nullif(id, 1) AS id", "'a' AS p", "id AS n")
        self.refuse(lake, table, frame, InvalidInput, "no value in the key column 'id'")

    def test_a_missing_column(self, lake: Lake, table: Table, spark: SparkSession) -> None:
        self.refuse(lake, table, spark.range(3).selectExpr("id", "'a' AS p"), InvalidInput, "they lack 'n'")

    def test_no_rows(self, lake: Lake, table: Table, spark: SparkSession) -> None:
        before = (files_of(lake), table.metadata_location)
        table.upsert(spark.range(0).selectExpr("id", "'a' AS p", "id AS n"), on=["id"], mode=EQUALITY)
        assert (files_of(lake), table.metadata_location) == before


@pytest.mark.spark
def test_one_uuid_in_two_spellings_is_a_duplicate_and_nonsense_is_refused(lake: Lake, spark: SparkSession) -> None:
    table = make(lake, next(case for case in CASES if case.name == "uuid in braces"))
    before = values_of(table), files_of(lake)
    with pytest.raises(InvalidInput, match="two rows to upsert have the key"):
        table.upsert(frame_of(spark, sql("'{}'", UUIDS[0], UUIDS[0].hex), "new"), on=["k"], mode=EQUALITY)
    with pytest.raises(SchemaMismatch, match="'nonsense', which is not a valid UUID"):
        table.upsert(frame_of(spark, sql("'{}'", UUIDS[0], "nonsense"), "new"), on=["k"], mode=EQUALITY)
    assert (values_of(table), files_of(lake)) == before


@pytest.mark.spark
def test_rows_that_differ_in_each_read_are_read_once(lake: Lake, spark: SparkSession) -> None:
    """Every key of a written row has a delete: the second upsert replaces all rows of the first."""
    table = lake.create_table("a.t", SCHEMA)
    everything = rows(*((key, "a", 0) for key in range(200)))
    table.append(everything)
    frame = spark.range(200).where("rand() < 0.5").selectExpr("id", "'b' AS p", "1L AS n")
    table.upsert(frame, on=["id"], mode=EQUALITY)
    assert [row[0] for row in rows_of(table)] == list(range(200))
