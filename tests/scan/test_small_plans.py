"""Plans that were made already: used again for the same question on the same version, and for nothing else."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import icefield
from icefield.lake import Lake
from icefield.scan.cache_store import cache_of
from icefield.scan.small_plans import MOST_ROWS, Question, SmallPlan, SmallPlans
from icefield.storage.location import local_path
from icefield.table import Table

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
    assert found[0].equals(found[1])
    assert found[0].equals(found[2])
    return found[2]


def test_a_plan_is_kept_when_it_is_asked_for_again(table: Table) -> None:
    first, second, third = (table.scan(WHERE)._plan for _ in range(3))
    assert second.files is not first.files
    assert third.files is second.files
    assert third.funnel == first.funnel


def test_a_new_handle_uses_what_another_planned(lake: Lake, table: Table) -> None:
    assert lake.table("a.t").scan(WHERE)._plan.files is not files_of(table, "id >= 6")
    assert lake.table("a.t").scan(WHERE)._plan.files.equals(files_of(table))


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
    anew = elsewhere.create_table("a.t", "id long")
    assert files_of(lake.table("a.t")).num_rows == 0
    anew.append(pa.table({"id": [5]}))
    anew.append(pa.table({"id": [6]}))
    assert files_of(lake.table("a.t")).num_rows == 2


def test_a_list_that_is_written_over_is_read_anew(table: Table) -> None:
    snapshots = list(table.metadata.snapshots)
    assert files_of(table, None).num_rows == 2
    first, second = (Path(local_path(s.manifest_list)) for s in snapshots)
    second.write_bytes(first.read_bytes())
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
        cache = cache_of(other.store)
        assert cache is not None
        assert cache.files.held_bytes == 0


def test_large_plans_are_not_kept_and_few_are(table: Table) -> None:
    plans = SmallPlans(most=2)
    schema, where = table.schema, table.scan(WHERE)._where
    questions = [Question(name, where, schema, ()) for name in "abc"]
    rows = pa.table({"x": range(MOST_ROWS)})
    for question in questions:
        for _ in range(2):
            plans.keep(question, SmallPlan(rows, rows, None))
    assert [plans.find(question, rows) is not None for question in questions] == [False, True, True]
    large = pa.table({"x": range(MOST_ROWS + 1)})
    for _ in range(2):
        plans.keep(questions[0], SmallPlan(large, rows, None))
    assert plans.find(questions[0], large) is None
    assert plans.find(questions[1], pa.table({"x": range(MOST_ROWS)})) is None
