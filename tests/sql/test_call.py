"""CALL: procedures with the names, arguments and results of Iceberg's Spark runtime, and our own, without a JVM."""

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield
from icefield.errors import (
    AlreadyExists,
    ConcurrentChange,
    InvalidFilter,
    InvalidInput,
    NeedsSpark,
    NoSuchSnapshot,
    NoSuchTable,
    NotFound,
    Unsupported,
)
from icefield.lake import Lake
from icefield.sql.procedures.registry import PROCEDURES
from icefield.table.table import Table
from tests.sql.running import columns, refused, run


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int32()), "v": [chr(96 + at) for at in ids]})


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().read_all()["id"].to_pylist())


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


@pytest.fixture
def table(lake: Lake) -> Table:
    table = lake.create_table("shop.t", "id int, v string")
    table.append(rows(1, 2))
    table.append(rows(3))
    table.delete("id = 1")
    return table


def versions(table: Table) -> list[int]:
    return [snapshot.snapshot_id for snapshot in table.snapshots()]


def test_arguments_go_by_position_by_name_in_any_case_and_by_parameter(lake: Lake, table: Table) -> None:
    first, second, third = versions(table)
    assert columns(lake, "CALL system.ancestors_of('shop.t')") == ["snapshot_id", "timestamp"]
    call = "CALL icefield.system.rollback_to_snapshot"
    assert run(lake, f"{call}(table => 'shop.t', snapshot_id => {first})") == [(third, first)]
    assert run(lake, f"CALL system.set_current_snapshot('shop.t', {third}L)") == [(first, third)]
    assert run(lake, f"call ICEFIELD.System.Rollback_To_Snapshot(Snapshot_ID => {first}, `table` => '`shop`.t')")
    assert run(lake, "CALL system.set_current_snapshot(?, ?)", ["shop.t", third]) == [(first, third)]
    assert run(lake, f"{call}('shop.t', snapshot_id => :v)", {"v": second}) == [(third, second)]
    assert ids(table) == [1, 2, 3]
    run(lake, "USE shop")
    assert len(run(lake, "CALL ancestors_of('t', NULL)")) == 2


def test_errors_of_a_call_point_at_what_is_wrong(lake: Lake, table: Table) -> None:
    call = "CALL system.rollback_to_snapshot"
    refused(
        lake, f"{call}(table => 'shop.t', TABLE => 'x', snapshot_id => 1)", InvalidInput, at="TABLE =>", match="twice"
    )
    refused(
        lake,
        f"{call}(table => 'shop.t', snapshot => 1)",
        InvalidInput,
        at="snapshot =>",
        match="Did you mean snapshot_id",
    )
    refused(lake, f"{call}(table => 'shop.t')", InvalidInput, at="system", match="needs the argument snapshot_id")
    refused(lake, f"{call}('shop.t', NULL)", InvalidInput, at="NULL", match="needs the argument snapshot_id")
    refused(lake, f"{call}(snapshot_id => 3, 'shop.t')", InvalidInput, at="'shop.t'", match="without a name")
    refused(lake, f"{call}('shop.t', 1, 2)", InvalidInput, at="2)", match="at most 2 arguments")
    refused(lake, f"{call}('shop.t', 'x')", InvalidInput, at="'x'", match="takes bigint")
    refused(lake, f"{call}('shop.t', 1.5)", InvalidInput, at="1.5", match="takes bigint")
    refused(lake, f"{call}('shop.t', 1 2)", InvalidInput, at="2)", match="expected the end")
    refused(lake, f"{call}('shop.t', 99)", NoSuchSnapshot, at="99")
    refused(lake, f"{call}('shop.tt', 1)", NoSuchTable, at="'shop.tt'", match="Did you mean shop.t")
    refused(lake, f"{call}('shop t', 1)", InvalidInput, at="'shop t'", match="not the name of a table")
    refused(
        lake, "CALL system.rollback('shop.t', 1)", NotFound, at="system.rollback", match="Did you mean rollback_to_"
    )
    rewrite = "CALL system.rewrite_data_files('shop.t', options => map('min-input-files'))"
    refused(lake, rewrite, InvalidInput, at="map", match="a value for each key")
    refused(lake, "CALL other.system.fsck()", NotFound, at="other", match="Procedures are in icefield.system")


