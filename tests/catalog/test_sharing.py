"""One database, shared live with a real PyIceberg SqlCatalog, in both shapes of its tables."""

import json
import sqlite3
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from pyiceberg.catalog.sql import SqlCatalog as PyIcebergCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from tests.catalog.increment_worker import open_at

from icefield.catalog.catalog import Catalog, PointerSwap
from icefield.errors import AlreadyExists, CommitConflict, NoSuchTable
from icefield.model.names import TableName, parse_table_name

SCHEMA = Schema(NestedField(1, "id", LongType(), required=True))
T = parse_table_name("shop.orders")
V0_TABLES = (
    "CREATE TABLE iceberg_tables (catalog_name VARCHAR(255) NOT NULL, table_namespace VARCHAR(255) NOT NULL, "
    "table_name VARCHAR(255) NOT NULL, metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), "
    "PRIMARY KEY (catalog_name, table_namespace, table_name))"
)
V0_NAMESPACES = (
    "CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255) NOT NULL, namespace VARCHAR(255) NOT NULL, "
    "property_key VARCHAR(255) NOT NULL, property_value VARCHAR(1000) NOT NULL, "
    "PRIMARY KEY (catalog_name, namespace, property_key))"
)


class Shared:
    """The same database through both clients."""

    def __init__(self, place: str, directory: Path, first: str) -> None:
        self.place = place
        self.warehouse = directory / "warehouse"
        if first == "icefield":
            with closing(open_at(place)) as catalog:
                catalog.list_namespaces()
        elif first == "v0":
            self.query(V0_TABLES)
            self.query(V0_NAMESPACES)
        self.theirs = self.open_theirs()
        self.ours = open_at(place)

    def open_theirs(self, **properties: str) -> PyIcebergCatalog:
        on_postgres = self.place.startswith("postgresql://")
        uri = self.place.replace("://", "+psycopg://") if on_postgres else f"sqlite:///{self.place}"
        return PyIcebergCatalog("default", uri=uri, warehouse=f"file://{self.warehouse}", **properties)

    def query(self, statement: str) -> list[tuple[object, ...]]:
        if self.place.startswith("postgresql://"):
            with psycopg.connect(self.place, autocommit=True) as server:
                cursor = server.execute(statement.encode())
                return cursor.fetchall() if cursor.description else []
        with closing(sqlite3.connect(self.place, isolation_level=None)) as connection:
            return connection.execute(statement).fetchall()

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "c.db")
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(params=["icefield", "pyiceberg", "v0"])
def shared(request: pytest.FixtureRequest, place: str, tmp_path: Path) -> Iterator[Shared]:
    with closing(Shared(place, tmp_path, request.param)) as shared:
        assert shared.theirs._schema_version == ("v0" if request.param == "v0" else "v1")
        yield shared


def rewrite_metadata(ours: Catalog, warehouse: Path, count: str) -> None:
    """Count a property up in the current metadata, write it as a new file and swap: a whole commit, made by hand."""
    pointer = ours.pointer(T)
    metadata = json.loads(Path(pointer.removeprefix("file://")).read_text())
    metadata["properties"][count] = str(int(metadata["properties"].get(count, "0")) + 1)
    new = warehouse / f"{uuid.uuid4()}.metadata.json"
    new.write_text(json.dumps(metadata))
    ours.swap([PointerSwap(T, pointer, f"file://{new}")])


def test_namespaces_of_pyiceberg_are_ours(shared: Shared) -> None:
    shared.theirs.create_namespace("bare")
    shared.theirs.create_namespace(("rich", "inner"), {"owner": "them"})
    assert shared.ours.list_namespaces() == [("bare",), ("rich",)]
    assert shared.ours.list_namespaces(("rich",)) == [("rich", "inner")]
    assert shared.ours.namespace_properties(("bare",)) == {}
    assert shared.ours.namespace_properties(("rich", "inner")) == {"owner": "them"}
    with pytest.raises(AlreadyExists):
        shared.ours.create_namespace(("rich", "inner"))
    shared.ours.update_namespace_properties(("rich", "inner"), ["owner"], {})
    assert shared.theirs.namespace_exists("rich.inner")
    shared.ours.drop_namespace(("rich", "inner"))
    shared.ours.drop_namespace(("bare",))
    assert shared.theirs.list_namespaces() == []


def test_our_namespaces_are_pyicebergs(shared: Shared) -> None:
    shared.ours.create_namespace(("bare",))
    shared.ours.create_namespace(("rich", "inner"), {"owner": "us"})
    assert sorted(shared.theirs.list_namespaces()) == [("bare",), ("rich",)]
    assert shared.theirs.list_namespaces("rich") == [("rich", "inner")]
    assert shared.theirs.load_namespace_properties("rich.inner")["owner"] == "us"
    with pytest.raises(NamespaceAlreadyExistsError):
        shared.theirs.create_namespace("bare")
    shared.theirs.update_namespace_properties("rich.inner", {"owner"}, {"new": "theirs"})
    assert shared.ours.namespace_properties(("rich", "inner")) == {"new": "theirs"}
    shared.theirs.drop_namespace("bare")
    assert shared.ours.list_namespaces() == [("rich",)]


