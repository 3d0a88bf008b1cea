"""The contract of every catalog, run by each implementation. (Races: test_swap_race.py.)"""

import pickle
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.zookeeper import ZOOKEEPER

from icefield.ambient import SystemAmbient
from icefield.catalog.catalog import Catalog, PointerSwap
from icefield.catalog.memory import MemoryCatalog
from icefield.catalog.sql.postgres import open_postgres_catalog
from icefield.catalog.sql.sqlite import SqliteSettings, open_sqlite_catalog
from icefield.catalog.zookeeper import open_zookeeper_catalog
from icefield.errors import (
    AlreadyExists,
    CommitConflict,
    IcefieldError,
    InvalidInput,
    LeaseLost,
    NamespaceNotEmpty,
    NoSuchNamespace,
    NoSuchTable,
    Unsupported,
)
from icefield.model.names import TableName, parse_table_name

# What Iceberg's JDBC catalog executes on a new database; V1 is V0 and the added column.
JDBC_TABLES = (
    "CREATE TABLE iceberg_tables(catalog_name VARCHAR(255) NOT NULL,table_namespace VARCHAR(255) NOT NULL,"
    "table_name VARCHAR(255) NOT NULL,metadata_location VARCHAR(1000),previous_metadata_location VARCHAR(1000),"
    "PRIMARY KEY (catalog_name, table_namespace, table_name))"
)
JDBC_NAMESPACES = (
    "CREATE TABLE iceberg_namespace_properties(catalog_name VARCHAR(255) NOT NULL,namespace VARCHAR(255) NOT NULL,"
    "property_key VARCHAR(255),property_value VARCHAR(1000),PRIMARY KEY (catalog_name, namespace, property_key))"
)
JDBC_V0 = (JDBC_TABLES, JDBC_NAMESPACES)
JDBC_V1 = (*JDBC_V0, "ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)")

T, U = parse_table_name("shop.orders"), parse_table_name("shop.stock")
HOSTILE = ("a_b", "aXb", "A_B", "a%", "o'brien", 'say "hi"', "-- drop", "ünï", "a b", "?1", "{x}")


def memory_catalog(request: pytest.FixtureRequest) -> Catalog:
    return MemoryCatalog()


def sqlite_catalog(request: pytest.FixtureRequest) -> Catalog:
    return open_sqlite_catalog(sqlite_file(request))


def sqlite_v0_catalog(request: pytest.FixtureRequest) -> Catalog:
    return on_sqlite(sqlite_file(request), JDBC_V0)


def sqlite_v1_catalog(request: pytest.FixtureRequest) -> Catalog:
    return on_sqlite(sqlite_file(request), JDBC_V1)


def postgres_catalog(request: pytest.FixtureRequest) -> Catalog:
    return open_postgres_catalog(request.getfixturevalue("postgres_url"))


def postgres_v0_catalog(request: pytest.FixtureRequest) -> Catalog:
    return on_postgres(request.getfixturevalue("postgres_url"), JDBC_V0)


def postgres_v1_catalog(request: pytest.FixtureRequest) -> Catalog:
    return on_postgres(request.getfixturevalue("postgres_url"), JDBC_V1)


def zookeeper_catalog(request: pytest.FixtureRequest) -> Catalog:
    return open_zookeeper_catalog(request.getfixturevalue("zookeeper_url"), "default", SystemAmbient())


V0_CATALOGS = (sqlite_v0_catalog, postgres_v0_catalog)
CATALOGS_WITH_VIEWS = (
    *(memory_catalog, sqlite_catalog, sqlite_v1_catalog, postgres_catalog, postgres_v1_catalog),
    pytest.param(zookeeper_catalog, marks=ZOOKEEPER),
)


def sqlite_file(request: pytest.FixtureRequest) -> Path:
    path: Path = request.getfixturevalue("tmp_path")
    return path / "catalog.db"