def test_every_procedure_of_iceberg_is_there_with_its_arguments() -> None:
    wanted = {
        "add_files": "table source_table partition_filter check_duplicate_files parallelism",
        "ancestors_of": "table snapshot_id",
        "cherrypick_snapshot": "table snapshot_id",
        "compute_partition_stats": "table snapshot_id",
        "compute_table_stats": "table snapshot_id columns",
        "create_changelog_view": "table changelog_view options compute_updates identifier_columns net_changes",
        "expire_snapshots": "table older_than retain_last max_concurrent_deletes stream_results snapshot_ids "
        "clean_expired_metadata",
        "fast_forward": "table branch to",
        "migrate": "table properties drop_backup backup_table_name parallelism ignore_missing_files",
        "publish_changes": "table wap_id",
        "register_table": "table metadata_file",
        "remove_orphan_files": "table older_than location dry_run max_concurrent_deletes file_list_view equal_schemes "
        "equal_authorities prefix_mismatch_mode prefix_listing stream_results",
        "rewrite_data_files": "table strategy sort_order options where branch",
        "rewrite_manifests": "table use_caching spec_id sort_by",
        "rewrite_position_delete_files": "table options where",
        "rewrite_table_path": "table source_prefix target_prefix start_version end_version staging_location "
        "create_file_list",
        "rollback_to_snapshot": "table snapshot_id",
        "rollback_to_timestamp": "table timestamp",
        "set_current_snapshot": "table snapshot_id ref",
        "snapshot": "source_table table location properties parallelism ignore_missing_files",
    }
    for name, parameters in wanted.items():
        found = [each.name for each in PROCEDURES[name].parameters]
        assert found[: len(parameters.split())] == parameters.split(), name


def test_a_table_goes_back_to_a_time_and_to_a_tag(lake: Lake, table: Table) -> None:
    first, _, third = versions(table)
    table.create_tag("g", at=first)
    assert run(lake, "CALL system.set_current_snapshot(table => 'shop.t', ref => 'g')") == [(third, first)]
    assert ids(table) == [1, 2]
    table.set_current_snapshot(third)
    moment = datetime.datetime.fromtimestamp(table.snapshots()[-1].timestamp_ms / 1000, datetime.UTC)
    assert run(lake, "CALL system.rollback_to_timestamp('shop.t', :t)", {"t": moment})[0][0] == third
    assert ids(table) in ([1, 2], [1, 2, 3])
    early = "TIMESTAMP '1986-10-26 01:21:00'"
    refused(lake, f"CALL system.rollback_to_timestamp('shop.t', {early})", NoSuchSnapshot, at="TIMESTAMP")
    refused(lake, "CALL system.rollback_to_timestamp('shop.t', 12)", InvalidInput, at="12", match="takes timestamp")
    refused(lake, "CALL system.set_current_snapshot('shop.t')", InvalidInput, at="system", match="either")
    refused(lake, "CALL system.set_current_snapshot('shop.t', 1, 'g')", InvalidInput, at="'g'", match="either")
    refused(lake, "CALL system.set_current_snapshot('shop.t', ref => 'x')", NoSuchSnapshot, at="'x'")


def test_a_branch_is_fast_forwarded_or_made_but_never_merged(lake: Lake, table: Table) -> None:
    head = versions(table)[-1]
    table.create_branch("audit")
    table.at("audit").append(rows(9))
    new = table.refs()["audit"].snapshot_id
    assert run(lake, "CALL system.fast_forward('shop.t', 'main', 'audit')") == [("main", head, new)]
    assert ids(table) == [2, 3, 9]
    assert run(lake, "CALL system.fast_forward('shop.t', 'made', 'audit')") == [("made", None, new)]
    table.append(rows(4))
    table.at("audit").append(rows(5))
    refused(lake, "CALL system.fast_forward('shop.t', 'main', 'audit')", ConcurrentChange, at="'main'")


def test_snapshots_are_picked_by_id_and_by_the_id_of_a_staged_write(lake: Lake, table: Table) -> None:
    table.create_branch("staging")
    table.at("staging").append(rows(8))
    staged = table.refs()["staging"].snapshot_id
    table.append(rows(9))
    [(source, current)] = run(lake, f"CALL system.cherrypick_snapshot('shop.t', {staged})")
    assert (source, current, ids(table)) == (staged, versions(table)[-1], [2, 3, 8, 9])
    again = f"CALL system.cherrypick_snapshot('shop.t', {staged})"
    refused(lake, again, InvalidInput, at=str(staged))
    refused(lake, "CALL system.publish_changes('shop.t', 'job')", NoSuchSnapshot, at="'job'", match="no snapshot")


