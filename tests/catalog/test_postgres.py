"""What only a server can get wrong: outcomes, lost connections, waiting, concurrent transactions, settings."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import psycopg
import pytest
from tests.postgres import PostgresServer

from icefield.catalog.catalog import PointerSwap
from icefield.catalog.sql.catalog import SCHEMA, SqlCatalog
from icefield.catalog.sql.database import Session, Value
from icefield.catalog.sql.postgres import PostgresDatabase, PostgresSettings, open_postgres_catalog
from icefield.catalog.sql.postgres_connection import PostgresConnection
from icefield.errors import CatalogError, CommitConflict, CommitStateUnknown, NoSuchNamespace
from icefield.model.names import TableName, parse_table_name

T, U = parse_table_name("a.t"), parse_table_name("a.u")


@pytest.fixture
def catalog(postgres_url: str) -> Iterator[SqlCatalog]:
    with closing(open_postgres_catalog(postgres_url)) as catalog:
        catalog.create_namespace(("a",))
        catalog.swap([PointerSwap(T, None, "0"), PointerSwap(U, None, "u")])
        yield catalog


class LosesReply(PostgresDatabase):
    """The commit lands, and the answer is lost."""

    def send_commit(self, connection: PostgresConnection) -> str:
        super().send_commit(connection)
        raise psycopg.OperationalError("server closed the connection unexpectedly")


class LosesCommit(PostgresDatabase):
    """The commit never reaches the server, and nobody can tell."""

    def send_commit(self, connection: PostgresConnection) -> str:
        connection.close()
        return super().send_commit(connection)


@pytest.mark.parametrize(("database", "landed"), [(LosesReply, True), (LosesCommit, False)])
def test_r16_a_lost_reply_is_an_unknown_outcome_whatever_happened(
    postgres_url: str, catalog: SqlCatalog, database: type[PostgresDatabase], landed: bool
) -> None:
    with closing(SqlCatalog(database(postgres_url, SCHEMA), "default")) as unlucky:
        changes: tuple[Callable[[], None], ...] = (
            lambda: unlucky.swap([PointerSwap(T, "0", "1")]),
            lambda: unlucky.rename_table(U, parse_table_name("a.v")),
            lambda: unlucky.create_namespace(("b",)),
        )
        for change in changes:
            with pytest.raises(CommitStateUnknown) as unknown:
                change()
            assert (unknown.value.retryable, unknown.value.cleanable) == (False, False)
        assert catalog.pointer(T) == ("1" if landed else "0")
    catalog.swap([PointerSwap(T, catalog.pointer(T), "2")])


@pytest.mark.parametrize(
    ("code", "certain"),
    [
        ("53100", True),  # disk_full
        ("25006", True),  # read_only_sql_transaction
        ("23514", True),  # check_violation
        ("54000", True),  # program_limit_exceeded
        ("P0001", True),  # raise_exception
        ("40003", False),  # statement_completion_unknown
        ("57P01", False),  # admin_shutdown
        ("08006", False),  # connection_failure, as poolers say it
        ("58030", False),  # io_error
    ],
)
def test_what_the_server_refuses_at_commit_certainly_did_not_happen(
    postgres_url: str, catalog: SqlCatalog, code: str, certain: bool
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = '{code}'; END $$"
        )
        connection.execute(
            "CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON iceberg_tables DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION refuse()"
        )
    with pytest.raises(CatalogError if certain else CommitStateUnknown, match="on purpose"):
        catalog.swap([PointerSwap(T, "0", "1")])
    assert catalog.pointer(T) == "0"


class Concurrent(PostgresDatabase):
    """Something happens between the first transaction's last statement and its commit."""

    event: Callable[[], None] | None = None
    commits = 0

    def send_commit(self, connection: PostgresConnection) -> str:
        self.commits += 1
        event, self.event = self.event, None
        if event:
            event()
        return super().send_commit(connection)


