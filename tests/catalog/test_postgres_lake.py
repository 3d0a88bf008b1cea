"""A lake whose catalog is in PostgreSQL: commits whose COMMIT is lost on the way are settled by the commit loop."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from tests.catalog.dropping_proxy import DroppingProxy, Loss
from tests.postgres import PostgresServer

import icefield
from icefield.catalog.catalog import PointerSwap
from icefield.catalog.postgres import open_postgres_catalog
from icefield.errors import CommitStateUnknown
from icefield.lake import Lake
from icefield.model.names import parse_table_name
from icefield.table import Table

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
