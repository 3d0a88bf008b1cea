"""The lake: making, naming, listing and dropping tables, and what it refuses."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

import icefield
from icefield.errors import (
    AlreadyExists,
    CatalogError,
    InvalidInput,
    LocationRefused,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    SchemaMismatch,
)
from icefield.lake import Lake


def everything_below(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.suffix not in (".db-wal", ".db-shm")}


def test_connect_makes_a_directory_with_a_catalog_inside(tmp_path: Path) -> None:
    with icefield.connect(tmp_path / "new" / "lake") as lake:
        lake.create_table("shop.orders", "id long")
        assert (tmp_path / "new" / "lake" / "catalog.db").is_file()
        assert lake.table("shop.orders").location.startswith(lake.warehouse + "/shop/orders-")


def test_a_lake_opened_again_has_its_tables(tmp_path: Path) -> None:
    with icefield.connect(tmp_path) as lake:
        lake.create_table("shop.orders", "id long").append(pa.table({"id": [1, 2]}))
    with icefield.connect(str(tmp_path)) as again:
        assert again.tables() == ["shop.orders"]
        assert again.table("shop.orders").count() == 2


@pytest.mark.parametrize("folder", ["with blank", "percent%20", "ünïcode", "a=b,c"])
def test_a_lake_works_in_a_directory_of_any_name(tmp_path: Path, folder: str) -> None:
    with icefield.connect(tmp_path / folder) as lake:
        table = lake.create_table("s.t", "id long, name string", partition_by=["name"])
        table.append(pa.table({"id": [1, 2], "name": ["a b%/=ü", None]}))
        assert table.scan(where="name = 'a b%/=ü'").to_arrow().read_all()["id"].to_pylist() == [1]


def test_relative_paths_are_taken_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with icefield.connect("lake/") as lake:
        lake.create_table("s.t", "id long").append(pa.table({"id": [1]}))
    os.chdir("/")
    with icefield.connect(tmp_path / "lake") as lake:
        assert lake.table("s.t").count() == 1


def test_tables_and_namespaces_are_listed_and_dropped(lake: Lake) -> None:
    lake.create_namespace("empty", {"owner": "me"})
    lake.create_table("a.one", "id long")
    lake.create_table("a.b.two", "id long")
    assert lake.namespaces() == ["a", "empty"]
    assert lake.namespaces("a") == ["a.b"]
    assert lake.tables() == ["a.one", "a.b.two"]
    assert lake.tables("a") == ["a.one"]
    assert lake.namespace_properties("empty") == {"owner": "me"}
    lake.update_namespace_properties("empty", {"team": "blue"}, removals=["owner"])
    assert lake.namespace_properties("empty") == {"team": "blue"}
    with pytest.raises(NamespaceNotEmpty):
        lake.drop_namespace("a")
    lake.drop_table("a.one")
    lake.drop_namespace("empty")
    assert lake.tables() == ["a.b.two"]
    assert not lake.has_table("a.one")
    assert lake.has_table("a.b.two")


def test_the_longest_name_has_room_on_disk(lake: Lake) -> None:
    name = f"{'n' * 255}.{'ü' * 127}"
    lake.create_table(name, "id long").append(pa.table({"id": [1]}))
    assert lake.table(name).count() == 1


def test_renamed_table_keeps_its_rows(lake: Lake) -> None:
    lake.create_table("a.t", "id long").append(pa.table({"id": [5]}))
    lake.rename_table("a.t", "a.u")
    assert lake.tables() == ["a.u"]
    assert lake.table("a.u").count() == 1


def test_a_table_made_anew_shares_no_file_with_the_dropped_one(lake: Lake) -> None:
    first = lake.create_table("a.t", "id long")
    first.append(pa.table({"id": [1]}))
    old = first.location
    lake.drop_table("a.t")
    second = lake.create_table("a.t", "id long")
    assert second.location != old
    assert second.count() == 0


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("id long not null, name string", "id: long not null"),
        (pa.schema([pa.field("id", pa.int64(), nullable=False)]), "id: long not null"),
        (pa.table({"id": pa.array([1], pa.int32())}), "id: int"),
    ],
)
def test_schema_comes_from_text_and_arrow(lake: Lake, schema: object, expected: str) -> None:
    assert expected in str(lake.create_table("a.t", schema).schema)


@pytest.mark.parametrize(
    "name",
    [
        "../x",
        "a/../b.t",
        "a..t",
        ".t",
        "a.",
        "",
        "t",
        "a.\x00t",
        "a.t/../../etc",
        "a. t",
        "a.t\n",
        "a.\\t",
        "a." + "x" * 256,
    ],
)
def test_hostile_names_are_refused_and_nothing_is_made(tmp_path: Path, name: str) -> None:
    with icefield.connect(tmp_path / "lake") as lake:
        lake.create_table("ok.ok", "id long")
        before = everything_below(tmp_path)
        with pytest.raises(InvalidInput, match="name"):
            lake.create_table(name, "id long")
        assert everything_below(tmp_path) == before
        assert lake.tables() == ["ok.ok"]


@pytest.mark.parametrize("place", ["file:///etc/x", "/tmp", "../x", "s3://bucket/x"])
def test_locations_outside_the_warehouse_are_refused(lake: Lake, place: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        lake.create_table("a.t", "id long", location=place)
    assert lake.tables() == []
    assert "\n" not in str(caught.value)


def test_a_sibling_with_the_same_prefix_is_outside(lake: Lake) -> None:
    with pytest.raises(LocationRefused):
        lake.create_table("a.t", "id long", location=lake.warehouse + "-2/t")
    with pytest.raises(InvalidInput):
        lake.create_table("a.t", "id long", location=lake.warehouse)


def test_missing_table_says_what_there_is(lake: Lake) -> None:
    lake.create_table("shop.orders", "id long")
    with pytest.raises(NoSuchTable, match=r"no table shop.order in .*Tables in shop: orders"):
        lake.table("shop.order")
    with pytest.raises(NoSuchTable, match=r"no namespace nowhere \(namespaces: shop\)"):
        lake.table("nowhere.t")
    with pytest.raises(NoSuchNamespace):
        lake.tables("nowhere")
    with pytest.raises(NoSuchTable):
        lake.drop_table("shop.order")


def test_creating_twice_is_refused_and_leaves_no_file(lake: Lake, tmp_path: Path) -> None:
    lake.create_table("a.t", "id long")
    before = {p for p in tmp_path.rglob("*") if p.is_file()}
    with pytest.raises(AlreadyExists):
        lake.create_table("a.t", "other string")
    assert {p for p in tmp_path.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"schema": "id lung"}, "unknown type 'lung'"),
        ({"schema": "id long,"}, "unexpected end"),
        ({"schema": "id long, id string"}, "duplicate column names"),
        ({"schema": ""}, "has no columns"),
        ({"schema": 3}, "cannot read a schema from int"),
        ({"schema": "id long", "partition_by": ["day(id)"]}, "day cannot be applied to long"),
        ({"schema": "id long", "partition_by": ["nope"]}, "no column 'nope'"),
        ({"schema": "id long", "partition_by": "id"}, "takes a list"),
        ({"schema": "id long", "partition_by": ["sqrt(id)"]}, "cannot parse the transform"),
        ({"schema": "id long", "partition_by": ["bucket(0, id)"]}, "at least 1"),
        ({"schema": "id long", "order_by": ["id sideways"]}, "no column 'id sideways'"),
        ({"schema": "id long", "properties": {"commit.retry.num-retries": "many"}}, "cannot be 'many'"),
        ({"schema": "id long", "properties": {"x": 1}}, "strings"),
        ({"schema": pa.schema([("a", pa.null())])}, "has no type"),
    ],
)
def test_a_bad_definition_is_one_clear_error(lake: Lake, arguments: dict[str, object], fault: str) -> None:
    with pytest.raises(InvalidInput, match=fault.replace("(", r"\(")) as caught:
        lake.create_table("a.t", **arguments)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert lake.tables() == []


def test_unsigned_integers_beyond_long_are_refused(lake: Lake) -> None:
    with pytest.raises(SchemaMismatch, match="uint64"):
        lake.create_table("a.t", pa.schema([("a", pa.uint64())]))


def test_a_catalog_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "catalog.db").write_text("not a database, but long enough to be looked at " * 20)
    with icefield.connect(tmp_path / "bad") as lake, pytest.raises(CatalogError):
        lake.tables()