def on_sqlite(path: Path, statements: tuple[str, ...]) -> Catalog:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return open_sqlite_catalog(path, settings=SqliteSettings(durable=False))


def on_postgres(url: str, statements: tuple[str, ...]) -> Catalog:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())
    return open_postgres_catalog(url)


@pytest.fixture(params=[*V0_CATALOGS, *CATALOGS_WITH_VIEWS])
def empty(request: pytest.FixtureRequest) -> Iterator[Catalog]:
    make: Callable[[pytest.FixtureRequest], Catalog] = request.param
    with closing(make(request)) as catalog:
        yield catalog


@pytest.fixture
def catalog(empty: Catalog) -> Catalog:
    empty.create_namespace(("shop",))
    empty.swap([PointerSwap(T, None, "t0"), PointerSwap(U, None, "u0")])
    return empty


def state(catalog: Catalog) -> dict[str, str]:
    tables = (table for namespace in catalog.list_namespaces() for table in catalog.list_tables(namespace))
    return {str(table): catalog.pointer(table) for table in tables}


def check_refused(catalog: Catalog, error: type[IcefieldError], *changes: PointerSwap) -> IcefieldError:
    before = state(catalog)
    with pytest.raises(error) as refused:
        catalog.swap(changes)
    assert type(refused.value) is error
    assert state(catalog) == before
    return refused.value


def test_a_swap_moves_a_pointer(catalog: Catalog) -> None:
    catalog.swap([PointerSwap(T, "t0", "t1")])
    assert catalog.pointer(T) == "t1"
    assert catalog.pointer(U) == "u0"


def test_a_stale_expectation_is_a_conflict_that_names_both_pointers(catalog: Catalog) -> None:
    catalog.swap([PointerSwap(T, "t0", "t1")])
    refused = check_refused(catalog, CommitConflict, PointerSwap(T, "t0", "t2"))
    assert (refused.retryable, refused.cleanable) == (True, True)
    assert "from t0 to t1" in str(refused)


def test_creating_a_taken_name_is_refused(catalog: Catalog) -> None:
    check_refused(catalog, AlreadyExists, PointerSwap(T, None, "other"))


def test_creating_in_a_missing_namespace_is_refused(catalog: Catalog) -> None:
    check_refused(catalog, NoSuchNamespace, PointerSwap(parse_table_name("no.orders"), None, "x"))
    check_refused(catalog, NoSuchNamespace, PointerSwap(parse_table_name("shop.below.orders"), None, "x"))


def test_moving_or_dropping_a_table_that_is_gone_is_refused(catalog: Catalog) -> None:
    catalog.swap([PointerSwap(T, "t0", None)])
    check_refused(catalog, NoSuchTable, PointerSwap(T, "t0", "t1"))
    check_refused(catalog, NoSuchTable, PointerSwap(T, "t0", None))
    check_refused(catalog, NoSuchTable, PointerSwap(parse_table_name("no.orders"), "x", "y"))


def test_a_dropped_name_is_free_again(catalog: Catalog) -> None:
    catalog.swap([PointerSwap(T, "t0", None)])
    with pytest.raises(NoSuchTable):
        catalog.pointer(T)
    assert catalog.list_tables(("shop",)) == [U]
    catalog.swap([PointerSwap(T, None, "again")])
    assert catalog.pointer(T) == "again"


def test_a_stale_drop_is_a_conflict(catalog: Catalog) -> None:
    check_refused(catalog, CommitConflict, PointerSwap(T, "older", None))


