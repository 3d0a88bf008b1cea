"""Replacing a table: a new definition, the old history, and no change of another writer lost."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from tests.commit.racing import race

import icefield
from icefield.commit.actions import replace as module
from icefield.errors import ConcurrentChange, InvalidInput
from icefield.lake import Lake
from icefield.table.table import Table


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


@pytest.fixture
def table(lake: Lake) -> Table:
    made = lake.create_table("t.t", "id long, name string, n int", partition_by=["name"], properties={"a": "1"})
    made.append(pa.table({"id": [1, 2], "name": ["x", "y"], "n": pa.array([1, 2], pa.int32())}))
    return made


def test_the_table_is_another_one_and_its_history_stays(lake: Lake, table: Table) -> None:
    old = table.metadata
    table.replace("id long, name long, extra struct<a: int>", partition_by=["bucket(4, id)"], properties={"b": "2"})
    new = table.metadata
    assert (new.table_uuid, table.count()) == (old.table_uuid, 0)
    assert new.properties == {"a": "1", "b": "2"}
    assert new.schema.find_field("id").field_id == old.schema.find_field("id").field_id
    # A column of another type is another column: no file of the old table can be read as if it were of the new one.
    assert new.schema.find_field("name").field_id > old.last_column_id
    assert [f.name for f in new.spec.fields] == ["id_bucket"]
    assert table.scan(as_of=old.current_snapshot_id).count() == 2


def test_replacement_and_rows_in_one_transaction(lake: Lake, table: Table) -> None:
    seen: list[int] = []
    with lake.transaction() as tx:
        tx.table("t.t").replace("id long, v double")
        tx.table("t.t").append(pa.table({"id": [7], "v": [0.5]}))
        seen.append(lake.table("t.t").count())
    assert seen == [2]
    assert table.scan().to_arrow().read_all().to_pylist() == [{"id": 7, "v": 0.5}]


def test_a_table_is_created_or_replaced_by_one_verb(lake: Lake, table: Table) -> None:
    assert lake.create_table("t.new", "id long", replace=True).count() == 0
    replaced = lake.create_table("t.t", "id long", replace=True)
    assert (replaced.count(), [f.name for f in replaced.schema.fields]) == (0, ["id"])


def evolve(table: Table) -> None:
    with table.evolve() as change:
        change.add_column("more", "int")


RIVALS: dict[str, Callable[[Table], object]] = {
    "append": lambda t: t.append(pa.table({"id": [3], "name": ["z"], "n": pa.array([3], pa.int32())})),
    "schema": evolve,
    "properties": lambda t: t.set_properties({"a": "9"}),
    "branch": lambda t: t.create_branch("b"),
}


@pytest.mark.parametrize("rival", RIVALS.values(), ids=RIVALS)
def test_r06_a_concurrent_commit_is_not_dropped(lake: Lake, table: Table, rival: Callable[[Table], object]) -> None:
    with pytest.raises(ConcurrentChange, match="changed concurrently"):
        race(lake, lambda: rival(lake.table("t.t")), lambda: table.replace("id long"))
    assert "name" in {f.name for f in table.schema.fields}
    assert table.count() >= 2


def test_r06_goes_red_without_the_guard(lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_state", lambda _: ())
    monkeypatch.setattr(module, "_only_rewritten", lambda *_: True)
    race(lake, lambda: RIVALS["append"](lake.table("t.t")), lambda: table.replace("id long"))
    assert table.count() == 0, "rows that were acknowledged are gone in silence"


def test_rows_that_do_not_fit_the_new_table_are_not_added(lake: Lake, table: Table) -> None:
    with pytest.raises(ConcurrentChange, match="'must' is required"):
        race(
            lake,
            lambda: lake.table("t.t").replace("id long, must string not null"),
            lambda: RIVALS["append"](table),
        )
    assert table.count() == 0


def test_a_version_cannot_go_back(lake: Lake) -> None:
    table = lake.create_table("t.v3", "id long", format_version=3)
    with pytest.raises(InvalidInput, match="version 3"):
        table.replace("id long", format_version=2)
    table.replace("id long, x long")
    assert table.metadata.format_version == 3


def test_version_1_keeps_its_partition_fields(lake: Lake) -> None:
    table = lake.create_table("t.v1", "id long, p string", partition_by=["p"], format_version=1)
    table.replace("id long, p string, q int", partition_by=["p"])
    with pytest.raises(InvalidInput, match="Upgrade"):
        table.replace("id long, p string")


def test_a_replaced_table_reads_the_same_from_disk(tmp_path: Path) -> None:
    with icefield.connect(tmp_path) as lake:
        table = lake.create_table("t.t", "id long")
        table.append(pa.table({"id": [1]}))
        table.replace("id long, v string")
    with icefield.connect(tmp_path) as lake:
        assert lake.table("t.t").scan().to_arrow().read_all().num_rows == 0
        lake.table("t.t").append(pa.table({"id": [2], "v": ["x"]}))
        assert lake.table("t.t").count() == 1
