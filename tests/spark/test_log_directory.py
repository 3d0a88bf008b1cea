"""The list of files that a native read goes by is there as long as it is needed, and no longer."""

import gc
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from icefield.errors import StorageError
from icefield.lake import Lake
from icefield.spark.read import log_directory as log_directory_module
from icefield.spark.read.log_directory import LogDirectory, NativeFile, open_files
from icefield.spark.session.session import is_remote
from icefield.spark.types import physical_field
from icefield.storage.local import LocalStore
from icefield.storage.location import local_path, location_of_path
from icefield.table.table import Table

pytestmark = pytest.mark.spark


@pytest.fixture
def table(lake: Lake) -> Table:
    made = lake.create_table("a.t", "id long")
    made.append(pa.table({"id": range(10)}))
    return made


def logs_beside(table: Table) -> list[Path]:
    gc.collect()
    return list(Path(local_path(table.location)).glob(".icefield-scan-*"))


def test_a_frame_and_those_made_of_it_run_again_and_again(spark: SparkSession, table: Table) -> None:
    frame = table.scan().to_spark()
    derived = frame.where("id > 4").selectExpr("id + 1 AS next").union(frame.selectExpr("id"))
    del frame
    assert len(logs_beside(table)) == is_remote(spark), "a server reads the list again for each action"
    for _ in range(2):
        assert derived.count() == 15
    del derived
    assert logs_beside(table) == []


def test_a_temporary_view_outlives_its_frame(spark: SparkSession, table: Table) -> None:
    table.scan().to_spark().createOrReplaceTempView("of_a_frame_that_is_gone")
    try:
        assert logs_beside(table) == []
        assert spark.sql("SELECT max(id) AS m FROM of_a_frame_that_is_gone").collect()[0].m == 9
    finally:
        spark.catalog.dropTempView("of_a_frame_that_is_gone")


def test_a_table_that_cannot_be_written_is_read_by_a_server_on_this_machine_only(
    spark: SparkSession, table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "taken").touch()
    log_directory = LogDirectory(LocalStore(), location_of_path(str(tmp_path / "taken")))
    (file,) = table.scan().files().to_pylist()
    files = [NativeFile(Path(local_path(file["file_path"])).as_uri(), file["file_size_in_bytes"], 0)]
    stored = StructType([physical_field(f) for f in table.schema.fields])
    assert open_files(spark, files, stored, log_directory).count() == 10
    monkeypatch.setattr(log_directory_module, "is_on_this_machine", lambda _: False)
    if is_remote(spark):
        with pytest.raises(StorageError, match="where the Spark Connect server can read it"):
            open_files(spark, files, stored, log_directory)
