"""Taking a table that is there into a catalog."""

from pathlib import Path

import pyarrow as pa
import pytest

import icefield
from icefield.errors import AlreadyExists, CorruptFile, MissingFile


def test_a_registered_table_is_the_same_table_under_another_name(tmp_path: Path) -> None:
    for target in ("memory:", tmp_path / "lake"):
        with icefield.connect(target) as lake:
            table = lake.create_table("a.t", "id long")
            table.append(pa.table({"id": [1]}))
            location = table.metadata_location
            lake.drop_table("a.t")
            again = lake.register_table("b.u", location)
            assert (again.count(), again.metadata_location) == (1, location)
            again.append(pa.table({"id": [2]}))
            assert lake.table("b.u").count() == 2
            with pytest.raises(AlreadyExists):
                lake.register_table("b.u", location)


def test_what_is_no_table_is_not_registered(tmp_path: Path) -> None:
    with icefield.connect(tmp_path) as lake:
        place = f"{lake.warehouse}/x.metadata.json"
        with pytest.raises(MissingFile):
            lake.register_table("a.t", place)
        lake.store.put_new(place, b"{}")
        with pytest.raises(CorruptFile):
            lake.register_table("a.t", place)
        assert lake.tables() == []


@pytest.mark.parametrize("target", ["memory:", "{0}/lake", "files:{0}/lake"])
def test_a_table_that_is_taken_in_again_under_its_name_removes_nothing_that_was_there(
    tmp_path: Path, target: str
) -> None:
    at_once = {"icefield.gc.grace-ms": "0", "icefield.gc.foreign-readers": "false"}
    properties = {"write.metadata.previous-versions-max": "1", **at_once}
    with icefield.connect(target.format(tmp_path), durable=False) as lake:
        table = lake.create_table("a.t", "id long", properties=properties)
        for number in range(3):
            table.append(pa.table({"id": [number]}))
        folder = table.metadata_location.rpartition("/")[0]
        there = {f.location for f in lake.store.list(folder) if f.location.endswith(".metadata.json")}
        location = table.metadata_location
        lake.drop_table("a.t")
        again = lake.register_table("a.t", location)
        assert again.metadata.metadata_log[-1].metadata_file == location
        for number in range(5):
            again.append(pa.table({"id": [number]}))
        again.sweep()
        left = {f.location for f in lake.store.list(folder) if f.location.endswith(".metadata.json")}
        assert left >= there
        assert len(left - there) == 2, "those of its own history still go"
        assert lake.table("a.t").count() == 8


def test_a_registration_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    with icefield.connect(tmp_path, durable=False) as lake:
        table = lake.create_table("a.t", "id long")
        location = table.metadata_location
        before = sorted(tmp_path.rglob("*.metadata.json"))
        for name in ("a.t", "b.u"):
            with pytest.raises(AlreadyExists):
                lake.register_table(name, location)
        assert sorted(tmp_path.rglob("*.metadata.json")) == before
        assert lake.namespaces() == ["a"]
