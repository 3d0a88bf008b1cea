"""Metadata files that leave the log are marked, and deleted after a grace period: each guard has a scenario."""

import json
import logging
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.upkeep.fixtures import Yard, ids, make_yard, rows

from icefield.catalog.catalog import PointerSwap
from icefield.catalog.memory import MemoryCatalog
from icefield.codec.json.metadata_owner import LoggedOutline, decode_logged_outline
from icefield.commit.operations import retired_metadata
from icefield.commit.operations.retired_metadata import LEAST_COMMITS, look_after_commit, mark_retired
from icefield.errors import MissingFile, StorageError
from icefield.leases.folder import gc_folder
from icefield.leases.lease import take_lease
from icefield.leases.record import LeaseKind, first_version, uuid_of_write
from icefield.marks.files import FileKind, table_files
from icefield.marks.mark import RETIRED, list_marks, read_mark, write_mark
from icefield.model.names import parse_table_name
from icefield.table.table import Table

SHORT_LOG = {"write__metadata__previous_versions_max": "2"}
HOUR_S = 3600


def short(yard: Yard, **more: str) -> Table:
    return yard.table(**SHORT_LOG, **more)


def commit(table: Table, times: int) -> list[str]:
    """Commit, and return where each metadata file is."""
    made = []
    for n in range(times):
        table.set_properties({"n": str(n)})
        made.append(table.metadata_location)
    return made


def there(yard: Yard, locations: Sequence[str]) -> list[str]:
    return [each for each in locations if each in yard.files()]


def marked(yard: Yard, table: Table) -> list[list[str]]:
    """The files of each mark of metadata files."""
    marks = list_marks(yard.store, [gc_folder(table.metadata)])
    uuid_ = table.metadata.table_uuid
    return [sorted(read_mark(yard.store, m, uuid_).location.to_pylist()) for m in marks if m.reason == RETIRED]


def audited(yard: Yard, table: Table) -> list[str]:
    found = [file.location for file in yard.store.list(f"{gc_folder(table.metadata)}/audit")]
    audits = [pq.read_table(yard.store.open_input(each)) for each in found if each.endswith(".parquet")]
    return sorted(location for audit in audits for location in audit["location"].to_pylist())


def forge(table: Table, number: int, log: Sequence[str], **changes: object) -> str:
    """Write a metadata file into the table's directory, like its newest but for the log and some keys."""
    store = table._context.store
    document = {**json.loads(store.read(table.metadata_location)), **changes}
    document["metadata-log"] = [{"timestamp-ms": 1, "metadata-file": each} for each in log]
    location = f"{table.location}/metadata/{number:05d}-{uuid.UUID(int=number)}.metadata.json"
    store.put_new(location, json.dumps(document).encode())
    return location


def point(yard: Yard, location: str, name: str = "t.t") -> Table:
    table = parse_table_name(name)
    pointers = yard.lake.catalog.pointers([table])
    yard.lake.catalog.swap([PointerSwap(table, pointers.get(table), location)])
    return yard.lake_again().table(name)


def mark(table: Table) -> str | None:
    return mark_retired(table._head.backend, table._head.load(), [])


# What it does.


def test_a_commit_marks_once_in_a_while_and_deletes_after_the_grace_period() -> None:
    yard = make_yard()
    table = short(yard, icefield__gc__grace_ms=str(3 * HOUR_S * 1000))
    made = [table.metadata_location, *commit(table, 2 * LEAST_COMMITS - 1)]
    first = sorted(made[: LEAST_COMMITS - 2])  # two are in the log of the one that looks
    assert marked(yard, table) == [first]
    assert there(yard, made) == made
    yard.ambient.sleep(HOUR_S - 1)
    commit(table, 1)
    assert marked(yard, table) == [first, sorted(made[LEAST_COMMITS - 2 : -2])]
    assert there(yard, made) == made
    yard.ambient.sleep(1)
    commit(table, LEAST_COMMITS)
    assert there(yard, made) == made[LEAST_COMMITS - 2 :]
    assert audited(yard, table) == first