@pytest.fixture
def slow(postgres_url: str, catalog: SqlCatalog) -> Iterator[tuple[SqlCatalog, Concurrent]]:
    database = Concurrent(postgres_url, SCHEMA)
    with closing(SqlCatalog(database, "default")) as slow:
        yield slow, database


def test_of_two_swaps_that_each_need_the_others_pointer_to_stay_one_lands(
    catalog: SqlCatalog, slow: tuple[SqlCatalog, Concurrent]
) -> None:
    slow[1].event = lambda: catalog.swap([PointerSwap(T, "0", "1"), PointerSwap(U, "u", "u")])
    with pytest.raises(CommitConflict):
        slow[0].swap([PointerSwap(T, "0", "0"), PointerSwap(U, "u", "v")])
    assert catalog.pointers([T, U]) == {T: "1", U: "u"}


def test_no_table_is_made_in_a_namespace_that_is_dropped_meanwhile(
    catalog: SqlCatalog, slow: tuple[SqlCatalog, Concurrent]
) -> None:
    catalog.create_namespace(("b",))
    slow[1].event = lambda: catalog.drop_namespace(("b",))
    with pytest.raises(NoSuchNamespace):
        slow[0].swap([PointerSwap(parse_table_name("b.t"), None, "x")])
    assert catalog.list_namespaces() == [("a",)]


def test_a_swap_that_meets_one_of_another_table_lands_at_once(
    postgres_server: PostgresServer, postgres_url: str, catalog: SqlCatalog, slow: tuple[SqlCatalog, Concurrent]
) -> None:
    # With statistics the planner would rather read the whole of a small table.
    postgres_server.query("ANALYZE iceberg_tables", postgres_url)
    slow[1].event = lambda: catalog.swap([PointerSwap(T, "0", "1")])
    slow[0].swap([PointerSwap(U, "u", "v")])
    assert catalog.pointers([T, U]) == {T: "1", U: "v"}
    assert slow[1].commits == 1


def wait_until_blocked(url: str) -> None:
    """Wait until a transaction of somebody waits for a lock."""
    with psycopg.connect(url, autocommit=True) as onlooker:
        for _ in range(3000):
            onlooker.execute("SELECT pg_sleep(0.01)")
            if onlooker.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone() != (0,):
                return
    pytest.fail("nobody waits")


@pytest.mark.parametrize("order", [(T, U), (U, T)])
def test_rows_are_locked_in_the_order_of_their_names_so_that_no_two_swaps_wait_in_a_circle(
    postgres_url: str, catalog: SqlCatalog, order: tuple[TableName, ...]
) -> None:
    now = catalog.pointers(order)
    with psycopg.connect(postgres_url) as other, ThreadPoolExecutor(1) as threads:
        other.execute("SELECT 1 FROM iceberg_tables WHERE table_name = 't' FOR UPDATE")
        swapped = threads.submit(catalog.swap, [PointerSwap(table, now[table], "new") for table in order])
        wait_until_blocked(postgres_url)
        other.execute("SELECT 1 FROM iceberg_tables WHERE table_name = 'u' FOR UPDATE NOWAIT")
        other.rollback()
        swapped.result()
    assert catalog.pointers([T, U]) == {T: "new", U: "new"}


def test_the_victim_of_a_deadlock_with_another_client_runs_again(postgres_url: str, catalog: SqlCatalog) -> None:
    move = b"UPDATE iceberg_tables SET metadata_location = 'theirs' WHERE table_name = %s"
    with (
        psycopg.connect(postgres_url) as other,
        closing(open_postgres_catalog(f"{postgres_url}%20-cdeadlock_timeout%3D4s")) as own,
        ThreadPoolExecutor(1) as threads,
    ):
        other.execute("SET deadlock_timeout = '30s'")
        other.execute(move, ("u",))
        swapped = threads.submit(own.swap, [PointerSwap(T, "0", "1"), PointerSwap(U, "u", "v")])
        wait_until_blocked(postgres_url)
        other.execute(move, ("t",))
        other.commit()
        assert isinstance(swapped.exception(), CommitConflict)
    assert catalog.pointers([T, U]) == {T: "theirs", U: "theirs"}


