"""Branches and tags of all tables of a lake."""

from pathlib import Path

import pyarrow as pa
import pytest

import icefield
from icefield.errors import AlreadyExists, ConcurrentChange, NoSuchSnapshot, Unsupported
from icefield.history.replay import Replay
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


def test_rows_that_others_add_while_tables_are_published_stay(lake: Lake) -> None:
    work = lake.branch("experiment")
    for name in ("t.a", "t.b"):
        work.table(name).append(rows(7))
    publish = Replay.publish

    def publish_late(self: Replay, branch: str, checked_id: int | None) -> object:
        published = publish(self, branch, checked_id)
        lake.table(str(self.head.name)).append(rows(8))
        return published

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Replay, "publish", publish_late)
        work.publish()
    assert [ids(lake.table(name)) for name in ("t.a", "t.b")] == [[1, 7, 8], [1, 7, 8]]


def test_a_catalog_without_transactions_is_refused_before_any_work(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(lake.catalog), "swaps_many", False)
    before = lake.table("t.a").metadata_location
    for verb in (lake.tag, lake.branch):
        with pytest.raises(Unsupported, match="one pointer at a time"):
            verb("x")
    assert lake.table("t.a").metadata_location == before


def test_a_lake_of_plain_files_refuses_all_verbs_of_several_tables(tmp_path: Path) -> None:
    lake = icefield.connect(f"files:{tmp_path / 'lake'}")
    for name in ("t.a", "t.b"):
        lake.create_table(name, "id long").append(rows(1))
        lake.table(name).create_branch("one")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    found = lake.at("one")
    verbs = (lambda: lake.tag("x"), lambda: lake.branch("x"), found.publish, found.drop)
    for verb in verbs:
        with pytest.raises(Unsupported, match="one pointer at a time"):
            verb()
    with pytest.raises(Unsupported, match="one pointer at a time"):
        found.publish(dry_run=True)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    assert sorted(found.tables()) == ["t.a", "t.b"]  # reads need no swap


def test_a_dry_run_of_a_lake_wide_publish_names_the_tables_that_would_change(lake: Lake) -> None:
    work = lake.branch("work", tables=["t.a", "t.b"])
    work.table("t.a").append(rows(7))
    pointers = {name: lake.table(name).metadata_location for name in ("t.a", "t.b")}
    assert work.publish(dry_run=True) == ["t.a"]
    assert {name: lake.table(name).metadata_location for name in pointers} == pointers
    assert work.publish(message="done") == ["t.a"]
    lake.table("t.b").append(rows(8))
    work.table("t.b").append(rows(9))
    assert work.publish(message="done") == ["t.b"]
    made = lake.table("t.b").current_snapshot
    assert made is not None
    assert made.summary["icefield.message"] == "done"


def test_fifty_tables_are_branched_without_copies(tmp_path: Path) -> None:
    lake = icefield.connect(str(tmp_path))
    for number in range(50):
        lake.create_table(f"t.t{number}", "id long").append(rows(number))
    files = set(tmp_path.rglob("*.parquet"))
    lake.branch("experiment")
    assert set(tmp_path.rglob("*.parquet")) == files
    assert len(lake.at("experiment").tables()) == 50


def test_renamed_and_dropped_tables_do_not_stop_a_publish(lake: Lake) -> None:
    work = lake.branch("experiment")
    for name in work.tables():
        work.table(name).append(rows(7))
    lake.rename_table("t.a", "t.renamed")
    lake.drop_table("t.b")
    lake.create_table("t.b", "id long").append(rows(3))  # another table of this name
    lake.table("t.b").create_branch("experiment")
    lake.table("t.b").at("experiment").append(rows(4))
    assert work.tables() == ["t.empty", "t.renamed"]
    assert work.publish() == ["t.empty", "t.renamed"]
    assert [ids(lake.table(name)) for name in ("t.b", "t.empty", "t.renamed")] == [[3], [7], [1, 7]]
    work.drop()
    assert "experiment" in lake.table("t.b").refs()
    for gone in (work.drop, work.publish):
        with pytest.raises(NoSuchSnapshot, match="any more"):
            gone()


def test_names_that_are_taken_and_lakes_without_tables_are_refused(lake: Lake) -> None:
    lake.table("t.b").create_branch("x")
    with pytest.raises(AlreadyExists, match="t.b has a branch 'x' already"):
        lake.branch("x")
    assert "x" not in lake.table("t.a").refs()
    empty = icefield.connect("memory:")
    for create in (empty.branch, empty.tag):
        with pytest.raises(NoSuchSnapshot, match="there is no table"):
            create("x")
    empty.create_table("t.a", "id long")
    with pytest.raises(NoSuchSnapshot, match="there is no table with a snapshot"):
        empty.tag("x")
