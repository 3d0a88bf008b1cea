"""Changes that are filtered on metadata columns: the rows that a scan with the same filter returns are changed."""

from collections.abc import Callable
from contextlib import nullcontext

import pyarrow as pa
import pytest

from icefield.engine.choose import EngineName
from icefield.errors import ConcurrentChange, InvalidFilter, InvalidInput
from icefield.lake import Lake
from icefield.table.table import Table

MODES = ("copy-on-write", "merge-on-read", "auto")
FILTERS = [
    "_file = '{file}'",
    "_file = '{file}' AND _pos IN (1, 3)",
    "_file <> '{file}' AND n = 0",
    "_pos = 0",
    "_pos > 100",
    "_row_id = 5",
    "_row_id IS NULL",
    "_last_updated_sequence_number = 1",
    "_last_updated_sequence_number > 2 OR id = 1",
    "_spec_id = 0",
    "_spec_id = 1 AND _pos < 2",
    "NOT (_spec_id = 0 OR _pos = 1)",
]


@pytest.fixture(params=[2, 3])
def table(lake: Lake, request: pytest.FixtureRequest) -> Table:
    """A table of two specs, with deleted and updated rows."""
    made = lake.create_table("a.t", "id long, n long", format_version=request.param)
    made.append(pa.table({"id": range(5), "n": [0] * 5}))
    with made.evolve() as evolve:
        evolve.add_partition_field("bucket(2, id)")
    made.append(pa.table({"id": range(5, 12), "n": [0] * 7}))
    made.delete("id = 2", mode="merge-on-read")
    made.update({"n": "1"}, "id IN (3, 6)", mode="merge-on-read")
    return made


def ids_of(table: Table, where: str | None = None) -> list[int]:
    return sorted(table.scan(where, select=["id"]).to_arrow().read_all()["id"].to_pylist())


def data_file(table: Table) -> str:
    return str(min(table.scan("id = 0").files()["file_path"].to_pylist()))


@pytest.mark.parametrize("where", FILTERS)
def test_the_rows_of_a_scan_are_changed(table: Table, engine: EngineName, where: str) -> None:
    where = where.format(file=data_file(table))
    matching, before = ids_of(table, where), ids_of(table)
    for mode in MODES:
        assert table.update({"n": "n + 1"}, where, mode=mode, engine=engine, dry_run=True).rows_updated == len(matching)
    done = table.delete(where, mode=MODES[len(where) % 3], engine=engine)
    assert (done.rows_deleted, ids_of(table)) == (len(matching), sorted(set(before) - set(matching)))


@pytest.mark.parametrize("mode", MODES)
def test_rows_are_updated_where_they_are(table: Table, engine: EngineName, mode: str) -> None:
    where = f"_file = '{data_file(table)}' AND _pos < 2"
    assert ids_of(table, where) == [0, 1]
    table.update({"n": "n + 7"}, where, mode=mode, engine=engine)
    assert ids_of(table, "n = 7") == [0, 1]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_values_of_spark_are_assigned_by_position(table: Table) -> None:
    where = f"_file = '{data_file(table)}' AND _pos < 2 AND _spec_id = 0"
    table.update({"n": "bit_count(id) + 40"}, where, engine="spark")
    assert ids_of(table, "n >= 40") == [0, 1]


@pytest.mark.parametrize("where", ["_deleted", "_deleted = false AND id = 1", "_partition.id_bucket = 1"])
def test_columns_that_changes_cannot_be_filtered_on(table: Table, engine: EngineName, where: str) -> None:
    before = table.metadata_location
    with pytest.raises(InvalidFilter, match="cannot be filtered on _deleted or _partition"):
        table.delete(where, engine=engine)
    assert table.metadata_location == before


def test_expressions_do_not_have_metadata_columns(table: Table) -> None:
    source = pa.table({"id": [1], "n": [1]})
    changes: list[Callable[[], object]] = [
        lambda: table.update({"n": "_pos"}, "id = 1"),
        lambda: table.delete("_pos + 1 = 2"),
        lambda: table.merge(source, on="target.id = source.id AND target._pos = 1").when_matched().delete().execute(),
        lambda: table.merge(source, on=["id"]).when_matched("target._pos = 1").delete().execute(),
    ]
    for change in changes:
        with pytest.raises(InvalidInput, match=r"no column '(target\.)?_pos'.*metadata columns"):
            change()


def test_a_column_of_the_table_hides_a_metadata_column(lake: Lake, engine: EngineName) -> None:
    table = lake.create_table("a.own", "id long, _pos long")
    table.append(pa.table({"id": [1, 2, 3], "_pos": [7, 8, 9]}))
    table.delete("_pos = 1", engine=engine)
    table.delete("_pos = 8", engine=engine)
    assert ids_of(table) == [1, 3]


@pytest.mark.parametrize(("where", "conflicts"), [("_pos = 1", True), ("_file = '{file}'", False)])
def test_rows_that_are_added_concurrently_at_such_a_place_conflict(lake: Lake, where: str, *, conflicts: bool) -> None:
    table = lake.create_table("a.race", "id long", format_version=3)
    table.append(pa.table({"id": [0, 1, 2]}))
    where = where.format(file=data_file(table))
    with pytest.raises(ConcurrentChange) if conflicts else nullcontext(), lake.transaction() as tx:
        tx.table("a.race").delete(where, mode="merge-on-read")
        table.append(pa.table({"id": [3, 4]}))
    assert ids_of(table) == ([0, 1, 2, 3, 4] if conflicts else [3, 4])