def test_a_row_that_another_client_never_lets_go_is_an_error_after_the_time_out(
    postgres_url: str, catalog: SqlCatalog
) -> None:
    impatient = PostgresSettings(busy_timeout_s=0.2)
    with (
        psycopg.connect(postgres_url) as other,
        closing(open_postgres_catalog(postgres_url, settings=impatient)) as own,
    ):
        other.execute("UPDATE iceberg_tables SET metadata_location = 'x'")
        with pytest.raises(CatalogError, match=r"was locked by other connections for 0\.2 s"):
            own.swap([PointerSwap(T, "0", "1")])
        other.rollback()
        own.swap([PointerSwap(T, "0", "1")])
    assert catalog.pointer(T) == "1"


KILL_OTHERS = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
    "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
)


def test_idle_connections_that_were_killed_are_replaced(postgres_server: PostgresServer, catalog: SqlCatalog) -> None:
    def use_two_connections() -> str:
        return catalog._database.read(lambda _: catalog.pointer(T))

    use_two_connections()
    postgres_server.query(KILL_OTHERS)
    assert use_two_connections() == "0"
    postgres_server.query(KILL_OTHERS)
    catalog.swap([PointerSwap(T, "0", "1")])
    assert catalog.pointer(T) == "1"


@pytest.mark.parametrize("kills", [1, 2])
def test_a_connection_lost_before_the_commit_changes_nothing_and_is_tried_again_once(
    postgres_server: PostgresServer, catalog: SqlCatalog, kills: int
) -> None:
    left = [*range(kills)]

    def work(session: Session) -> None:
        session.execute("UPDATE iceberg_tables SET metadata_location = metadata_location || '1'")
        if left:
            left.pop()
            postgres_server.query(KILL_OTHERS)
            session.execute("SELECT 1")

    if kills == 1:
        catalog._database.write(work)
    else:
        with pytest.raises(CatalogError, match=r"connection to the catalog .* was lost.* Nothing was changed"):
            catalog._database.write(work)
    assert catalog.pointer(T) == ("01" if kills == 1 else "0")


def test_a_catalog_outlives_a_restart_and_a_crash_of_the_server(
    postgres_server: PostgresServer, catalog: SqlCatalog
) -> None:
    for slot, end in enumerate((postgres_server.stop, postgres_server.crash)):
        end()
        try:
            for call in (lambda: catalog.pointer(T), lambda: catalog.swap([PointerSwap(T, "0", "x")])):
                with pytest.raises(CatalogError, match=r"cannot connect to the catalog .*(refused|closed)"):
                    call()
        finally:
            postgres_server.start()
        assert catalog.pointer(T) == str(slot)
        catalog.swap([PointerSwap(T, str(slot), str(slot + 1))])


def test_a_connection_on_which_a_transaction_was_refused_is_used_again(
    catalog: SqlCatalog, slow: tuple[SqlCatalog, Concurrent]
) -> None:
    def session() -> list[tuple[Value, ...]]:
        return slow[1].read(lambda session: session.execute("SELECT pg_backend_pid()").values)

    before = session()
    slow[1].event = lambda: catalog.swap([PointerSwap(T, "0", "1"), PointerSwap(U, "u", "u")])
    with pytest.raises(CommitConflict):
        slow[0].swap([PointerSwap(T, "0", "0"), PointerSwap(U, "u", "v")])
    assert session() == before


def check_unusable(url: str, message: str, **settings: bool) -> None:
    with closing(open_postgres_catalog(url, settings=PostgresSettings(**settings))) as catalog:
        with pytest.raises(CatalogError, match=message) as found:
            catalog.pointer(T)
        assert "wrong-secret" not in str(found.value)
        assert "\n" not in str(found.value)


