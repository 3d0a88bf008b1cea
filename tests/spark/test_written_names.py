"""Renamed columns are filtered in old files by the names that those have; a name of two columns is never used."""

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark_places import explained

from icefield.lake import Lake
from icefield.spark import written_names
from icefield.spark.written_names import find_older_names, group_by_names
from icefield.table import Table

IN_PLACE = {"write.delete.mode": "merge-on-read"}


@pytest.fixture
def renamed(lake: Lake) -> Table:
    """Rows 0 to 9 under `x`, 10 to 19 under `y`, 20 to 29 under `z`, which it is called now."""
    table = lake.create_table("a.t", "id long, x long", properties=IN_PLACE)
    for number, name in enumerate("xyz"):
        if number:
            with table.evolve() as change:
                change.rename_column("xyz"[number - 1], name)
        ids = list(range(number * 10, number * 10 + 10))
        table.append(pa.table({"id": ids, name: ids}))
    return table


def found(table: Table, where: str) -> list[int]:
    given = table.scan(where).to_spark()
    above = table.scan().to_spark().where(where)
    ids = sorted(row.id for row in given.collect())
    assert ids == sorted(row.id for row in above.collect())
    assert ids == sorted(table.scan(where).to_arrow().read_all()["id"].to_pylist())
    return ids


@pytest.mark.spark
def test_filters_reach_parquet_under_the_name_of_the_file(renamed: Table, spark: SparkSession) -> None:
    plan = explained(renamed.scan().to_spark().where("z = 5"))
    assert all(f"EqualTo({name},5)" in plan for name in "xyz")
    assert renamed.scan().to_spark().columns == ["id", "z"]
    assert found(renamed, "z IN (5, 15, 25)") == [5, 15, 25]
    renamed.delete("z IN (5, 25)")
    assert found(renamed, "z IN (5, 15, 25)") == [15]
    renamed.overwrite(pa.table({"id": [100], "z": [100]}), where="z > 15")
    assert found(renamed, "z > 8") == [9, 10, 11, 12, 13, 14, 15, 100]


@pytest.mark.spark
def test_a_wrong_guess_changes_no_row(renamed: Table, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    guess = written_names._names_by_snapshot

    def wrong(*args: object) -> object:
        names = guess(*args)  # type: ignore[arg-type]
        return dict(zip(names, reversed(names.values()), strict=True))

    monkeypatch.setattr(written_names, "_names_by_snapshot", wrong)
    assert found(renamed, "z IN (5, 15, 25)") == [5, 15, 25]
    assert found(renamed, "z < 3 OR z IS NULL") == [0, 1, 2]


def test_rewritten_files_have_the_names_of_today(renamed: Table) -> None:
    renamed.compact()
    scan = renamed.scan()
    assert [dict(names) for names, _ in group_by_names(renamed.metadata, renamed.schema, scan._plan.files)] == [{}]


@pytest.mark.spark
def test_a_name_that_was_given_away_is_not_used(renamed: Table, spark: SparkSession) -> None:
    with renamed.evolve() as change:
        change.add_column("x", "long")
    renamed.append(pa.table({"id": [30], "z": [30], "x": [5]}))
    schema = renamed.schema
    assert find_older_names(schema, renamed.metadata.schemas) == {schema.find_field("z").field_id: {"y"}}
    assert found(renamed, "z = 5") == [5]
    assert found(renamed, "x = 5") == [30]
    assert found(renamed, "x IS NULL AND z < 2") == [0, 1]


def test_few_groups_are_made_and_no_file_is_lost(lake: Lake) -> None:
    table = lake.create_table("a.many", "id long, c0 long")
    for number in range(8):
        table.append(pa.table({"id": [number], f"c{number}": [number]}))
        with table.evolve() as change:
            change.rename_column(f"c{number}", f"c{number + 1}")
    scan = table.scan()
    files = scan._plan.files
    groups = list(group_by_names(table.metadata, table.schema, files))
    assert sum(group.num_rows for _, group in groups) == files.num_rows == 8
    assert len({path for _, group in groups for path in group["file_path"].to_pylist()}) == 8
    assert 1 < len(groups) <= 5
