"""Behind a REST catalog, the collector cleans only the table that the server has, in the version that it has now."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.rest_server import Effect, Reply, RestServer, running_server
from tests.upkeep.fixtures import AT_ONCE, FUTURE, declare_dead, ids, rows

import icefield
from icefield.catalog.rest.fences import FENCE, KEPT_MS
from icefield.catalog.rest.tables import LoadedTable, TableChange
from icefield.commit.operations import rest as operations
from icefield.dml.head import TableHead
from icefield.errors import CatalogError, IcefieldError, LeaseLost, MissingFile, NoSuchTable
from icefield.lake import Lake
from icefield.model.names import parse_table_name
from icefield.model.snapshot import RefKind
from icefield.storage.local import LocalStore
from icefield.storage.location import location_of_path
from icefield.table.table import Table
from icefield.upkeep import orphans, sweep

NAME = parse_table_name("t.t")
COLLECT: dict[str, Callable[[Table], object]] = {
    "expire": lambda table: table.expire_snapshots(FUTURE),
    "orphans": lambda table: table.remove_orphans(unsafe=True),
    "sweep": lambda table: table.sweep(),
}


@dataclass
class Place:
    """A server, and clients of it."""

    server: RestServer
    lake: Lake
    other: Lake
    path: Path

    def table(self) -> Table:
        """A table with an expired snapshot whose files are marked, and a second expired one."""
        properties = {**AT_ONCE, "icefield.gc.grace-ms": "60000"}
        table = self.lake.create_table("t.t", "id long, n long", properties=properties)
        table.append(rows(1))
        table.overwrite(rows(2))
        assert table.expire_snapshots(FUTURE).files_marked
        table.overwrite(rows(3))
        self.other.table("t.t").set_properties({"icefield.gc.grace-ms": "0"})
        return table

    def files(self) -> set[str]:
        """Every file but the collector's own."""
        return {str(path) for path in self.path.rglob("*") if path.is_file() and "/gc/" not in str(path)}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    root = location_of_path(str(tmp_path / "lake"))
    with ExitStack() as stack:
        server = stack.enter_context(running_server(LocalStore(roots=[root], durable=False), root))
        lake, other = (
            stack.enter_context(icefield.connect(server.url, warehouse=root, durable=False)) for _ in range(2)
        )
        yield Place(server, lake, other, tmp_path)


@pytest.mark.parametrize("verb", COLLECT)
def test_marked_files_are_deleted(place: Place, verb: str) -> None:
    table = place.table()
    before = place.files()
    COLLECT[verb](table)
    assert before - place.files() != set()
    assert ids(place.other.table("t.t")) == [3]


def table_that_was_created_again(place: Place, collect: Callable[[Table], object]) -> None:
    """Somebody drops the table and creates another one under its name."""
    table = place.table()
    place.other.drop_table("t.t")
    place.other.create_table("t.t", "id long, n long", properties=AT_ONCE).append(rows(9))
    before = place.files()
    with pytest.raises(NoSuchTable, match="recreated"):
        collect(table)
    assert before <= place.files()


def answer_from_a_cache(place: Place, collect: Callable[[Table], object]) -> None:
    """A proxy says that nothing has changed, though the table has, by two commits."""
    table = place.table()
    table.refresh()
    for n in (4, 5):
        place.other.table("t.t").append(rows(n))

    def unchanged(effect: Effect) -> Reply:
        reply = effect()
        return reply if last_tag(place.server) is None else Reply(304)

    place.server.fail("GET", "/tables/t", unchanged, times=100)
    collect(table)
    place.server.faults.clear()
    assert ids(place.other.table("t.t")) == [3, 4, 5]


def answer_with_an_old_version(place: Place, collect: Callable[[Table], object]) -> None:
    """A replica answers with a version before the one that the handle has seen."""
    table = place.table()
    old = place.server.service.load_table(NAME).encode()
    table.append(rows(4))
    before = place.files()

    def stale(effect: Effect) -> Reply:
        reply = effect()
        return reply if last_tag(place.server) is not None else Reply(body=old)

    place.server.fail("GET", "/tables/t", stale, times=100)
    with pytest.raises(CatalogError, match="is older than"):
        collect(table)
    place.server.faults.clear()
    assert before <= place.files()


def metadata_file_that_is_not_there(place: Place, collect: Callable[[Table], object]) -> None:
    """The server has its files in another store than the one that is cleaned."""
    table = place.table()
    table.refresh()
    before = place.files()
    current = Path(place.server.service.catalog.pointer(NAME).removeprefix("file://"))
    kept = place.server.service.load_table(NAME).encode()
    place.server.fail("GET", "/tables/t", lambda _: Reply(body=kept), times=100)
    current.rename(current.with_name("elsewhere"))
    with pytest.raises(CatalogError, match="cannot be read"):
        collect(table)
    current.with_name("elsewhere").rename(current)
    assert before <= place.files()


