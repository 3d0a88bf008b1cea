"""Runs of upkeep: what is due, in which order, within which budget, and beside which others."""

import datetime
import os
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from tests.upkeep.fixtures import Yard, ids, make_yard, rows

from icefield.ambient import SeededAmbient
from icefield.backend import Backend
from icefield.catalog.memory import MemoryCatalog
from icefield.errors import InvalidInput, NoSuchTable
from icefield.lake import Lake
from icefield.leases.claim import take_claim
from icefield.policy.result import Outcome, StepResult, UpkeepResult
from icefield.policy.run import UpkeepProgress
from icefield.storage.memory import MemoryStore
from icefield.table.table import Table

# So that a few files make a table due.
FEW = {"icefield.compaction.min-input-files": "4"}


@pytest.fixture
def yard() -> Yard:
    return make_yard()


def fill(yard: Yard, name: str, appends: int, **properties: str) -> Table:
    given = FEW | {key.replace("__", ".").replace("_", "-"): value for key, value in properties.items()}
    table = yard.lake.create_table(name, "id long, n long", properties=given)
    for number in range(appends):
        table.append(rows(number))
    return table


def step(result: UpkeepResult, table: str, name: str) -> StepResult:
    (found,) = [each for of in result.tables if of.table == table for each in of.steps if each.step == name]
    return found


def outcomes(result: UpkeepResult, name: str) -> dict[str, str]:
    return {table.table: str(step(result, table.table, name).outcome) for table in result.tables}


def test_the_worst_debt_comes_first_and_is_paid(yard: Yard) -> None:
    few = fill(yard, "t.few", 5)
    many = fill(yard, "t.many", 12, icefield__upkeep__rewrite_manifests__min_manifests="8")
    plan = yard.lake.upkeep(dry_run=True)
    assert [(table.table, table.debt) for table in plan.tables] == [("t.many", 3.0), ("t.few", 1.25)]
    done = yard.lake.upkeep()
    assert [table.table for table in done.tables] == ["t.many", "t.few"]
    assert outcomes(done, "compact") == {"t.many": "done", "t.few": "done"}
    assert step(done, "t.many", "compact").reason == "12 files replaced by 1"
    assert step(done, "t.many", "compact").bytes_read > step(done, "t.many", "compact").bytes_written > 0
    assert outcomes(done, "rewrite-manifests") == {"t.many": "done", "t.few": "not due"}
    assert not done.is_failed
    assert (ids(few), ids(many)) == (list(range(5)), list(range(12)))
    assert len(many.scan().files()) == 1
    assert not yard.lake.upkeep(dry_run=True).is_due
    assert many.leases() == []


def test_a_dry_run_changes_nothing(yard: Yard) -> None:
    table = fill(yard, "t.t", 5)
    table.expire_snapshots(datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC))
    before = dict(yard.store._files), table.metadata_location
    planned = yard.lake.upkeep(["t.t"], dry_run=True)
    assert (dict(yard.store._files), table.metadata_location) == before
    assert planned.is_dry_run
    assert outcomes(planned, "compact") == {"t.t": "planned"}
    assert planned.as_dict().keys() == yard.lake.upkeep(["t.t"]).as_dict().keys()


def test_snapshots_expire_and_marked_files_are_swept_when_they_are_due(yard: Yard) -> None:
    table = fill(
        yard,
        "t.t",
        3,
        icefield__gc__grace_ms="3600000",
        icefield__gc__foreign_readers="false",
        history__expire__max_snapshot_age_ms="1000",
    )
    table.delete("id = 0")
    yard.ambient.sleep(10)
    done = yard.lake.upkeep()
    assert step(done, "t.t", "expire").measured["expired-snapshots"] == 3
    assert step(done, "t.t", "expire").bytes_marked > 0
    assert step(done, "t.t", "sweep").outcome is Outcome.NOT_DUE
    yard.ambient.sleep(3600)
    swept = yard.lake.upkeep()
    assert [each.step for each in swept.tables[0].steps if each.outcome is Outcome.DONE] == ["sweep"]
    assert swept.bytes_freed == step(done, "t.t", "expire").bytes_marked
    assert ids(table) == [1, 2]


