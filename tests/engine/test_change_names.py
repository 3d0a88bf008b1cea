"""Names in row-level changes: columns that differ only in case, columns named as a side, and names of sides."""

from typing import Any

import pyarrow as pa
import pytest

from icefield import col
from icefield.engine.choose import EngineName
from icefield.errors import InvalidFilter, InvalidInput, NeedsSpark
from icefield.lake import Lake
from icefield.table.table import Table
from icefield.types.arrow import arrow_schema


def rows_of(table: Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.scan().to_arrow().read_all().to_pylist()), key=repr)


def make_pair(lake: Lake) -> Table:
    schema = pa.schema([("id", pa.int64()), ("a", pa.int64()), ("A", pa.int64())])
    table = lake.create_table("t.pair", schema)
    table.append(pa.table({"id": [1, 2], "a": [1, 2], "A": [10, 20]}))
    return table


def test_a_source_column_is_for_the_column_of_its_exact_name(lake: Lake, engine: EngineName) -> None:
    table = make_pair(lake)
    table.upsert(pa.table({"id": [1, 3], "A": [70, 80]}), on=["id"], engine=engine)
    assert rows_of(table) == [(1, 1, 70), (2, 2, 20), (3, None, 80)]
    table.upsert(pa.table({"id": [1, 2], "a": [5, 6]}), on=["id"], engine=engine)
    assert rows_of(table) == [(1, 5, 70), (2, 6, 20), (3, None, 80)]


@pytest.mark.parametrize("names", [("id", "A"), ("id", "a"), ("ID", "A")])
def test_all_columns_include_those_that_differ_in_case(memory_lake: Lake, names: tuple[str, str]) -> None:
    table = make_pair(memory_lake)
    source = pa.table({names[0]: [1], names[1]: [7]})
    missing = "a" if names[1] == "A" else "A"
    with pytest.raises(InvalidInput, match=f"the source has no column '{missing}'"):
        table.merge(source, on=["id"]).when_matched().update_all().execute()
    other = pa.table({"ID": [1], "a": [4], "A": [5]})
    table.merge(other, on=["id"]).when_matched().update_all().execute()
    assert rows_of(table) == [(1, 4, 5), (2, 2, 20)]


def make_sides(lake: Lake) -> Table:
    table = lake.create_table("t.sides", "id long, source struct<id: long, z: string>, target struct<id: long>")
    first = {"id": 1, "source": {"id": 5, "z": "zz"}, "target": {"id": 7}}
    second = {"id": 7, "source": {"id": 1, "z": "qq"}, "target": None}
    table.append(pa.Table.from_pylist([first, second]))
    return table


def test_a_column_may_be_named_as_a_side(lake: Lake, engine: EngineName) -> None:
    table = make_sides(lake)
    # Without a source, `target` and `source` are columns; the same in a filter, in a condition and in a value.
    for where in ("target.id = 7", "abs(target.id) = 7", "pmod(target.id, 10) = 7"):
        if engine == "spark" or "pmod" not in where:
            assert table.update({"id": "target.id + source.id"}, where, engine=engine, dry_run=True).rows_updated == 1
    table.update({"id": "target.id + source.id", "target.id": "source.id"}, "abs(target.id) = 7", engine=engine)
    after = [(12, {"id": 5, "z": "zz"}, {"id": 5}), (7, {"id": 1, "z": "qq"}, None)]
    assert rows_of(table) == after
    # In a merge they are the sides first, as in Spark.
    merge = table.merge(pa.table({"id": [7]}), on="target.id = source.id", engine=engine)
    merge.when_matched("source.z = 'qq'").update({"id": "source.id + 100"}).execute()
    assert rows_of(table) == [(107, {"id": 1, "z": "qq"}, None), after[0]]


