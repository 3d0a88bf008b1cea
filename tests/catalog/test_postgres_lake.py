"""A lake whose catalog is in PostgreSQL: commits whose COMMIT is lost on the way are settled by the commit loop."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from tests.catalog.dropping_proxy import DroppingProxy, Loss
from tests.postgres import PostgresServer

import icefield
from icefield.ambient import SystemAmbient
from icefield.catalog.catalog import PointerSwap
from icefield.catalog.sql.postgres import open_postgres_catalog
from icefield.errors import CommitStateUnknown, IcefieldError
from icefield.lake import Lake
from icefield.model.names import parse_table_name
from icefield.table.table import Table

T = parse_table_name("a.t")


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[DroppingProxy]:
    with closing(DroppingProxy(postgres_server.port)) as proxy:
        yield proxy


@pytest.fixture
def proxied_url(postgres_server: PostgresServer, postgres_url: str, proxy: DroppingProxy) -> str:
    return postgres_url.replace(f":{postgres_server.port}/", f":{proxy.port}/")


@pytest.fixture
def proxied_lake(proxied_url: str, tmp_path: Path) -> Iterator[Lake]:
    with icefield.connect(proxied_url, warehouse=tmp_path / "lake", durable=False) as lake:
        yield lake


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids_of(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().read_all()["id"].to_pylist())


@pytest.mark.parametrize(("loss", "landed"), [(Loss.REPLY, "1"), (Loss.REQUEST, "0")])
def test_r16_a_commit_lost_on_the_wire_is_an_unknown_outcome(
    proxy: DroppingProxy, proxied_url: str, loss: Loss, landed: str
) -> None:
    with closing(open_postgres_catalog(proxied_url)) as catalog:
        catalog.create_namespace(("a",))
        catalog.swap([PointerSwap(T, None, "0")])
        proxy.next_loss = loss
        with pytest.raises(CommitStateUnknown, match="delete nothing"):
            catalog.swap([PointerSwap(T, "0", "1")])
        assert catalog.pointer(T) == landed


@pytest.mark.parametrize("loss", list(Loss))
def test_an_append_whose_commit_is_lost_on_the_wire_lands_once(
    proxied_lake: Lake, proxy: DroppingProxy, loss: Loss
) -> None:
    table = proxied_lake.create_table("a.t", "id long")
    table.append(rows(1))
    proxy.next_loss = loss
    table.append(rows(2))
    table.append(rows(3))
    assert proxy.losses == 1
    assert ids_of(proxied_lake.table("a.t")) == [1, 2, 3]
    assert len(table.snapshots()) == 3


def test_a_second_connection_sees_what_the_first_committed(postgres_url: str, tmp_path: Path) -> None:
    with (
        icefield.connect(postgres_url, warehouse=tmp_path / "lake", durable=False) as first,
        icefield.connect(postgres_url, warehouse=tmp_path / "lake", durable=False) as second,
    ):
        first.create_table("a.t", "id long").append(rows(1))
        second.table("a.t").append(rows(2))
        assert ids_of(first.table("a.t")) == [1, 2]
        assert not (tmp_path / "lake" / "catalog.db").exists()


# One process that has everything loaded, and forks before anything is connected.
CREATORS = """
import os
import sys
import pyarrow as pa
import icefield
import icefield.catalog.sql.postgres

def work(url, folder, writer):
    with icefield.connect(url, warehouse=folder, durable=False) as lake:
        lake.create_table(f"made.t{writer}", "id long").append(pa.table({"id": [writer]}))
        lake.table("a.t").append(pa.table({"id": [writer]}))
    os._exit(0)

with icefield.connect("memory:") as lake:
    lake.create_table("a.t", "id long").append(pa.table({"id": [0]}))
children = []
for writer in range(int(sys.argv[3])):
    child = os.fork()
    if child == 0:
        work(sys.argv[1], sys.argv[2], writer)
    children.append(child)
sys.exit(max(abs(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])) for child in children))
"""


@pytest.mark.slow
def test_r22_sixteen_at_once_create_and_append_without_a_collision(postgres_url: str, tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    with icefield.connect(postgres_url, warehouse=folder, durable=False) as lake:
        shared = lake.create_table("a.t", "id long")
        command = [sys.executable, "-c", CREATORS, postgres_url, str(folder), "16"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert ran.returncode == 0, ran.stderr
        assert ids_of(shared) == list(range(16))
        made = [lake.table(f"made.t{writer}") for writer in range(16)]
        assert [ids_of(table) for table in made] == [[writer] for writer in range(16)]
        assert len({table.metadata.table_uuid for table in made}) == 16
        snapshots = [s for table in (shared, *made) for s in table.snapshots()]
        assert len({s.snapshot_id for s in snapshots}) == 32
        assert [s.sequence_number for s in shared.snapshots()] == list(range(1, 17))
        assert shared.snapshots()[-1].summary["total-records"] == "16", "no statistics are lost"


def test_r22_without_the_guard_ids_that_are_counted_up_meet(postgres_url: str, tmp_path: Path) -> None:
    class Counting(SystemAmbient):
        """Draws what everybody else draws: the next number."""

        def __init__(self) -> None:
            super().__init__()
            self.last = 0

        def random_id(self) -> int:
            self.last += 1
            return self.last

    place = {"warehouse": tmp_path / "lake", "durable": False}
    with (
        icefield.connect(postgres_url, ambient=Counting(), **place) as first,  # type: ignore[arg-type]
        icefield.connect(postgres_url, ambient=Counting(), **place) as second,  # type: ignore[arg-type]
    ):
        first.create_table("a.t", "id long").append(rows(1))
        with pytest.raises(IcefieldError, match="id 1 already exists"):
            second.table("a.t").append(rows(2))