def metadata_file_of_another_table(place: Place, collect: Callable[[Table], object]) -> None:
    """The store has another table where the server says that this one is."""
    table = place.table()
    table.refresh()
    before = place.files()
    pointer = place.server.service.catalog.pointer(NAME)
    kept = place.server.service.load_table(NAME).encode()
    current = Path(pointer.removeprefix("file://"))
    document = json.loads(current.read_bytes())
    document["table-uuid"] = "6a4f1ec1-3f0b-4a1f-9d53-0c6f2b8f7f11"
    real = current.read_bytes()
    current.write_text(json.dumps(document))
    place.server.fail("GET", "/tables/t", lambda _: Reply(body=kept), times=100)
    with pytest.raises(CatalogError, match="of another table"):
        collect(table)
    current.write_bytes(real)
    assert before <= place.files()


def last_tag(server: RestServer) -> str | None:
    return server.asked("GET", "/tables/t")[-1][1].get("if-none-match")


SCENARIOS = (
    table_that_was_created_again,
    answer_from_a_cache,
    answer_with_an_old_version,
    metadata_file_that_is_not_there,
    metadata_file_of_another_table,
)


@pytest.mark.every_case
@pytest.mark.parametrize("verb", COLLECT)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_the_guard_holds(place: Place, verb: str, scenario: Callable[[Place, Callable[[Table], object]], None]) -> None:
    scenario(place, COLLECT[verb])


@pytest.mark.every_case
@pytest.mark.parametrize("verb", ["orphans", "sweep"])  # an expiry would commit again and again to such a server
@pytest.mark.parametrize("scenario", SCENARIOS[1:], ids=lambda scenario: scenario.__name__)
def test_the_scenario_breaks_without_the_guard(
    place: Place,
    verb: str,
    scenario: Callable[[Place, Callable[[Table], object]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def load(head: TableHead) -> object:
        return head.load()

    for module in (orphans, sweep):
        monkeypatch.setattr(module, "load_newest", load)
    with pytest.raises((AssertionError, IcefieldError, pytest.fail.Exception)):
        scenario(place, COLLECT[verb])


def append_after_the_sweep(place: Place, monkeypatch: pytest.MonkeyPatch) -> Table:
    """Append, and have the lease declared dead and the files removed before the request is sent."""
    table = place.lake.create_table("t.t", "id long, n long", properties=AT_ONCE)
    table.append(rows(1))
    tables = place.lake.catalog.tables  # type: ignore[attr-defined]
    real: Callable[[TableChange, str | None], LoadedTable] = tables.commit

    def commit(change: TableChange, key: str | None) -> LoadedTable:
        monkeypatch.delattr(tables, "commit")
        declare_dead(table)
        collector = place.other.table("t.t")
        assert collector.remove_orphans(unsafe=True).files_marked > 1
        return real(change, key)

    monkeypatch.setattr(tables, "commit", commit)
    table.append(rows(2))
    return table


def test_g15_a_request_after_the_sweep_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LeaseLost):
        append_after_the_sweep(place, monkeypatch)
    table = place.other.table("t.t")
    assert ids(table) == [1]
    assert not table.fsck().findings
    ((name, tag),) = ((name, ref) for name, ref in table.refs().items() if name != "main")
    assert name.startswith(FENCE)
    assert (tag.kind, tag.snapshot_id) == (RefKind.TAG, table.metadata.current_snapshot_id)
    assert tag.max_ref_age_ms is not None
    assert KEPT_MS <= tag.max_ref_age_ms < KEPT_MS + 3_600_000
    table.append(rows(3))
    assert ids(table) == [1, 3]


def test_g15_without_the_requirement_the_table_loses_files(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operations, "not_fenced", lambda _: [])
    table = append_after_the_sweep(place, monkeypatch)
    with pytest.raises(MissingFile):
        ids(table)


def test_a_table_without_a_snapshot_cannot_be_fenced(place: Place) -> None:
    table = place.lake.create_table("t.t", "id long, n long", properties=AT_ONCE)
    assert not place.lake.catalog.fence(NAME, ["0" * 32])
    table.append(rows(1))
    for _ in range(2):
        assert place.lake.catalog.fence(NAME, ["0" * 32, "1" * 32])
    assert set(place.other.table("t.t").refs()) == {"main", f"{FENCE}{'0' * 32}", f"{FENCE}{'1' * 32}"}