def test_expiry_counts_files_by_kind(lake: Lake, table: Table) -> None:
    first = versions(table)[0]
    dry = run(lake, f"CALL system.expire_snapshots('shop.t', snapshot_ids => array({first}), dry_run => true)")
    assert (dry, len(versions(table))) == ([(0, 0, 0, 0, 1, 0)], 3)
    assert run(lake, f"CALL system.expire_snapshots('shop.t', snapshot_ids => array({first}))") == dry
    everything = "table => 'shop.t', older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1"
    [(data, _, _, manifests, lists, _)] = run(lake, f"CALL system.expire_snapshots({everything})")
    assert (data, manifests > 0, lists, len(versions(table))) == (1, True, 1, 1)
    newest = versions(table)[0]
    refused(lake, f"CALL system.expire_snapshots('shop.t', snapshot_ids => array({newest}))", InvalidInput, at="array")
    refused(
        lake, "CALL system.expire_snapshots('shop.t', retain_last => 0)", InvalidInput, at="0)", match="at least one"
    )
    refused(lake, "CALL system.expire_snapshots('shop.t', snapshot_ids => array('a'))", InvalidInput, at="array")


def test_equality_deletes_are_counted_apart(lake: Lake) -> None:
    table = lake.create_table("shop.e", "id int not null, v string")
    table.append(rows(1))
    table.upsert(rows(1), on=["id"], mode="equality")
    table.convert_equality_deletes()
    found = run(lake, "CALL system.expire_snapshots('shop.e', TIMESTAMP '2999-01-01 00:00:00')")
    assert found[0][1:3] == (0, 1)


def test_data_files_are_rewritten_packed_sorted_and_clustered(lake: Lake, table: Table) -> None:
    call = "CALL system.rewrite_data_files"
    [(removed, added, size, failed, deletes)] = run(lake, f"{call}('shop.t', options => map('rewrite-all', 'true'))")
    assert (removed, added, size > 0, failed, deletes) == (2, 1, True, 0, 0)
    table.append(rows(7, 5, 6))
    order = "strategy => 'sort', sort_order => 'id DESC NULLS LAST'"
    assert run(lake, f"{call}('shop.t', {order})")[0][:2] == (2, 1)
    assert table.scan().to_arrow().read_all()["id"].to_pylist() == [7, 6, 5, 3, 2]
    assert run(lake, f"{call}('shop.t', sort_order => 'zorder(id, v)')")[0][:2] == (1, 1)
    assert run(lake, f"{call}('shop.t', sort_order => 'zorder(id)')")[0][:2] == (1, 1)
    assert run(lake, f"{call}(table => 'shop.t', options => map('min-input-files', '2'))")[0][:2] == (0, 0)
    assert ids(table) == [2, 3, 5, 6, 7]
    refused(lake, f"{call}('shop.t', 'fast')", InvalidInput, at="'fast'", match="binpack or sort")
    refused(lake, f"{call}('shop.t', 'binpack', 'id')", InvalidInput, at="'id'")
    refused(lake, f"{call}('shop.t', where => 'vv = \"b\"')", InvalidFilter, at="'vv", match="Did you mean 'v'")
    refused(lake, f"{call}('shop.t', options => map('output-spec-id', '1'))", Unsupported, at="map")
    refused(lake, f"{call}('shop.t', options => map('rewrite-all', 'perhaps'))", InvalidInput, at="map")


def test_a_filter_of_a_rewrite_is_read_as_spark_reads_it(lake: Lake) -> None:
    table = lake.create_table("shop.d", "id int, day date", partition_by=["day"])
    for day in (1, 1, 2):
        table.append(pa.table({"id": pa.array([day], pa.int32()), "day": [datetime.date(2026, 1, day)]}))
    where = "where => 'shop.d.day = DATE \"2026-01-01\"'"
    assert run(lake, f"CALL system.rewrite_data_files('shop.d', {where})")[0][:2] == (2, 1)


def test_manifests_and_deletes_are_rewritten(lake: Lake) -> None:
    table = lake.create_table("shop.m", "id int, v string", properties={"write.delete.mode": "merge-on-read"})
    table.append(rows(*range(1, 20)))
    for at in range(1, 6):
        table.delete(f"id = {at}")
    [(removed, added, before, after)] = run(lake, "CALL system.rewrite_position_delete_files('shop.m')")
    assert (removed, added, before > after > 0) == (5, 1, True)
    assert run(lake, "CALL system.rewrite_manifests('shop.m')")[0][0] > 0
    assert ids(table) == list(range(6, 20))
    refused(lake, "CALL system.rewrite_manifests('shop.m', sort_by => array('id'))", Unsupported, at="array")
    text = "CALL system.rewrite_position_delete_files('shop.m', map('x', '1'))"
    refused(lake, text, InvalidInput, at="map", match="unknown option 'x'")


