"""A catalog of objects whose store fails after a pointer was written: the pointer's file is never removed."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from icefield.ambient import SeededAmbient
from icefield.backend import Backend
from icefield.catalog.object_store.catalog import ObjectStoreCatalog
from icefield.errors import IcefieldError, InvalidInput, StorageError
from icefield.lake import Lake
from icefield.storage.local import LocalStore
from icefield.storage.location import join_location, location_of_path
from icefield.storage.object_store.directory import DirectoryStore

STEPS = range(8)


class FailingFiles:
    """Local files of which one operation fails: the one that comes `after` others since a pointer was written."""

    def __init__(self, files: LocalStore) -> None:
        self._files = files
        self._left: int | None = None
        self.armed: int | None = None
        self.before: Callable[[], object] | None = None

    def put_new(self, location: str, data: bytes) -> None:
        if self.before is not None and "/orders.pointer/" in location:
            before, self.before = self.before, None
            before()
        self._files.put_new(location, data)
        if self.armed is not None and "/orders.pointer/" in location:
            self._left, self.armed = self.armed, None

    def read(self, location: str) -> bytes:
        self._step()
        return self._files.read(location)

    def list_locations(self, prefix: str) -> Iterator[str]:
        self._step()
        return self._files.list_locations(prefix)

    def delete(self, location: str) -> None:
        self._step()
        self._files.delete(location)

    def heal(self) -> None:
        """Fail no more."""
        self._left = self.armed = None

    def _step(self) -> None:
        if self._left is None:
            return
        self._left -= 1
        if self._left < 0:
            self._left = None
            raise StorageError("the disk does not answer")


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> FailingFiles:
    # So that every write also removes an older number.
    monkeypatch.setattr("icefield.storage.object_store.directory.KEPT", 1)
    return FailingFiles(LocalStore(durable=False))


@pytest.fixture
def lake(files: FailingFiles, tmp_path: Path) -> Iterator[Lake]:
    store = DirectoryStore(durable=False)
    store._files = files  # type: ignore[assignment]
    root = location_of_path(str(tmp_path / "lake"))
    catalog = ObjectStoreCatalog(store, join_location(root, "catalog"), ambient=SeededAmbient(1))
    with Lake(Backend(catalog, LocalStore(roots=[root], durable=False), SeededAmbient(2)), root) as made:
        made.create_table("shop.stock", "id long")
        yield made


def make_orders(lake: Lake) -> None:
    lake.create_table("shop.orders", "id long")


CHANGES: dict[str, Callable[[Lake], object]] = {
    "create": make_orders,
    "append": lambda lake: lake.table("shop.orders").append(pa.table({"id": [7]})),
    "set_location": lambda lake: lake.table("shop.orders").set_location(f"{lake.warehouse}/elsewhere"),
    "write.data.path": lambda lake: lake.table("shop.orders").set_properties(
        {"write.data.path": f"{lake.warehouse}/elsewhere"}
    ),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_pointer_that_was_written_keeps_its_metadata(lake: Lake, files: FailingFiles, change: str, step: int) -> None:
    if change != "create":
        make_orders(lake)
    files.armed = step
    try:
        CHANGES[change](lake)
    except IcefieldError as error:
        landed = not error.cleanable
    else:
        landed = True
    files.heal()
    if not landed:
        assert change == "create"
        assert not lake.has_table("shop.orders")
        return
    table = lake.table("shop.orders")
    table.append(pa.table({"id": [8]}))
    assert table.count() == 1 + (change == "append")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("verb", ["create", "set_location"])
def test_a_pointer_that_cannot_be_taken_back_keeps_its_metadata(
    lake: Lake, files: FailingFiles, verb: str, step: int
) -> None:
    """Another table takes the directory between the first look and the writing of the pointer."""
    place = f"{lake.warehouse}/elsewhere"
    if verb == "set_location":
        make_orders(lake)
    files.before, files.armed = lambda: lake.create_table("shop.intruder", "id long", location=place), step
    with contextlib.suppress(IcefieldError):
        if verb == "create":
            lake.create_table("shop.orders", "id long", location=place)
        else:
            lake.table("shop.orders").set_location(place)
    files.heal()
    for name in lake.tables():
        table = lake.table(name)
        table.append(pa.table({"id": [8]}))
        assert table.count() == 1


def test_a_pointer_beside_another_table_is_taken_back(lake: Lake, files: FailingFiles) -> None:
    place = f"{lake.warehouse}/elsewhere"
    files.before = lambda: lake.create_table("shop.intruder", "id long", location=place)
    with pytest.raises(InvalidInput, match=r"shop\.intruder is at"):
        lake.create_table("shop.orders", "id long", location=place)
    assert lake.tables() == ["shop.intruder", "shop.stock"]