GOOD = (PointerSwap(U, "u0", "u1"), PointerSwap(parse_table_name("shop.new"), None, "n0"))


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (PointerSwap(T, "stale", "t1"), CommitConflict),
        (PointerSwap(T, "stale", "stale"), CommitConflict),
        (PointerSwap(T, None, "t1"), AlreadyExists),
        (PointerSwap(parse_table_name("shop.gone"), "g0", None), NoSuchTable),
        (PointerSwap(parse_table_name("no.orders"), None, "x"), NoSuchNamespace),
    ],
)
def test_several_pointers_move_together_or_not_at_all(
    catalog: Catalog, bad: PointerSwap, error: type[IcefieldError]
) -> None:
    for position in range(len(GOOD) + 1):
        check_refused(catalog, error, *GOOD[:position], bad, *GOOD[position:])
    catalog.swap([PointerSwap(T, "t0", None), *GOOD])
    assert state(catalog) == {"shop.stock": "u1", "shop.new": "n0"}


def test_a_pointer_that_must_only_stay_is_checked_and_left(catalog: Catalog) -> None:
    catalog.swap([PointerSwap(T, "t0", "t0"), PointerSwap(U, "u0", "u1")])
    assert state(catalog) == {"shop.orders": "t0", "shop.stock": "u1"}
    check_refused(catalog, CommitConflict, PointerSwap(T, "t0", "t1"), PointerSwap(U, "u0", "u0"))


def test_a_drop_and_a_create_may_share_a_swap_in_any_order(catalog: Catalog) -> None:
    new = parse_table_name("shop.new")
    catalog.swap([PointerSwap(T, "t0", None), PointerSwap(U, "u0", None), PointerSwap(new, None, "n0")])
    assert state(catalog) == {"shop.new": "n0"}


def test_changes_that_mean_nothing_are_refused(catalog: Catalog) -> None:
    catalog.swap([])
    check_refused(catalog, InvalidInput, PointerSwap(T, None, None))
    check_refused(catalog, InvalidInput, PointerSwap(T, "t0", "t1"), PointerSwap(T, "t1", "t2"))
    check_refused(catalog, InvalidInput, PointerSwap(TableName(("a.b",), "c"), None, "x"))
    check_refused(catalog, InvalidInput, PointerSwap(TableName(("shop",), "a/b"), None, "x"))


def test_pointers_of_several_tables_leave_out_what_is_not_there(catalog: Catalog) -> None:
    gone = parse_table_name("shop.gone")
    assert catalog.pointers([T, gone, U]) == {T: "t0", U: "u0"}
    assert catalog.pointers([]) == {}


def test_tables_are_listed_in_order_by_their_namespace_alone(catalog: Catalog) -> None:
    catalog.create_namespace(("shop", "inner"))
    catalog.create_namespace(("sho",))
    catalog.swap([PointerSwap(parse_table_name(name), None, "x") for name in ("shop.inner.a", "sho.b", "shop.aaa")])
    assert [str(table) for table in catalog.list_tables(("shop",))] == ["shop.aaa", "shop.orders", "shop.stock"]
    assert [str(table) for table in catalog.list_tables(("shop", "inner"))] == ["shop.inner.a"]
    with pytest.raises(NoSuchNamespace):
        catalog.list_tables(("no",))
    with pytest.raises(NoSuchNamespace):
        catalog.list_tables(())


def test_a_renamed_table_keeps_its_pointer(catalog: Catalog) -> None:
    catalog.create_namespace(("other",))
    moved = parse_table_name("other.sales")
    catalog.rename_table(T, moved)
    assert catalog.pointer(moved) == "t0"
    check_refused(catalog, NoSuchTable, PointerSwap(T, "t0", "t1"))
    catalog.swap([PointerSwap(moved, "t0", "t1")])
    assert state(catalog) == {"other.sales": "t1", "shop.stock": "u0"}
    catalog.rename_table(moved, moved)
    assert catalog.pointer(moved) == "t1"


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("shop.gone", "shop.x", NoSuchTable),
        ("shop.gone", "shop.gone", NoSuchTable),
        ("shop.orders", "shop.stock", AlreadyExists),
        ("shop.orders", "no.orders", NoSuchNamespace),
    ],
)
def test_a_rename_that_cannot_be_changes_nothing(
    catalog: Catalog, old: str, new: str, error: type[IcefieldError]
) -> None:
    before = state(catalog)
    with pytest.raises(error):
        catalog.rename_table(parse_table_name(old), parse_table_name(new))
    assert state(catalog) == before


