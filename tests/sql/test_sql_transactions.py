"""BEGIN, COMMIT and ROLLBACK, without a JVM, except for the results of scripts."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefield.ambient import SystemAmbient
from icefield.backend import Backend
from icefield.catalog.object_store.catalog import ObjectStoreCatalog
from icefield.errors import ConcurrentChange, InvalidInput, Unsupported
from icefield.lake import Lake
from icefield.storage.local import LocalStore
from icefield.storage.location import location_of_path
from icefield.storage.object_store.directory import DirectoryStore
from icefield.table.table import Table
from tests.sql.changing import change, refuse, rows
from tests.sql.running import run


@pytest.fixture
def shop(lake: Lake) -> Lake:
    for name in ("a", "b"):
        lake.create_table(f"shop.{name}", "id long").append(pa.table({"id": [1]}))
    return lake


def ids(lake: Lake, name: str) -> list[int]:
    return [row[0] for row in rows(lake.table(name))]


@pytest.mark.parametrize("begin", ["BEGIN", "BEGIN TRANSACTION", "START TRANSACTION;", "BEGIN WORK READING (shop.a)"])
@pytest.mark.parametrize("commit", ["COMMIT", "COMMIT WORK", "COMMIT TRANSACTION"])
def test_all_tables_change_at_commit(shop: Lake, begin: str, commit: str) -> None:
    run(shop, begin)
    change(shop, "INSERT INTO shop.a VALUES (2)")
    change(shop, "UPDATE shop.b SET id = id + 10")
    change(shop, "MERGE INTO shop.b USING shop.a ON a.id = b.id WHEN NOT MATCHED THEN INSERT *")
    assert (ids(shop, "shop.a"), ids(shop, "shop.b")) == ([1], [1])
    run(shop, commit)
    assert (ids(shop, "shop.a"), ids(shop, "shop.b")) == ([1, 2], [1, 2, 11])


def test_a_rollback_leaves_nothing(shop: Lake) -> None:
    run(shop, "BEGIN")
    change(shop, "DELETE FROM shop.a")
    run(shop, "ROLLBACK")
    assert ids(shop, "shop.a") == [1]
    refuse(shop, "COMMIT", InvalidInput, at="COMMIT")
    refuse(shop, "ROLLBACK", InvalidInput, at="ROLLBACK")


def test_a_statement_that_fails_leaves_the_transaction_open(shop: Lake) -> None:
    run(shop, "BEGIN")
    change(shop, "DELETE FROM shop.a")
    refuse(shop, "DELETE FROM shop.b WHERE nothing = 1", InvalidInput, at="nothing")
    refuse(shop, "BEGIN", InvalidInput, at="BEGIN")
    run(shop, "COMMIT")
    assert (ids(shop, "shop.a"), ids(shop, "shop.b")) == ([], [1])


def test_a_commit_that_fails_ends_the_transaction(shop: Lake) -> None:
    run(shop, "BEGIN READING (shop.a, shop.b)")
    change(shop, "UPDATE shop.a SET id = 5")
    shop.table("shop.a").delete("id = 1")
    refuse(shop, "COMMIT", ConcurrentChange, at="COMMIT")
    refuse(shop, "COMMIT", InvalidInput, at="COMMIT")
    assert ids(shop, "shop.a") == []


def test_tables_are_read_as_of_begin_reading(shop: Lake) -> None:
    run(shop, "BEGIN READING (shop.a, shop.b)")
    shop.table("shop.b").append(pa.table({"id": [7]}))
    done = change(shop, "MERGE INTO shop.a USING shop.b ON a.id = b.id WHEN MATCHED THEN UPDATE SET id = 2")
    assert done["rows_updated"] == 1
    refuse(shop, "COMMIT", ConcurrentChange, at="COMMIT")
    assert ids(shop, "shop.a") == [1]


def test_a_statement_by_itself_does_not_wait_for_its_sources(shop: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    # Another writer may append to the source at any time.
    source = shop.table("shop.b")
    merge, text = Table.merge, "MERGE INTO shop.a USING shop.b ON a.id = b.id WHEN MATCHED THEN UPDATE SET id = 2"

    def late(*args: Any, **more: Any) -> Any:
        source.append(pa.table({"id": [7]}))
        return merge(*args, **more)

    monkeypatch.setattr(Table, "merge", late)
    assert change(shop, text)["rows_updated"] == 1
    assert (ids(shop, "shop.a"), ids(shop, "shop.b")) == ([2], [1, 7])


def test_begin_is_not_a_script(shop: Lake) -> None:
    error = refuse(shop, "BEGIN DECLARE x INT", Unsupported, at="BEGIN")
    assert "sql_script" in str(error.hint)
    refuse(shop, "BEGIN READING shop.a", InvalidInput, at="shop")


def test_a_script_that_fails_rolls_back_what_it_began(shop: Lake) -> None:
    script = "BEGIN; DELETE FROM shop.a; DELETE FROM shop.b WHERE nothing = 1; COMMIT;"
    with pytest.raises(InvalidInput) as caught:
        shop.sql_script(script, engine="local")
    assert caught.value.position == (1, script.index("nothing"))
    assert ids(shop, "shop.a") == [1]
    refuse(shop, "ROLLBACK", InvalidInput, at="ROLLBACK")


def test_a_script_that_fails_keeps_a_transaction_that_was_open_before(shop: Lake) -> None:
    run(shop, "BEGIN")
    with pytest.raises(InvalidInput):
        shop.sql_script("DELETE FROM shop.a; DELETE FROM shop.b WHERE nothing = 1", engine="local")
    run(shop, "COMMIT")
    assert ids(shop, "shop.a") == []


def test_a_script_commits_what_it_says(shop: Lake) -> None:
    script = "BEGIN; INSERT INTO shop.a VALUES (2) -- ;\n; ROLLBACK; /* ; */ INSERT INTO shop.b VALUES (3)"
    done = shop.sql_script(script, engine="local")
    assert len(done) == 4
    assert (ids(shop, "shop.a"), ids(shop, "shop.b")) == ([1], [1, 3])


def test_a_catalog_that_moves_one_pointer_refuses_begin_and_not_statements(tmp_path: Path) -> None:
    root = location_of_path(str(tmp_path))
    catalog = ObjectStoreCatalog(DirectoryStore(durable=False), f"{root}/catalog")
    with Lake(Backend(catalog, LocalStore(roots=[root], durable=False), SystemAmbient()), root) as lake:
        lake.create_table("shop.a", "id long").append(pa.table({"id": [1]}))
        refuse(lake, "BEGIN", Unsupported, at="BEGIN")
        change(lake, "MERGE INTO shop.a t USING shop.a s ON t.id = s.id WHEN MATCHED THEN UPDATE SET id = s.id + 1")
        assert ids(lake, "shop.a") == [2]


@pytest.mark.parametrize("begin", ["BEGIN", "BEGIN READING (shop.a, shop.b)"])
def test_a_table_is_read_again_as_it_was(shop: Lake, begin: str) -> None:
    run(shop, begin)
    assert run(shop, "SELECT * FROM shop.a") == [(1,)]
    change_elsewhere = shop.table("shop.a")
    change_elsewhere.append(pa.table({"id": [2]}))
    assert run(shop, "SELECT * FROM shop.a") == [(1,)]
    if "READING" in begin:
        assert run(shop, "SELECT * FROM shop.a JOIN shop.b ON a.id = b.id") == [(1,)]
    run(shop, "COMMIT")
    assert sorted(run(shop, "SELECT * FROM shop.a")) == [(1,), (2,)]


def test_a_transaction_that_read_what_has_changed_does_not_commit(shop: Lake) -> None:
    run(shop, "BEGIN READING (shop.a, shop.b)")
    run(shop, "SELECT * FROM shop.a")
    shop.table("shop.a").append(pa.table({"id": [2]}))
    change(shop, "UPDATE shop.b SET id = 5")
    refuse(shop, "COMMIT", ConcurrentChange, at="COMMIT")
    assert ids(shop, "shop.b") == [1]


@pytest.mark.spark
def test_the_queries_of_a_script_have_the_rows_of_its_transaction(shop: Lake, spark: object) -> None:
    """A script returns its results when the rollback has removed the rows of the transaction."""
    shop.use(spark)
    text = "BEGIN; INSERT INTO shop.a VALUES (2); SELECT id FROM shop.a; ROLLBACK; SELECT id FROM shop.a"
    *_, inside, _, after = shop.sql_script(text)
    assert sorted(row.id for row in inside.collect()) == [1, 2]
    assert [row.id for row in after.collect()] == [1]
    with pytest.raises(InvalidInput, match="DIVIDE_BY_ZERO") as caught:
        shop.sql_script("BEGIN;\nSELECT 1 / (id - 1) FROM shop.a;\nROLLBACK")
    assert caught.value.position == (2, 0)


@pytest.mark.parametrize(
    "text",
    ["BEGIN", "START TRANSACTION READING (shop.a)", "COMMIT", "ROLLBACK", "USE shop", "CLEAR CACHE", "SET x = 1"],
)
@pytest.mark.every_case
def test_a_statement_that_changes_the_session_has_no_dry_run(shop: Lake, text: str) -> None:
    if text in ("COMMIT", "ROLLBACK"):
        run(shop, "BEGIN")
        change(shop, "INSERT INTO shop.a VALUES (2)")
    with pytest.raises(Unsupported, match="no dry run of a statement that changes the session") as caught:
        run(shop, text, dry_run=True)
    assert caught.value.position == (1, 0)
    assert shop.tables() == ["shop.a", "shop.b"]
    run(shop, "ROLLBACK" if text in ("COMMIT", "ROLLBACK") else "BEGIN")
    assert run(shop, "SHOW CURRENT NAMESPACE")[0][-1] in ("", None)
