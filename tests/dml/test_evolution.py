"""A table that changes its shape: old files keep their values, names never mix, and both writers land."""

import itertools
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.commit.faults import RacingCatalog

import icefield
from icefield.ambient import SeededAmbient
from icefield.backend import Backend
from icefield.codec.json.metadata import encode_metadata
from icefield.errors import InvalidInput
from icefield.lake import Lake
from icefield.table.table import Table


def rows_of(table: Table, **options: Any) -> list[dict[str, Any]]:
    read = table.scan(**options).to_arrow().read_all().to_pylist()
    return sorted(read, key=lambda row: str(row.get("id")))


@pytest.fixture
def table(memory_lake: Lake) -> Table:
    made = memory_lake.create_table("a.t", "id long not null, a int, b int, s struct<x: int, y: string>, l list<int>")
    made.append(
        pa.table(
            {
                "id": pa.array([1], pa.int64()),
                "a": pa.array([10], pa.int32()),
                "b": pa.array([20], pa.int32()),
                "s": pa.array([{"x": 1, "y": "one"}], pa.struct([("x", pa.int32()), ("y", pa.string())])),
                "l": pa.array([[1, 2]], pa.list_(pa.int32())),
            }
        )
    )
    return made


def test_columns_are_added_renamed_moved_dropped_and_widened_in_one_commit(table: Table) -> None:
    before = len(table.metadata.metadata_log)
    with table.evolve() as change:
        change.add_column("note", "string", after="id", doc="free text")
        change.rename_column("a", "alpha")
        change.update_column_type("alpha", "long")
        change.drop_column("l")
        change.move_column("b", first=True)
        change.add_column("s.z", "double", before="x")
        change.make_optional("id")
    assert len(table.metadata.metadata_log) == before + 1
    assert [f.name for f in table.schema.fields] == ["b", "id", "note", "alpha", "s"]
    assert rows_of(table) == [{"b": 20, "id": 1, "note": None, "alpha": 10, "s": {"z": None, "x": 1, "y": "one"}}]
    assert len(table.snapshots()) == 1, "no data was touched"


def test_swapped_names_never_mix(table: Table) -> None:
    with table.evolve() as change:
        change.rename_column("a", "tmp")
        change.rename_column("b", "a")
        change.rename_column("tmp", "b")
    assert rows_of(table, select=["id", "a", "b"]) == [{"id": 1, "a": 20, "b": 10}]
    assert table.scan(where="a = 20").count() == 1
    assert table.scan(where="a = 10").count() == 0


def test_a_dropped_and_added_name_never_shows_old_values(table: Table) -> None:
    with table.evolve() as change:
        change.drop_column("a")
    with table.evolve() as change:
        change.add_column("a", "int")
    assert rows_of(table, select=["a"]) == [{"a": None}]
    assert table.scan(where="a IS NULL").count() == 1
    assert table.scan(where="a = 10").count() == 0
    assert rows_of(table, as_of=table.snapshots()[0].snapshot_id)[0]["a"] == 10


def test_ids_are_never_used_again(table: Table) -> None:
    with table.evolve() as change:
        change.add_column("one", "struct<p: int>")
    used = table.metadata.last_column_id
    with table.evolve() as change:
        change.drop_column("one")
    with table.evolve() as change:
        change.add_column("two", "int")
    assert table.schema.find_field("two").field_id == used + 1


def test_going_back_to_an_old_schema_uses_its_id(table: Table) -> None:
    with table.evolve() as change:
        change.rename_column("a", "z")
    with table.evolve() as change:
        change.rename_column("z", "a")
    assert table.schema.schema_id == 0
    assert len(table.metadata.schemas) == 2


