"""CREATE, ALTER and DROP NAMESPACE, without a JVM."""

import pytest

from icefield.errors import AlreadyExists, InvalidInput, NamespaceNotEmpty, NoSuchNamespace, Unsupported
from icefield.lake import Lake
from tests.sql.running import refused, run


def test_namespaces_have_a_comment_a_location_and_properties(lake: Lake) -> None:
    run(lake, "CREATE DATABASE IF NOT EXISTS a.b COMMENT 'x' LOCATION '/l' WITH DBPROPERTIES ('k' = 'v', n = 1)")
    run(lake, "CREATE SCHEMA IF NOT EXISTS a.b COMMENT 'other'")
    assert lake.namespace_properties("a.b") == {"comment": "x", "location": "/l", "k": "v", "n": "1"}
    run(lake, "ALTER NAMESPACE a.b SET PROPERTIES ('k' = 'w')")
    run(lake, "ALTER SCHEMA a.b UNSET DBPROPERTIES ('n', 'nothing')")
    run(lake, f"ALTER DATABASE {lake.catalog.name}.a.b SET LOCATION '/m'")
    assert lake.namespace_properties("a.b") == {"comment": "x", "location": "/m", "k": "w"}
    refused(lake, "CREATE NAMESPACE a.b", AlreadyExists, at="a.b")
    refused(lake, "ALTER NAMESPACE a.x SET PROPERTIES ('k' = 'w')", NoSuchNamespace, at="a.x")
    refused(lake, "ALTER NAMESPACE a.b SET OWNER x", InvalidInput, at="OWNER")
    refused(lake, "CREATE NAMESPACE c DEFAULT COLLATION UNICODE", Unsupported, at="DEFAULT")


def test_the_name_of_the_catalog_is_not_part_of_a_namespace(lake: Lake) -> None:
    run(lake, f"CREATE NAMESPACE {lake.catalog.name}.shop")
    assert lake.namespaces() == ["shop"]


def test_an_empty_namespace_is_dropped_and_a_full_one_only_with_cascade(lake: Lake) -> None:
    run(lake, "CREATE NAMESPACE shop")
    run(lake, "CREATE NAMESPACE shop.inner")
    run(lake, "CREATE TABLE shop.t (id INT)")
    run(lake, "CREATE TABLE shop.inner.u (id INT)")
    lake.create_view("shop.v", "SELECT 1", schema="id long")
    error = refused(lake, "DROP NAMESPACE shop", NamespaceNotEmpty, at="shop")
    assert "CASCADE" in str(error.hint)
    refused(lake, "DROP NAMESPACE shop RESTRICT", NamespaceNotEmpty, at="shop")
    run(lake, "CREATE TABLE IF NOT EXISTS shop.t2 LIKE shop.t")
    run(lake, "DROP NAMESPACE shop CASCADE")
    assert (lake.namespaces(), lake.tables(), lake.views()) == ([], [], [])
    refused(lake, "DROP NAMESPACE shop", NoSuchNamespace, at="shop")
    run(lake, "DROP NAMESPACE IF EXISTS shop")
    run(lake, "CREATE NAMESPACE shop")
    run(lake, "UNDROP TABLE shop.t")
    assert lake.tables() == ["shop.t"]


def test_a_namespace_that_only_its_tables_made_is_dropped_with_them(lake: Lake) -> None:
    lake.create_table("implied.deep.t", "id long")
    run(lake, "DROP NAMESPACE implied CASCADE")
    assert lake.tables() == []
    assert "implied" not in lake.namespaces()


def test_in_a_transaction_namespaces_do_not_change(lake: Lake) -> None:
    run(lake, "CREATE NAMESPACE shop")
    run(lake, "BEGIN")
    for text in ("CREATE NAMESPACE x", "DROP NAMESPACE shop", "ALTER NAMESPACE shop SET PROPERTIES ('a' = 'b')"):
        with pytest.raises(Unsupported, match="a transaction cannot"):
            run(lake, text)
    run(lake, "ROLLBACK")
    assert lake.namespaces() == ["shop"]