def test_each_thing_wrong_with_the_place_is_one_clear_error(postgres_server: PostgresServer, postgres_url: str) -> None:
    host = f"127.0.0.1:{postgres_server.port}"
    check_unusable(f"postgresql://icefield:wrong-secret@{host}/postgres", "the password is wrong. Check the user")
    check_unusable(f"postgresql://nobody:wrong-secret@{host}/postgres", "the password is wrong. Check the user")
    check_unusable(postgres_server.url(database="absent"), "there is no such database. Create it first")
    check_unusable("postgresql://u:wrong-secret@127.0.0.1:1/x", "Connection refused.*Check the host and the port")
    check_unusable("postgresql://u:wrong-secret@no.such.invalid/x", "Check the host and the port")
    check_unusable(postgres_url, "is not a catalog: missing tables: iceberg_tables", create=False)


def test_a_table_that_cannot_be_made_is_an_error_and_not_tried_for_ever(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    postgres_server.query("CREATE TYPE iceberg_tables AS ENUM ('taken')", postgres_url)
    check_unusable(postgres_url, 'type "iceberg_tables" already exists')


def test_a_missing_permission_is_a_clear_error(postgres_server: PostgresServer) -> None:
    role = "CREATE ROLE reader LOGIN PASSWORD 'p'"
    with suppress(psycopg.errors.DuplicateObject):
        postgres_server.query(role)
    url = f"postgresql://reader:p@127.0.0.1:{postgres_server.port}/postgres"
    check_unusable(url, "lacks the required permission.*Grant it on the tables")


@pytest.mark.parametrize(
    ("value", "message"),
    [("x" * 1001, "a value is too long"), ("a\x00b", "failed"), ("\ud800", "failed")],
)
def test_a_value_that_the_columns_cannot_hold_is_refused(catalog: SqlCatalog, value: str, message: str) -> None:
    with pytest.raises(CatalogError, match=message):
        catalog.create_namespace(("b",), {"k": value})
    assert catalog.list_namespaces() == [("a",)]


def test_a_commit_that_the_server_turns_into_a_rollback_is_no_success(catalog: SqlCatalog) -> None:
    def work(session: Session) -> None:
        session.execute("UPDATE iceberg_tables SET metadata_location = 'x'")
        with suppress(psycopg.Error):
            session.execute("SELECT nonsense")

    with pytest.raises(CatalogError, match="rolled the commit back"):
        catalog._database.write(work)
    assert catalog.pointer(T) == "0"


def test_a_column_that_another_client_adds_after_many_reads_is_seen(
    postgres_server: PostgresServer, postgres_url: str, catalog: SqlCatalog
) -> None:
    postgres_server.query("ALTER TABLE iceberg_tables DROP COLUMN iceberg_type", postgres_url)
    for _ in range(10):
        assert catalog.pointer(T) == "0"
    postgres_server.query("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)", postgres_url)
    assert catalog.pointer(T) == "0"


def test_a_commit_waits_for_the_disk_unless_told_otherwise(postgres_url: str) -> None:
    def synchronous(**settings: bool) -> list[tuple[Value, ...]]:
        with closing(open_postgres_catalog(postgres_url, settings=PostgresSettings(**settings))) as catalog:
            return catalog._database.write(lambda session: session.execute("SHOW synchronous_commit").values)

    assert synchronous() == [("on",)]
    assert synchronous(durable=False) == [("off",)]


def test_catalogs_of_other_names_in_the_same_database_are_not_touched(postgres_url: str, catalog: SqlCatalog) -> None:
    with closing(open_postgres_catalog(postgres_url, name="other")) as other:
        assert other.list_namespaces() == []
        other.create_namespace(("a",))
        other.swap([PointerSwap(T, None, "other")])
        other.swap([PointerSwap(T, "other", None)])
    assert catalog.pointer(T) == "0"


def test_a_closed_catalog_says_so(catalog: SqlCatalog) -> None:
    catalog.close()
    with pytest.raises(CatalogError, match="was closed"):
        catalog.pointer(T)
