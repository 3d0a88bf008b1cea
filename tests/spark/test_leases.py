"""Spark scans that last: their files stay while the collector works with no grace, and go when nobody can read them."""

import gc
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import CaseInsensitiveDict, WriterCommitMessage
from pyspark.sql.types import LongType, StructField, StructType
from tests.upkeep.fixtures import AT_ONCE, FUTURE, declare_dead, ids, rows

import icefield
from icefield.ambient import SystemAmbient
from icefield.errors import LeaseLost, MissingFile, NoSuchSnapshot
from icefield.lake import Lake
from icefield.spark.data_source import read as data_source_read
from icefield.spark.data_source.data_source import IcefieldSource
from icefield.spark.data_source.held_version import HeldVersion
from icefield.spark.data_source.write import SourceWriter
from icefield.spark.session.session import is_remote
from icefield.table.table import Table

pytestmark = pytest.mark.spark

LOOKS = 20
SCHEMA = StructType([StructField("id", LongType()), StructField("n", LongType())])


class Clock(SystemAmbient):
    """The real clock, which can be set ahead."""

    ahead_s = 0.0

    def monotonic(self) -> float:
        return SystemAmbient.monotonic() + self.ahead_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lake(tmp_path: Path, clock: Clock, spark: SparkSession) -> Iterator[Lake]:
    with icefield.connect(tmp_path / "lake", durable=False, ambient=clock) as made:
        yield made


def filled(lake: Lake, **properties: str) -> Table:
    """Create a table of four files, one of which has a deleted row."""
    given = {**AT_ONCE, "write.delete.mode": "merge-on-read", **properties}
    table = lake.create_table("t.t", "id long, n long", properties=given)
    for n in range(3):
        table.append(rows(n))
    table.append(rows(3, 4))
    table.delete("id = 4")
    return table


def wipe(table: Table) -> None:
    """Do all that can take files away, at once."""
    table.compact()
    table.overwrite(rows(100))
    assert table.expire_snapshots(FUTURE).unfinished is None
    table.remove_orphans(unsafe=True)
    table.sweep()


def found(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.select("id").collect())


def look_until_ended(lake: Lake, spark: SparkSession, table: Table) -> None:
    """Collect garbage here and in the JVM, which may take more than one turn, until the leases have ended."""
    for _ in range(LOOKS):
        gc.collect()
        if not is_remote(spark):
            spark._jvm.System.gc()  # type: ignore[union-attr]
        lake._sessions.frames.look()
        if not table.leases():
            return


DERIVED: dict[str, Callable[[DataFrame], DataFrame]] = {
    "itself": lambda frame: frame,
    "filtered": lambda frame: frame.where("n >= 0").selectExpr("id", "n + 1 AS m"),
    "joined with itself": lambda frame: frame.join(frame.selectExpr("id", "n AS other"), "id"),
    "aggregated": lambda frame: frame.groupBy("id").count(),
}


@pytest.mark.parametrize("derived", DERIVED)
@pytest.mark.parametrize("mapping", ["native", "by tasks"])
def test_a_frame_is_read_to_the_end_while_its_snapshot_is_swept(
    lake: Lake, spark: SparkSession, derived: str, mapping: str
) -> None:
    names = '[{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["n"]}]'
    table = filled(lake, **({"schema.name-mapping.default": names} if mapping == "by tasks" else {}))
    frame = DERIVED[derived](table.scan().to_spark())
    wipe(table)
    look_a_few_times(lake, spark)
    assert found(frame) == [0, 1, 2, 3]
    (lease,) = table.leases()
    assert (lease.kind, lease.files_held > 3) == ("reader", True)
    del frame
    look_until_ended(lake, spark, table)
    assert table.leases() == []
    assert table.sweep().files_deleted > 0
    assert table.remove_orphans(unsafe=True, dry_run=True).files_marked == 0
    assert ids(table) == [100]


def look_a_few_times(lake: Lake, spark: SparkSession) -> None:
    """Give the lease of a frame that lives the chance to end."""
    for _ in range(3):
        gc.collect()
        if not is_remote(spark):
            spark._jvm.System.gc()  # type: ignore[union-attr]
        lake._sessions.frames.look()


def test_a_frame_of_a_plan_that_was_swept_is_refused(lake: Lake) -> None:
    table = filled(lake)
    scan = table.scan()
    assert scan.files().num_rows == 4
    wipe(table)
    with pytest.raises(NoSuchSnapshot, match="has expired since"):
        scan.to_spark()
    assert table.leases() == []