def test_orphan_files_are_searched_once_in_an_interval_on_all_machines(yard: Yard) -> None:
    table = fill(yard, "t.t", 1)
    orphan = f"{table.location}/data/00000-{table.metadata.table_uuid}.parquet"
    yard.store.put_new(orphan, b"x")
    yard.ambient.sleep(4 * 24 * 3600)
    done = yard.lake.upkeep()
    assert (step(done, "t.t", "orphans").outcome, step(done, "t.t", "orphans").bytes_marked) == (Outcome.DONE, 1)
    yard.ambient.sleep(6 * 24 * 3600)
    other = yard.lake_again()
    assert step(other.upkeep(), "t.t", "orphans").outcome is Outcome.NOT_DUE
    yard.ambient.sleep(24 * 3600)
    again = other.upkeep()
    assert (step(again, "t.t", "orphans").outcome, step(again, "t.t", "orphans").debt >= 1) == (Outcome.DONE, True)
    table.remove_orphans()
    yard.ambient.sleep(6 * 24 * 3600)
    assert step(other.upkeep(dry_run=True), "t.t", "orphans").outcome is Outcome.NOT_DUE


def test_equality_deletes_are_converted(yard: Yard) -> None:
    table = fill(yard, "t.t", 1)
    table.upsert(rows(0, 5), on=["id"], mode="equality")
    done = yard.lake.upkeep()
    assert step(done, "t.t", "convert-deletes").reason == "converted 1 equality delete files"
    assert step(yard.lake.upkeep(dry_run=True), "t.t", "convert-deletes").measured["equality-deletes"] == 0
    assert ids(table) == [0, 5]


def test_position_deletes_are_rewritten_when_there_are_many(yard: Yard) -> None:
    table = yard.lake.create_table("t.t", "id long", properties={"write.delete.mode": "merge-on-read"})
    table.append(pa.table({"id": range(200)}))
    for key in range(7):
        table.delete(f"id = {key}")
    assert step(yard.lake.upkeep(), "t.t", "rewrite-deletes").outcome is Outcome.NOT_DUE
    table.delete("id = 7")
    done = step(yard.lake.upkeep(), "t.t", "rewrite-deletes")
    assert (done.outcome, done.reason) == (Outcome.DONE, "8 delete files replaced by 1")
    table.refresh()
    assert ids(table) == list(range(8, 200))


def test_the_policy_of_a_table_goes_before_that_of_its_namespaces(yard: Yard) -> None:
    yard.lake.create_namespace("a", {"icefield.upkeep.compact.enabled": "false"})
    yard.lake.create_namespace("a.b", {"icefield.upkeep.rewrite-manifests.min-manifests": "3"})
    fill(yard, "a.b.off", 4)
    fill(yard, "a.b.on", 4, icefield__upkeep__compact__enabled="true")
    fill(yard, "t.shared", 4, gc__enabled="false")
    fill(yard, "t.none", 4, icefield__upkeep__enabled="false")
    done = yard.lake.upkeep()
    assert outcomes(done, "compact") == {
        "a.b.off": "skipped",
        "a.b.on": "done",
        "t.shared": "done",
        "t.none": "skipped",
    }
    assert step(done, "a.b.off", "compact").reason == "icefield.upkeep.compact.enabled is false"
    assert step(done, "a.b.off", "rewrite-manifests").outcome is Outcome.DONE
    assert step(done, "t.shared", "orphans").reason == "gc.enabled is false"
    assert step(done, "t.none", "sweep").reason == "icefield.upkeep.enabled is false"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("icefield.upkeep.compact.enabled", "maybe", "cannot be 'maybe'"),
        ("icefield.upkeep.inline.enabled", "true", "is a property of tables"),
        ("icefield.upkeep.compakt", "true", "unknown property"),
        ("icefield.compaction.min-input-files", "4", "is a property of tables"),
        ("icefield.gc.grace-ms", "0", "is a property of tables"),
    ],
)
def test_a_namespace_refuses_what_means_nothing_there(yard: Yard, key: str, value: str, message: str) -> None:
    yard.lake.create_namespace("a")
    for change in (yard.lake.update_namespace_properties, yard.lake.create_namespace):
        with pytest.raises(InvalidInput, match=message):
            change("a", {key: value})
    assert yard.lake.namespace_properties("a").get(key) is None