def test_namespaces_nest_and_a_lower_one_makes_its_parents(empty: Catalog) -> None:
    assert empty.list_namespaces() == []
    empty.create_namespace(("a", "b", "c"))
    empty.create_namespace(("z",))
    assert empty.list_namespaces() == [("a",), ("z",)]
    assert empty.list_namespaces(("a",)) == [("a", "b")]
    assert empty.list_namespaces(("a", "b")) == [("a", "b", "c")]
    assert empty.list_namespaces(("a", "b", "c")) == []
    assert empty.namespace_properties(("a", "b")) == {}
    with pytest.raises(NoSuchNamespace):
        empty.list_namespaces(("b",))
    with pytest.raises(AlreadyExists):
        empty.create_namespace(("a", "b"))
    with pytest.raises(NamespaceNotEmpty):
        empty.drop_namespace(("a",))
    empty.drop_namespace(("a", "b", "c"))
    assert empty.list_namespaces() == [("z",)]


def test_a_namespace_is_dropped_only_when_nothing_is_in_it(catalog: Catalog) -> None:
    with pytest.raises(NamespaceNotEmpty):
        catalog.drop_namespace(("shop",))
    catalog.swap([PointerSwap(T, "t0", None), PointerSwap(U, "u0", None)])
    assert catalog.list_namespaces() == [("shop",)]
    catalog.drop_namespace(("shop",))
    assert catalog.list_namespaces() == []
    with pytest.raises(NoSuchNamespace):
        catalog.drop_namespace(("shop",))
    with pytest.raises(NoSuchNamespace):
        catalog.drop_namespace(())


def test_properties_are_set_changed_and_removed_at_once(empty: Catalog) -> None:
    empty.create_namespace(("a",), {"owner": "me", "note": "x"})
    empty.update_namespace_properties(("a",), ["note", "absent"], {"owner": "you", "new": ""})
    assert empty.namespace_properties(("a",)) == {"owner": "you", "new": ""}
    empty.update_namespace_properties(("a",), ["owner", "new"], {})
    assert empty.namespace_properties(("a",)) == {}
    assert empty.list_namespaces() == [("a",)]


def test_a_namespace_that_is_only_implied_may_get_properties_of_its_own(empty: Catalog) -> None:
    empty.create_namespace(("a", "b"))
    empty.update_namespace_properties(("a",), [], {"k": "v"})
    empty.drop_namespace(("a", "b"))
    assert empty.namespace_properties(("a",)) == {"k": "v"}


ONE, TWO = "1" * 32, "2" * 32


def test_a_fenced_write_is_never_swapped(catalog: Catalog) -> None:
    """G15: a collector has deleted the files of a write that comes back."""
    catalog.swap([PointerSwap(T, "t0", "t1", write_ids=(ONE,))])
    namespaces = catalog.list_namespaces(), catalog.namespace_properties(("shop",))
    for _ in range(2):
        assert catalog.fence(T, [ONE])
    late = check_refused(catalog, LeaseLost, PointerSwap(T, "t1", "t2", write_ids=(TWO, ONE)))
    assert (late.cleanable, ONE in str(late)) == (True, True)
    check_refused(catalog, CommitConflict, PointerSwap(T, "t0", "t2", write_ids=(ONE,)))
    catalog.swap([PointerSwap(T, "t1", "t2", write_ids=(TWO,))])
    check_refused(catalog, LeaseLost, PointerSwap(T, "t2", "t3", write_ids=(ONE,)))
    catalog.swap([PointerSwap(T, "t2", "t3")])
    assert (catalog.list_namespaces(), catalog.namespace_properties(("shop",))) == namespaces
    assert catalog.fence(TableName(("shop",), "missing"), [TWO])