def test_both_commit_to_a_table_of_pyicebergs_and_see_each_other(shared: Shared) -> None:
    shared.theirs.create_namespace("shop")
    table = shared.theirs.create_table("shop.orders", SCHEMA)
    assert shared.ours.list_tables(("shop",)) == [T]
    assert shared.ours.pointer(T) == table.metadata_location
    rewrite_metadata(shared.ours, shared.warehouse, "ours")
    assert shared.theirs.load_table("shop.orders").metadata_location == shared.ours.pointer(T)
    assert shared.theirs.load_table("shop.orders").properties["ours"] == "1"
    before = shared.ours.pointer(T)
    shared.theirs.load_table("shop.orders").transaction().set_properties(theirs="1").commit_transaction()
    with pytest.raises(CommitConflict):
        shared.ours.swap([PointerSwap(T, before, "stale")])
    pointers = shared.query("SELECT metadata_location, previous_metadata_location FROM iceberg_tables")
    assert pointers == [(shared.ours.pointer(T), before)]
    assert shared.theirs.load_table("shop.orders").properties == {"ours": "1", "theirs": "1"}


def test_a_table_that_we_create_rename_and_drop_is_so_for_pyiceberg(shared: Shared) -> None:
    shared.theirs.create_namespace("shop")
    made = shared.theirs.create_table("shop.made", SCHEMA)
    shared.ours.swap([PointerSwap(T, None, made.metadata_location)])
    assert shared.theirs.load_table("shop.orders").schema() == SCHEMA
    with pytest.raises(TableAlreadyExistsError):
        shared.theirs.register_table("shop.orders", made.metadata_location)
    shared.ours.rename_table(T, parse_table_name("shop.sales"))
    assert sorted(shared.theirs.list_tables("shop")) == [("shop", "made"), ("shop", "sales")]
    shared.ours.swap([PointerSwap(parse_table_name("shop.sales"), made.metadata_location, None)])
    with pytest.raises(NoSuchTableError):
        shared.theirs.load_table("shop.sales")
    shared.theirs.rename_table("shop.made", "shop.orders")
    assert shared.ours.list_tables(("shop",)) == [T]
    shared.theirs.drop_table("shop.orders")
    with pytest.raises(NoSuchTable):
        shared.ours.pointer(T)


def test_both_write_at_once_and_no_acknowledged_commit_is_lost(shared: Shared) -> None:
    shared.theirs.create_namespace("shop")
    shared.theirs.create_table("shop.orders", SCHEMA)
    start, slots = threading.Barrier(2), 12

    def write_theirs() -> None:
        with closing(shared.open_theirs()) as theirs:
            start.wait(30)
            for slot in range(slots):
                while True:
                    table = theirs.load_table("shop.orders")
                    assert table.properties.get("theirs", "0") == str(slot)
                    try:
                        table.transaction().set_properties(theirs=str(slot + 1)).commit_transaction()
                        break
                    except CommitFailedException:
                        continue

    failures: list[BaseException] = []

    def run() -> None:
        try:
            write_theirs()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    start.wait(30)
    for _ in range(slots):
        while True:
            try:
                rewrite_metadata(shared.ours, shared.warehouse, "ours")
                break
            except CommitConflict:
                continue
    thread.join()
    assert failures == []
    assert shared.theirs.load_table("shop.orders").properties == {"ours": str(slots), "theirs": str(slots)}


def test_views_get_their_column_while_we_are_open(place: str, tmp_path: Path) -> None:
    with closing(Shared(place, tmp_path, "v0")) as shared:
        shared.ours.create_namespace(("shop",))
        shared.ours.swap([PointerSwap(T, None, "t0")])
        with closing(shared.open_theirs(schema_version="v1")):
            shared.query("INSERT INTO iceberg_tables VALUES ('default', 'shop', 'view', 'v0', null, 'VIEW')")
        assert shared.ours.list_tables(("shop",)) == [T]
        with pytest.raises(AlreadyExists, match="view"):
            shared.ours.swap([PointerSwap(TableName(("shop",), "view"), None, "x")])
        shared.ours.swap([PointerSwap(T, "t0", "t1"), PointerSwap(parse_table_name("shop.new"), None, "n0")])
        found = shared.query("SELECT table_name, iceberg_type FROM iceberg_tables ORDER BY table_name")
        assert found == [("new", "TABLE"), ("orders", None), ("view", "VIEW")]