def test_union_by_name_adds_and_widens(table: Table) -> None:
    wider = pa.schema(
        [
            ("extra", pa.string()),
            ("a", pa.int64()),
            ("s", pa.struct([("y", pa.string()), ("w", pa.bool_())])),
        ]
    )
    with table.evolve() as change:
        change.union_by_name(wider)
    assert str(table.schema.find_field("a").type) == "long"
    assert [f.name for f in table.schema.fields] == ["id", "a", "b", "s", "l", "extra"]
    assert rows_of(table, select=["s"]) == [{"s": {"x": 1, "y": "one", "w": None}}]


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        (lambda c: c.add_column("a", "int"), "it already exists"),
        (lambda c: c.add_column("s.x", "int"), "it already exists"),
        (lambda c: c.add_column("a.b", "int"), "only structs have columns inside"),
        (lambda c: c.add_column("q.b", "int"), "no column 'q'"),
        (lambda c: c.add_column("q", "intt"), "unknown type"),
        (lambda c: c.add_column("q", "int, r int"), "is not a valid type"),
        (lambda c: c.add_column("q", "int", after="nope"), "is not in the same struct"),
        (lambda c: c.add_column("q", "int", first=True, after="a"), "exclude each other"),
        (lambda c: c.drop_column("nope"), "no column 'nope'"),
        (lambda c: c.drop_column("l.element"), "no name of their own"),
        (lambda c: c.rename_column("a", "b"), "that name is taken"),
        (lambda c: c.rename_column("a", ""), "to an empty name"),
        (lambda c: c.update_column_type("a", "string"), "cannot change column 'a' from int to string"),
        (lambda c: c.update_column_type("id", "int"), "from long to int"),
        (lambda c: c.move_column("a"), "no new position"),
        (lambda c: c.set_identifier_fields(["a"]), "must be required"),
        (lambda c: c.add_partition_field("day(a)"), "cannot be applied to int"),
        (lambda c: c.add_partition_field("bucket(4, a)", name="b"), "has the name of a column"),
        (lambda c: c.drop_partition_field("nope"), "no partition field 'nope'"),
        (lambda c: c.set_sort_order(["nope"]), "no column 'nope'"),
        (lambda c: c.union_by_name("a string"), "cannot merge column 'a'"),
    ],
)
def test_an_illegal_step_names_its_rule_and_changes_nothing(table: Table, step: Any, fault: str) -> None:
    pointer = table.metadata_location
    with pytest.raises(InvalidInput, match=fault), table.evolve() as change:  # noqa: PT012 - the block is what is tested
        change.add_column("fine", "int")
        step(change)
    assert table.metadata_location == pointer


def test_a_block_that_raises_or_says_nothing_commits_nothing(table: Table) -> None:
    pointer = table.metadata_location
    with pytest.raises(ZeroDivisionError), table.evolve() as change:  # noqa: PT012 - the block is what is tested
        change.add_column("q", "int")
        _ = 1 / 0
    with table.evolve():
        pass
    assert table.metadata_location == pointer


def test_two_writers_that_add_different_columns_both_land(memory_lake: Lake, table: Table) -> None:
    def rival() -> None:
        with table.evolve() as change:
            change.add_column("theirs", "int")

    racing = RacingCatalog(memory_lake.catalog, [rival])
    ours = Lake(Backend(racing, memory_lake.store, memory_lake.ambient), memory_lake.warehouse).table("a.t")
    with ours.evolve() as change:
        change.add_column("ours", "int")
    fields = table.schema.fields
    assert [f.name for f in fields[-2:]] == ["theirs", "ours"]
    assert len({f.field_id for f in table.schema.by_id.values()}) == len(table.schema.by_id)


def test_two_writers_that_add_the_same_column_end_with_one(memory_lake: Lake, table: Table) -> None:
    def rival() -> None:
        with table.evolve() as change:
            change.add_column("same", "int")

    racing = RacingCatalog(memory_lake.catalog, [rival])
    ours = Lake(Backend(racing, memory_lake.store, memory_lake.ambient), memory_lake.warehouse).table("a.t")
    with pytest.raises(InvalidInput, match="it already exists"), ours.evolve() as change:
        change.add_column("same", "string")
    assert str(table.schema.find_field("same").type) == "int"