def test_a_fence_holds_after_a_rename(catalog: Catalog) -> None:
    catalog.fence(T, [ONE])
    moved = TableName(("shop",), "moved")
    catalog.rename_table(T, moved)
    check_refused(catalog, LeaseLost, PointerSwap(moved, "t0", "t1", write_ids=(ONE,)))
    catalog.swap([PointerSwap(moved, "t0", "t1")])
    check_refused(catalog, LeaseLost, PointerSwap(moved, "t1", "t2", write_ids=(ONE,)))


def test_properties_that_make_no_sense_are_refused(empty: Catalog) -> None:
    empty.create_namespace(("a",), {"k": "v"})
    for removals, updates in ((["k"], {"k": "w"}), (["exists"], {}), ([], {"exists": "no"}), ([], {"k": 3})):
        with pytest.raises(InvalidInput):
            empty.update_namespace_properties(("a",), removals, updates)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        empty.create_namespace(("b",), {"exists": "true"})
    with pytest.raises(NoSuchNamespace):
        empty.update_namespace_properties(("b",), [], {})
    with pytest.raises(NoSuchNamespace):
        empty.namespace_properties(("b",))
    assert empty.namespace_properties(("a",)) == {"k": "v"}


@pytest.mark.parametrize("namespace", [(), ("",), ("a", ""), ("a.b",), ("a/b",), ("..",)])
def test_a_namespace_that_does_not_read_back_as_itself_is_refused(empty: Catalog, namespace: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput):
        empty.create_namespace(namespace)
    assert empty.list_namespaces() == []


@pytest.mark.parametrize("name", ["a_b", "a%", "A_B", "o'brien", "?1"])
def test_hostile_names_are_only_names(empty: Catalog, name: str) -> None:
    others = sorted(other for other in HOSTILE if other != name)
    for other in others:
        empty.create_namespace((other,), {"whose": other})
        empty.create_namespace((other, "inner"))
        empty.swap([PointerSwap(TableName((other,), other), None, other)])
    for missing in ((name,), (name, "inner")):
        with pytest.raises(NoSuchNamespace):
            empty.list_tables(missing)
    empty.create_namespace((name,), {name: f"{name}{name}"})
    assert empty.list_namespaces((name,)) == []
    assert empty.list_tables((name,)) == []
    assert empty.namespace_properties((name,)) == {name: f"{name}{name}"}
    empty.swap([PointerSwap(TableName((name,), name), None, name)])
    assert empty.list_tables((name,)) == [TableName((name,), name)]
    empty.update_namespace_properties((name,), [name], {})
    empty.swap([PointerSwap(TableName((name,), name), name, None)])
    empty.drop_namespace((name,))
    assert empty.list_namespaces() == [(other,) for other in others]
    assert state(empty) == {f"{other}.{other}": other for other in others}


def test_a_property_without_a_value_which_jdbc_allows_reads_as_empty(tmp_path: Path, postgres_url: str) -> None:
    statements = (*JDBC_V0, "INSERT INTO iceberg_namespace_properties VALUES ('default', 'a', 'k', null)")
    for made in (on_sqlite(tmp_path / "catalog.db", statements), on_postgres(postgres_url, statements)):
        with closing(made) as catalog:
            assert catalog.namespace_properties(("a",)) == {"k": ""}


@pytest.mark.parametrize("make", [sqlite_catalog, postgres_catalog, pytest.param(zookeeper_catalog, marks=ZOOKEEPER)])
def test_a_catalog_with_connections_is_not_pickled(
    make: Callable[[pytest.FixtureRequest], Catalog], request: pytest.FixtureRequest
) -> None:
    with closing(make(request)) as catalog, pytest.raises(Unsupported, match="Open it there"):
        pickle.dumps(catalog)
