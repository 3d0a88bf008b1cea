"""Repairs: only what loses nothing, a dry run first, and missing data files only by name."""

import pytest
from tests.fsck.damage import data_files, edit_metadata, make_table, open_lake

from icefield.errors import InvalidInput
from icefield.fsck.finding import Check
from icefield.lake import Lake
from icefield.table.table import Table


@pytest.fixture
def lake() -> Lake:
    return open_lake()


@pytest.fixture(params=[1, 2, 3])
def table(lake: Lake, request: pytest.FixtureRequest) -> Table:
    return make_table(lake, request.param)


def lose_refs(lake: Lake, table: Table) -> None:
    edit_metadata(
        lake,
        table,
        lambda d: d["refs"].update(lost={"snapshot-id": 1, "type": "tag"}, gone={"snapshot-id": 2, "type": "branch"}),
    )


def lose_statistics(lake: Lake, table: Table) -> None:
    lake.store.delete(f"{table.location}/metadata/a.stats")


def test_refs_of_no_snapshot_are_dropped(lake: Lake, table: Table) -> None:
    lose_refs(lake, table)
    rows, before = table.count(), table.metadata_location
    plan = table.fsck(repair=True, dry_run=True)
    assert [(each.check, each.action) for each in plan.repairs] == [
        (Check.REFS, "drop 'lost', which points at no snapshot"),
        (Check.REFS, "drop 'gone', which points at no snapshot"),
    ]
    assert plan.is_dry_run
    assert table.metadata_location == before
    done = table.fsck(repair=True)
    assert (done.repairs, done.is_dry_run) == (plan.repairs, False)
    assert set(table.refs()) == {"main", "then"}
    assert table.fsck().findings == ()
    assert table.count() == rows


def test_missing_statistics_are_forgotten(lake: Lake, table: Table) -> None:
    lose_statistics(lake, table)
    (planned,) = table.fsck(repair=True, dry_run=True).repairs
    assert planned.check is Check.MISSING_FILES
    assert len(table.statistics()) == 1
    table.fsck(repair=True)
    assert table.statistics() == []
    assert table.fsck().findings == ()


def test_statistics_that_exist_stay(lake: Lake, table: Table) -> None:
    lose_refs(lake, table)
    table.fsck(repair=True)
    assert len(table.statistics()) == 1


def test_a_missing_data_file_is_removed_only_by_name(lake: Lake, table: Table) -> None:
    lost, kept = data_files(table)[:2]
    lake.store.delete(lost)
    assert table.fsck(repair=True).repairs == ()
    with pytest.raises(InvalidInput, match="not a missing file"):
        table.fsck(repair=True, drop_files=[kept])
    with pytest.raises(InvalidInput, match="not a missing file"):
        table.fsck(repair=True, drop_files=[lost, kept])
    assert lost in data_files(table)
    (planned,) = table.fsck(repair=True, dry_run=True, drop_files=[lost]).repairs
    assert planned.action == f"remove {lost} and its rows from the table"
    assert lost in data_files(table)
    table.fsck(repair=True, drop_files=[lost])
    assert lost not in data_files(table)
    assert kept in data_files(table)
    assert table.scan().to_arrow().read_all().num_rows == table.count()
    # Earlier snapshots still have it.
    assert {each.location for each in table.fsck().findings if not each.is_harmless} == {lost}


@pytest.mark.parametrize("options", [{"dry_run": True}, {"drop_files": ["f"]}])
def test_options_of_repairs_need_a_repair(table: Table, options: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="for repairs"):
        table.fsck(**options)  # type: ignore[arg-type]


def test_a_healthy_table_needs_no_commit(table: Table) -> None:
    before = table.metadata_location
    assert table.fsck(repair=True).repairs == ()
    assert table.metadata_location == before


def test_a_lake_is_repaired_table_by_table(lake: Lake, table: Table) -> None:
    other = make_table(lake, 2, "a.u")
    lose_refs(lake, table)
    lose_statistics(lake, other)
    assert [len(each.repairs) for each in lake.fsck(repair=True, dry_run=True).tables] == [2, 1]
    lake.fsck(repair=True)
    assert lake.fsck().is_healthy
