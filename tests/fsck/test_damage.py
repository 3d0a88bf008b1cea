"""Every kind of damage is found by the check that names it, and by no other."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from tests.fsck.damage import (
    Change,
    data_files,
    delete_files,
    edit_all_lists,
    edit_list,
    edit_manifest,
    edit_metadata,
    entries,
    head,
    make_table,
    manifests,
    open_lake,
    parquet_of_size,
    replace_file,
)

from icefield.catalog.catalog import PointerSwap
from icefield.codec.json.metadata import decode_metadata
from icefield.codec.manifest.list import decode_manifest_list
from icefield.fsck.finding import HARMLESS, QUESTIONS, Check, TableFsck
from icefield.lake import Lake
from icefield.model.names import parse_table_name
from icefield.table.table import Table

Damage = Callable[[Lake, Table], None]


@dataclass(frozen=True)
class Case:
    """A kind of damage; versions: the format versions that have what it damages."""

    name: str
    check: Check
    damage: Damage
    versions: tuple[int, ...] = (1, 2, 3)
    deep: bool = False
    partitioned: bool = False


CASES: list[Case] = []


def case(
    check: Check, *, versions: tuple[int, ...] = (1, 2, 3), deep: bool = False, partitioned: bool = False
) -> Callable[[Damage], Damage]:
    def add(damage: Damage) -> Damage:
        CASES.append(Case(damage.__name__, check, damage, versions, deep, partitioned))
        return damage

    return add


def in_metadata(check: Check, name: str, change: Change, versions: tuple[int, ...] = (1, 2, 3)) -> None:
    CASES.append(Case(name, check, lambda lake, table: edit_metadata(lake, table, change), versions))


def in_summary(key: str, value: str) -> Change:
    return lambda document: document["snapshots"][-1]["summary"].update({key: value})


in_metadata(Check.REFS, "a tag of no snapshot", lambda d: d["refs"].update(lost={"snapshot-id": 1, "type": "tag"}))
in_metadata(
    Check.REFS, "a branch of no snapshot", lambda d: d["refs"].update(lost={"snapshot-id": 1, "type": "branch"})
)
in_metadata(
    Check.HISTORY,
    "a snapshot that is its own ancestor",
    lambda d: d["snapshots"][0].update({"parent-snapshot-id": d["snapshots"][-1]["snapshot-id"]}),
)
in_metadata(Check.HISTORY, "a snapshot twice", lambda d: d["snapshots"].insert(0, d["snapshots"][0]))
in_metadata(
    Check.HISTORY,
    "a log entry of no snapshot",
    lambda d: d["snapshot-log"].insert(0, {"timestamp-ms": 1, "snapshot-id": 1}),
)
in_metadata(Check.HISTORY, "a log out of order", lambda d: d["snapshot-log"][1].update({"timestamp-ms": 1}))
in_metadata(Check.HISTORY, "a log that ends too early", lambda d: d["snapshot-log"].pop())
in_metadata(
    Check.SEQUENCE_NUMBERS,
    "a last sequence number too low",
    lambda d: d.update({"last-sequence-number": 2}),
    (2, 3),
)
in_metadata(
    Check.SEQUENCE_NUMBERS,
    "a sequence number twice",
    lambda d: d["snapshots"][2].update({"sequence-number": d["snapshots"][3]["sequence-number"]}),
    (2, 3),
)
in_metadata(
    Check.SEQUENCE_NUMBERS,
    "a snapshot older than its parent",
    lambda d: d["snapshots"][-1].update({"sequence-number": 1}),
    (2, 3),
)
in_metadata(Check.ROW_IDS, "a next row id too low", lambda d: d.update({"next-row-id": 3}), (3,))
in_metadata(Check.ROW_IDS, "row ids assigned twice", lambda d: d["snapshots"][1].update({"first-row-id": 0}), (3,))
in_metadata(Check.SCHEMAS, "a schema of no table", lambda d: d["snapshots"][0].update({"schema-id": 99}))
for summary_key in ("total-records", "total-data-files", "total-files-size", "total-delete-files"):
    in_metadata(Check.SUMMARIES, f"a wrong {summary_key}", in_summary(summary_key, "123456"))
in_metadata(Check.SUMMARIES, "a wrong total-position-deletes", in_summary("total-position-deletes", "9"), (2, 3))
in_metadata(
    Check.SUMMARIES, "a wrong added-records", lambda d: d["snapshots"][0]["summary"].update({"added-records": "5"})
)
in_metadata(Check.UNREADABLE_FILES, "a snapshot of nonsense", lambda d: d["snapshots"][0].update({"timestamp-ms": "x"}))


@case(Check.MISSING_FILES)
def no_data_file(lake: Lake, table: Table) -> None:
    lake.store.delete(data_files(table)[0])


@case(Check.MISSING_FILES, versions=(1, 3))  # in version 2 it leaves deletes behind
def no_data_file_of_an_old_snapshot(lake: Lake, table: Table) -> None:
    gone = data_files(table)
    table.overwrite(pa.table({"id": [1], "p": ["x"], "text": [""]}))
    lake.store.delete(gone[0])


@case(Check.MISSING_FILES, versions=(2, 3))
def no_delete_file(lake: Lake, table: Table) -> None:
    lake.store.delete(delete_files(table)[0])


@case(Check.MISSING_FILES)
def no_manifest(lake: Lake, table: Table) -> None:
    lake.store.delete(manifests(lake, table, 0)[0])


@case(Check.MISSING_FILES)
def no_manifest_list(lake: Lake, table: Table) -> None:
    lake.store.delete(head(table).manifest_list)


@case(Check.MISSING_FILES)
def no_manifest_list_of_an_old_snapshot(lake: Lake, table: Table) -> None:
    lake.store.delete(table.snapshots()[0].manifest_list)


@case(Check.MISSING_FILES)
def no_statistics_file(lake: Lake, table: Table) -> None:
    lake.store.delete(f"{table.location}/metadata/a.stats")


@case(Check.SIZES)
def a_data_file_cut_short(lake: Lake, table: Table) -> None:
    location = data_files(table)[0]
    replace_file(lake, location, lake.store.read(location)[:-1])


@case(Check.SIZES, versions=(2, 3))
def a_delete_file_cut_short(lake: Lake, table: Table) -> None:
    location = delete_files(table)[0]
    replace_file(lake, location, lake.store.read(location)[:-1])


@case(Check.SIZES)
def an_empty_data_file(lake: Lake, table: Table) -> None:
    replace_file(lake, data_files(table)[-1], b"")


@case(Check.SIZES)
def a_manifest_cut_short(lake: Lake, table: Table) -> None:
    location = manifests(lake, table, 0)[0]
    replace_file(lake, location, lake.store.read(location)[:-1])


@case(Check.SIZES)
def a_statistics_file_of_another_size(lake: Lake, table: Table) -> None:
    replace_file(lake, f"{table.location}/metadata/a.stats", b"")


@case(Check.UNREADABLE_FILES)
def a_manifest_of_zeros(lake: Lake, table: Table) -> None:
    location = manifests(lake, table, 0)[0]
    replace_file(lake, location, bytes(len(lake.store.read(location))))


@case(Check.UNREADABLE_FILES)
def statistics_without_a_file(lake: Lake, table: Table) -> None:
    edit_metadata(lake, table, lambda d: d["statistics"][0].pop("statistics-path"))


@case(Check.UNREADABLE_FILES)
def a_manifest_list_of_zeros(lake: Lake, table: Table) -> None:
    replace_file(lake, head(table).manifest_list, bytes(100))


@case(Check.UNREADABLE_FILES)
def the_manifest_list_of_another_snapshot(lake: Lake, table: Table) -> None:
    first, second = table.snapshots()[:2]
    replace_file(lake, second.manifest_list, lake.store.read(first.manifest_list))


@case(Check.POINTER)
def no_metadata_file(lake: Lake, table: Table) -> None:
    lake.store.delete(table.metadata_location)


@case(Check.POINTER)
def a_metadata_file_of_nonsense(lake: Lake, table: Table) -> None:
    replace_file(lake, table.metadata_location, b"{}")


@case(Check.POINTER)
def a_catalog_that_went_back_two_versions(lake: Lake, table: Table) -> None:
    before = table.metadata_location
    table.set_properties({"a": "1"})
    table.set_properties({"a": "2"})
    lake.catalog.swap([PointerSwap(parse_table_name("a.t"), table.metadata_location, before)])


@case(Check.POINTER)
def a_catalog_that_went_back_and_on(lake: Lake, table: Table) -> None:
    before = table.metadata_location
    for number in range(4):
        table.set_properties({"a": str(number)})
    lake.catalog.swap([PointerSwap(parse_table_name("a.t"), table.metadata_location, before)])
    lake.table("a.t").set_properties({"b": "1"})


@case(Check.POINTER)
def a_commit_that_crashed_before_its_swap(lake: Lake, table: Table) -> None:
    before = table.metadata_location
    table.set_properties({"a": "1"})
    lake.catalog.swap([PointerSwap(parse_table_name("a.t"), table.metadata_location, before)])
    lake.ambient.sleep(2 * 3600)


for column in ("added_files_count", "added_rows_count", "existing_files_count", "deleted_rows_count"):

    def miscount(lake: Lake, table: Table, column: str = column) -> None:
        edit_all_lists(lake, table, manifests(lake, table, 0)[0], {column: 77})

    CASES.append(Case(f"a wrong {column}", Check.COUNTS, miscount))


@case(Check.COUNTS)
def lists_that_disagree(lake: Lake, table: Table) -> None:
    edit_list(lake, table, lambda rows: rows[-1].update(added_snapshot_id=5))


@case(Check.COUNTS, versions=(2, 3))
def a_manifest_of_deletes_listed_as_one_of_data(lake: Lake, table: Table) -> None:
    path = manifests(lake, table, 1)[0]
    row_id = {"first_row_id": 0} if table.metadata.format_version == 3 else {}
    edit_all_lists(lake, table, path, {"content": 0, **row_id})


@case(Check.DUPLICATES)
def a_manifest_listed_twice(lake: Lake, table: Table) -> None:
    edit_list(lake, table, lambda rows: rows.append(rows[-1]))


@case(Check.DUPLICATES)
def a_file_twice_in_a_manifest(lake: Lake, table: Table) -> None:
    files = table.inspect("data_files").to_arrow().read_all().to_pylist()
    path = manifests(lake, table, 0)[0]
    # Under the name of a file of another manifest, so that no count changes.
    name = next(f["file_path"] for f in files if f["file_path"] != entries(lake, path)[0]["file_path"])
    mine = next(f for f in files if f["file_path"] == name)
    size = mine["file_size_in_bytes"]
    edit_manifest(lake, table, path, lambda rows: rows[0].update(file_path=name, file_size_in_bytes=size))
    _fix_bytes(lake, table)


def _fix_bytes(lake: Lake, table: Table) -> None:
    """Take the total of bytes out of the summaries, which a replaced entry makes wrong."""

    def change(document: dict[str, Any]) -> None:
        for snapshot in document["snapshots"]:
            snapshot["summary"].pop("total-files-size", None)

    edit_metadata(lake, table, change)


@case(Check.SCHEMAS)
def a_partition_spec_of_no_table(lake: Lake, table: Table) -> None:
    edit_all_lists(lake, table, manifests(lake, table, 0)[0], {"partition_spec_id": 9})


@case(Check.SEQUENCE_NUMBERS, versions=(2, 3))
def a_least_sequence_number_too_high(lake: Lake, table: Table) -> None:
    edit_all_lists(lake, table, manifests(lake, table, 0)[-1], {"min_sequence_number": 3})


@case(Check.SEQUENCE_NUMBERS, versions=(2, 3))
def a_manifest_newer_than_its_snapshot(lake: Lake, table: Table) -> None:
    edit_all_lists(lake, table, manifests(lake, table, 1)[0], {"sequence_number": 40})


@case(Check.SEQUENCE_NUMBERS, versions=(2, 3))
def a_file_newer_than_its_manifest(lake: Lake, table: Table) -> None:
    path = manifests(lake, table, 1)[0]
    edit_manifest(lake, table, path, lambda rows: rows[0].update(sequence_number=30))


@case(Check.ROW_IDS, versions=(3,))
def files_with_the_same_row_ids(lake: Lake, table: Table) -> None:
    edit_all_lists(lake, table, manifests(lake, table, 0)[0], {"first_row_id": 0})


@case(Check.DELETES, versions=(3,))
def two_vectors_of_one_data_file(lake: Lake, table: Table) -> None:
    def change(rows: list[dict[str, Any]]) -> None:
        assert len(rows) == 2
        rows[0].update(referenced_data_file=rows[1]["referenced_data_file"])

    edit_manifest(lake, table, manifests(lake, table, 1)[0], change)


@case(Check.DELETES, versions=(3,))
def a_vector_older_than_its_data_file(lake: Lake, table: Table) -> None:
    second = entries_of_second(lake, table)

    def change(rows: list[dict[str, Any]]) -> None:
        (row,) = (row for row in rows if row["referenced_data_file"] in second)
        row["sequence_number"] = 1

    edit_manifest(lake, table, manifests(lake, table, 1)[0], change, {"min_sequence_number": 1})


def entries_of_second(lake: Lake, table: Table) -> set[str]:
    """Return the data files of the second append."""
    second = table.snapshots()[1]
    rows = decode_manifest_list(lake.store.read(second.manifest_list), second.manifest_list).to_pylist()
    own = next(row["manifest_path"] for row in rows if row["added_snapshot_id"] == second.snapshot_id)
    return {entry["file_path"] for entry in entries(lake, own)}


@case(Check.DELETES, versions=(2, 3), partitioned=True)
def a_delete_of_another_partition(lake: Lake, table: Table) -> None:
    edit_manifest(lake, table, manifests(lake, table, 1)[0], lambda rows: rows[0].update({"partition.1000": "y"}))


@case(Check.DELETES, versions=(3,))
def a_vector_without_its_offset(lake: Lake, table: Table) -> None:
    edit_manifest(lake, table, manifests(lake, table, 1)[0], lambda rows: rows[0].update(content_offset=None))


@case(Check.DANGLING_DELETES, versions=(2,))
def deletes_of_a_file_that_is_gone(lake: Lake, table: Table) -> None:
    deleted = entries(lake, manifests(lake, table, 1)[0])[0]
    named = deleted["referenced_data_file"] or dict(deleted["lower_bounds"])[2147483546].decode()
    table.delete_files([named])


@case(Check.FOOTERS, deep=True)
def a_data_file_with_a_broken_footer(lake: Lake, table: Table) -> None:
    location = data_files(table)[0]
    replace_file(lake, location, lake.store.read(location)[:-4] + b"PAR0")


@case(Check.FOOTERS, deep=True)
def a_data_file_with_other_rows(lake: Lake, table: Table) -> None:
    location = data_files(table)[0]
    replace_file(lake, location, parquet_of_size(len(lake.store.read(location))))


@case(Check.FOOTERS, versions=(3,), deep=True)
def a_broken_deletion_vector(lake: Lake, table: Table) -> None:
    location = delete_files(table)[0]
    data = bytearray(lake.store.read(location))
    data[20] ^= 0xFF
    replace_file(lake, location, bytes(data))


@case(Check.OWNERS)
def a_table_under_two_names(lake: Lake, table: Table) -> None:
    lake.catalog.swap([PointerSwap(parse_table_name("a.other"), None, table.metadata_location)])


def named(case: Case, version: int) -> Any:
    return pytest.param(case, version, id=f"{case.name.replace('_', ' ')}, version {version}")


@pytest.mark.every_case
@pytest.mark.parametrize(("case", "version"), [named(each, each.versions[-1]) for each in CASES])
def test_damage_is_found_by_its_own_check(case: Case, version: int) -> None:
    check_damage(case, version)


@pytest.mark.parametrize(("case", "version"), [named(each, older) for each in CASES for older in each.versions[:-1]])
def test_damage_is_found_in_older_format_versions(case: Case, version: int) -> None:
    check_damage(case, version)


def check_damage(case: Case, version: int) -> None:
    lake = open_lake()
    table = make_table(lake, version, partitioned=case.partitioned)
    assert check(lake, deep=True).findings == ()
    case.damage(lake, table)
    found = check(lake, deep=case.deep)
    assert {finding.check for finding in found.findings} == {case.check}, str(found)
    assert found.counts.keys() == {case.check.value}
    assert found.is_healthy is (case.check in HARMLESS)


def test_every_check_has_a_case_and_a_question() -> None:
    assert {each.check for each in CASES} | {Check.HALF_CHANGED} == set(Check) == set(QUESTIONS)


def check(lake: Lake, *, deep: bool = False) -> TableFsck:
    (found,) = lake.fsck(["a.t"], deep=deep).tables
    return found


def test_a_young_metadata_file_may_belong_to_a_commit_in_progress() -> None:
    lake = open_lake()
    table = make_table(lake, 2)
    before = table.metadata_location
    table.set_properties({"a": "1"})
    newer = table.metadata_location
    lake.catalog.swap([PointerSwap(parse_table_name("a.t"), newer, before)])
    assert check(lake).findings == ()
    lake.ambient.sleep(2 * 3600)
    (finding,) = check(lake).findings
    assert (finding.check, finding.location) == (Check.POINTER, newer)
    lake.table("a.t").set_properties({"b": "1"})
    assert check(lake).findings == (), "the next commit has its number"


def test_a_file_that_expiry_removed_during_the_check_is_not_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = open_lake()
    table = make_table(lake, 3)
    old = table.snapshots()[0]
    table.drop_tag("then")
    real = type(lake.store).size
    done: list[int] = []

    def size(store: Any, location: str) -> int:
        if not done:
            done.append(1)
            lake.table("a.t").expire_snapshots("2100-01-01", keep_last=1)
            lake.store.delete(old.manifest_list)
            lake.store.delete(entry_of(lake, table))
        return int(real(store, location))

    monkeypatch.setattr(type(lake.store), "size", size)
    table.overwrite(pa.table({"id": [1], "p": ["x"], "text": [""]}))
    assert check(lake).findings == ()
    assert done


def entry_of(lake: Lake, table: Table) -> str:
    """Return a data file that only old snapshots have."""
    return sorted(f.location for f in lake.store.list(f"{table.location}/data") if f.location.endswith(".parquet"))[0]


def test_findings_are_bounded_and_counted() -> None:
    lake = open_lake()
    table = make_table(lake, 2)

    def change(document: dict[str, Any]) -> None:
        document["refs"].update({f"t{n}": {"snapshot-id": 5, "type": "tag"} for n in range(1_200)})

    edit_metadata(lake, table, change)
    found = check(lake)
    assert (len(found.findings), found.counts["refs"]) == (1_000, 1_200)
    assert "refs: and 200 more" in str(found)
    assert json.loads(json.dumps(found.as_dict()))["counts"] == {"refs": 1_200}


def test_the_rest_is_checked_where_something_cannot_be_read() -> None:
    lake = open_lake()
    table = make_table(lake, 2)
    no_data_file(lake, table)
    a_manifest_of_zeros(lake, table)
    no_manifest_list_of_an_old_snapshot(lake, table)
    edit_metadata(lake, table, lambda d: d["refs"].update(lost={"snapshot-id": 1, "type": "tag"}))
    found = check(lake)
    assert set(found.counts) == {"refs", "missing-files", "unreadable-files"}
    assert found.counts["missing-files"] == 2
    assert not found.is_healthy


def test_metadata_that_was_damaged_still_decodes() -> None:
    """Otherwise these cases would all be found by the pointer's check."""
    lake = open_lake()
    table = make_table(lake, 3)
    edit_metadata(lake, table, lambda d: d.update({"next-row-id": 3}))
    assert decode_metadata(lake.store.read(table.metadata_location), "f").next_row_id == 3