def test_a_look_is_made_once_in_as_many_commits_as_the_log_has_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = list[str]()
    real = retired_metadata.mark_retired

    def look(backend: Any, version: Any, marks: Any) -> str | None:
        looks.append(version.location)
        return real(backend, version, marks)

    monkeypatch.setattr(retired_metadata, "mark_retired", look)
    yard = make_yard()
    commit(yard.table(write__metadata__previous_versions_max="20"), 60)
    assert len(looks) == 3
    looks.clear()
    commit(yard.table("t.shortest", write__metadata__previous_versions_max="1"), 60)
    assert len(looks) == 60 // LEAST_COMMITS


def test_a_look_that_failed_is_made_up_for_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    yard = make_yard()
    table = short(yard, icefield__gc__grace_ms=str(HOUR_S * 1000))
    with monkeypatch.context() as patch:
        patch.setattr(retired_metadata, "write_mark", _fails)
        made = [table.metadata_location, *commit(table, LEAST_COMMITS)]
    made += commit(table, LEAST_COMMITS)
    assert marked(yard, table) == [sorted(made[:-3])]


def test_nothing_makes_a_commit_fail(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(retired_metadata, "list_marks", _fails)
    yard = make_yard()
    table = short(yard)
    with caplog.at_level(logging.WARNING, "icefield.upkeep"):
        commit(table, LEAST_COMMITS)
    assert "old metadata files of t.t were not removed: StorageError: no" in caplog.text
    assert table.refresh().properties["n"] == str(LEAST_COMMITS - 1)


def _fails(*_: object) -> Any:
    raise StorageError("no")


def test_a_sweep_marks_what_left_the_log_and_leaves_no_mark_twice() -> None:
    yard = make_yard()
    table = short(yard, icefield__gc__grace_ms=str(3 * HOUR_S * 1000))
    made = [table.metadata_location, *commit(table, 4)]
    assert table.sweep(dry_run=True).waiting == ()
    (waiting,) = table.sweep().waiting
    assert (waiting.files, waiting.reason) == (2, "within the grace period, for another 1.0 hours")
    assert waiting.bytes == sum(len(yard.store.read(each)) for each in made[:2])
    assert table.sweep().waiting == (waiting,)
    yard.ambient.sleep(HOUR_S)
    assert table.sweep().kinds == {"metadata": 2}
    assert there(yard, made) == made[2:]
    assert audited(yard, table) == sorted(made[:2])
    assert table.sweep().files_deleted == 0


def test_what_orphans_have_marked_is_not_marked_again() -> None:
    yard = make_yard()
    table = short(yard, icefield__gc__grace_ms=str(3 * HOUR_S * 1000))
    commit(table, 4)
    assert table.remove_orphans(unsafe=True).files_marked == 2
    assert marked(yard, table) == []
    commit(table, LEAST_COMMITS - 4)
    assert [len(files) for files in marked(yard, table)] == [LEAST_COMMITS - 4]


def test_one_look_reads_only_so_many_files_and_the_rest_are_orphans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retired_metadata, "MOST_RETIRED", 5)
    yard = make_yard()
    table = short(yard)
    table.set_properties({"write.metadata.delete-after-commit.enabled": "false"})
    made = [table.metadata_location, *commit(table, LEAST_COMMITS + 4)]
    assert there(yard, made) == made
    table.set_properties({"write.metadata.delete-after-commit.enabled": "true"})
    assert table.sweep().files_deleted == 5
    table.remove_orphans(unsafe=True)
    assert there(yard, made) == made[-2:]


def test_the_last_grace_that_the_table_allows_is_the_shorter_one() -> None:
    yard = make_yard()
    table = short(yard, icefield__gc__metadata_grace_ms=str(9 * HOUR_S * 1000))
    commit(table, 4)
    assert table.sweep().kinds == {"metadata": 2}  # the grace period of the table is none


@pytest.mark.parametrize(
    ("given", "goes"),
    [
        ({}, True),
        ({"write__metadata__delete_after_commit__enabled": "false"}, False),
        ({"gc__enabled": "false"}, False),
        ({"gc__enabled": "false", "write__metadata__delete_after_commit__enabled": "true"}, True),
    ],
)
def test_the_properties_say_whether_old_metadata_goes(given: dict[str, str], goes: bool) -> None:
    yard = make_yard()
    table = short(yard, **given)
    made = commit(table, LEAST_COMMITS)
    assert (there(yard, made) == made[-3:]) is goes
    assert (there(yard, made) == made) is not goes


# Guards.


