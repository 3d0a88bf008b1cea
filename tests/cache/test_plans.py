"""What planning came to: used again for the same version, filter or not, and for nothing else."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield
from icefield.cache.plans import MOST_ROWS, SmallAnswers, lists_few_files
from icefield.codec.manifest.rows import ManifestEntries, Manifests
from icefield.errors import Unsupported
from icefield.lake import Lake
from icefield.plan import plan as planning
from icefield.plan.plan import ScanPlan
from icefield.plan.planned_files import DescribedFiles
from icefield.plan.unpruned_files import UnprunedFiles, describe_files
from icefield.storage.location import local_path
from icefield.table.table import Table

WHERE = "id >= 5"


@pytest.fixture
def table(lake: Lake) -> Table:
    made = lake.create_table("a.t", "id long")
    made.append(pa.table({"id": [1, 2]}))
    made.append(pa.table({"id": [5, 6]}))
    return made


@pytest.fixture
def elsewhere(lake: Lake, tmp_path: Path) -> Iterator[Lake]:
    """The same lake, as another process has it."""
    with icefield.connect(tmp_path / "lake", durable=False) as made:
        yield made


def files_of(table: Table, where: str | None = WHERE) -> pa.Table:
    """Plan as often as it takes for a plan to be kept, and once more."""
    found = [table.scan(where)._plan.files for _ in range(3)]
    assert found[0] == found[1]
    assert found[0] == found[2]
    return found[2]


def plans_of_new_filters(table: Table, text: str = "id >= {}", begin: int = 5) -> list[ScanPlan]:
    """Ask something new each time, as often as it takes for the files to be kept, and once more."""
    return [table.scan(text.format(begin + asked))._plan for asked in (0, 0.25, 0.5, 0.75)]


def kept_candidates(lake: Lake) -> int:
    cache = lake.backend.cache
    assert cache is not None
    return sum(held is not None for held in cache.candidates._held.values())


def test_a_plan_is_kept_when_it_is_asked_for_again(table: Table) -> None:
    first, second, third = (table.scan(WHERE)._plan for _ in range(3))
    assert second.files is not first.files
    assert third.files is second.files
    assert third.metrics == first.metrics


def test_a_new_handle_uses_what_another_planned(lake: Lake, table: Table) -> None:
    assert lake.table("a.t").scan(WHERE)._plan.files is not files_of(table, "id >= 6")
    assert lake.table("a.t").scan(WHERE)._plan.files == files_of(table)


def test_another_filter_is_another_question(table: Table) -> None:
    assert files_of(table).num_rows == 1
    assert files_of(table, "id >= 1").num_rows == 2
    assert files_of(table, None).num_rows == 2


def test_what_others_commit_is_seen(table: Table, elsewhere: Lake) -> None:
    assert files_of(table).num_rows == 1
    elsewhere.table("a.t").append(pa.table({"id": [7]}))
    assert files_of(table).num_rows == 2
    elsewhere.table("a.t").delete("id = 7")
    assert files_of(table).num_rows == 1


def test_an_older_version_keeps_its_own_plan(table: Table, elsewhere: Lake) -> None:
    before = table.scan().snapshot_id
    assert files_of(table).num_rows == 1
    elsewhere.table("a.t").append(pa.table({"id": [7]}))
    assert files_of(table).num_rows == 2
    assert table.scan(WHERE, as_of=before).files().num_rows == 1


def test_a_table_made_anew_under_its_name_is_not_the_old_one(lake: Lake, table: Table, elsewhere: Lake) -> None:
    assert files_of(table).num_rows == 1
    elsewhere.drop_table("a.t")
    recreated = elsewhere.create_table("a.t", "id long")
    assert files_of(lake.table("a.t")).num_rows == 0
    recreated.append(pa.table({"id": [5]}))
    recreated.append(pa.table({"id": [6]}))
    assert files_of(lake.table("a.t")).num_rows == 2


def write_list_over(place: Path, other: Path) -> None:
    """Put another manifest list in place of one, without the word of whose snapshot it is."""
    data = other.read_bytes()
    assert b"\x16snapshot-id" in data
    place.write_bytes(data.replace(b"\x16snapshot-id", b"\x16snapshot_no"))


def test_a_list_that_is_written_over_is_read_anew(table: Table) -> None:
    snapshots = list(table.metadata.snapshots)
    assert files_of(table, None).num_rows == 2
    first, second = (Path(local_path(s.manifest_list)) for s in snapshots)
    write_list_over(second, first)
    assert files_of(table, None).num_rows == 1


def test_metadata_that_is_written_over_is_read_anew(lake: Lake, table: Table) -> None:
    path = Path(local_path(table.metadata_location))
    assert "answer" not in lake.table("a.t").properties
    path.write_bytes(path.read_bytes().replace(b'"properties":{}', b'"properties":{"answer":"42"}'))
    assert lake.table("a.t").properties["answer"] == "42"


def test_a_renamed_column_is_another_question(table: Table) -> None:
    assert files_of(table).num_rows == 1
    with table.evolve() as change:
        change.rename_column("id", "number")
    assert files_of(table, "number >= 5").num_rows == 1
    assert files_of(table, "number < 5").num_rows == 1


def test_plans_with_deletes_are_made_each_time(lake: Lake) -> None:
    made = lake.create_table("a.d", "id long", properties={"write.delete.mode": "merge-on-read"})
    made.append(pa.table({"id": [1, 2]}))
    made.delete("id = 1")
    plans = [made.scan()._plan for _ in range(3)]
    assert all(plan.deletes is not None for plan in plans)
    assert made.scan().count() == 1


def test_nothing_is_kept_where_the_cache_is_turned_off(table: Table, tmp_path: Path) -> None:
    with icefield.connect(tmp_path / "lake", properties={"cache.memory-max-bytes": "0"}) as other:
        mine = other.table(table.name)
        plans = [mine.scan(WHERE)._plan.files for _ in range(4)]
        assert len({id(files) for files in plans}) == len(plans)
        cache = other.backend.cache
        assert cache is not None
        assert cache.files.held_bytes == 0


def test_the_answers_used_longest_ago_go_first() -> None:
    answers: SmallAnswers[str] = SmallAnswers(most=2)
    listed = object()
    for question in "abc":
        assert not answers.note(question)
        answers.keep(question, listed, question.upper())
        answers.find("a", listed)
    assert [answers.find(question, listed) for question in "abc"] == ["A", None, "C"]
    assert answers.find("a", object()) is None


def test_what_is_noted_takes_no_answer_away() -> None:
    answers: SmallAnswers[str] = SmallAnswers()
    listed = object()
    answers.keep("a", listed, "A")
    assert answers.note("a")
    assert answers.find("a", listed) == "A"


@pytest.fixture
def large(lake: Lake) -> Table:
    made = lake.create_table("a.large", "id long", partition_by=["id"])
    made.append(pa.table({"id": range(MOST_ROWS + 1)}))
    return made


def test_large_plans_are_made_each_time(lake: Lake, large: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UnprunedFiles, "described", None)  # too dear, so it must not be asked for
    plans = [large.scan()._plan.files for _ in range(4)]
    assert len({id(files) for files in plans}) == len(plans)
    assert kept_candidates(lake) == 0


def test_long_lists_are_not_even_noted(lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "MOST_ROWS", 1)
    plans_of_new_filters(table)
    cache = lake.backend.cache
    assert cache is not None
    assert not cache.candidates._held
    assert not cache.plans._held


def test_a_list_that_is_wrong_about_its_size_keeps_nothing(
    lake: Lake, large: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "lists_few_files", lambda _: True)
    assert {large.scan().files().num_rows for _ in range(4)} == {MOST_ROWS + 1}
    assert kept_candidates(lake) == 0


def test_only_manifests_that_are_said_to_be_small_are_small() -> None:
    counts = {"added_files_count": [60, 30], "existing_files_count": [0, 10], "deleted_files_count": [0, 0]}
    assert lists_few_files(Manifests.trusted(pa.table(counts)))
    assert not lists_few_files(Manifests.trusted(pa.table(counts | {"deleted_files_count": [0, 1]})))
    assert not lists_few_files(Manifests.trusted(pa.table(counts | {"existing_files_count": [0, None]})))


def test_another_filter_chooses_from_files_that_are_known(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    plans_of_new_filters(table)
    monkeypatch.setattr(planning, "open_entries", None)  # what is not known cannot be had
    assert [plan.files.num_rows for plan in plans_of_new_filters(table, begin=1)] == [2, 2, 2, 2]
    assert [plan.files.num_rows for plan in plans_of_new_filters(table, begin=6)] == [1, 0, 0, 0]
    with pytest.raises(TypeError):
        table.scan().files()


@pytest.mark.parametrize(
    "text",
    [
        "id >= {}",
        "day >= {}",
        "id = {}",
        "id < {} or name is null",
        "day = 1 and id > {}",
        "id > {} and (id < 3 or name > 'm')",
        "day = 2 or id >= {}",
        "day in (1, 2) and not (id <= {} and name = 'a')",
    ],
)
def test_plans_from_known_files_are_those_from_manifests(lake: Lake, tmp_path: Path, text: str) -> None:
    made = lake.create_table("a.p", "id long, name string, day int", partition_by=["day"])
    for day, names in ((1, ["a", "z"]), (2, ["m", None]), (1, ["x", "y"])):
        made.append(pa.table({"id": [2 * day, 5], "name": names, "day": pa.array([day, day], pa.int32())}))
    with made.evolve() as change:
        change.add_partition_field("bucket(2, id)")
    made.append(pa.table({"id": [1, 2, 3], "name": ["b", "c", "d"], "day": pa.array([1, 2, 3], pa.int32())}))
    with icefield.connect(tmp_path / "lake", properties={"cache.memory-max-bytes": "0"}) as forgetful:
        for begin in (0, 1, 3, 5):
            known = plans_of_new_filters(made, text, begin)
            expected = plans_of_new_filters(forgetful.table("a.p"), text, begin)
            assert [plan.files.to_pylist() for plan in known] == [plan.files.to_pylist() for plan in expected]
            assert [plan.metrics for plan in known] == [plan.metrics for plan in expected]
    assert kept_candidates(lake) > 0


def test_new_filters_see_what_others_commit(table: Table, elsewhere: Lake) -> None:
    assert [plan.files.num_rows for plan in plans_of_new_filters(table)] == [1, 1, 1, 1]
    elsewhere.table("a.t").append(pa.table({"id": [7]}))
    assert [plan.files.num_rows for plan in plans_of_new_filters(table)] == [2, 2, 2, 2]
    elsewhere.table("a.t").delete("id >= 5")
    assert [plan.files.num_rows for plan in plans_of_new_filters(table)] == [0, 0, 0, 0]


def test_new_filters_see_a_list_that_is_written_over(table: Table) -> None:
    assert [plan.files.num_rows for plan in plans_of_new_filters(table, begin=1)] == [2, 2, 2, 2]
    first, second = (Path(local_path(s.manifest_list)) for s in table.metadata.snapshots)
    write_list_over(second, first)
    assert [plan.files.num_rows for plan in plans_of_new_filters(table, begin=1)] == [1, 1, 1, 1]


def test_after_a_column_is_widened_files_are_known_by_its_new_type(lake: Lake, tmp_path: Path) -> None:
    made = lake.create_table("a.w", "id int", partition_by=["id"])
    made.append(pa.table({"id": pa.array([1, 2], pa.int32())}))
    assert [plan.files.num_rows for plan in plans_of_new_filters(made, begin=1)] == [2, 1, 1, 1]
    with made.evolve() as change:
        change.update_column_type("id", "long")
    known = [plan.files.to_pylist() for plan in plans_of_new_filters(made, begin=1)]
    with icefield.connect(tmp_path / "lake", properties={"cache.memory-max-bytes": "0"}) as forgetful:
        assert known == [plan.files.to_pylist() for plan in plans_of_new_filters(forgetful.table("a.w"), begin=1)]


def test_files_with_deletes_are_not_kept(lake: Lake) -> None:
    made = lake.create_table("a.d", "id long", properties={"write.delete.mode": "merge-on-read"})
    made.append(pa.table({"id": [5, 6, 7]}))
    made.delete("id = 6")
    cache = lake.backend.cache
    assert cache is not None
    cache.candidates._held.clear()  # the delete planned, too
    assert all(plan.deletes is not None for plan in plans_of_new_filters(made))
    assert kept_candidates(lake) == 0
    assert [made.scan(f"id > {number}").count() for number in (3, 4, 5, 6)] == [2, 2, 1, 1]


def test_a_file_in_another_format_is_in_the_way_only_of_those_who_read_it(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def describe(entries: ManifestEntries, *rest: Any) -> DescribedFiles:
        formats = ["orc" if number > 5 else "parquet" for number in entries.sequence_number.to_pylist()]
        return describe_files(entries.replaced({"file_format": pa.array(formats)}), *rest)

    for number in range(7, 13):
        table.append(pa.table({"id": [number]}))
    monkeypatch.setattr(planning, "describe_files", describe)
    assert [plan.files.num_rows for plan in plans_of_new_filters(table, "id < {}", 4)] == [1, 1, 1, 1]
    for number in range(4):
        with pytest.raises(Unsupported, match="is a data file in orc"):
            table.scan(f"id > {number}").files()


@pytest.mark.slow
def test_threads_that_ask_different_things_get_their_own_answers(table: Table) -> None:
    for number in range(7, 40):
        table.append(pa.table({"id": [number]}))
    expected = {number: table.scan(f"id > {number}").files().num_rows for number in range(40)}

    def ask(number: int) -> tuple[int, int]:
        return number % 40, table.scan(f"id > {number % 40} and id < {1000 + number}").files().num_rows

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(400)))
    assert all(expected[number] == files for number, files in answers)