def test_files_of_every_old_spec_stay_readable_and_prunable(memory_lake: Lake) -> None:
    table = memory_lake.create_table("a.p", "id long, name string", partition_by=["truncate(10, id)"])

    def append(first: int) -> None:
        ids = list(range(first, first + 20))
        table.append(pa.table({"id": ids, "name": [f"n{i % 3}" for i in ids]}))

    append(0)
    with table.evolve() as change:
        change.add_partition_field("bucket(4, id)", name="spread")
    append(20)
    with table.evolve() as change:
        change.drop_partition_field("id_trunc")
        change.rename_partition_field("spread", "scatter")
        change.add_partition_field("name")
    append(40)
    assert table.count() == 60
    assert [len(spec.fields) for spec in table.metadata.specs] == [1, 2, 2]
    for wanted, spec_id in ((3, 0), (25, 1), (47, 2)):
        scan = table.scan(where=f"id = {wanted}")
        assert scan.count() == 1
        assert set(scan.files()["spec_id"].to_pylist()) == {spec_id}
        assert scan.explain().plan.metrics.files_pruned_by_partition + scan.explain().plan.metrics.manifests_pruned > 0
    with table.evolve() as change:
        change.drop_partition_field("scatter")
        change.drop_partition_field("name")
        change.add_partition_field("truncate(10, id)")
    assert table.spec.spec_id == 0, "the first spec came back, with its ids"


def test_dropping_a_partition_source_needs_the_field_dropped_first(memory_lake: Lake) -> None:
    table = memory_lake.create_table("a.p", "id long, name string", partition_by=["name"], order_by=["id"])
    table.append(pa.table({"id": [1, 2], "name": ["x", "y"]}))
    with pytest.raises(InvalidInput, match="source of partition field 'name'"), table.evolve() as change:
        change.drop_column("name")
    with pytest.raises(InvalidInput, match="sort order"), table.evolve() as change:
        change.drop_column("id")
    with table.evolve() as change:
        change.drop_partition_field("name")
        change.drop_column("name")
    table.append(pa.table({"id": [3]}))
    assert rows_of(table) == [{"id": 1}, {"id": 2}, {"id": 3}]
    table.overwrite(pa.table({"id": [9]}), where="id = 1", check_rows=False)
    assert rows_of(table) == [{"id": 2}, {"id": 3}, {"id": 9}]


def test_order_is_set_and_unset(table: Table) -> None:
    with table.evolve() as change:
        change.set_sort_order(["a desc", "id"])
    assert [str(f.direction) for f in table.metadata.sort_order.fields] == ["desc", "asc"]
    with table.evolve() as change:
        change.set_sort_order([])
    assert table.metadata.sort_order.is_unsorted
    assert len(table.metadata.sort_orders) == 2


class Model:
    """What a table of int columns should show, kept by hand."""

    def __init__(self) -> None:
        self.columns: dict[str, int] = {"k": 0}
        self.fresh = itertools.count(1)
        self.rows: list[dict[int, int]] = []

    def shown(self) -> list[dict[str, int | None]]:
        return [{name: row.get(key) for name, key in self.columns.items()} for row in self.rows]