def test_statistics_are_computed_for_columns_and_partitions(lake: Lake, table: Table) -> None:
    first = versions(table)[0]
    [(path,)] = run(lake, f"CALL system.compute_table_stats('shop.t', {first}, array('id'))")
    assert [file.statistics_path for file in table.statistics()] == [path]
    refused(lake, "CALL system.compute_table_stats('shop.t', columns => array('x'))", InvalidInput, at="array")
    refused(lake, "CALL system.compute_partition_stats('shop.t')", InvalidInput, at="'shop.t'", match="not partitioned")
    run(lake, "ANALYZE TABLE shop.t COMPUTE STATISTICS FOR ALL COLUMNS")
    assert len(table.statistics()) == 2
    run(lake, "ANALYZE TABLES IN shop COMPUTE STATISTICS NOSCAN")
    text = "ANALYZE TABLE shop.t COMPUTE STATISTICS FOR COLUMNS id, vv"
    refused(lake, text, InvalidInput, at="vv", match="Did you mean 'v'")
    run(lake, "REFRESH TABLE shop.t")
    refused(lake, "REFRESH TABLE shop.tt", NoSuchTable, at="shop.tt")


def test_a_table_is_registered_and_restored(lake: Lake, table: Table) -> None:
    metadata, newest = table.metadata_location, versions(table)[-1]
    text = f"CALL system.register_table('shop.again', '{metadata}')"
    refused(lake, text, AlreadyExists, at=f"'{metadata}'")
    lake.drop_table("shop.t")
    assert run(lake, text) == [(newest, 2, 2)]
    lake.drop_table("shop.again")
    assert run(lake, "CALL system.undrop('shop.again', to => 'shop.back')") == [("shop.back", newest)]
    assert ids(lake.table("shop.back")) == [2, 3]


def test_files_are_added_by_directory_and_partition(tmp_path: Path) -> None:
    lake = icefield.connect(str(tmp_path / "lake"))
    table = lake.create_table("shop.f", "id long, p string", partition_by=["p"])
    for name in ("a b", "c"):
        folder = tmp_path / "lake" / "files" / f"p={name.replace(' ', '%20')}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [len(name)]}), folder / "x.parquet")
    source = f"source_table => '`parquet`.`{tmp_path}/lake/files`'"
    call = f"CALL system.add_files(table => 'shop.f', {source}"
    assert run(lake, f"{call}, partition_filter => map('p', 'a b'))") == [(1, 1)]
    assert sorted(table.scan().to_arrow().read_all()["p"].to_pylist()) == ["a b"]
    refused(lake, f"{call}, partition_filter => map('p', 'x'))", InvalidInput, at="map")
    refused(lake, "CALL system.add_files('shop.f', 'other.table')", Unsupported, at="'other.table'")


def test_upkeep_checks_and_reports_return_rows(lake: Lake, table: Table) -> None:
    assert {row[0] for row in run(lake, "CALL system.upkeep(dry_run => true)")} == {"shop.t"}
    assert run(lake, "CALL system.fsck('shop.t', deep => true)") == []
    assert {row[1] for row in run(lake, "CALL system.report()")} >= {"live", "history", "orphans"}
    assert run(lake, "CALL system.leases('shop.t')") == []
    assert run(lake, "CALL system.remove_orphan_files(table => 'shop.t', dry_run => true)") == []
    assert run(lake, "CALL system.sweep('shop.t')") == [("shop.t", 0, 0, 0)]
    assert run(lake, "CALL system.purge_dropped()") == []
    [(finished, deleted, *_)] = run(lake, "CALL system.forget('shop.t', 'id = 2', dry_run => true)")
    assert (finished, deleted) == (False, 1)
    assert ids(table) == [2, 3]
    lake.store.delete(table.scan().files()["file_path"][0].as_py())
    assert [row[1] for row in run(lake, "CALL system.fsck('shop.t')")] == ["missing-files"]