def test_bytes_are_spent_on_the_worst_tables_and_then_on_none(yard: Yard) -> None:
    fill(yard, "t.few", 5)
    many = fill(yard, "t.many", 12)
    size = sum(many.scan().files()["file_size_in_bytes"].to_pylist())
    done = yard.lake.upkeep(max_bytes=size)
    assert outcomes(done, "compact") == {"t.many": "done", "t.few": "skipped"}
    assert "fits into the 0 bytes" in str(step(done, "t.few", "compact").reason)
    assert outcomes(done, "orphans") == {"t.many": "done", "t.few": "done"}


@pytest.mark.parametrize("wrong", [{"minutes": 0}, {"minutes": float("nan")}, {"max_bytes": -1}, {"tables": ["t.no"]}])
def test_a_budget_that_cannot_be_is_refused(yard: Yard, wrong: dict[str, object]) -> None:
    with pytest.raises((InvalidInput, NoSuchTable), match="a run cannot|no table t.no"):
        yard.lake.upkeep(**wrong)  # type: ignore[arg-type]


def test_when_the_time_is_over_nothing_new_is_begun(yard: Yard) -> None:
    fill(yard, "t.few", 5)
    fill(yard, "t.many", 12, icefield__upkeep__rewrite_manifests__min_manifests="8")
    begun: list[str] = []

    def work(progress: UpkeepProgress) -> None:
        if progress.step is not None:
            begun.append(f"{progress.table} {progress.step}")
            yard.ambient.sleep(40)

    done = yard.lake.upkeep(minutes=1, on_progress=work)
    assert begun[:2] == ["t.many compact", "t.many rewrite-manifests"]
    assert outcomes(done, "compact") == {"t.many": "done", "t.few": "skipped"}
    assert step(done, "t.few", "compact").reason == "the time of the run is over"


def test_tables_for_which_there_is_no_time_are_not_measured(yard: Yard) -> None:
    for number in range(4):
        fill(yard, f"t.t{number}", 1)
    done = yard.lake.upkeep(minutes=2, on_progress=lambda _: yard.ambient.sleep(25))
    assert sorted(bool(table.skipped) for table in done.tables) == [False, False, True, True]
    assert not done.is_failed


def test_a_compaction_ends_with_a_commit_when_the_time_is_over() -> None:
    ambient = SeededAmbient(3, tick_ms=1000)  # every look at the clock takes a second
    store = MemoryStore(ambient)
    lake = Lake(Backend(MemoryCatalog("c"), store, ambient), "memory://lake")
    properties = {"icefield.compaction.commit-size-bytes": "1", "icefield.compaction.min-input-files": "4"}
    table = lake.create_table("t.t", "id long, n long", partition_by=["n"], properties=properties)
    for number in range(4):
        table.append(rows(*range(8)).set_column(0, "id", [[number] * 8]))
    done = lake.upkeep(minutes=0.3)
    reason = str(step(done, "t.t", "compact").reason)
    assert "groups are left for the next run" in reason
    made = [s for s in table.snapshots() if s.operation == "replace"]
    assert 0 < len(made) < 8
    assert table.count() == 32
    assert step(lake.upkeep(dry_run=True), "t.t", "compact").measured["files-to-rewrite"] == (8 - len(made)) * 4


def test_a_table_that_fails_does_not_stop_the_others(yard: Yard) -> None:
    fill(yard, "t.good", 4)
    lost, broken = fill(yard, "t.lost", 4), fill(yard, "t.broken", 4)
    yard.store.delete(lost.metadata_location)
    (manifest, *_) = broken.inspect("manifests").to_arrow().read_all()["path"].to_pylist()
    yard.store.delete(manifest)
    done = yard.lake_again().upkeep()
    assert done.is_failed
    failed = {table.table: table for table in done.tables if table.is_failed}
    assert failed.keys() == {"t.lost", "t.broken"}
    assert failed["t.lost"].error is not None
    assert step(done, "t.broken", "compact").outcome is Outcome.FAILED
    assert outcomes(UpkeepResult([table for table in done.tables if table.table == "t.good"]), "compact") == {
        "t.good": "done"
    }


