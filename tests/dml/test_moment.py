"""The time that expressions see: one moment for a whole change."""

import datetime as dt

import pyarrow as pa
import pytest

import icefield
from icefield.ambient import SeededAmbient
from icefield.lake import Lake
from icefield.table.table import Table


class MovingAmbient(SeededAmbient):
    """A clock that moves whenever it is read."""

    reads = 0

    def now_ms(self) -> int:
        self.reads += 1
        return int(dt.datetime(2026, 3, 1, 23, 59, 50, tzinfo=dt.UTC).timestamp() * 1000) + self.reads * 5000


SCHEMA = "id long, at timestamptz, day date, note string"


def make(lake: Lake) -> Table:
    table = lake.create_table("t.t", SCHEMA)
    for start in (0, 10):  # two files
        table.append(pa.table({"id": pa.array(range(start, start + 5), pa.int64())}))
    return table


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_all_rows_files_and_clauses_see_one_moment(mode: str) -> None:
    with icefield.connect("memory:", ambient=MovingAmbient(1)) as lake:
        table = make(lake)
        values = {"at": "current_timestamp()", "day": "CURRENT_DATE"}
        table.update(values, "now() > TIMESTAMP '2026-01-01 00:00:00Z'", mode=mode)
        rows = table.scan().to_arrow().read_all().to_pylist()
        assert len(rows) == 10
        ((at, day),) = {(row["at"], row["day"]) for row in rows}
        assert day == at.date()
        source = pa.table({"id": pa.array([0, 10, 99], pa.int64())})
        merge = table.merge(source, on=["id"], mode=mode).when_matched().update(values)
        merge.when_not_matched().insert({"id": "source.id", **values}).execute()
        rows = [row for row in table.scan().to_arrow().read_all().to_pylist() if row["id"] in (0, 10, 99)]
        ((later, day),) = {(row["at"], row["day"]) for row in rows}
        assert later > at
        assert day == later.date()