def test_an_ambiguous_column_to_assign_is_refused(memory_lake: Lake) -> None:
    table = make_sides(memory_lake)
    merge = table.merge(pa.table({"id": [1]}), on=["id"])
    with pytest.raises(InvalidInput, match="'target.id' may be a column of the table, or a field of its column"):
        merge.when_matched().update({"target.id": 3}).execute()
    merge.when_matched().update({"target.target.id": 3, "id": 4}).execute()
    assert (4, {"id": 5, "z": "zz"}, {"id": 3}) in rows_of(table)


@pytest.mark.parametrize("names", [("s", "s"), ("s", "S"), ("", "s"), ("t", "")])
def test_the_sides_of_a_merge_need_two_names(memory_lake: Lake, names: tuple[str, str]) -> None:
    table = make_pair(memory_lake)
    merge = table.merge(pa.table({"id": [1]}), on=["id"], target_name=names[0], source_name=names[1])
    with pytest.raises(InvalidInput, match="must be two different names"):
        merge.when_matched().delete().execute()


def test_rows_without_a_source_row_cannot_take_its_columns(lake: Lake, engine: EngineName) -> None:
    table = make_pair(lake)
    source = pa.table({"id": [1], "a": [7], "A": [7]})
    with pytest.raises(InvalidInput, match="cannot assign all columns: there is no source row"):
        table.merge(source, on=["id"], engine=engine).when_not_matched_by_source().update_all().execute()
    assert rows_of(table) == [(1, 1, 10), (2, 2, 20)]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_keys_of_upserts_are_not_floats(memory_lake: Lake, kind: pa.DataType) -> None:
    table = memory_lake.create_table("t.floats", pa.schema([("id", kind), ("n", pa.int64())]))
    rows = pa.table({"id": pa.array([0.0, -0.0], kind), "n": [1, 2]})
    for mode in ("copy-on-write", "equality"):
        with pytest.raises(InvalidInput, match="a primitive type other than a float"):
            table.upsert(rows, on=["id"], mode=mode)


def make_nested(lake: Lake) -> Table:
    table = lake.create_table("t.nested", "id long, s struct<a: long, b: struct<c: long>>, l list<long>")
    rows = [
        {"id": 1, "s": None, "l": None},
        {"id": 2, "s": {"a": None, "b": None}, "l": []},
        {"id": 3, "s": {"a": 1, "b": {"c": None}}, "l": [1]},
    ]
    table.append(pa.Table.from_pylist(rows, arrow_schema(table.schema)))
    return table


@pytest.mark.parametrize(
    ("where", "ids"),
    [("s IS NULL", [1]), ("s.b IS NOT NULL", [3]), ("l IS NULL OR id = 3", [1, 3]), ("NOT (l IS NULL)", [2, 3])],
)
def test_a_condition_may_test_structs_and_lists_for_null(lake: Lake, engine: EngineName, where: str, ids: Any) -> None:
    table = make_nested(lake)
    assert table.delete(where, engine=engine).rows_deleted == len(ids)
    assert [row[0] for row in rows_of(table)] == [each for each in (1, 2, 3) if each not in ids]


def test_errors_name_what_needs_spark(memory_lake: Lake) -> None:
    table = make_nested(memory_lake)
    with pytest.raises(NeedsSpark, match=r"only Spark can evaluate .* near 'ILIKE'\. Omit"):
        table.delete("id ILIKE 'a'", engine="local")
    with pytest.raises(InvalidFilter, match="no column 'x'"):
        table.delete("x IS NULL")
    with pytest.raises(InvalidFilter, match="it is a struct"):
        table.delete(col("s").is_null())


def test_a_condition_that_is_null_is_not_true(lake: Lake, engine: EngineName) -> None:
    table = make_pair(lake)
    merge = table.merge(pa.table({"id": [1, 3]}), on=["id"], engine=engine).when_matched("NULL").delete()
    merge = merge.when_matched().update({"a": 0}).when_not_matched("NULL").insert({"id": "source.id"})
    merge.when_not_matched_by_source("NULL").delete().execute()
    assert rows_of(table) == [(1, 0, 10), (2, 2, 20)]
