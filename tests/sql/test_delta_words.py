"""OPTIMIZE, VACUUM and RESTORE, as Delta's users write them, without a JVM."""

import pyarrow as pa
import pytest

import icefield
from icefield.errors import InvalidFilter, InvalidInput, NoSuchSnapshot, NoSuchTable
from icefield.lake import Lake
from icefield.table.table import Table
from tests.sql.running import refused, run


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


@pytest.fixture
def table(lake: Lake) -> Table:
    table = lake.create_table("shop.t", "id int, p string", partition_by=["p"])
    for p in ("a", "a", "b", "b"):
        table.append(pa.table({"id": pa.array([2, 1], pa.int32()), "p": [p, p]}))
    return table


def test_optimize_rewrites_small_files_of_the_partitions_that_match(lake: Lake, table: Table) -> None:
    assert run(lake, "OPTIMIZE shop.t WHERE p = :p", {"p": "a"})[0][:2] == (2, 1)
    assert run(lake, "OPTIMIZE shop.t")[0][:2] == (2, 1)
    assert run(lake, "OPTIMIZE shop.t WHERE t.p = 'b' ZORDER BY (id)")[0][:2] == (1, 1)
    assert table.scan("p = 'b'").to_arrow().read_all()["id"].to_pylist() == [1, 1, 2, 2]
    assert run(lake, "OPTIMIZE shop.t ZORDER BY (id, p)")[0][:2] == (2, 2)
    assert table.count() == 8
    refused(lake, "OPTIMIZE shop.t WHERE q = 1", InvalidFilter, at="q =")
    refused(lake, "OPTIMIZE shop.t ZORDER BY (id, q)", InvalidInput, at="q)")
    refused(lake, "OPTIMIZE shop.tt", NoSuchTable, at="shop.tt")
    refused(lake, "OPTIMIZE shop.t FULL", InvalidInput, at="FULL")


def test_vacuum_expires_snapshots_and_says_what_it_marked(lake: Lake, table: Table) -> None:
    table.compact(options={"rewrite-all": "true"})
    [(path, expired, marked, size, deleted, _)] = run(lake, "VACUUM shop.t RETAIN 0 HOURS DRY RUN")
    assert (path, expired, deleted, size > 0) == (table.location, 4, 0, True)
    assert len(table.snapshots()) == 5
    assert run(lake, "VACUUM shop.t RETAIN :h HOURS", {"h": 168})[0][1:3] == (0, 0)
    assert run(lake, "VACUUM TABLE shop.t RETAIN 0 HOURS")[0][1:3] == (4, marked)
    assert (len(table.snapshots()), table.count()) == (1, 8)
    with pytest.raises(InvalidInput, match="at least 0, not 'x'"):
        run(lake, "VACUUM shop.t RETAIN ? HOURS", ["x"])
    refused(lake, "VACUUM shop.t RETAIN 1 DAYS", InvalidInput, at="DAYS")
    run(lake, "BEGIN")
    refused(lake, "VACUUM shop.t", InvalidInput, at="shop.t", match="in a transaction")
    run(lake, "ROLLBACK")


def test_restore_goes_to_a_version_a_ref_or_a_time_and_forward_again(lake: Lake, table: Table) -> None:
    first, *_, last = (snapshot.snapshot_id for snapshot in table.snapshots())
    assert run(lake, f"RESTORE TABLE shop.t TO VERSION AS OF {first}") == [(last, first)]
    assert table.count() == 2
    assert run(lake, "RESTORE shop.t VERSION AS OF :v", {"v": last}) == [(first, last)]
    table.create_tag("g", at=first)
    assert run(lake, "RESTORE shop.t TO VERSION AS OF 'g'", dry_run=True) == [(last, first)]
    assert table.count() == 8
    assert run(lake, "RESTORE shop.t TO TIMESTAMP AS OF current_timestamp()") == [(last, last)]
    refused(lake, "RESTORE shop.t TO TIMESTAMP AS OF '2020-01-01'", NoSuchSnapshot, at="'2020")
    refused(lake, "RESTORE shop.t TO VERSION AS OF 12", NoSuchSnapshot, at="12")
    refused(lake, "RESTORE shop.t TO VERSION AS OF TRUE", InvalidInput, at="TRUE")
    refused(lake, "RESTORE shop.t TO YESTERDAY", InvalidInput, at="YESTERDAY")