def test_a_frame_takes_a_lease_after_a_third_of_the_grace(lake: Lake, spark: SparkSession, clock: Clock) -> None:
    table = filled(lake, **{"icefield.gc.grace-ms": "86400000", "icefield.gc.orphan-age-ms": "259200000"})
    frame, other = table.scan().to_spark(), table.scan_appends(None).to_spark()
    lake._sessions.frames.look()
    assert table.leases() == []
    clock.ahead_s = 9 * 3600
    lake._sessions.frames.look()
    assert len(table.leases()) == 2
    assert (found(frame), found(other)) == ([0, 1, 2, 3], [0, 1, 2, 3, 4])
    del frame, other
    look_until_ended(lake, spark, table)
    assert table.leases() == []


def source(lake: Lake, **options: str) -> IcefieldSource:
    kind = type("IcefieldSource", (IcefieldSource,), {"default_lake": lake.opener})
    made: IcefieldSource = kind(CaseInsensitiveDict({"table": "t.t", **options}))
    return made


def test_tasks_of_the_source_read_what_was_planned(lake: Lake) -> None:
    table = filled(lake)
    loaded = source(lake)
    planned = loaded.reader(loaded.schema())
    parts = planned.partitions()
    wipe(table)
    (before,) = table.leases()
    travelled = pickle.loads(pickle.dumps(planned))
    read = pa.Table.from_batches([batch for part in parts for batch in travelled.read(part)])
    assert sorted(read["id"].to_pylist()) == [0, 1, 2, 3]
    (after,) = table.leases()
    assert after.renewals > before.renewals, "tasks renew it"
    declare_dead(table)
    assert sum(batch.num_rows for part in parts for batch in travelled.read(part)) == 4, "the files are still there"
    assert table.sweep().leases_lost == 1
    with pytest.raises(MissingFile):
        list(travelled.read(parts[0]))


@contextmanager
def not_renewed(*_: object) -> Iterator[Callable[[], None]]:
    yield lambda: None


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("kind", "name", "off"),
    [(HeldVersion, "renewed", not_renewed), (data_source_read, "hold_version", lambda *_: None)],
    ids=["tasks do not renew", "queries hold nothing"],
)
def test_without_its_lease_a_query_of_the_source_is_hurt(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, kind: object, name: str, off: object
) -> None:
    """A dead driver must not end what its tasks read: the test before this one breaks without either guard."""
    monkeypatch.setattr(kind, name, off)
    with pytest.raises((AssertionError, MissingFile, ValueError)):
        test_tasks_of_the_source_read_what_was_planned(lake)


def test_the_source_refuses_a_version_that_expired_since_it_was_loaded(lake: Lake) -> None:
    table = filled(lake)
    loaded = source(lake)
    planned = loaded.reader(loaded.schema())
    wipe(table)
    with pytest.raises(NoSuchSnapshot, match="has expired since"):
        planned.partitions()
    assert table.leases() == []


def written(lake: Lake, *some: int, overwrite: bool = False) -> tuple[SourceWriter, list[WriterCommitMessage | None]]:
    writer = source(lake).writer(SCHEMA, overwrite)
    assert isinstance(writer, SourceWriter)
    writer = pickle.loads(pickle.dumps(writer))
    gc.collect()
    return writer, [writer.write(iter(rows(*some).to_batches()))]


@pytest.mark.parametrize("overwrite", [False, True])
def test_files_that_the_source_writes_stay_until_they_are_committed(lake: Lake, overwrite: bool) -> None:
    table = filled(lake)
    writer, messages = written(lake, 5, 6, overwrite=overwrite)
    (lease,) = table.leases()
    assert (lease.kind, lease.renewals > 0) == ("writer", True)
    table.remove_orphans(unsafe=True)
    again = pickle.loads(pickle.dumps((writer, messages)))
    writer.commit(messages)
    assert ids(table) == ([5, 6] if overwrite else [0, 1, 2, 3, 5, 6])
    assert table.leases() == []
    again[0].commit(again[1])
    table.remove_orphans(unsafe=True)
    assert ids(table) == ([5, 6] if overwrite else [0, 1, 2, 3, 5, 6])


def test_a_write_of_the_source_whose_lease_is_dead_does_not_land(lake: Lake) -> None:
    table = filled(lake)
    writer, messages = written(lake, 5)
    declare_dead(table)
    table.remove_orphans(unsafe=True)
    with pytest.raises(LeaseLost):
        writer.commit(messages)
    writer, messages = written(lake, 6)
    declare_dead(table)
    with pytest.raises(LeaseLost):
        writer.commit([*messages, writer.write(iter(rows(7).to_batches()))])
    assert ids(table) == [0, 1, 2, 3]


def test_rows_go_through_the_source_while_the_table_is_swept(lake: Lake) -> None:
    """Through Spark itself, with workers of its own."""
    table = filled(lake)
    spark = lake.spark
    frame = spark.read.format("icefield").load("t.t")
    assert found(frame) == [0, 1, 2, 3]
    frame.write.format("icefield").mode("append").save("t.t")
    assert ids(table) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert {lease.kind for lease in table.leases()} == {"reader"}, "it lapses"
