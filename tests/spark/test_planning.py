"""Plans that executors make are the plans that this process makes."""

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icefield.engine.rows import planning_executor
from icefield.errors import CorruptFile
from icefield.expr.bind.bind import bind
from icefield.lake import Lake
from icefield.plan import entries
from icefield.plan.manifest_list import load_manifests
from icefield.plan.plan import ScanPlan, plan_scan
from icefield.plan.versions import resolve_version
from icefield.spark.planning import LEAST_COLD_BYTES, SparkCluster
from icefield.spark.session.session import is_remote
from icefield.storage.location import local_path
from icefield.table.table import Table

pytestmark = pytest.mark.spark


def make_table(lake: Lake) -> Table:
    table = lake.create_table("a.t", "id long, name string", partition_by=["bucket(3, id)"], format_version=3)
    for first in range(0, 40, 10):
        ids = range(first, first + 10)
        table.append(pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{i}" for i in ids]}))
    table.delete("id = 7")
    return table


def plan(lake: Lake, table: Table, where: str, cluster: SparkCluster | None) -> ScanPlan:
    metadata = table.metadata
    return plan_scan(
        lake.backend.reading, metadata, resolve_version(metadata, None), bind(where, metadata.schema), cluster
    )


def test_a_plan_made_by_executors_is_the_same(spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table(lake)
    monkeypatch.setattr(entries, "MANIFESTS_PER_BATCH", 1)
    cluster = SparkCluster(spark, least_cold_bytes=0, least_cores=1)
    for where in ("id >= 0", "id = 15", "name > 'n3'", "id > 100"):
        here, there = plan(lake, table, where, None), plan(lake, table, where, cluster)
        assert there.files.to_pylist() == here.files.to_pylist()
        assert there.metrics == here.metrics


def test_a_damaged_manifest_is_the_same_fault_wherever_it_is_found(spark: SparkSession, lake: Lake) -> None:
    table = make_table(lake)
    manifests = load_manifests(lake.backend.reading, table.metadata.current_snapshot)
    assert manifests is not None
    with open(local_path(manifests["manifest_path"][0].as_py()), "r+b") as file:  # noqa: PTH123
        file.truncate(100)
    with pytest.raises(CorruptFile):
        plan(lake, table, "id >= 0", SparkCluster(spark, least_cold_bytes=0, least_cores=1))


def test_it_pays_for_many_cold_bytes_and_enough_cores_only(spark: SparkSession) -> None:
    assert not SparkCluster(spark).is_worthwhile(LEAST_COLD_BYTES)  # two cores
    # A server of Spark Connect does not say how many cores it has.
    assert SparkCluster(spark, least_cores=2).is_worthwhile(LEAST_COLD_BYTES) is not is_remote(spark)
    assert not SparkCluster(spark, least_cores=2).is_worthwhile(LEAST_COLD_BYTES - 1)


def test_the_cluster_is_that_of_the_session_that_is_there(spark: SparkSession) -> None:
    cluster = planning_executor()
    assert isinstance(cluster, SparkCluster)
    cluster.session.range(1).createOrReplaceTempView("of_this_very_session")
    assert spark.catalog.dropTempView("of_this_very_session")
