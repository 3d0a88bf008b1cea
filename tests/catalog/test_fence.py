"""G15: a swap and a fence that meet, in every order of their statements; the check is shown to fail."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from icefield.catalog.catalog import PointerSwap
from icefield.catalog.sql.catalog import _FENCE, SqlCatalog
from icefield.catalog.sql.database import Rows, Session, Value
from icefield.catalog.sql.postgres import open_postgres_catalog
from icefield.catalog.sql.sqlite import open_sqlite_catalog
from icefield.errors import LeaseLost
from icefield.model.names import parse_table_name

T = parse_table_name("a.t")
WRITE = "5" * 32
STATEMENTS = 3  # of a swap: it reads the row, updates it, and reads the fence
PATIENCE_S = 0.2  # for the other one to finish, or to wait for a lock


@pytest.fixture(params=["sqlite", "postgres"])
def open_catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], SqlCatalog]:
    """Open the same catalog again."""
    if request.param == "sqlite":
        return lambda: open_sqlite_catalog(tmp_path / "c.db")
    url = request.getfixturevalue("postgres_url")
    return lambda: open_postgres_catalog(url)


@pytest.fixture
def catalogs(open_catalog: Callable[[], SqlCatalog]) -> Iterator[tuple[SqlCatalog, SqlCatalog]]:
    with closing(open_catalog()) as writer, closing(open_catalog()) as collector:
        writer.create_namespace(("a",))
        writer.swap([PointerSwap(T, None, "0")])
        yield writer, collector


class Stopping:
    """A transaction that lets somebody else go before one of its statements, or before its commit."""

    def __init__(self, real: Session, at: int, interrupt: Callable[[], None]) -> None:
        self.real, self.left, self.interrupt = real, at, interrupt

    def execute(self, statement: str, values: Sequence[Value] = ()) -> Rows:
        self.step()
        return self.real.execute(statement, values)

    def step(self) -> None:
        self.left -= 1
        if self.left == -1:
            self.interrupt()


def meet(writer: SqlCatalog, collector: SqlCatalog, at: int) -> tuple[str, str]:
    """Fence a write before statement `at` of its swap; return the pointer after the fence, and in the end."""
    after: list[str] = []

    def fence() -> None:
        collector.fence(T, [WRITE])
        after.append(collector.pointer(T))

    other = threading.Thread(target=fence)

    def interrupt() -> None:
        if other.ident is None:  # not again if the transaction is run again
            other.start()
            other.join(PATIENCE_S)

    real = writer._database.write

    def write(work: Callable[[Session], Any]) -> Any:
        def stopping(session: Session) -> Any:
            stops = Stopping(session, at, interrupt)
            result = work(stops)
            stops.step()  # before the commit
            return result

        return real(stopping)

    writer._database.write = write  # type: ignore[method-assign]
    with suppress(LeaseLost):
        writer.swap([PointerSwap(T, "0", "1", write_ids=(WRITE,))])
    interrupt()
    other.join()
    return after[0], collector.pointer(T)


@pytest.mark.every_case
@pytest.mark.parametrize("at", range(STATEMENTS + 1))
def test_what_lands_is_seen_after_the_fence(catalogs: tuple[SqlCatalog, SqlCatalog], at: int) -> None:
    after, end = meet(*catalogs, at)
    assert after == end


def without_lock(catalog: SqlCatalog, session: Session, table: object, write_ids: Sequence[str]) -> None:
    for write_id in write_ids:
        session.execute(_FENCE, (*catalog._fence_key(write_id), "true"))


@pytest.mark.parametrize("bug", ["no lock", "no check"])
def test_the_check_fails_without_the_guard(postgres_url: str, monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    if bug == "no lock":
        monkeypatch.setattr(SqlCatalog, "_fence", without_lock)
    else:
        monkeypatch.setattr(SqlCatalog, "_is_fenced", lambda *_: False)
    broken = []
    for at in range(STATEMENTS + 1):
        with closing(open_postgres_catalog(postgres_url, name=f"c{at}")) as writer:
            writer.create_namespace(("a",))
            writer.swap([PointerSwap(T, None, "0")])
            with closing(open_postgres_catalog(postgres_url, name=f"c{at}")) as collector:
                after, end = meet(writer, collector, at)
                broken.append(after != end)
    assert any(broken)
