"""Forgotten rows are gone: from branches, old snapshots, deleted rows, statistics, names, and from the bytes."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from tests.upkeep.fixtures import AT_ONCE, FUTURE, Yard, make_yard

from icefield import connect
from icefield.errors import CommitConflict, InvalidInput, StorageError
from icefield.forget.result import ForgetResult
from icefield.table.table import Table

SCHEMA = "id long, name string, note string"
ADA = "ada.lovelace@example.org"
WHERE = f"name = '{ADA}'"
DAY_MS = 24 * 3600 * 1000


@pytest.fixture
def yard() -> Yard:
    return make_yard()


def people(*names: str) -> pa.Table:
    ids = pa.array(range(len(names)), pa.int64())
    return pa.table({"id": ids, "name": list(names), "note": [f"of {name}" for name in names]})


def make(
    yard: Yard, version: int = 2, partition_by: tuple[str, ...] = (), properties: Mapping[str, str] | None = None
) -> Table:
    """One file with Ada and another, one without her."""
    table = yard.lake.create_table(
        "t.t", SCHEMA, partition_by=partition_by, properties={**AT_ONCE, **(properties or {})}, format_version=version
    )
    table.append(people("grace", ADA, "edsger"))
    table.append(people("alan", "barbara"))
    return table


def names(table: Table, **scan: Any) -> list[str]:
    return sorted(table.scan(**scan).to_arrow().read_all()["name"].to_pylist())


def forget(table: Table, **options: Any) -> ForgetResult:
    return table.forget(WHERE, search=[ADA, "of ada.lovelace"], **options)


def bytes_left(yard: Yard) -> list[str]:
    """An independent search, of what is not compressed."""
    files = (file.location for file in yard.store.list("memory://lake"))
    return [location for location in files if ADA[:15].encode() in yard.store.read(location)]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_rows_of_old_snapshots_and_branches_are_gone(yard: Yard, version: int) -> None:
    table = make(yard, version)
    first = table.snapshots()[0]
    table.create_branch("b")
    table.at("b").append(people(ADA))
    table.append(people("tony"))
    plan = forget(table, dry_run=True)
    assert (plan.rows_deleted, plan.files, plan.branches) == ({"b": 2, "main": 1}, 2, ("b", "main"))
    assert set(plan.snapshot_ids) == {s.snapshot_id for s in table.snapshots()}
    assert (len(table.snapshots()), names(table.at("b")).count(ADA)) == (4, 2), "nothing was changed"
    done = forget(table)
    assert done.is_finished, str(done)
    assert (done.rows_deleted, done.files) == ({"b": 2, "main": 1}, 2)
    assert done.swept is not None
    assert done.swept.kinds["data"] >= 2
    assert names(table) == ["alan", "barbara", "edsger", "grace", "tony"]
    assert names(table.at("b")) == ["alan", "barbara", "edsger", "grace"]
    assert table.metadata.snapshots.find(first.snapshot_id) is None
    assert done.search is not None
    assert (done.search.terms, done.search.traces, done.search.kinds["parquet"] >= 4) == (2, (), True)
    assert bytes_left(yard) == []
    assert table.fsck(deep=True).is_healthy
    again = forget(table)
    assert (again.is_finished, again.files, again.snapshot_ids) == (True, 0, ())


def test_rows_that_were_deleted_before_are_gone_from_their_files(yard: Yard) -> None:
    """A deletion vector hides the row on main, its bytes are in the file; equality deletes hold its key."""
    table = make(yard, 3, properties={"write.delete.mode": "merge-on-read"})
    table.delete(WHERE)
    table.upsert(people(ADA), on=["name"], mode="equality")
    table.delete(WHERE)
    assert ADA not in names(table)
    done = forget(table)
    assert done.is_finished, str(done)
    assert (done.rows_deleted, done.files, done.delete_files) == ({"main": 0}, 2, 1)
    assert names(table) == ["alan", "barbara", "edsger", "grace"]
    assert table.inspect("delete_files").to_arrow().read_all().num_rows == 0
    assert bytes_left(yard) == []


def test_snapshots_that_never_held_the_rows_stay(yard: Yard) -> None:
    table = yard.lake.create_table("t.t", SCHEMA, properties=AT_ONCE)
    table.append(people("grace"))
    table.create_tag("before")
    table.append(people(ADA))
    done = forget(table)
    assert done.is_finished, str(done)
    assert names(table, as_of="before") == ["grace"]


def test_tags_are_refused_unless_they_may_be_dropped(yard: Yard) -> None:
    table = make(yard)
    table.create_tag("release")
    before = (table.metadata_location, yard.files())
    with pytest.raises(InvalidInput, match="release") as refused:
        forget(table)
    assert "drop_tags" in str(refused.value.hint)
    assert (table.metadata_location, yard.files()) == before
    done = forget(table, drop_tags=True)
    assert (done.is_finished, done.tags, set(table.refs())) == (True, ("release",), {"main"})


def test_values_of_partitions_are_gone_from_names_and_records(yard: Yard) -> None:
    table = make(yard, 2, ("name",), {"write.delete.mode": "merge-on-read", "write.delete.granularity": "partition"})
    table.delete("id = 1")
    done = forget(table)
    assert done.is_finished, str(done)
    assert done.search is not None
    assert done.search.audits_removed > 0
    assert bytes_left(yard) == []


@pytest.mark.parametrize(
    ("value", "transform"), [("ada" * 99, "name"), ("a漢" * 99, "name"), (ADA, "truncate(16, name)")]
)
def test_values_that_names_have_only_in_part_are_gone_from_records(yard: Yard, value: str, transform: str) -> None:
    table = make(yard, 2, (transform,))
    table.append(people(value))
    done = table.forget(f"name = '{value}'", search=[value])
    assert done.is_finished, str(done)
    assert done.search is not None
    assert done.search.audits_removed > 0
    records = [file.location for file in yard.store.list(f"{table.location}/metadata/gc/audit")]
    beginning = quote(value[:6], safe="").encode()
    assert [each for each in records if beginning in yard.store.read(each)] == []


def test_values_of_partitions_are_gone_from_names_of_directories(tmp_path: Path) -> None:
    with connect(str(tmp_path), durable=False) as lake:
        table = lake.create_table("t.t", SCHEMA, partition_by=["name"], properties=AT_ONCE)
        table.append(people("grace", ADA))
        assert forget(table).is_finished
        assert names(table) == ["grace"]
    assert [path.name for path in tmp_path.rglob("*") if path.is_dir() and "=" in path.name] == ["name=grace"]


def test_a_reader_holds_the_files_and_a_later_call_continues(yard: Yard) -> None:
    table = make(yard)
    reader = table.scan().to_arrow()
    reader.read_next_batch()
    waiting = forget(table)
    assert (waiting.is_finished, waiting.search) == (False, None)
    assert waiting.swept is not None
    assert [held.reason for held in waiting.swept.waiting] == ["held by leases"]
    assert bytes_left(yard) != []
    reader.read_all()
    done = forget(table)
    assert done.is_finished, str(done)
    assert bytes_left(yard) == []


def test_the_grace_period_is_respected(yard: Yard) -> None:
    table = make(yard, properties={"icefield.gc.grace-ms": str(DAY_MS)})
    waiting = forget(table)
    assert "within the grace period" in str(waiting)
    assert not waiting.is_finished
    yard.ambient.sleep(DAY_MS / 1000 + 1)
    assert forget(table).is_finished


def test_metadata_files_that_left_the_log_do_not_keep_it_waiting(yard: Yard) -> None:
    """A table that others commit to all the time always has such files, and they hold no rows."""
    table = make(yard, properties={"icefield.gc.grace-ms": str(DAY_MS), "write.metadata.previous-versions-max": "2"})
    assert not forget(table).is_finished
    yard.ambient.sleep(DAY_MS / 1000 + 1)
    for n in range(5):
        table.set_properties({"n": str(n)})
    done = forget(table)
    assert done.swept is not None
    assert {held.marked for held in done.swept.waiting} == {"retired"}
    assert done.is_finished, str(done)


@pytest.mark.parametrize("at", [2, 7, 13, 22, 31])
def test_a_crash_at_any_step_is_continued(yard: Yard, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store fails from some call on; then a new process calls it again."""
    table = make(yard, 3)
    table.create_branch("b")
    calls = 0

    def failing(name: str) -> None:
        real = getattr(yard.store, name)

        def call(*given: Any, **more: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls >= at:
                raise StorageError("the process is gone")
            return real(*given, **more)

        patch.setattr(yard.store, name, call)

    with monkeypatch.context() as patch:
        for name in ("put_new", "open_new", "delete"):
            failing(name)
        with suppress(StorageError, CommitConflict):
            forget(table)
    other = yard.lake_again().table("t.t")
    first = forget(other)
    yard.ambient.sleep(5 * DAY_MS / 1000)  # leases lapse, and files of the crashed process grow old
    for _ in range(3):
        first = forget(other)
        yard.ambient.sleep(DAY_MS / 1000)
    assert first.is_finished, str(first)
    assert names(other) == names(other.at("b")) == ["alan", "barbara", "edsger", "grace"]
    assert bytes_left(yard) == []


def test_rows_that_come_meanwhile_are_forgotten_too(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(yard)
    swap, rivals = yard.lake.catalog.swap, iter(["append", "compact", "branch"])

    def let_a_rival_go_first(changes: Any) -> None:
        rival, other = next(rivals, None), yard.lake.table("t.t")
        with monkeypatch.context() as patch:
            patch.setattr(yard.lake.catalog, "swap", swap)
            if rival == "append":
                other.append(people(ADA, "tony"))
            elif rival == "compact":
                other.compact()
            elif rival == "branch":
                other.create_branch("late", at=other.snapshots()[0].snapshot_id)
        swap(changes)

    monkeypatch.setattr(yard.lake.catalog, "swap", let_a_rival_go_first)
    done = forget(table)
    monkeypatch.setattr(yard.lake.catalog, "swap", swap)
    done = done if done.is_finished else forget(table)
    assert done.is_finished, str(done)
    assert "tony" in names(table)
    assert ADA not in [*names(table), *names(table.at("late"))]
    assert bytes_left(yard) == []


def test_evolved_tables(yard: Yard) -> None:
    table = make(yard, 2, ("bucket(4, name)",))
    with table.evolve() as change:
        change.rename_column("name", "mail")
        change.drop_column("note")
        change.drop_partition_field("name_bucket")
        change.add_partition_field("truncate(3, mail)")
    table.append(pa.table({"id": [7], "mail": [ADA]}))
    done = table.forget(f"mail = '{ADA}'", search=[ADA])
    assert done.is_finished, str(done)
    assert bytes_left(yard) == []


def test_values_of_a_dropped_column_are_gone_when_files_are_rewritten(yard: Yard) -> None:
    table = make(yard)
    with table.evolve() as change:
        change.drop_column("note")
    done = table.forget("id = 99", search=[f"of {ADA}"])
    assert done.search is not None
    assert not done.search.is_clean
    table.compact(options={"rewrite-all": "true"})
    table.expire_snapshots(FUTURE, keep_last=1)
    done = table.forget("id = 99", search=[f"of {ADA}"])
    assert done.is_finished, str(done)


def test_what_is_refused_changes_nothing(yard: Yard) -> None:
    table = make(yard)
    before = table.metadata_location
    with pytest.raises(InvalidInput, match="needs a filter"):
        table.forget(None)
    with pytest.raises(InvalidInput, match="is empty"):
        table.forget(WHERE, search=[""])
    for term, what in ((b"eta", "the directory"), ("memory://lake", "the directory"), ("ote", "the column note")):
        for dry_run in (True, False):
            with pytest.raises(InvalidInput, match=f"search for term 2: it is in the name of {what}"):
                table.forget(WHERE, search=[ADA, term], dry_run=dry_run)
    with pytest.raises(InvalidInput, match="transaction"), yard.lake.transaction() as tx:
        tx.table("t.t").forget(WHERE)
    table.set_properties({"gc.enabled": "false"})
    for dry_run in (True, False):
        with pytest.raises(InvalidInput, match="gc.enabled"):
            forget(table, dry_run=dry_run)
    assert names(table).count(ADA) == 1
    assert len(table.snapshots()) == 2
    assert table.metadata_location != before
