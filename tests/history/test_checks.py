"""Checks before a publish: filters, conditions over metrics, and queries; a failure says which rows break which."""

import datetime
from collections.abc import Mapping

import pyarrow as pa
import pytest

import icefield
from icefield.errors import CheckFailed, IcefieldError, InvalidInput, NoSuchTable
from icefield.history.checks import CheckFailure
from icefield.lake import Lake
from icefield.table.table import Table

NOW = datetime.datetime.now(datetime.UTC)
SCHEMA = "id long, amount decimal(9, 2), email string, ts timestamptz, address struct<city: string>"


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


@pytest.fixture
def table(lake: Lake) -> Table:
    """A table with one row in main, and three more in staging."""
    table = lake.create_table("shop.orders", SCHEMA)
    table.append(rows(1))
    table.create_branch("staging")
    table.at("staging").append(rows(2, 3, 4))
    return table


def rows(*ids: int) -> pa.Table:
    found = [
        {"id": key, "amount": key, "email": None if key % 2 else f"{key}@x", "ts": NOW, "address": {"city": f"c{key}"}}
        for key in ids
    ]
    kinds = {"id": pa.int64(), "amount": pa.decimal128(9, 2), "email": pa.string(), "ts": pa.timestamp("us", "UTC")}
    kinds["address"] = pa.struct([("city", pa.string())])
    return pa.Table.from_pylist(found, pa.schema(list(kinds.items())))


def failure_of(table: Table, check: str) -> CheckFailure | None:
    """Return how a check fails; publish the branch if it does not."""
    before = table.metadata
    try:
        table.publish("staging", checks={"one": check})
    except CheckFailed as error:
        (failure,) = error.failures
        assert isinstance(failure, CheckFailure)
        assert table.metadata == before
        return failure
    assert table.count() == 4
    return None


HOLDING = [
    "id < 0",
    "count(*) = 4",
    "COUNT(*) BETWEEN 1 AND 10 AND count(email) = 2",
    "nulls(email) <= 2",
    "null_share(email) <= 0.5 AND null_share(id) = 0",
    "min(amount) >= 1 AND max(amount) < 4.01",
    "max(address.city) = 'c4' and min( `id` ) = 1",
    "min(email) > 'a' OR count(*) > 0",
    "age_hours(ts) < 24",
    "age_hours(ts) between -1 and 1",
    "NOT (count(*) > 100)",
    "SELECT id FROM shop.orders GROUP BY id HAVING count(*) > 1",
    "select * from shop.orders where amount < 0;  -- nothing",
    "WITH few AS (SELECT count(*) AS n FROM shop.orders) SELECT n FROM few WHERE n < 4",
]
BREAKING: Mapping[str, tuple[int, list[int], dict[str, object]]] = {
    "amount > 2": (2, [3, 4], {}),
    "email IS NULL AND id > 1": (1, [3], {}),
    "count(*) > 4": (0, [], {"count(*)": 4}),
    "count(*) > 2 AND null_share(email) < 0.1": (2, [1, 3], {"count(*)": 4, "null_share(email)": 0.5}),
    "nulls(email) = 0": (2, [1, 3], {"nulls(email)": 2}),
    "max(id) <= 3": (1, [4], {"max(id)": 4}),
    "min(amount) >= 2": (1, [1], {}),
    "age_hours(ts) > 100": (0, [], {}),
    "SELECT id FROM shop.orders WHERE id >= 3": (2, [3, 4], {}),
    "SELECT a.id FROM shop.orders a JOIN shop.orders b ON a.id = b.id WHERE a.id = 1": (1, [1], {}),
}


@pytest.mark.every_case
@pytest.mark.parametrize("check", HOLDING)
def test_a_check_that_holds_lets_the_branch_pass(table: Table, check: str) -> None:
    assert failure_of(table, check) is None


@pytest.mark.every_case
@pytest.mark.parametrize("check", BREAKING)
def test_a_check_that_breaks_says_which_rows_break_it(table: Table, check: str) -> None:
    count, ids, metrics = BREAKING[check]
    failure = failure_of(table, check)
    assert failure is not None
    assert (failure.name, failure.where, failure.rows) == ("one", check, count)
    assert sorted(row["id"] for row in failure.sample) == ids  # type: ignore[type-var]
    assert metrics.items() <= failure.metrics.items()
    assert str(failure).startswith(f"one ({check}): ")


@pytest.mark.every_case
@pytest.mark.parametrize(
    "check",
    ["nothing < 3", "min(nothing) > 3", "count() > 1", "min(id, amount) > 3", "min(*) > 1", "count(*) > 'x' AND",
     "count(*) > 1 AND id > 3", "age_hours(id) < 3", "min(address) > 3", "count(* > 3", "nulls(address) = 0",
     "null_share(address) < 1 OR count(*) > 1"],
)  # fmt: skip
def test_a_check_that_cannot_be_run_is_refused_when_it_is_kept_and_when_it_is_run(table: Table, check: str) -> None:
    before = table.metadata
    with pytest.raises(InvalidInput, match="the check 'one' cannot be run"):
        table.set_properties({"icefield.check.one": check})
    with pytest.raises(InvalidInput, match="the check 'one' cannot be run"):
        table.publish("staging", checks={"one": check})
    assert table.metadata == before


