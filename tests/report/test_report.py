"""What a table stores: every file is in one share, and the shares are what upkeep would find."""

import datetime
from random import Random

import pyarrow as pa
import pytest
from tests.fsck.damage import make_table, open_lake

from icefield.commit.action import CommitTarget
from icefield.dml.write import TableWrite
from icefield.errors import InvalidInput, NoSuchTable
from icefield.lake import Lake
from icefield.report.result import Share, StorageReport
from icefield.table.table import Table

ROWS = pa.table({"id": [1], "p": ["x"], "text": ["new"]})


@pytest.fixture
def lake() -> Lake:
    return open_lake()


@pytest.fixture(params=[1, 2, 3])
def table(lake: Lake, request: pytest.FixtureRequest) -> Table:
    return make_table(lake, request.param)


def listed(lake: Lake, table: Table) -> Share:
    own = f"{table.location}/metadata/gc/"
    files = [file for file in lake.store.list(table.location) if not file.location.startswith(own)]
    return Share(len(files), sum(file.size_bytes for file in files))


def check_whole(lake: Lake, table: Table) -> StorageReport:
    """Return the report; every file that is listed is in one share."""
    found = table.report()
    assert found.stored == listed(lake, table)
    return found


def test_a_new_table_is_live(lake: Lake) -> None:
    table = lake.create_table("a.t", "id long")
    found = check_whole(lake, table)
    assert (found.live.files, found.history, found.orphans) == (1, Share(), Share())
    table.append(pa.table({"id": [1]}))
    found = check_whole(lake, table)
    # A metadata file, a list, a manifest and a data file; the first metadata file is history.
    assert (found.live.files, found.history.files, found.overhead > 0) == (4, 1, True)


def test_what_is_replaced_becomes_history(lake: Lake, table: Table) -> None:
    table.drop_tag("then")
    before, planned = check_whole(lake, table), table.scan().files().num_rows
    table.overwrite(ROWS)
    found = check_whole(lake, table)
    assert found.history.files > before.history.files
    assert (before.debt.data_files, found.debt.data_files) == (planned, 1)
    assert found.expirable == Share(), "retention keeps it for five days"
    lake.ambient.sleep(6 * 24 * 3600)
    found = check_whole(lake, table)
    assert 0 < found.expirable.bytes <= found.history.bytes
    assert found.gains["expire"] == found.expirable.bytes
    assert found.debt.expired_snapshots == len(table.snapshots()) - 1


def test_a_tag_keeps_files_live(lake: Lake, table: Table) -> None:
    before = check_whole(lake, table)
    table.overwrite(ROWS)
    found = check_whole(lake, table)
    table.drop_tag("then")
    assert found.live.files - check_whole(lake, table).live.files >= 3, "its data files"
    assert found.stored.files > before.stored.files


def test_expired_files_wait_and_then_are_gone(lake: Lake, table: Table) -> None:
    table.drop_tag("then")
    table.overwrite(ROWS)
    lake.ambient.sleep(6 * 24 * 3600)
    expected = check_whole(lake, table).expirable
    result = table.expire_snapshots()
    found = check_whole(lake, table)
    assert found.waiting.files == result.files_marked == expected.files
    assert found.waiting.bytes == expected.bytes
    lake.ambient.sleep(2 * 24 * 3600)
    table.sweep()
    assert check_whole(lake, table).waiting == Share()


def test_orphans_and_foreign_files_are_distinguished_by_name(lake: Lake, table: Table) -> None:
    name = "00000-0-0123456789abcdef0123456789abcdef-00001.parquet"
    lake.store.put_new(f"{table.location}/data/{name}", b"x" * 1000)
    lake.store.put_new(f"{table.location}/notes.txt", b"y" * 10)
    found = check_whole(lake, table)
    assert (found.young, found.orphans, found.foreign) == (Share(1, 1000), Share(), Share(1, 10))
    lake.ambient.sleep(4 * 24 * 3600)
    found = check_whole(lake, table)
    assert (found.young, found.orphans, found.foreign) == (Share(), Share(1, 1000), Share(1, 10))
    assert table.remove_orphans(older_than=datetime.timedelta(days=3), dry_run=True).files_marked == 1


def test_files_of_a_write_with_a_lease_are_not_orphans(lake: Lake) -> None:
    table = lake.create_table("a.t", "id long", properties={"icefield.gc.orphan-age-ms": "0"})
    write = TableWrite.begin(lake.head(table.name), CommitTarget())
    write.write(pa.table({"id": [1]}))
    found = check_whole(lake, table)
    assert (found.young.files, found.orphans) == (1, Share())


