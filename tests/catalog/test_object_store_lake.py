"""Lakes without a database: all of it in a bucket, or in a local directory; rows are there once, whatever is lost."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from tests.s3_proxy import Fault, S3Proxy, running_proxy
from tests.s3_server import s3_server

from icefield.ambient import SeededAmbient, SystemAmbient
from icefield.backend import Backend
from icefield.catalog.object_store.catalog import ObjectStoreCatalog
from icefield.errors import NoSuchTable
from icefield.lake import Lake
from icefield.storage.local import LocalStore
from icefield.storage.location import join_location, location_of_path
from icefield.storage.object_store.directory import DirectoryStore
from icefield.storage.object_store.store import ObjectStore
from icefield.table.table import Table


def s3_lake(properties: dict[str, str]) -> Lake:
    root = s3_server().new_root()
    store = ObjectStore(properties, roots=[root], ambient=SeededAmbient(1))
    return Lake(Backend(ObjectStoreCatalog(store, join_location(root, "catalog")), store, SystemAmbient()), root)


@pytest.fixture(params=["s3", "directory"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    if request.param == "s3":
        return s3_lake(s3_server().properties)
    root = location_of_path(str(tmp_path / "lake"))
    catalog = ObjectStoreCatalog(DirectoryStore(durable=False), join_location(root, "catalog"))
    return Lake(Backend(catalog, LocalStore(roots=[root], durable=False), SystemAmbient()), root)


@pytest.fixture
def proxied() -> Iterator[tuple[S3Proxy, Lake]]:
    with running_proxy(s3_server().endpoint) as (proxy, endpoint):
        yield proxy, s3_lake({**s3_server().properties, "s3.endpoint": endpoint})


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids_of(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().read_all()["id"].to_pylist())


def test_a_table_lives_without_a_database(lake: Lake) -> None:
    table = lake.create_table("shop.orders", "id long")
    table.append(rows(1, 2))
    table.append(rows(3))
    assert ids_of(lake.table("shop.orders")) == [1, 2, 3]
    lake.rename_table("shop.orders", "shop.sales")
    assert ids_of(lake.table("shop.sales")) == [1, 2, 3]
    lake.drop_table("shop.sales")
    with pytest.raises(NoSuchTable):
        lake.table("shop.sales")


def test_racing_appends_all_land_once(lake: Lake) -> None:
    lake.create_table("shop.orders", "id long", properties={"commit.retry.num-retries": "100"})

    def append(writer: int) -> None:
        for number in range(3):
            lake.table("shop.orders").append(rows(writer * 10 + number))

    with ThreadPoolExecutor(4) as writers:
        list(writers.map(append, range(4)))
    assert ids_of(lake.table("shop.orders")) == [w * 10 + n for w in range(4) for n in range(3)]


@pytest.mark.parametrize("fault", [Fault.LOSE_REQUEST, Fault.LOSE_REPLY, Fault.FAIL_AFTER, Fault.CONFLICT])
def test_an_append_whose_answers_are_lost_lands_once(proxied: tuple[S3Proxy, Lake], fault: Fault) -> None:
    proxy, lake = proxied
    table = lake.create_table("shop.orders", "id long")
    proxy.seen.clear()
    table.append(rows(0))
    for lost in range(proxy.seen.count("PUT")):
        proxy.spoil("PUT", *[Fault.NONE] * lost, fault)
        table.append(rows(lost + 1))
        assert ids_of(lake.table("shop.orders")) == list(range(lost + 2))
