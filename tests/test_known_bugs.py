"""Bugs that other table formats shipped, each by its number: the test that we do not have it, and the one that shows
that the test can fail.
"""

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.every_case

TESTS = Path(__file__).parent


@dataclass(frozen=True)
class KnownBug:
    """A history, the tests that hold it, and those that show what happens with the guard off."""

    number: int
    history: str
    tests: tuple[str, ...]
    red: tuple[str, ...]


ROW_DELTA, REWRITE, REPLACE = "commit/test_row_delta.py", "commit/test_rewrite.py", "commit/test_replace.py"
OVERWRITE, LOOP, RACE = "commit/test_overwrite.py", "commit/test_loop.py", "storage/test_put_race.py"
VERBS = "engine/test_known_histories.py"
POSTGRES_LAKE = "catalog/test_postgres_lake.py"
UPKEEP = "upkeep/test_known_histories.py"
KNOWN_BUGS = (
    KnownBug(
        1,
        "a merge-on-read delete and an update of one row both succeed, and the row survives",
        (
            f"{ROW_DELTA}::test_r01_an_update_and_a_delete_of_one_row_do_not_both_land",
            f"{VERBS}::test_r01_a_change_and_a_delete_of_one_row_do_not_both_land",
        ),
        (
            f"{ROW_DELTA}::test_r01_goes_red_without_the_guard",
            f"{VERBS}::test_r01_goes_red_without_the_guard",
        ),
    ),
    KnownBug(
        2,
        "a rewrite checked from the snapshot at its commit does not see a concurrent delete: rows come back",
        (
            f"{REWRITE}::test_r02_rows_that_are_deleted_while_files_are_compacted_stay_deleted",
            f"{VERBS}::test_r02_rows_that_change_while_files_are_compacted_stay_changed",
        ),
        (
            f"{REWRITE}::test_r02_goes_red_without_the_guard",
            f"{VERBS}::test_r02_goes_red_without_the_guard",
        ),
    ),
    KnownBug(
        3,
        "position deletes for a file that a concurrent compaction removed",
        (
            f"{ROW_DELTA}::test_r03_places_in_a_file_that_compaction_removed_are_found_in_the_new_one",
            f"{VERBS}::test_r03_positions_in_a_file_that_compaction_removed_are_found_in_the_new_one",
        ),
        (
            f"{ROW_DELTA}::test_r03_goes_red_without_the_guard",
            f"{VERBS}::test_r03_goes_red_without_the_guard",
        ),
    ),
    KnownBug(
        4,
        "a retry checks only the last of two commits that came concurrently",
        (f"{OVERWRITE}::test_r04_every_intervening_commit_is_checked_not_only_the_last",),
        (f"{OVERWRITE}::test_r04_without_the_guard_a_row_of_the_first_commit_survives_unseen",),
    ),
    KnownBug(
        5,
        "a data file that is replaced was removed concurrently, and its replacement brings its rows back",
        (
            f"{OVERWRITE}::test_r05_a_file_that_was_removed_concurrently_does_not_come_back",
            f"{VERBS}::test_r05_a_file_that_was_removed_concurrently_does_not_come_back",
        ),
        (
            f"{OVERWRITE}::test_r05_without_the_guard_a_removed_row_comes_back",
            f"{VERBS}::test_r05_without_the_guard_removed_rows_come_back",
        ),
    ),
    KnownBug(
        6,
        "replacing a table drops concurrent commits",
        (f"{REPLACE}::test_r06_a_concurrent_commit_is_not_dropped",),
        (f"{REPLACE}::test_r06_goes_red_without_the_guard",),
    ),
    KnownBug(
        7,
        "compaction lists what it removes from the latest snapshot, and removes a file that it never read",
        (f"{REWRITE}::test_r07_a_file_that_comes_while_others_are_compacted_is_not_removed_unread",),
        (f"{REWRITE}::test_r07_a_list_that_is_made_from_the_newest_version_is_refused_by_its_rows",),
    ),
    KnownBug(
        8,
        "a tag on a snapshot races with the removal of that snapshot",
        (
            "model/test_apply.py::test_r08_a_snapshot_that_a_ref_points_at_cannot_be_removed",
            "upkeep/test_rest_refs.py::test_r08_a_snapshot_that_is_named_before_its_expiry_lands_is_kept",
        ),
        ("model/test_apply.py::test_r08_without_the_guard_a_tag_points_at_nothing",),
    ),
    KnownBug(
        9,
        "a table is rolled back to a snapshot, and then the files of that snapshot expire",
        (
            f"{UPKEEP}::test_r09_files_of_a_snapshot_that_the_table_is_rolled_back_to_are_kept",
            "upkeep/test_rest_refs.py::test_r09_a_snapshot_that_expires_before_it_is_named_is_refused",
        ),
        (f"{UPKEEP}::test_r09_without_a_second_look_they_are_gone",),
    ),
    KnownBug(
        10,
        "a file is deleted and added again, and a snapshot in between expires",
        (f"{UPKEEP}::test_r10_a_file_that_is_added_again_survives_the_expiry_of_a_middle_snapshot",),
        (f"{UPKEEP}::test_r10_without_what_is_kept_it_is_gone",),
    ),
    KnownBug(
        11,
        "expiry deletes data before the pointer moves, and a new reader sees half a snapshot",
        (f"{UPKEEP}::test_r11_no_reader_sees_half_a_snapshot",),
        (f"{UPKEEP}::test_r11_files_that_go_before_the_pointer_moves_are_missed",),
    ),
    KnownBug(
        12,
        "the search for orphan files finds those of a commit in flight",
        (f"{UPKEEP}::test_r12_files_of_a_commit_in_flight_are_not_orphan_files",),
        (f"{UPKEEP}::test_r12_without_the_leases_of_writers_they_are_gone",),
    ),
    KnownBug(
        13,
        "live files have another spelling in the listing, and are taken for orphan files",
        (f"{UPKEEP}::test_r13_other_spellings_of_a_location_are_the_same_file",),
        (f"{UPKEEP}::test_r13_without_folding_they_are_others_and_the_listing_is_refused",),
    ),
    KnownBug(
        14,
        "the search for orphan files forgets a kind of file",
        (f"{UPKEEP}::test_r14_no_kind_of_file_is_forgotten",),
        (f"{UPKEEP}::test_r14_a_forgotten_kind_is_lost",),
    ),
    KnownBug(
        15,
        "a table is renamed, and its files go with its old name",
        (f"{UPKEEP}::test_r15_a_renamed_table_is_not_purged",),
        (f"{UPKEEP}::test_r15_by_name_it_is_lost",),
    ),
    KnownBug(
        16,
        "the answer to a swap is lost, and the client removes the metadata of a commit that landed",
        (
            f"{LOOP}::test_r16_lost_reply_of_a_swap_that_landed_is_success_and_removes_nothing",
            "catalog/test_sqlite.py::test_r16_a_lost_reply_is_an_unknown_outcome_whatever_happened",
            "catalog/test_postgres.py::test_r16_a_lost_reply_is_an_unknown_outcome_whatever_happened",
            f"{POSTGRES_LAKE}::test_r16_a_commit_lost_on_the_wire_is_an_unknown_outcome",
        ),
        (f"{LOOP}::test_r16_without_the_guard_the_files_of_a_commit_that_landed_are_removed",),
    ),
    KnownBug(
        17,
        "an outcome that nobody knows is taken for a failure, and data files are removed",
        (f"{LOOP}::test_r17_unknown_outcome_deletes_nothing",),
        (f"{LOOP}::test_r17_without_the_guard_a_table_loses_what_landed",),
    ),
    KnownBug(
        18,
        "the answer is lost, and a blind retry appends again",
        (
            f"{LOOP}::test_r18_lost_reply_is_not_appended_twice_when_others_moved_on",
            "dml/test_idempotency_keys.py::test_r18_an_append_that_is_made_again_returns_the_first_result",
        ),
        ("dml/test_idempotency_keys.py::test_r18_without_the_guard_a_second_run_appends_again",),
    ),
    KnownBug(
        19,
        "a conditional write on a local disk is a look and then an overwrite",
        (
            f"{RACE}::test_r19_racing_processes_have_one_winner",
            "storage/test_object_store.py::test_r19_racing_threads_have_one_winner",
        ),
        (
            f"{RACE}::test_r19_the_race_finds_check_then_write",
            "storage/test_object_store.py::test_r19_the_race_finds_check_then_write",
        ),
    ),
    KnownBug(
        20,
        "rows that come together with deletes are deleted by them",
        (
            f"{ROW_DELTA}::test_r20_rows_that_come_with_deletes_are_not_deleted_by_them",
            "plan/test_delete_index.py::test_r20_an_equality_delete_leaves_rows_of_its_own_commit",
            f"{VERBS}::test_r20_rows_that_come_with_deletes_are_not_deleted_by_them",
        ),
        ("plan/test_delete_index.py::test_r20_without_the_guard_rows_are_deleted_by_what_came_with_them",),
    ),
    KnownBug(
        21,
        "an append to another partition fails a row delta",
        (
            f"{ROW_DELTA}::test_r21_an_append_to_another_partition_is_no_conflict",
            f"{VERBS}::test_r21_an_append_to_another_partition_is_no_conflict",
        ),
        (
            f"{ROW_DELTA}::test_r21_goes_red_without_the_guard",
            f"{VERBS}::test_r21_goes_red_without_the_guard",
        ),
    ),
    KnownBug(
        22,
        "ids that are the highest and one more, under many writers: storms of collisions, and lost statistics",
        (f"{POSTGRES_LAKE}::test_r22_sixteen_at_once_create_and_append_without_a_collision",),
        (f"{POSTGRES_LAKE}::test_r22_without_the_guard_ids_that_are_counted_up_meet",),
    ),
    KnownBug(
        23,
        "the catalog reports success though it changed nothing",
        ("catalog/test_sqlite.py::test_r23_a_change_that_changed_no_row_is_never_reported_as_success",),
        ("catalog/test_sqlite.py::test_r23_without_the_guard_a_change_that_was_not_made_is_success",),
    ),
    KnownBug(
        24,
        "of two snapshots in one millisecond, time travel picks any",
        ("model/test_metadata.py::test_r24_of_snapshots_in_one_millisecond_the_last_wins",),
        ("model/test_metadata.py::test_r24_without_the_order_of_the_log_another_snapshot_is_found",),
    ),
    KnownBug(
        25,
        "a lease is registered after the collector has looked for leases",
        (f"{UPKEEP}::test_r25_a_lease_that_comes_after_the_sample_does_not_read_what_is_deleted",),
        (f"{UPKEEP}::test_r25_without_a_second_look_at_the_pointer_it_does",),
    ),
    KnownBug(
        26,
        "a delete whose partition is not that of its data file",
        (
            "plan/test_delete_index.py::test_r26_a_delete_of_a_data_file_of_another_partition_is_refused",
            f"{VERBS}::test_r26_the_delete_of_a_row_that_moves_has_the_partition_of_its_data_file",
        ),
        ("plan/test_delete_index.py::test_r26_without_the_guard_a_delete_takes_rows_of_another_partition",),
    ),
)


@pytest.mark.parametrize("bug", KNOWN_BUGS, ids=lambda bug: f"R{bug.number}")
def test_a_known_bug_has_a_test_and_the_test_can_fail(bug: KnownBug) -> None:
    assert bug.tests
    assert bug.red
    for node in (*bug.tests, *bug.red):
        path, _, name = node.partition("::")
        assert name.startswith(f"test_r{bug.number:02}_")
        assert name in functions_of(TESTS / path), f"there is no test {node}"


def test_every_history_is_in_the_list_once() -> None:
    assert [bug.number for bug in KNOWN_BUGS] == list(range(1, 27))


def functions_of(path: Path) -> set[str]:
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}
