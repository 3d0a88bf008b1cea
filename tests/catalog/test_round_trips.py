"""What a change on an open handle asks of a SQL catalog: the pointer, the pointer again in the slot, and the swap.

The second look is one row of a table by its key. It costs less than the attempt that would be lost without it, because
another writer may have had its slot since the first look. Metadata is not loaded again.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield
from icefield.catalog.sql.catalog import SqlCatalog
from icefield.lake import Lake
from icefield.storage.local import LocalStore
from icefield.table.table import Table

CHANGES: dict[str, Callable[[Table], object]] = {
    "append": lambda table: table.append(rows(7)),
    "delete": lambda table: table.delete("id = 1"),
    "upsert": lambda table: table.upsert(rows(1), on=["id"]),
    "overwrite": lambda table: table.overwrite(rows(9)),
}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def sql_lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    url = f"sqlite:///{tmp_path}/catalog.db" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with icefield.connect(url, warehouse=tmp_path / "lake", durable=False) as lake:
        yield lake


def recorded(monkeypatch: pytest.MonkeyPatch, owner: object, names: tuple[str, ...]) -> list[tuple[str, Any]]:
    """Record the calls of some methods, by name and first argument."""
    calls: list[tuple[str, Any]] = []
    for name in names:
        method = getattr(owner, name)

        def call(first: Any, *rest: Any, _name: str = name, _method: Any = method) -> Any:
            calls.append((_name, first))
            return _method(first, *rest)

        monkeypatch.setattr(owner, name, call)
    return calls


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_on_an_open_handle_looks_twice_and_swaps_once(
    sql_lake: Lake, monkeypatch: pytest.MonkeyPatch, change: Callable[[Table], object]
) -> None:
    table = sql_lake.create_table("a.t", "id long")
    table.append(rows(1, 2))
    assert isinstance(sql_lake.catalog, SqlCatalog)
    asked = recorded(monkeypatch, sql_lake.catalog._database, ("read", "write"))
    change(table)
    assert [name for name, _ in asked] == ["read", "read", "write"]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_on_an_open_handle_reads_no_metadata_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Table], object]
) -> None:
    with icefield.connect(tmp_path / "lake", durable=False) as lake:
        table = lake.create_table("a.t", "id long")
        table.append(rows(1, 2))
        read: list[str] = []
        plain = LocalStore.read

        def read_noted(store: LocalStore, location: str) -> bytes:
            read.append(location)
            return plain(store, location)

        monkeypatch.setattr(LocalStore, "read", read_noted)
        change(table)
        assert [location for location in read if location.endswith(".metadata.json")] == []
        lake.table("a.t")
        assert len([location for location in read if location.endswith(".metadata.json")]) == 1, "it can count"
