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
