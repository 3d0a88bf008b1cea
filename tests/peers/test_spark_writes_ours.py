"""What icefield writes through Spark is read by PyIceberg and DuckDB, and its statistics hold."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from tests.peers.case import Append, TableCase
from tests.peers.duckdb_reader import DuckDBReader
from tests.peers.gallery import Gallery
from tests.peers.judgement import judge
from tests.peers.normal import normal_rows
from tests.peers.predicates import Predicate
from tests.peers.pyiceberg_quirks import nulls_as_it_reads_them
from tests.peers.tables import all_tables, column

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
    source = gallery.table(case)
    case = _as_spark_knows_it(case)
    frame = source.scan(select=case.schema.names).to_spark()
    table = gallery.lake.create_table(f"peers.spark_{case.name}", case.schema, partition_by=case.partition_by)
    table.append(frame)
    assert normal_rows(table.scan().to_arrow().read_all(), case.schema) == case.normal_rows()
    theirs = pyiceberg_catalog.load_table(table.name).scan().to_arrow()
    assert normal_rows(theirs, case.schema) == nulls_as_it_reads_them(case)
    assert normal_rows(duckdb_reader.read(table.metadata_location), case.schema) == case.normal_rows()
    judge(case, table.metadata_location)


def _as_spark_knows_it(case: TableCase) -> TableCase:
    """Leave out columns of types that Spark does not have: it reads them as something else."""
    schema = pa.schema([f for f in case.schema if f.name not in (column("time"), column("fixed"))])
    steps = [Append(step.rows.select(schema.names)) for step in case.steps]
    return replace(case, schema=schema, steps=steps, asks=[ask for ask in case.asks if _is_in(schema, ask)])


def _is_in(schema: pa.Schema, ask: Predicate) -> bool:
    return ask.column.split(".")[0] in schema.names