def file_of_another_table(yard: Yard) -> None:
    """The log names metadata of another table that somebody copied here."""
    table = short(yard)
    theirs = json.loads(yard.store.read(yard.table("t.other").metadata_location))
    copied = forge(table, 1, [], **{"table-uuid": theirs["table-uuid"]})
    table = point(yard, forge(table, 3, [forge(table, 2, [copied])]))
    assert mark(table) is None


def file_of_another_entry(yard: Yard) -> None:
    """The log names a file of the same table in another catalog."""
    table = short(yard)
    copied = forge(table, 1, [], **{"icefield-entry": {"entry": "other", "since": "00000"}})
    table = point(yard, forge(table, 3, [forge(table, 2, [copied])]))
    assert mark(table) is None


def file_elsewhere(yard: Yard) -> None:
    """The log names a file below the metadata directory, of another table there."""
    table = short(yard)
    nested = f"{table.location}/metadata/nested/00001-{uuid.UUID(int=1)}.metadata.json"
    yard.store.put_new(nested, yard.store.read(table.metadata_location))
    table = point(yard, forge(table, 3, [forge(table, 2, [nested])]))
    assert mark(table) is None


def newer_file_in_an_old_log(yard: Yard) -> None:
    """An old log names a file of a commit in progress."""
    table = short(yard)
    coming = forge(table, 4, [])
    table = point(yard, forge(table, 3, [forge(table, 2, [coming])]))
    assert mark(table) is None


def newer_file_behind_one_that_is_newer(yard: Yard) -> None:
    """The log itself names a file with a higher number than the current one, and that names a commit in progress."""
    table = short(yard)
    coming = forge(table, 4, [])
    table = point(yard, forge(table, 3, [forge(table, 5, [coming])]))
    assert mark(table) is None


def file_that_is_still_in_the_log(yard: Yard) -> None:
    """A log in another order: what its first file names comes after it."""
    table = short(yard)
    first = forge(table, 1, [])
    table = point(yard, forge(table, 3, [forge(table, 2, [first]), first]))
    assert mark(table) is None


def file_that_another_name_points_at(yard: Yard) -> None:
    table = short(yard)
    made = [table.metadata_location, *commit(table, 4)]
    point(yard, made[1], "t.theirs")
    assert mark(table) is not None
    assert marked(yard, table) == [[made[0]]]


def name_that_came_after_the_mark(yard: Yard) -> None:
    """Between the mark and the sweep of a commit, a client without guards adds a name."""
    table = short(yard, icefield__gc__grace_ms=str(HOUR_S * 1000))
    made = commit(table, LEAST_COMMITS)
    yard.ambient.sleep(HOUR_S)
    point(yard, made[0], "t.theirs")
    commit(table, LEAST_COMMITS)
    assert there(yard, made[:2]) == made[:1]


def version_that_was_registered_again(yard: Yard) -> None:
    """A table goes back to an old version, whose log is that of then, while a commit before that still looks."""
    table = short(yard, icefield__gc__grace_ms=str(HOUR_S * 1000))
    made = commit(table, LEAST_COMMITS)
    landed = table._head.load()
    yard.lake.drop_table("t.t")
    again = yard.lake.register_table("t.t", made[2])
    yard.ambient.sleep(HOUR_S)
    look_after_commit(table._head.backend, parse_table_name("t.t"), landed)
    needed = [entry.metadata_file for entry in again.metadata.metadata_log]
    assert there(yard, needed) == needed


def writer_that_holds_its_lease(yard: Yard) -> None:
    """A writer has landed, and stopped before it ended its lease."""
    table = short(yard)
    record = first_version(LeaseKind.WRITER, uuid.UUID(int=2**127).hex, table.metadata)
    lease = take_lease(yard.store, yard.ambient, gc_folder(table.metadata), record)
    name = uuid_of_write(lease.record.lease, uuid.UUID(int=1))
    mine = f"{table.location}/metadata/00001-{name}.metadata.json"
    yard.store.put_new(mine, yard.store.read(forge(table, 1, [table.metadata_location])))
    table = point(yard, forge(table, 3, [forge(table, 2, [mine])]))
    commit(table, LEAST_COMMITS - 3)
    assert there(yard, [mine]) == [mine]
    assert [mine in files for files in marked(yard, table)] == [True]
    lease.end()
    commit(table, LEAST_COMMITS)
    assert there(yard, [mine]) == []


