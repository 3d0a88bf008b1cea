"""Handles in other processes: each says in one sentence that it stays in its own."""

import copy
import pickle
from collections.abc import Callable

import pyarrow as pa
import pytest
from tests.test_secrets import PLANTED, assert_hidden

from icefield.errors import Unsupported
from icefield.lake import Lake
from icefield.storage.memory import MemoryStore
from icefield.storage.object_store.store import ObjectStore
from icefield.storage.store import check_reachable

HANDLES: dict[str, Callable[[Lake], object]] = {
    "Lake": lambda lake: lake,
    "Table": lambda lake: lake.table("a.t"),
    "TableScan": lambda lake: lake.table("a.t").scan(),
    "View": lambda lake: lake.view("a.v"),
    "Transaction": lambda lake: lake.transaction(),
    "TableInspection": lambda lake: lake.table("a.t").inspect("files"),
    "AppendScan": lambda lake: lake.table("a.t").scan_appends(None),
}


@pytest.mark.parametrize("kind", HANDLES)
def test_a_handle_says_that_it_cannot_be_pickled(kind: str, lake: Lake) -> None:
    lake.create_table("a.t", "id long").append(pa.table({"id": [1]}))
    lake.create_view("a.v", "SELECT 1 AS id", schema="id int")
    handle = HANDLES[kind](lake)
    assert type(handle).__name__ == kind
    for act in (pickle.dumps, copy.deepcopy):
        with pytest.raises(Unsupported, match=rf"^a {kind} cannot be pickled.*icefield\.connect"):
            act(handle)


def test_what_travels_to_executors_holds_the_stores_own_settings_alone() -> None:
    store = ObjectStore({"s3.endpoint": "http://127.0.0.1:1", "s3.secret-access-key": PLANTED})
    travelled = pickle.loads(pickle.dumps(store))
    assert_hidden(repr(vars(travelled)) + repr(vars(travelled._clients)))
    assert set(travelled._clients.properties) == {"s3.endpoint", "s3.secret-access-key"}


def test_a_store_in_memory_says_that_spark_cannot_reach_it() -> None:
    with pytest.raises(Unsupported, match=r"in memory.*to_arrow\(\)"):
        check_reachable(MemoryStore())
