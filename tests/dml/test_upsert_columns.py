"""An upsert keeps what its rows do not name, on every way of writing it, and refuses what it cannot know."""

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from tests.commit.racing import race

from icefield.errors import ConcurrentChange, InvalidInput, SchemaMismatch
from icefield.lake import Lake
from icefield.table.table import Table

MODES = ("copy-on-write", "merge-on-read")


def make(lake: Lake, schema: str, mode: str = "copy-on-write", version: int = 2, **more: Any) -> Table:
    return lake.create_table("t.t", schema, properties={"write.merge.mode": mode}, format_version=version, **more)


def rows_of(table: Table) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().read_all().to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize(("version", "mode"), [(1, "copy-on-write"), (2, MODES[0]), (2, MODES[1]), (3, MODES[1])])
def test_matched_rows_keep_the_columns_that_are_not_named(memory_lake: Lake, version: int, mode: str) -> None:
    table = make(memory_lake, "id long, a string, b long, c double not null", mode, version)
    table.append(pa.table({"id": [1, 2], "a": ["x", "y"], "b": [10, 20], "c": [0.5, 1.5]}))
    table.append(pa.table({"id": [3], "a": ["z"], "b": [30], "c": [2.5]}))
    table.upsert(pa.table({"id": [3, 1], "b": [31, None]}), on=["id"])
    assert rows_of(table) == [
        {"id": 1, "a": "x", "b": None, "c": 0.5},
        {"id": 2, "a": "y", "b": 20, "c": 1.5},
        {"id": 3, "a": "z", "b": 31, "c": 2.5},
    ]


def test_new_rows_get_the_default_of_a_column_that_is_not_named_or_null(memory_lake: Lake) -> None:
    table = make(memory_lake, "id long, a string", version=3)
    table.append(pa.table({"id": [1], "a": ["x"]}))
    with table.evolve() as change:
        change.add_column("n", "long", default=7)
        change.set_default("n", 8)
    table.upsert(pa.table({"id": [1, 2]}), on=["id"])
    assert rows_of(table) == [{"id": 1, "a": "x", "n": 7}, {"id": 2, "a": None, "n": 8}]


def test_a_new_row_without_a_required_column_is_refused_and_changes_nothing(memory_lake: Lake) -> None:
    table = make(memory_lake, "id long, a string not null, b long")
    table.append(pa.table({"id": [1], "a": ["x"], "b": [1]}))
    with pytest.raises(SchemaMismatch, match="cannot insert 1 row: the required column 'a'"):
        table.upsert(pa.table({"id": [1, 2], "b": [5, 6]}), on=["id"])
    assert rows_of(table) == [{"id": 1, "a": "x", "b": 1}]
    table.upsert(pa.table({"id": [1], "b": [5]}), on=["id"])
    assert rows_of(table) == [{"id": 1, "a": "x", "b": 5}]


def test_a_null_that_is_named_is_a_null(memory_lake: Lake) -> None:
    table = make(memory_lake, "id long, a string, s struct<x long>")
    table.append(pa.table({"id": [1], "a": ["x"], "s": [{"x": 1}]}))
    table.upsert(pa.table({"id": [1], "a": pa.array([None], pa.string()), "s": pa.nulls(1)}), on=["id"])
    assert rows_of(table) == [{"id": 1, "a": None, "s": None}]


def test_structs_keep_the_fields_that_are_not_named(memory_lake: Lake) -> None:
    table = make(memory_lake, "id long, s struct<x long, y string, t struct<u long, v long not null>>", MODES[1])
    old = [{"x": 1, "y": "a", "t": {"u": 1, "v": 2}}, {"x": 2, "y": "b", "t": None}, None]
    table.append(pa.table({"id": [1, 2, 3], "s": old}, schema=table.scan().to_arrow().schema))
    given = pa.struct([("x", pa.int64()), ("t", pa.struct([("u", pa.int64())]))])
    table.upsert(pa.table({"id": [1], "s": pa.array([{"x": 9, "t": {"u": 8}}], given)}), on=["id"])
    assert rows_of(table)[0]["s"] == {"x": 9, "y": "a", "t": {"u": 8, "v": 2}}
    table.upsert(pa.table({"id": [2, 3], "s": pa.array([{"x": 9, "t": None}, {"x": 8, "t": None}], given)}), on=["id"])
    assert [row["s"] for row in rows_of(table)[1:]] == [{"x": 9, "y": "b", "t": None}, {"x": 8, "y": None, "t": None}]
    with pytest.raises(SchemaMismatch, match=r"required column 's\.t\.v'"):
        table.upsert(pa.table({"id": [2], "s": pa.array([{"x": 9, "t": {"u": 1}}], given)}), on=["id"])


def test_lists_and_maps_are_replaced_whole(memory_lake: Lake) -> None:
    table = make(memory_lake, "id long, l list<struct<x long, y long>>")
    table.append(pa.table({"id": [1], "l": [[{"x": 1, "y": 2}]]}))
    element = pa.list_(pa.struct([("x", pa.int64())]))
    table.upsert(pa.table({"id": [1], "l": pa.array([[{"x": 5}, {"x": 6}]], element)}), on=["id"])
    assert rows_of(table)[0]["l"] == [{"x": 5, "y": None}, {"x": 6, "y": None}]


def test_two_rows_of_the_table_with_one_key_keep_their_own_values(memory_lake: Lake) -> None:
    table = make(memory_lake, "id long, a string, b long")
    table.append(pa.table({"id": [1, 1], "a": ["x", "y"], "b": [1, 1]}))
    table.upsert(pa.table({"id": [1], "b": [2]}), on=["id"])
    assert rows_of(table) == [{"id": 1, "a": "x", "b": 2}, {"id": 1, "a": "y", "b": 2}]