def test_a_table_that_cannot_be_measured_is_reported_with_its_error(lake: Lake, table: Table) -> None:
    lake.create_table("shop.u", "id int").append(pa.table({"id": pa.array([1], pa.int32())}))
    lake.store.delete(table.snapshots()[0].manifest_list)
    found = run(lake, "CALL system.report()")
    assert [row[:4] for row in found if row[0] == "shop.t"] == [("shop.t", None, None, None)]
    assert "no file at" in next(row[4] for row in found if row[0] == "shop.t")
    assert {row[4] for row in found if row[0] == "shop.u"} == {None}


def test_a_filter_of_forget_is_read_as_spark_reads_it(lake: Lake, table: Table) -> None:
    for where in ("shop.t.id = 2", 't.v = "b"'):
        call = f"CALL system.forget('shop.t', '{where}', dry_run => true)"
        assert [row[1] for row in run(lake, call)] == [1]


def test_ancestors_are_those_of_the_branch_that_is_named(lake: Lake, table: Table) -> None:
    before = versions(table)
    table.create_branch("audit")
    staged = table.at("audit").append(rows(5))
    assert staged is not None
    for name, ids_ in (("shop.t", before), ("shop.t.branch_audit", [*before, staged.snapshot_id])):
        found = run(lake, f"CALL system.ancestors_of('{name}')")
        assert [row[0] for row in found] == ids_[::-1]


def test_orphan_files_are_named(lake: Lake, table: Table) -> None:
    orphan = f"{table.location}/data/00000-0-11111111-2222-3333-4444-555555555555-00001.parquet"
    lake.store.put_new(orphan, b"x")
    past = datetime.datetime.fromtimestamp(lake.ambient.now_ms() / 1000, datetime.UTC) - datetime.timedelta(days=9)
    assert run(lake, "CALL system.remove_orphan_files('shop.t', :t, dry_run => true)", {"t": past}) == []
    text = "CALL system.remove_orphan_files('shop.t', TIMESTAMP '2999-01-01 00:00:00')"
    refused(lake, text, InvalidInput, at="TIMESTAMP", match="in the future")
    refused(lake, "CALL system.remove_orphan_files('shop.t', location => 'x')", InvalidInput, at="'x'")


@pytest.mark.parametrize(
    "text",
    [
        "CALL system.snapshot('a.b', 'shop.n')",
        "CALL system.migrate('a.b')",
        "CALL system.rewrite_table_path('shop.t', 'a', 'b')",
    ],
)
@pytest.mark.every_case
def test_what_the_lake_has_no_verb_for_says_what_to_use(lake: Lake, table: Table, text: str) -> None:
    error = refused(lake, text, Unsupported, at="system")
    assert error.hint


def test_a_changelog_view_needs_spark(lake: Lake, table: Table) -> None:
    refused(lake, "CALL system.create_changelog_view('shop.t')", NeedsSpark, at="system")


def test_calls_that_go_through_the_table_are_part_of_a_transaction(lake: Lake, table: Table) -> None:
    first = versions(table)[0]
    run(lake, "BEGIN")
    run(lake, f"CALL system.rollback_to_snapshot('shop.t', {first})")
    assert run(lake, "CALL system.ancestors_of('shop.t')")[0][0] == first
    refused(lake, "CALL system.undrop('x.y')", InvalidInput, at="system", match="part of a transaction")
    refused(lake, "CALL system.remove_orphan_files('shop.t')", InvalidInput, at="system")
    run(lake, "ROLLBACK")
    assert ids(table) == [2, 3]


def test_a_dry_run_changes_nothing(lake: Lake, table: Table) -> None:
    before = table.metadata_location
    calls: dict[str, Any] = {
        "CALL system.rewrite_data_files('shop.t', options => map('rewrite-all', 'true'))": (2, None),
        "CALL system.expire_snapshots('shop.t', TIMESTAMP '2999-01-01 00:00:00')": (1, 0),
        "OPTIMIZE shop.t": (2, None),
    }
    for text, expected in calls.items():
        assert run(lake, text, dry_run=True)[0][:2] == expected
    assert table.metadata_location == before
    for name, procedure in PROCEDURES.items():
        wanted = [each for each in procedure.parameters if each.is_required]
        values = {"table": "'shop.t'", "snapshot_id": str(versions(table)[0]), "where": "'id = 2'"}
        given = ", ".join(f"{each.name} => {values.get(each.name, repr('x'))}" for each in wanted)
        try:
            run(lake, f"CALL system.{name}({given})", dry_run=True)
        except Unsupported:
            continue
    run(lake, "ANALYZE TABLE shop.t COMPUTE STATISTICS", dry_run=True)
    assert (table.metadata_location, lake.tables()) == (before, ["shop.t"])
