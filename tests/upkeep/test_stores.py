"""The same upkeep with every catalog, on a local disk and in an object store."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest
from tests.rest_server import running_server
from tests.s3_server import s3_server
from tests.sim.planted_collectors import proposed_versions_that_are_not_kept
from tests.upkeep.fixtures import AT_ONCE, FUTURE, declare_dead, ids, rows
from tests.zookeeper import ZOOKEEPER

import icefield
from icefield.catalog.catalog import PointerSwap
from icefield.errors import InvalidInput, LeaseLost, NotFound
from icefield.lake import Lake
from icefield.storage.local import LocalStore
from icefield.storage.location import local_path, location_of_path

LAKES = (
    "sqlite",
    "files",
    "memory",
    "rest",
    pytest.param("postgres", marks=pytest.mark.slow),
    pytest.param("zookeeper", marks=ZOOKEEPER),
    pytest.param("s3", marks=pytest.mark.slow),
)
pytestmark = pytest.mark.every_case


@pytest.fixture(params=LAKES)
def place(request: pytest.FixtureRequest) -> str:
    """The kind of the lake."""
    return str(request.param)


@pytest.fixture
def lake(place: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    with ExitStack() as stack:
        yield stack.enter_context(open_lake(place, request, tmp_path, stack))


def open_lake(place: str, request: pytest.FixtureRequest, path: Path, stack: ExitStack) -> Lake:
    if place == "rest":
        root = location_of_path(str(path / "lake"))
        server = stack.enter_context(running_server(LocalStore(roots=[root], durable=False), root))
        return icefield.connect(server.url, warehouse=root, durable=False)
    if place == "s3":
        return icefield.connect(s3_server().new_root(), properties=s3_server().properties)
    if place in ("postgres", "zookeeper"):
        url: str = request.getfixturevalue(f"{place}_url")
        return icefield.connect(url, warehouse=path / "lake", durable=False)
    targets = {"sqlite": str(path / "lake"), "files": f"files:{path}/lake", "memory": "memory:"}
    return icefield.connect(targets[place], durable=False)


def test_a_table_is_kept_clean_while_it_is_read(lake: Lake) -> None:
    table = lake.create_table("t.t", "id long, n long", properties=AT_ONCE)
    for n in range(4):
        table.append(rows(n))
    reader = table.scan().to_arrow()
    first = reader.read_next_batch()
    table.compact()
    table.overwrite(rows(100))
    result = table.expire_snapshots(FUTURE)
    assert result.unfinished is None
    orphan = f"{table.location}/data/00000-0-{table.metadata.table_uuid}-00001.parquet"
    lake.store.put_new(orphan, b"x")
    assert table.remove_orphans(unsafe=True).locations == (orphan,)
    assert [lease.kind for lease in table.leases()] == ["reader"]
    read = pa.Table.from_batches([first, *reader])
    assert sorted(read["id"].to_pylist()) == [0, 1, 2, 3]
    assert table.leases() == []
    assert table.sweep().files_deleted > 0
    assert ids(table) == [100]
    assert table.remove_orphans(unsafe=True, dry_run=True).files_marked == 0
    table.append(rows(101))
    assert ids(table) == [100, 101]


def test_a_dropped_table_is_restored_or_purged(lake: Lake, place: str) -> None:
    properties = {**AT_ONCE, "icefield.gc.undrop-ms": "0"}
    table = lake.create_table("t.t", "id long, n long", properties=properties)
    table.append(rows(1))
    location, metadata = table.location, table.metadata_location
    if place == "rest":
        with pytest.raises(InvalidInput, match="a server manages it"):
            lake.drop_table("t.t", purge=True)
        lake.drop_table("t.t")
        with pytest.raises(NotFound, match="no dropped table"):
            lake.undrop("t.t")
        assert ids(lake.register_table("t.t", metadata)) == [1]
        return
    lake.drop_table("t.t", purge=True)
    assert [found.table for found in lake.dropped()] == ["t.t"]
    assert ids(lake.undrop("t.t")) == [1]
    lake.rename_table("t.t", "t.u")
    lake.drop_table("t.u")
    assert ids(lake.undrop("t.u", to="t.t")) == [1]
    lake.drop_table("t.t", purge=True)
    (purged,) = lake.purge_dropped()
    assert purged.files_deleted > 3
    assert list(lake.store.list(location)) == []
    assert (lake.dropped(), lake.tables()) == ([], [])
    if place in ("sqlite", "files"):
        assert list(Path(local_path(location)).iterdir()) == []


def test_g15_a_swap_after_the_sweep_is_refused(
    lake: Lake, place: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    if place == "rest":
        return  # it has no swaps: tests/upkeep/test_rest.py
    table = lake.create_table("t.t", "id long, n long", properties=AT_ONCE)
    table.append(rows(1))
    real: Callable[[Sequence[PointerSwap]], None] = lake.catalog.swap

    def swap(changes: Sequence[PointerSwap]) -> None:
        monkeypatch.undo()
        proposed_versions_that_are_not_kept(monkeypatch)  # the other guard
        declare_dead(table)
        collector = lake.table("t.t")
        assert collector.remove_orphans(unsafe=True).files_marked > 2
        real(changes)

    monkeypatch.setattr(lake.catalog, "swap", swap)
    with pytest.raises(LeaseLost, match="declared dead before its commit"):
        table.append(rows(2))
    assert ids(lake.table("t.t")) == [1]
    lake.table("t.t").append(rows(3))
    assert ids(lake.table("t.t")) == [1, 3]
