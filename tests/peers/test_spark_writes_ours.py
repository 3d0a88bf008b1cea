"""What icefield writes through Spark is read by PyIceberg and DuckDB, and its statistics hold."""

from typing import TYPE_CHECKING

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from tests.peers.case import TableCase
from tests.peers.duckdb_reader import DuckDBReader
from tests.peers.gallery import Gallery
from tests.peers.judgement import judge
from tests.peers.normal import normal_rows
from tests.peers.pyiceberg_quirks import nulls_as_it_reads_them
from tests.peers.tables import all_tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("primitives", "several_fields", "odd_names", "nested", "identity_double", "bucket_uuid", "truncate_string")
CASES = [case for case in all_tables() if case.name in NAMES]


@pytest.mark.spark
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rows_written_by_spark_are_read_by_others(
    case: TableCase,
    gallery: Gallery,
    pyiceberg_catalog: SqlCatalog,
    duckdb_reader: DuckDBReader,
    spark: "SparkSession",
) -> None:
    frame = gallery.table(case).scan().to_spark()
    table = gallery.lake.create_table(f"peers.spark_{case.name}", case.schema, partition_by=case.partition_by)
    table.append(frame)
    assert normal_rows(table.scan().to_arrow().read_all(), case.schema) == case.normal_rows()
    theirs = pyiceberg_catalog.load_table(table.name).scan().to_arrow()
    assert normal_rows(theirs, case.schema) == nulls_as_it_reads_them(case)
    assert normal_rows(duckdb_reader.read(table.metadata_location), case.schema) == case.normal_rows()
    judge(case, table.metadata_location)