def grace_period(yard: Yard) -> None:
    table = short(yard, icefield__gc__grace_ms=str(HOUR_S * 1000))
    made = commit(table, 2 * LEAST_COMMITS)
    assert there(yard, made) == made


def mark_that_somebody_forged(yard: Yard) -> None:
    """A mark of metadata files names other files; the commit deletes none of them."""
    table = short(yard)
    table.append(rows(1))
    (data,) = table.scan().files()["file_path"].to_pylist()
    files = table_files([data], FileKind.METADATA)
    folder, owner = gc_folder(table.metadata), table.metadata.table_uuid
    write_mark(yard.store, yard.ambient, folder, owner, RETIRED, files)
    commit(table, LEAST_COMMITS)
    assert ids(table) == [1]


def whatever_entry(patch: pytest.MonkeyPatch) -> None:
    real = decode_logged_outline

    def decode(data: bytes, location: str) -> Any:
        found = real(data, location)
        return LoggedOutline(
            location=found.location,
            table_uuid=found.table_uuid,
            icefield_entry=_Anything(),  # type: ignore[arg-type]
            metadata_log=found.metadata_log,
        )

    patch.setattr(retired_metadata, "decode_logged_outline", decode)


def whatever_table(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(retired_metadata, "location_uuid", lambda _: _Anything())
    real = decode_logged_outline

    def decode(data: bytes, location: str) -> Any:
        found = real(data, location)
        return LoggedOutline(
            location=found.location, icefield_entry=found.icefield_entry, metadata_log=found.metadata_log
        )

    patch.setattr(retired_metadata, "decode_logged_outline", decode)


class _Anything:
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False


def whatever_place(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(retired_metadata, "_is_in", lambda *_: True)


def whatever_is_in_the_log(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(retired_metadata, "fold_one", lambda location: str(uuid.uuid4()))


def whatever_number(patch: pytest.MonkeyPatch) -> None:
    numbers = iter(range(1_000, 0, -1))
    patch.setattr(retired_metadata, "metadata_number", lambda _: next(numbers))


def pointers_that_are_not_asked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryCatalog, "pointed_at", lambda *_: set())


def landed_version_taken_for_the_newest(patch: pytest.MonkeyPatch) -> None:
    real, seen = retired_metadata.look_after_commit, list[Any]()

    def look(backend: Any, table: Any, landed: Any) -> None:
        seen.append(landed)
        real(backend, table, landed)

    class Stale:
        def __init__(self, _: object) -> None:
            pass

        def load(self, _: object) -> Any:
            return seen[-1]

    patch.setitem(globals(), "look_after_commit", look)
    patch.setattr(retired_metadata, "PointerTableOperations", Stale)


def leases_that_are_not_asked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(retired_metadata, "sample_leases", lambda *_: [])


def no_grace(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(retired_metadata, "grace_of", lambda *_: 0)


GUARDS: dict[Callable[[Yard], None], Callable[[pytest.MonkeyPatch], None]] = {
    file_of_another_table: whatever_table,
    file_of_another_entry: whatever_entry,
    file_elsewhere: whatever_place,
    newer_file_in_an_old_log: whatever_number,
    newer_file_behind_one_that_is_newer: whatever_number,
    file_that_is_still_in_the_log: whatever_is_in_the_log,
    file_that_another_name_points_at: pointers_that_are_not_asked,
    name_that_came_after_the_mark: pointers_that_are_not_asked,
    version_that_was_registered_again: landed_version_taken_for_the_newest,
    writer_that_holds_its_lease: leases_that_are_not_asked,
    grace_period: no_grace,
    mark_that_somebody_forged: whatever_place,
}


@pytest.mark.every_case
@pytest.mark.parametrize("scenario", GUARDS, ids=lambda scenario: scenario.__name__)
def test_the_guard_holds(scenario: Callable[[Yard], None]) -> None:
    scenario(make_yard())


@pytest.mark.every_case
@pytest.mark.parametrize("scenario", GUARDS, ids=lambda scenario: scenario.__name__)
def test_the_scenario_breaks_without_the_guard(
    scenario: Callable[[Yard], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    GUARDS[scenario](monkeypatch)
    with pytest.raises((AssertionError, MissingFile)):
        scenario(make_yard())
