"""Branches and tags of all tables of a lake."""

from pathlib import Path

import pyarrow as pa
import pytest

import icefield
from icefield.errors import AlreadyExists, ConcurrentChange, NoSuchSnapshot, Unsupported
from icefield.lake import Lake
from icefield.table.table import Table


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().read_all().column("id").to_pylist())


@pytest.fixture
def lake() -> Lake:
    lake = icefield.connect("memory:")
    for name in ("a", "b"):
        lake.create_table(f"t.{name}", "id long").append(rows(1))
    lake.create_table("t.empty", "id long")
    return lake


def test_a_tag_is_one_state_of_all_tables(lake: Lake) -> None:
    tagged = lake.tag("2026-q1")
    assert tagged.tables() == ["t.a", "t.b"]
    lake.table("t.a").append(rows(2))
    then = lake.at("2026-q1")
    assert ids(then.table("t.a")) == [1]
    assert then.tables() == ["t.a", "t.b"]
    then.drop()
    with pytest.raises(NoSuchSnapshot, match="no table of the lake"):
        lake.at("2026-q1")


def test_a_name_that_one_table_has_is_created_for_none(lake: Lake) -> None:
    lake.table("t.b").create_tag("x")
    with pytest.raises(AlreadyExists):
        lake.tag("x")
    assert "x" not in lake.table("t.a").refs()


def test_a_branch_of_many_tables_is_published_at_once(lake: Lake) -> None:
    work = lake.branch("experiment")
    assert work.tables() == ["t.a", "t.b", "t.empty"]
    for name in work.tables():
        work.table(name).append(rows(7))
    lake.table("t.a").append(rows(2))
    assert [ids(lake.table(name)) for name in work.tables()] == [[1, 2], [1], []]
    assert work.publish() == ["t.a", "t.b", "t.empty"]
    assert [ids(lake.table(name)) for name in work.tables()] == [[1, 2, 7], [1, 7], [7]]
    assert work.publish() == []


def test_if_one_table_collides_none_is_published(lake: Lake) -> None:
    work = lake.branch("experiment")
    work.table("t.a").append(rows(7))
    work.table("t.b").delete(where="id = 1")
    lake.table("t.b").update({"id": "5"}, where="id = 1")
    with pytest.raises(ConcurrentChange, match="on both sides"):
        work.publish()
    assert ids(lake.table("t.a")) == [1]
    assert ids(lake.table("t.b")) == [5]


def test_a_catalog_without_transactions_is_refused_before_any_work(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(lake.catalog), "swaps_many", False)
    before = lake.table("t.a").metadata_location
    for verb in (lake.tag, lake.branch):
        with pytest.raises(Unsupported, match="one pointer at a time"):
            verb("x")
    assert lake.table("t.a").metadata_location == before


def test_fifty_tables_are_branched_without_copies(tmp_path: Path) -> None:
    lake = icefield.connect(str(tmp_path))
    for number in range(50):
        lake.create_table(f"t.t{number}", "id long").append(rows(number))
    files = set(tmp_path.rglob("*.parquet"))
    lake.branch("experiment")
    assert set(tmp_path.rglob("*.parquet")) == files
    assert len(lake.at("experiment").tables()) == 50
