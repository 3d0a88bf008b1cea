"""Spark loses what it keeps of a source, as with an executor: the verb runs again, or fails and changes nothing."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame
from tests.commit.racing import files_of, reachable
from tests.spark_places import SparkPlace, chosen_place

from icefield.dml.result import ChangeResult
from icefield.errors import SourceLost
from icefield.lake import Lake
from icefield.table.row_changes import MOST_LOSSES
from icefield.table.table import Table

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(chosen_place() is SparkPlace.CONNECT, reason="a client cannot reach the blocks"),
]
Change = Callable[[Table, DataFrame], ChangeResult]
# Those that read the source more than once: its keys, and its rows.
CHANGES: dict[str, Change] = {
    "upsert": lambda table, source: table.upsert(source, ["id"], engine="spark"),
    "merge": lambda table, source: (
        table.merge(source, "target.id = source.id", engine="spark")
        .when_matched()
        .update({"n": "source.n"})
        .when_not_matched()
        .insert_all()
        .execute()
    ),
    "equality": lambda table, source: table.upsert(source, ["id"], mode="equality", engine="spark"),
}


@pytest.fixture
def table(lake: Lake) -> Table:
    made = lake.create_table("a.t", "id long, n long", format_version=3)
    made.append(pa.table({"id": range(4), "n": [0] * 4}))
    return made


@pytest.mark.parametrize("verb", CHANGES)
def test_a_source_that_is_lost_is_read_again(
    lake: Lake, spark: SparkSession, table: Table, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = _lose_checkpoints(monkeypatch, spark, times=1)
    done = CHANGES[verb](table, spark.sql("SELECT id, 7L AS n FROM range(2, 6)"))
    assert left == [0]
    assert _rows(table) == [(0, 0), (1, 0), (2, 7), (3, 7), (4, 7), (5, 7)]
    expected = (0, 4) if verb == "equality" else (2, 2)
    assert (done.rows_updated, done.rows_inserted) == expected
    assert len(table.snapshots()) == 2
    assert files_of(lake) >= reachable(table)


@pytest.mark.parametrize("verb", CHANGES)
def test_a_source_that_is_lost_again_and_again_is_one_error_and_changes_nothing(
    lake: Lake, spark: SparkSession, table: Table, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files_of(lake)
    left = _lose_checkpoints(monkeypatch, spark, times=MOST_LOSSES + 5)
    with pytest.raises(SourceLost, match="Spark lost rows of the source") as caught:
        CHANGES[verb](table, spark.sql("SELECT id, 7L AS n FROM range(2, 6)"))
    assert "\n" not in str(caught.value)
    assert left == [4]
    assert files_of(lake) == before


def _lose_checkpoints(patch: pytest.MonkeyPatch, spark: SparkSession, *, times: int) -> list[int]:
    """Drop the blocks of the next checkpoints. Return how many are still to be dropped."""
    left, real = [times], ClassicFrame.localCheckpoint

    def losing(frame: Any, *given: Any, **named: Any) -> Any:
        made = real(frame, *given, **named)
        if left[0]:
            left[0] -= 1
            context: Any = spark.sparkContext
            for kept in context._jsc.getPersistentRDDs().values():
                kept.unpersist(True)
        return made

    patch.setattr(ClassicFrame, "localCheckpoint", losing)
    return left


def _rows(table: Table) -> list[tuple[int, int]]:
    return sorted((row["id"], row["n"]) for row in table.scan().to_arrow().read_all().to_pylist())