@pytest.mark.slow
@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "drop", "rename", "append"]), st.integers(0, 9), st.integers(0, 3)),
        max_size=12,
    )
)
def test_any_sequence_of_changes_shows_what_the_model_shows(steps: list[tuple[str, int, int]]) -> None:
    lake = icefield.connect("memory:", ambient=SeededAmbient(1))
    table = lake.create_table("a.t", "k long")
    model = Model()
    for number, (verb, which, word) in enumerate(steps):
        names, name = list(model.columns), f"c{word}"
        victim = names[which % len(names)]
        match verb:
            case "add" if name not in model.columns:
                with table.evolve() as change:
                    change.add_column(name, "long")
                model.columns[name] = next(model.fresh)
            case "drop" if len(names) > 1:
                with table.evolve() as change:
                    change.drop_column(victim)
                del model.columns[victim]
            case "rename" if name not in model.columns:
                with table.evolve() as change:
                    change.rename_column(victim, name)
                model.columns = {name if n == victim else n: key for n, key in model.columns.items()}
            case "append":
                table.append(pa.table({n: [number * 100 + i] for i, n in enumerate(names)}))
                model.rows.append({model.columns[n]: number * 100 + i for i, n in enumerate(names)})
    expected = model.shown()
    assert sorted(map(str, table.scan().to_arrow().read_all().to_pylist())) == sorted(map(str, expected))
    for name in model.columns:
        values = {row[name] for row in expected if row[name] is not None}
        assert table.scan(where=f"{name} IS NULL").count() == sum(row[name] is None for row in expected)
        for value in values:
            assert table.scan(where=f"{name} = {value}").count() == 1
    lake.close()


def test_a_table_that_was_always_sorted_can_lose_its_order(memory_lake: Lake) -> None:
    table = memory_lake.create_table("a.sorted", "id long", order_by=["id"])
    metadata = replace(table.metadata, sort_orders=table.metadata.sort_orders[1:])  # as other engines write it
    location = f"{table.location}/metadata/v2.metadata.json"
    memory_lake.store.put_new(location, encode_metadata(metadata))
    memory_lake.drop_table("a.sorted")
    memory_lake.register_table("a.sorted", location)
    with memory_lake.table("a.sorted").evolve() as change:
        change.set_sort_order([])
    assert memory_lake.table("a.sorted").metadata.sort_order.is_unsorted


@pytest.mark.parametrize("upgraded", [False, True])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_partition_field_is_dropped_and_added_again_and_again(
    memory_lake: Lake, version: int, upgraded: bool
) -> None:
    """In version 1 dropped fields stay as void, and with them their names and ids, also after an upgrade."""
    table = memory_lake.create_table("a.p", "id long, p string", partition_by=["p"], format_version=version)
    for turn in range(3):
        table.append(pa.table({"id": [3 * turn, 3 * turn + 1, 3 * turn + 2], "p": ["x", "null", None]}))
        if upgraded and turn == 1:
            table.upgrade_format_version(3)
        with table.evolve() as change:
            change.drop_partition_field("p")
            if turn == 0:
                change.add_partition_field("p")
        if turn > 0:
            table.append(pa.table({"id": [100 + turn], "p": ["x"]}))
            with table.evolve() as change:
                change.add_partition_field("p", name="other" if turn == 2 else None)
    ids = [field.field_id for field in table.spec.fields]
    assert len(set(ids)) == len(ids)
    assert sorted(row["id"] for row in rows_of(table, where="p = 'x'")) == [0, 3, 6, 101, 102]
    table.compact()
    table.overwrite_partitions(pa.table({"id": [9], "p": pa.array([None], pa.string())}))
    assert sorted(row["id"] for row in rows_of(table, where="p = 'null'")) == [1, 4, 7]


def test_the_source_of_a_dropped_partition_field_of_version_1_can_go_after_an_upgrade(memory_lake: Lake) -> None:
    table = memory_lake.create_table("a.v", "id long, p string", partition_by=["p"], format_version=1)
    table.append(pa.table({"id": [1], "p": ["x"]}))
    with table.evolve() as change:
        change.drop_partition_field("p")
    table.append(pa.table({"id": [2], "p": ["y"]}))
    before = table.metadata_location
    with pytest.raises(InvalidInput, match=r"source of partition field 'p'.*upgrade\(2\)"), table.evolve() as change:
        change.drop_column("p")
    assert table.metadata_location == before
    table.upgrade_format_version(2)
    with table.evolve() as change:
        change.drop_column("p")
    table.append(pa.table({"id": [3]}))
    assert table.spec.fields == ()
    assert sorted(table.scan().to_arrow().read_all()["id"].to_pylist()) == [1, 2, 3]
    table.delete("id = 1")
    table.compact()
    assert table.scan("id > 1").count() == 2
