"""PyIceberg's REST client on the same server: what it writes we read, and the other way round.

That it works with our server is the second opinion on the server, and so on what our own client is tested against.
"""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog as PyIcebergCatalog
from pyiceberg.exceptions import NoSuchTableError
from tests.rest_server import RestServer, running_server

from icefield.ambient import SystemAmbient
from icefield.backend import Backend
from icefield.catalog.rest.catalog import open_rest_catalog
from icefield.lake import Lake
from icefield.storage.local import LocalStore
from icefield.storage.location import location_of_path

SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("s", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "s": [str(i) for i in ids]}, schema=SCHEMA)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RestServer]:
    root = location_of_path(str(tmp_path))
    with running_server(LocalStore(roots=[root], durable=False), root) as made:
        yield made


@pytest.fixture
def lake(server: RestServer) -> Iterator[Lake]:
    with Lake(Backend(open_rest_catalog(server.url), server.service.store, SystemAmbient()), server.url) as made:
        yield made


@pytest.fixture
def peer(server: RestServer) -> Iterator[PyIcebergCatalog]:
    catalog = PyIcebergCatalog("peer", uri=server.url)
    yield catalog
    catalog._session.close()


def test_both_write_to_one_table(lake: Lake, peer: PyIcebergCatalog) -> None:
    peer.create_namespace(("a", "b"))
    theirs = peer.create_table("a.b.t", SCHEMA)
    theirs.append(rows(1, 2))
    ours = lake.table("a.b.t")
    ours.append(rows(3))
    theirs.refresh()
    theirs.delete("id = 1")
    ours.overwrite(rows(4), where="id = 2", check_rows=False)
    theirs.refresh()
    found = sorted(theirs.scan().to_arrow()["id"].to_pylist())
    assert found == sorted(ours.scan().to_arrow().read_all()["id"].to_pylist()) == [3, 4]


def test_a_stale_commit_of_either_does_not_overwrite_the_other(lake: Lake, peer: PyIcebergCatalog) -> None:
    ours = lake.create_table("a.t", "id long, s string")
    theirs = peer.load_table("a.t")
    ours.append(rows(1))
    with theirs.transaction() as change:
        change.set_properties(k="v")
    stale = peer.load_table("a.t")
    ours.append(rows(2))
    stale.append(rows(3))
    assert sorted(ours.scan().to_arrow().read_all()["id"].to_pylist()) == [1, 2, 3]
    assert [s.sequence_number for s in ours.snapshots()] == [1, 2, 3]
    assert ours.properties == {"k": "v"}


def test_they_see_what_we_made(lake: Lake, peer: PyIcebergCatalog) -> None:
    table = lake.create_table("a.t", "id long, s string", partition_by=["bucket(4, id)"], order_by=["s desc"])
    with table.evolve() as change:
        change.rename_column("s", "text")
        change.add_partition_field("truncate(2, text)")
    theirs = peer.load_table("a.t")
    assert str(theirs.metadata.table_uuid) == str(table.metadata.table_uuid)
    assert theirs.schema().column_names == ["id", "text"]
    assert [str(f.transform) for f in theirs.spec().fields] == ["bucket[4]", "truncate[2]"]
    lake.rename_table("a.t", "a.u")
    with pytest.raises(NoSuchTableError):
        peer.load_table("a.t")
    peer.drop_table("a.u")
    assert lake.tables("a") == []
    assert peer.list_namespaces() == [("a",)]


def test_their_create_transaction_works_with_the_server(lake: Lake, peer: PyIcebergCatalog) -> None:
    peer.create_namespace("a")
    with peer.create_table_transaction("a.t", SCHEMA) as change:
        change.set_properties(k="v")
    assert lake.table("a.t").properties == {"k": "v"}
    location = lake.table("a.t").metadata_location
    peer.drop_table("a.t")
    peer.register_table("a.again", location)
    assert lake.tables("a") == ["a.again"]


def test_they_get_tokens_from_the_server(server: RestServer) -> None:
    server.clients = {"me": "secret"}
    tokens = {"oauth2-server-uri": f"{server.url}/v1/oauth/tokens"}
    catalog = PyIcebergCatalog("peer", uri=server.url, credential="me:secret", **tokens)
    try:
        assert catalog.list_namespaces() == []
    finally:
        catalog._session.close()