def test_rows_that_do_not_name_a_key_are_refused(memory_lake: Lake) -> None:
    table = make(memory_lake, "id long, a string")
    with pytest.raises(InvalidInput, match="the source has no column 'id'"):
        table.upsert(pa.table({"a": ["x"]}), on=["id"])


def test_a_partition_column_that_is_not_named_keeps_rows_in_their_partition(memory_lake: Lake) -> None:
    table = make(memory_lake, "id long, p string, a long", MODES[1], partition_by=["p"])
    table.append(pa.table({"id": [1, 2], "p": ["x", None], "a": [1, 2]}))
    table.upsert(pa.table({"id": [1, 2, 3], "a": [5, 6, 7]}), on=["id"])
    assert [tuple(row.values()) for row in rows_of(table)] == [(1, "x", 5), (2, None, 6), (3, None, 7)]


@pytest.mark.parametrize("mode", MODES)
def test_values_are_not_kept_of_a_row_that_changed_since(memory_lake: Lake, mode: str) -> None:
    table = make(memory_lake, "id long, a string, b long", mode)
    table.append(pa.table({"id": [1, 2], "a": ["x", "y"], "b": [1, 2]}))
    rival = pa.table({"id": [1], "a": ["new"], "b": [1]})
    with pytest.raises(ConcurrentChange):
        race(
            memory_lake,
            lambda: memory_lake.table("t.t").upsert(rival, on=["id"]),
            lambda: table.upsert(pa.table({"id": [1], "b": [5]}), on=["id"]),
        )
    assert rows_of(table) == [{"id": 1, "a": "new", "b": 1}, {"id": 2, "a": "y", "b": 2}]


@pytest.mark.parametrize("seed", range(4))
def test_upserts_of_some_columns_are_like_those_of_a_dictionary(memory_lake: Lake, seed: int) -> None:
    rng = random.Random(seed)
    table = make(memory_lake, "id long, a long, b string, c list<long>", rng.choice(MODES), rng.choice((2, 3)))
    types = {"a": pa.int64(), "b": pa.string(), "c": pa.list_(pa.int64())}
    values: dict[str, Callable[[], Any]] = {
        "a": lambda: rng.randrange(99),
        "b": lambda: rng.choice("xyz"),
        "c": lambda: [rng.randrange(9)],
    }
    model: dict[int, dict[str, Any]] = {}
    for _ in range(6):
        named = [name for name in types if rng.random() < 0.6]
        given = {key: {name: values[name]() for name in named} for key in rng.sample(range(12), rng.randint(1, 8))}
        columns = {name: pa.array([row[name] for row in given.values()], types[name]) for name in named}
        table.upsert(pa.table({"id": pa.array(list(given), pa.int64())} | columns), on=["id"])
        for key, row in given.items():
            model[key] = {"id": key, "a": None, "b": None, "c": None} | model.get(key, {}) | row
        assert rows_of(table) == [model[key] for key in sorted(model)]


@pytest.mark.parametrize(
    "columns",
    [{"nope": pa.array([1])}, {"a": pa.array([1])}, {"s": pa.array([{"x": "text"}])}, {"s": pa.array([{"nope": 1}])}],
    ids=["unknown", "other type", "other type inside", "unknown inside"],
)
def test_columns_that_the_table_does_not_have_are_refused(memory_lake: Lake, columns: dict[str, pa.Array]) -> None:
    table = make(memory_lake, "id long, a string, s struct<x long, y long>")
    table.append(pa.table({"id": [1], "a": ["x"], "s": [{"x": 1, "y": 2}]}))
    before = table.metadata_location
    with pytest.raises(SchemaMismatch):
        table.upsert(pa.table({"id": pa.array([1])} | columns), on=["id"])
    assert memory_lake.table("t.t").metadata_location == before


@pytest.mark.parametrize(
    ("keys", "says"),
    [([1, None], "has no value in the key column 'id'"), ([1, 1], r"two rows to upsert have the key \{'id': 1\}")],
)
def test_keys_that_tell_no_row_from_another_are_refused(memory_lake: Lake, keys: list[int | None], says: str) -> None:
    table = make(memory_lake, "id long, a string")
    table.append(pa.table({"id": [1], "a": ["x"]}))
    before = table.metadata_location
    with pytest.raises(InvalidInput, match=says):
        table.upsert(pa.table({"id": pa.array(keys, pa.int64()), "a": ["y", "z"]}), on=["id"])
    assert memory_lake.table("t.t").metadata_location == before


@pytest.mark.parametrize("identifiers", [["id"], ["id", "s.id"], ["s.id"]], ids="+".join)
def test_identifier_fields_are_keys_unless_they_are_inside_a_struct(memory_lake: Lake, identifiers: list[str]) -> None:
    table = make(memory_lake, "id long not null, s struct<id: long not null> not null, x string")
    with table.evolve() as change:
        change.set_identifier_fields(identifiers)
    table.append(pa.table({"id": [1, 2], "s": [{"id": 10}, {"id": 20}], "x": ["a", "b"]}))
    rows = pa.table({"id": [1], "s": [{"id": 20}], "x": ["new"]})
    if identifiers == ["id"]:
        table.upsert(rows)
        assert [row["x"] for row in rows_of(table)] == ["new", "b"]
        return
    with pytest.raises(InvalidInput, match=r"identifier field 's\.id' of the table is inside a struct"):
        table.upsert(rows)
    assert [row["x"] for row in rows_of(table)] == ["a", "b"]