def test_small_files_and_deletes_are_debt(lake: Lake) -> None:
    table = make_table(lake, 2)
    debt = table.report().debt
    assert (debt.data_files, debt.small_files, debt.files_after) == (3, 3, 1)
    assert (debt.delete_files, debt.deleted_rows) == (2, 2)
    assert 0 < debt.deleted_bytes < table.report().live.bytes
    table.upsert(ROWS, on=["id"], mode="equality")
    assert table.report().debt.equality_deletes == 1


def test_small_files_are_what_compaction_takes_for_small(lake: Lake) -> None:
    table = lake.create_table("a.t", "id long, text string", properties={"icefield.compaction.min-input-files": "3"})
    text = Random(1).randbytes(100_000).hex()  # two files are not few bytes
    for count in (1, 2, 3):
        table.append(pa.table({"id": [count], "text": [f"{count}{text}"]}))
        debt, plan = table.report().debt, table.compact(dry_run=True).plan
        assert (debt.small_files, debt.files_to_rewrite) == (count, plan.files_to_rewrite)
        assert debt.bytes_to_rewrite == plan.bytes_to_rewrite
        assert (debt.files_to_rewrite, debt.files_after) == ((3, 1) if count == 3 else (0, count))
    table.compact()
    assert table.report().debt.data_files == 1


def test_retention_costs_what_it_keeps(lake: Lake, table: Table) -> None:
    """History, and later what waits for the end of the grace period: both are paid for safety."""
    table.drop_tag("then")
    day = 24 * 3600 * 1000
    table.set_properties({"history.expire.max-snapshot-age-ms": str(7 * day), "icefield.gc.grace-ms": str(day)})
    table.overwrite(ROWS)
    kept = check_whole(lake, table)
    assert (kept.kept, kept.kept_share) == (kept.history, kept.history.bytes / kept.live.bytes)
    assert "retention (7 days of history, at least a snapshot, and 1 day of grace) keeps " in str(kept)
    assert f": {kept.kept_share:.0%} of what is live" in str(kept)
    lake.ambient.sleep(8 * 24 * 3600)
    table.expire_snapshots()
    waits = check_whole(lake, table)
    assert waits.waiting.bytes > 0
    assert waits.kept == waits.history + waits.waiting
    table.set_properties({"icefield.gc.grace-ms": "5400000", "icefield.gc.foreign-readers": "false"})
    assert "1.5 hours of grace" in str(table.report())
    total = lake.report(price=1e6)
    assert (total.kept, total.retention) == (table.report().kept, None)
    assert total.as_dict()["cost"]["kept"] == pytest.approx(total.kept.bytes / 1000)  # type: ignore[index]


def test_money_is_bytes_times_price(lake: Lake, table: Table) -> None:
    found = table.report(price=1_000_000.0)
    cost = found.cost(found.stored.bytes)
    assert cost is not None
    assert cost == pytest.approx(found.stored.bytes / 1000)
    assert f"({cost:,.2f} a month)" in str(found)
    assert found.as_dict()["cost"]["stored"] == pytest.approx(cost)  # type: ignore[index]
    assert table.report().cost(5) is None


@pytest.mark.parametrize("price", [-1.0, float("nan"), float("inf")])
def test_a_price_that_is_none_is_refused(table: Table, price: float) -> None:
    with pytest.raises(InvalidInput, match="price"):
        table.report(price=price)


def test_a_lake_is_the_sum_of_its_tables(lake: Lake, table: Table) -> None:
    other = make_table(lake, 2, "a.u")
    found = lake.report(price=0.023)
    assert [each.table for each in found.tables] == ["a.t", "a.u"]
    assert found.stored == found.tables[0].stored + found.tables[1].stored
    assert found.debt.data_files == sum(each.scan().files().num_rows for each in (table, other))
    assert str(found).count("to gain") == 3
    assert lake.report(["a.u"]).stored == found.tables[1].stored


def test_a_table_that_cannot_be_measured_does_not_hide_the_others(lake: Lake) -> None:
    make_table(lake, 2, "a.t")
    make_table(lake, 2, "a.u").set_properties({"icefield.compaction.max-file-size-bytes": "1"})
    found = lake.report(price=0.023)
    assert [(each.table, each.stored.files > 0, each.error is None) for each in found.tables] == [
        ("a.t", True, True),
        ("a.u", False, False),
    ]
    assert found.stored == found.tables[0].stored
    assert [each.table for each in found.failed] == ["a.u"]
    assert "a.u: cannot be measured: the target file size" in str(found)
    with pytest.raises(InvalidInput, match="target file size"):
        lake.table("a.u").report()
    with pytest.raises(NoSuchTable):
        lake.report(["a.t", "a.none"])


def test_a_transaction_is_not_measured(lake: Lake, table: Table) -> None:
    with lake.transaction() as tx, pytest.raises(InvalidInput, match="transaction"):
        tx.table("a.t").report()
