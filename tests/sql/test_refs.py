"""Branches and tags by ALTER TABLE, without a JVM."""

import pyarrow as pa
import pytest

from icefield.errors import AlreadyExists, IcefieldError, InvalidInput, NoSuchSnapshot
from icefield.lake import Lake
from icefield.model.snapshot import RefKind
from icefield.table.table import Table
from tests.sql.running import refused, run


@pytest.fixture(autouse=True)
def table(lake: Lake) -> Table:
    made = lake.create_table("shop.t", "id long")
    for each in (1, 2, 3):
        made.append(pa.table({"id": pa.array([each], pa.int64())}))
    return made


def alter(lake: Lake, *changes: str) -> None:
    for change in changes:
        run(lake, f"ALTER TABLE shop.t {change}")


def test_branches_and_tags_have_versions_and_retention(lake: Lake, table: Table) -> None:
    first, second, third = (snapshot.snapshot_id for snapshot in table.snapshots())
    alter(
        lake,
        "CREATE BRANCH b",
        f"CREATE BRANCH `a-b` AS OF VERSION {first} RETAIN 30 DAYS WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 HOURS",
        f"CREATE TAG `2026` AS OF VERSION {second} RETAIN 365 DAYS",
        "CREATE BRANCH table AS OF VERSION '2026' WITH SNAPSHOT RETENTION 5 MINUTES",
        "CREATE BRANCH snapshots WITH SNAPSHOT RETENTION 4 SNAPSHOTS",
    )
    run(lake, "ALTER TABLE shop.t CREATE TAG p AS OF VERSION :v", {"v": first})
    found = {
        name: (str(ref.kind), ref.snapshot_id, ref.max_ref_age_ms, ref.min_snapshots_to_keep, ref.max_snapshot_age_ms)
        for name, ref in table.refs().items()
        if name != "main"
    }
    assert found == {
        "b": ("branch", third, None, None, None),
        "a-b": ("branch", first, 2_592_000_000, 3, 7_200_000),
        "2026": ("tag", second, 31_536_000_000, None, None),
        "table": ("branch", second, None, None, 300_000),
        "snapshots": ("branch", third, None, 4, None),
        "p": ("tag", first, None, None, None),
    }


def test_refs_are_replaced_and_dropped(lake: Lake, table: Table) -> None:
    first = table.snapshots()[0].snapshot_id
    alter(lake, "CREATE OR REPLACE BRANCH b RETAIN 1 DAYS", "CREATE BRANCH IF NOT EXISTS b AS OF VERSION 12")
    alter(
        lake,
        f"CREATE OR REPLACE BRANCH b AS OF VERSION {first}",
        "CREATE TAG g",
        f"REPLACE TAG g AS OF VERSION {first}",
    )
    refs = table.refs()
    assert (refs["b"].snapshot_id, refs["b"].max_ref_age_ms, refs["g"].snapshot_id) == (first, 86_400_000, first)
    alter(lake, "REPLACE BRANCH b RETAIN 2 DAYS")
    assert (table.refs()["b"].snapshot_id, table.refs()["b"].max_ref_age_ms) != (first, 86_400_000)
    alter(lake, "DROP BRANCH b", "DROP TAG g", "DROP BRANCH IF EXISTS b", "DROP TAG IF EXISTS g")
    assert list(table.refs()) == ["main"]


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("change", "token", "error"),
    [
        ("CREATE BRANCH g", "g", AlreadyExists),
        ("CREATE BRANCH main", "main", AlreadyExists),
        ("CREATE OR REPLACE BRANCH g", "g", InvalidInput),
        ("CREATE TAG x AS OF VERSION 1234", "1234", NoSuchSnapshot),
        ("CREATE TAG x AS OF VERSION 'nothing'", "'nothing'", NoSuchSnapshot),
        ("CREATE TAG x RETAIN 0 DAYS", "0", InvalidInput),
        ("CREATE TAG x RETAIN 5 WEEKS", "WEEKS", InvalidInput),
        ("CREATE TAG x WITH SNAPSHOT RETENTION 5 DAYS", "WITH", InvalidInput),
        ("CREATE BRANCH x RETAIN 5 DAYS AS OF VERSION 1", "AS", InvalidInput),
        ("CREATE SOMETHING x", "SOMETHING", InvalidInput),
        ("REPLACE BRANCH nothing", "nothing", NoSuchSnapshot),
        ("REPLACE TAG IF NOT EXISTS g", "NOT", InvalidInput),
        ("DROP BRANCH nothing", "nothing", NoSuchSnapshot),
        ("DROP BRANCH main", "main", InvalidInput),
        ("DROP BRANCH g", "g", InvalidInput),
    ],
)
def test_what_cannot_be_points_at_its_token(lake: Lake, change: str, token: str, error: type[IcefieldError]) -> None:
    alter(lake, "CREATE TAG g")
    text = f"ALTER TABLE shop.t {change}"
    with pytest.raises(error) as caught:
        run(lake, text)
    assert caught.value.position == (1, text.rindex(token)), str(caught.value)


def test_a_branch_of_an_empty_table_is_written_apart(lake: Lake) -> None:
    empty = lake.create_table("shop.empty", "id long")
    run(lake, "ALTER TABLE shop.empty CREATE BRANCH b")
    empty.at("b").append(pa.table({"id": pa.array([1], pa.int64())}))
    assert (empty.count(), empty.at("b").count()) == (0, 1)
    refused(lake, "ALTER TABLE shop.empty CREATE TAG g", NoSuchSnapshot, at="g")


def test_refs_are_part_of_a_transaction(lake: Lake, table: Table) -> None:
    run(lake, "BEGIN")
    alter(lake, "CREATE BRANCH b")
    assert "b" not in table.refs()
    run(lake, "COMMIT")
    assert table.refs()["b"].kind is RefKind.BRANCH