def test_wrong_thresholds_of_compaction_stop_no_other_step(yard: Yard) -> None:
    table = fill(
        yard,
        "t.t",
        3,
        icefield__gc__grace_ms="3600000",
        icefield__gc__foreign_readers="false",
        history__expire__max_snapshot_age_ms="1000",
        icefield__compaction__max_file_size_bytes="1",
    )
    table.delete("id = 0")
    yard.ambient.sleep(10)
    for last in ("expire", "sweep"):
        done = yard.lake.upkeep()
        assert [each.step for each in done.tables[0].steps if each.outcome is Outcome.FAILED] == ["compact"], str(done)
        assert step(done, "t.t", last).outcome is Outcome.DONE, str(done)
        yard.ambient.sleep(3600)


def test_two_machines_share_the_tables(yard: Yard) -> None:
    """The second run comes while the first is at its first table; it does the others, and nothing is done twice."""
    tables = [fill(yard, f"t.t{number}", 4 * (number + 1)) for number in range(3)]
    inner: list[UpkeepResult] = []

    def come(progress: UpkeepProgress) -> None:
        if progress.step == "compact" and not inner:
            inner.append(yard.lake_again().upkeep())

    outer = yard.lake.upkeep(on_progress=come)
    assert outcomes(inner[0], "compact") == {"t.t2": "skipped", "t.t1": "done", "t.t0": "done"}
    assert "is at it" in str(step(inner[0], "t.t2", "compact").reason)
    assert outcomes(outer, "compact") == {"t.t2": "done", "t.t1": "not due", "t.t0": "not due"}
    made = [[s.summary.get("added-data-files") for s in t.snapshots() if s.operation == "replace"] for t in tables]
    assert [each.count("1") for each in made] == [1, 1, 1]
    assert [outer.is_failed, inner[0].is_failed] == [False, False]


def test_a_run_whose_claim_was_taken_over_stops_there(yard: Yard) -> None:
    table = fill(yard, "t.t", 8, icefield__upkeep__rewrite_manifests__min_manifests="8")
    asleep: list[str] = []

    def sleep(progress: UpkeepProgress) -> None:
        if progress.step == "rewrite-manifests":
            for _ in range(2):
                asleep.append(take_claim(yard.store, yard.ambient, table.metadata).holder)
                yard.ambient.sleep(3600)

    done = yard.lake.upkeep(on_progress=sleep)
    assert len(asleep) == 2
    assert outcomes(done, "compact") == {"t.t": "done"}
    assert "another process took over" in str(step(done, "t.t", "rewrite-manifests").reason)
    assert not done.is_failed


KILLED = """
import os, signal, sys, icefield
from icefield.leases.claim import take_claim
lake = icefield.connect(sys.argv[1])
take_claim(lake.store, lake.ambient, lake.table("t.t").metadata)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_claim_of_a_killed_process_lapses(lake: Lake) -> None:
    table = lake.create_table("t.t", "id long, n long", properties=FEW)
    for number in range(4):
        table.append(rows(number))
    assert subprocess.run([sys.executable, "-c", KILLED, lake.warehouse], check=False).returncode == -signal.SIGKILL
    for _ in range(2):
        assert "is at it" in str(step(lake.upkeep(), "t.t", "compact").reason)
    (seen,) = Path(table.location.removeprefix("file://"), "metadata", "gc", "sightings").iterdir()
    os.utime(seen, (0, 0))  # that it was first seen long ago
    done = lake.upkeep()
    assert step(done, "t.t", "compact").outcome is Outcome.DONE
    assert table.leases() == []


def test_a_table_that_is_dropped_meanwhile_is_not_a_failure(yard: Yard) -> None:
    fill(yard, "t.t", 4)

    def drop(progress: UpkeepProgress) -> None:
        if progress.step == "compact":
            yard.lake.drop_table("t.t")

    done = yard.lake.upkeep(on_progress=drop)
    assert not done.is_failed
    assert step(done, "t.t", "compact").reason == "the table was dropped"
