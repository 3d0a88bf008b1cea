"""Tables that a job changes one after another: what only some of them have."""

import pyarrow as pa
import pytest
from tests.fsck.damage import open_lake

import icefield
from icefield.fsck.finding import Check
from icefield.lake import Lake
from icefield.table.table import Table

ROWS = pa.table({"id": [1]})


@pytest.fixture
def lake() -> Lake:
    return open_lake()


@pytest.fixture
def orders(lake: Lake) -> Table:
    return lake.create_table("a.orders", "id long")


@pytest.fixture
def lines(lake: Lake) -> Table:
    return lake.create_table("a.lines", "id long")


def messages(lake: Lake, *, tables: tuple[str, ...] = ("a.orders", "a.lines")) -> list[str]:
    found = lake.fsck(list(tables), together=True)
    assert {each.check for each in found.findings} <= {Check.HALF_CHANGED}
    assert found.is_healthy is not bool(found.findings)
    return [each.message.partition(";")[0] for each in found.findings]


def write(key: str, *tables: Table) -> None:
    for table in tables:
        table.append(ROWS, idempotency_key=key)


def test_tables_with_the_same_keys_are_whole(lake: Lake, orders: Table, lines: Table) -> None:
    for key in ("k1", "k2"):
        write(key, orders, lines)
    assert messages(lake) == []


def test_a_job_that_stopped_between_two_tables(lake: Lake, orders: Table, lines: Table) -> None:
    write("k1", orders, lines)
    write("k2", orders)
    expected = "a.lines lacks the change with the idempotency key 'k2', which a.orders has"
    assert messages(lake) == [expected]
    assert lake.fsck().is_healthy, "each table on its own is whole"
    write("k2", orders, lines)
    assert messages(lake) == []
    assert (orders.count(), lines.count()) == (2, 2), "repeating the job completes it"


def test_a_job_that_stopped_before_the_second_of_three(lake: Lake, orders: Table, lines: Table) -> None:
    third = lake.create_table("a.third", "id long")
    write("k1", orders, lines, third)
    write("k2", orders)
    found = messages(lake, tables=("a.orders", "a.lines", "a.third"))
    assert [message.split(" ")[0] for message in found] == ["a.lines", "a.third"]


def test_streams_are_compared_by_their_batch(lake: Lake, orders: Table, lines: Table) -> None:
    for table, batches in ((orders, 4), (lines, 3)):
        for batch in range(batches):
            table.append(ROWS, idempotency_key=icefield.StreamBatch("clicks", batch))
    assert messages(lake) == ["a.lines is at batch 2 of the stream 'clicks', and another table is at batch 3"]


def test_a_stream_that_one_table_never_had(lake: Lake, orders: Table, lines: Table) -> None:
    orders.append(ROWS, idempotency_key=icefield.StreamBatch("clicks", 0))
    assert messages(lake) == ["a.lines has no batch of the stream 'clicks', and another table is at batch 0"]


def test_keys_that_a_table_has_forgotten_are_not_missing(lake: Lake, orders: Table, lines: Table) -> None:
    lines.set_properties({"icefield.idempotency-keys.kept": "2"})
    for key in ("k1", "k2", "k3", "k4"):
        write(key, orders, lines)
    assert messages(lake) == []
    write("k5", orders)
    assert messages(lake) == ["a.lines lacks the change with the idempotency key 'k5', which a.orders has"]


def test_keys_outlive_expired_snapshots(lake: Lake, orders: Table, lines: Table) -> None:
    write("k1", orders, lines)
    write("k2", orders)
    orders.append(ROWS)
    orders.expire_snapshots("2100-01-01", keep_last=1)
    assert len(messages(lake)) == 1