def test_a_message_shows_values_without_the_names_of_their_types(table: Table) -> None:
    failure = failure_of(table, "id = 3")
    assert failure is not None
    shown = "id = 3, amount = 3.00, email = NULL, ts = "
    assert f"1 row(s), such as {shown}{NOW}" in str(failure)


def test_a_new_table_with_a_wrong_check_is_not_created(lake: Lake) -> None:
    with pytest.raises(InvalidInput, match="the check 'one'"):
        lake.create_table("shop.other", SCHEMA, properties={"icefield.check.one": "min(x) > 3"})
    assert lake.tables() == []
    with pytest.raises(InvalidInput, match="name of a check"):
        lake.create_table("shop.other", SCHEMA, properties={"icefield.check.": "id < 3"})


def test_checks_of_all_kinds_are_kept_as_properties(table: Table) -> None:
    table.set_properties(
        {
            "icefield.check.amounts": "amount < 0",
            "icefield.check.enough": "count(*) >= 5",
            "icefield.check.unique": "SELECT id FROM shop.orders GROUP BY id HAVING count(*) > 1",
        }
    )
    table.at("staging").append(rows(2))
    table.at("staging").delete(where="id = 4")
    with pytest.raises(CheckFailed, match="breaks 2 of 3") as error:
        table.publish("staging")
    assert {each.name: each.as_dict()["metrics"] for each in error.value.failures} == {
        "enough": {"count(*)": 4},
        "unique": {},
    }
    assert table.count() == 1
    table.at("staging").overwrite(rows(*range(10)))
    table.publish("staging")
    assert table.count() == 10


def test_a_metric_without_a_value_breaks_its_bound(lake: Lake) -> None:
    table = lake.create_table("shop.empty", SCHEMA)
    table.create_branch("staging")
    for check in ("min(id) > 0", "age_hours(ts) < 24", "null_share(id) < 1"):
        with pytest.raises(CheckFailed, match="is None"):
            table.publish("staging", checks={"one": check})
    table.publish("staging", checks={"one": "count(*) = 0 OR min(id) > 0"})


def test_a_query_reaches_tables_of_the_lake_and_no_files(lake: Lake, table: Table, tmp_path: object) -> None:
    lake.create_table("shop.known", "id long").append(pa.table({"id": [1, 2, 3]}))
    missing = "SELECT o.id FROM shop.orders o LEFT ANTI JOIN shop.known k ON o.id = k.id"
    with pytest.raises(CheckFailed) as error:
        table.publish("staging", checks={"known": missing})
    assert error.value.failures[0].sample == [{"id": 4}]
    for query in (
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM csv.`/etc/passwd`",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM shop.nothing",
        "SELECT getenv('HOME')",
        "SELECT 1) ; DROP TABLE shop.orders; (SELECT 1",
        "SELECT nothing FROM shop.orders",
    ):
        with pytest.raises(IcefieldError, match="the check 'one' cannot be run|expected") as refused:
            table.publish("staging", checks={"one": query})
        assert not isinstance(refused.value, CheckFailed)
    assert (table.count(), sorted(lake.tables())) == (1, ["shop.known", "shop.orders"])


def test_queries_of_a_published_lake_branch_see_all_its_tables(lake: Lake, table: Table) -> None:
    known = lake.create_table("shop.known", "id long")
    table.set_properties(
        {"icefield.check.known": "SELECT id FROM shop.orders WHERE id NOT IN (SELECT id FROM shop.known)"}
    )
    known.append(pa.table({"id": [1]}))
    work = lake.branch("work")
    work.table("shop.orders").append(rows(7))
    with pytest.raises(CheckFailed) as error:
        work.publish()
    assert error.value.failures[0].sample == [{"id": 7}]
    work.table("shop.known").append(pa.table({"id": [7]}))
    with pytest.raises(CheckFailed):  # alone, it sees the other table's main
        table.publish("work")
    assert sorted(work.publish(dry_run=True)) == ["shop.known", "shop.orders"]
    assert sorted(work.publish()) == ["shop.known", "shop.orders"]
    assert lake.table("shop.orders").count() == 2


def test_a_query_with_a_missing_table_says_so(table: Table) -> None:
    with pytest.raises(NoSuchTable, match="shop.nowhere"):
        table.publish("staging", checks={"one": "SELECT * FROM shop.nowhere"})


def test_a_metric_may_be_of_a_column_with_any_name() -> None:
    table = icefield.connect("memory:").create_table("t.t", pa.schema({"a`b": pa.int64()}))
    table.append(pa.table({"a`b": [1, 2, 3, 4]}))
    table.create_branch("staging")
    for check, breaks in (("min(`a``b`) = 1", False), ("nulls(`a``b`) > 0", True)):
        assert (failure_of(table, check) is not None) is breaks
