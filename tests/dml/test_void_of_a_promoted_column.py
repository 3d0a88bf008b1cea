"""A void partition field has the type of its column, also in manifests of the time before the column was promoted."""

import datetime as dt
from collections.abc import Callable

import pyarrow as pa
import pytest

from icefield.lake import Lake
from icefield.table.table import Table

VERBS: dict[str, Callable[[Table], object]] = {
    "nothing": lambda t: None,
    "report": lambda t: t.report(),
    "delete": lambda t: t.delete("id = 7"),
    "compact": lambda t: t.compact(options={"rewrite-all": "true"}),
    "sort": lambda t: t.compact(order_by=["id"]),
    "rewrite manifests": lambda t: t.rewrite_manifests(),
    "rewrite deletes": lambda t: t.rewrite_deletes(),
    "forget": lambda t: t.forget("id = 2", dry_run=True),
    "expire": lambda t: t.expire_snapshots("2100-01-01T00:00:00Z"),
}


@pytest.mark.every_case
@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ns"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_table_is_read_and_kept_up(memory_lake: Lake, verb: str, kind: str) -> None:
    table = memory_lake.create_table("a.t", "id long, d date", partition_by=["void(d)"], format_version=3)
    table.append(pa.table({"id": [1], "d": [dt.date(2026, 1, 1)]}))
    table.append(pa.table({"id": [2], "d": [dt.date(2026, 1, 2)]}))
    with table.evolve() as change:
        change.update_column_type("d", kind)
    table.append(pa.table({"id": [3], "d": [dt.datetime(2026, 1, 3, 4)]}))
    for _ in range(2):  # the second time with what the first has cached
        VERBS[verb](table)
        rows = table.scan().to_arrow().read_all()
        days = {row["id"]: row["d"].day for row in rows.to_pylist()}
        assert days == {1: 1, 2: 2, 3: 3}
        assert table.count("d < timestamp '2026-01-02 00:00:00'") == 1
        assert table.fsck().is_healthy
