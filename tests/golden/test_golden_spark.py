"""Golden tables through Spark: the same rows, with their lineage, as their makers read."""

import pyarrow as pa
import pytest
from tests.effort import sample
from tests.golden.expected import Expected, rows_of
from tests.golden.reading import EXPECTED, LINEAGE, cases, differences, names, scan
from tests.golden.test_golden import REFUSED

from icefield.table.scan import TableScan
from icefield.types.arrow import arrow_schema

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

# Arrow cannot take a null variant from Spark.
AS_TEXT = "java_variants"
# One table for each way in which Spark reads: filters and other versions go through them as well.
IN_FULL = (
    "java_defaults",
    "java_equality_deletes",
    "java_name_mapping",
    "java_position_deletes",
    "java_schema_evolution",
    "java_v2_transforms",
)


def to_spark(planned: TableScan) -> pa.Table:
    """Read through Spark; nanoseconds, which it has as numbers, become moments again."""
    read: pa.Table = planned.to_spark().toArrow()
    like = arrow_schema(planned.schema)
    for at, field in enumerate(like):
        if pa.types.is_timestamp(field.type) and pa.types.is_int64(read.schema.field(at).type):
            read = read.set_column(at, field.name, read.column(at).cast(field.type))
    return read


@pytest.mark.every_case
@pytest.mark.parametrize("expected", sample(cases(without=(*REFUSED, *IN_FULL, AS_TEXT)), 20))
def test_spark_reads_what_its_maker_reads(expected: Expected) -> None:
    with_lineage = "lineage" in expected
    planned = scan(expected, select=[*expected["columns"], *(LINEAGE if with_lineage else ())])
    rows = rows_of(to_spark(planned), arrow_schema(planned.schema))
    assert rows == expected["lineage" if with_lineage else "rows"]


@pytest.mark.parametrize("expected", cases(without=names() - set(IN_FULL)))
def test_spark_filters_and_travels_as_its_maker_does(expected: Expected) -> None:
    assert differences(expected, to_spark) == {}


def test_spark_reads_variants() -> None:
    (expected,) = (e for e in EXPECTED if e["name"] == AS_TEXT)
    rows = scan(expected).to_spark().selectExpr("id", "to_json(a)").collect()
    read = {row[0]: row[1] for row in rows}
    assert read == {0: "34", 1: '"text"', 2: '{"a":7,"b":"text"}', 3: "[1,true]", 4: "null", 9: None}
