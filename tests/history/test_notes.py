"""Every verb that adds a snapshot can say why and by whom."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.history.test_publish import make, rows

import icefield
from icefield.errors import InvalidInput
from icefield.history.log import list_log
from icefield.table.table import Table

CHANGES: dict[str, Callable[[Table], object]] = {
    "append": lambda table: table.append(rows(50)),
    "append with a key": lambda table: table.append(rows(50), idempotency_key="k"),
    "overwrite": lambda table: table.overwrite(rows(50)),
    "overwrite by filter": lambda table: table.overwrite(rows(1), where="id = 1"),
    "overwrite partitions": lambda table: table.overwrite_partitions(rows(50)),
    "delete": lambda table: table.delete(where="id = 1"),
    "delete by position": lambda table: table.delete(where="id = 1", mode="merge-on-read"),
    "delete files": lambda table: table.delete_files(table.scan().files()["file_path"].to_pylist()[:1]),
    "update": lambda table: table.update({"value": "'x'"}, where="id = 1"),
    "upsert": lambda table: table.upsert(rows(1), on=["id"]),
    "equality upsert": lambda table: table.upsert(rows(1), on=["id"], mode="equality"),
    "merge": lambda table: table.merge(rows(1), on=["id"]).when_matched().delete().execute(),
    "compact": lambda table: table.compact(),
    "sort": lambda table: table.compact(order_by=["value"]),
    "rewrite manifests": lambda table: table.rewrite_manifests(),
    "publish": lambda table: table.publish("staging"),
    "cherry-pick": lambda table: table.cherry_pick(table.refs()["staging"].snapshot_id),
    "revert": lambda table: table.revert(table.history()[-1].snapshot_id),
}


@pytest.mark.every_case
@pytest.mark.parametrize("verb", CHANGES)
def test_the_summary_has_the_message_and_the_author(verb: str) -> None:
    table = make(2, "copy-on-write")
    table.at("staging").append(rows(100))
    table.append(rows(200))
    before = table.metadata.current_snapshot_id
    CHANGES[verb](table.noting(message="a message", author="Ada"))
    made = table.metadata.current_snapshot
    assert made is not None
    assert made.snapshot_id != before
    assert (made.summary["icefield.message"], made.summary["icefield.author"]) == ("a message", "Ada")
    assert list_log(table.metadata)[0].note.endswith("a message (Ada)")


@pytest.mark.parametrize("verb", ["rewrite_deletes", "convert_equality_deletes"])
def test_rewrites_of_deletes_have_them_too(verb: str) -> None:
    table = make(2, "merge-on-read")
    for key in (1, 2):
        table.delete(where=f"id = {key}")
        table.upsert(rows(key + 4), on=["id"], mode="equality")
    before = table.metadata.current_snapshot_id
    getattr(table.noting(author="Ada"), verb)()
    made = table.metadata.current_snapshot
    assert made is not None
    assert made.snapshot_id != before
    assert made.summary["icefield.author"] == "Ada"
    assert "icefield.message" not in made.summary


def test_notes_stay_with_the_handle_of_a_branch_and_are_replaced_one_by_one() -> None:
    table = make(2, "copy-on-write")
    table.append(rows(200))
    noted = table.noting(message="first", author="Ada").at("staging").noting(message="second")
    noted.append(rows(100))
    made = noted.rebase(message="third")
    assert made is not None
    first = table.metadata.snapshots.find(int(made.summary["icefield.merged-snapshot-id"]))
    assert first is not None
    assert [s.summary["icefield.message"] for s in (first, made)] == ["second", "third"]
    assert {s.summary["icefield.author"] for s in (first, made)} == {"Ada"}


def test_a_lake_notes_all_that_is_changed_through_it(tmp_path: Path) -> None:
    plain = icefield.connect(tmp_path / "lake")
    lake = plain.noting(author="Ada").noting(message="nightly load")
    table = lake.create_table_as("t.a", rows(1, 2))
    lake.create_table("t.b", "id long, value string").append(rows(1))
    with lake.transaction() as transaction:
        transaction.table("t.a").append(rows(3))
        transaction.table("t.b").append(rows(3))
    work = lake.branch("work")
    work.table("t.a").delete(where="id = 1")
    table.noting(message="by hand").append(rows(4))
    work.publish(message="published")
    lake.sql("DELETE FROM t.a WHERE id = 2", engine="local")
    plain.table("t.a").append(rows(9))
    notes = [
        (each.summary.get("icefield.author"), each.summary.get("icefield.message"))
        for name in ("t.a", "t.b")
        for each in plain.table(name).metadata.snapshots
    ]
    assert notes.count((None, None)) == 1
    assert {author for author, _ in notes} == {"Ada", None}
    assert {message for _, message in notes} == {"nightly load", "by hand", "published", None}
    before = {each.snapshot_id for each in table.snapshots()}
    lake.table("t.a").forget(where="id = 3")
    assert {each.summary["icefield.author"] for each in table.snapshots() if each.snapshot_id not in before} == {"Ada"}
    with pytest.raises(InvalidInput, match="surrogate"):
        lake.noting(message="\ud800")


def test_the_author_is_a_property_of_a_connection_and_of_lakes_opened_elsewhere(tmp_path: Path) -> None:
    lake = icefield.connect(tmp_path / "lake", properties={"author": "Ada"})
    lake.create_table("t.t", "id long, value string")
    noted = lake.noting(message="elsewhere")
    assert noted.opener is not None
    with noted.opener() as opened:
        made = opened.table("t.t").append(rows(1))
    assert made is not None
    assert (made.summary["icefield.author"], made.summary["icefield.message"]) == ("Ada", "elsewhere")
    for target in ("memory:", f"files:{tmp_path / 'files'}"):
        table = icefield.connect(target, properties={"author": "Ada"}).create_table("t.t", "id long, value string")
        made = table.append(rows(1))
        assert made is not None
        assert made.summary["icefield.author"] == "Ada"
