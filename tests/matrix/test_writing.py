"""The write matrix: random tables, frames, verbs and sessions; Arrow and a plain model say what must come out.

Each case has a number, which is its seed, and is run again alone by it:

    ICEFIELD_SEEDS=137:138 python -m pytest tests/matrix/test_writing.py
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.effort import seeds
from tests.matrix.writing_cases import FIRST_NEW, Case, make_case, spelled
from tests.matrix.writing_check import (
    arrow_rows,
    expected_rows,
    faults_of_files,
    partition_of,
    read_rows,
    same_rows,
)
from tests.matrix.writing_order import false_claims

import icefield
from icefield.lake import Lake
from icefield.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPARK_CASES = seeds(16, deep=400)
ARROW_CASES = seeds(12, deep=2000)


@pytest.mark.spark
@pytest.mark.parametrize("seed", SPARK_CASES, ids=lambda seed: f"case-{seed}")
def test_a_frame_is_written_as_the_model_says(lake: Lake, spark: "SparkSession", seed: int) -> None:
    case = make_case(seed)
    table = _made(lake, case)
    with _session(spark, case):
        _write(lake, table, _frame(spark, case), case)
    _check(table, case)
    files = table.inspect("files").to_arrow().read_all().select(["file_path", "sort_order_id"]).to_pylist()
    new = [file for file in files if _is_new(file)]
    if case.verb in ("append", "overwrite") and case.order_by:
        assert {file["sort_order_id"] for file in new} == {1}, f"files are not sorted in {case}"
    if case.verb == "append" and case.mode == "hash" and case.partition_by:
        partitions = {repr(partition_of(row, case)) for row in expected_rows(case)[len(case.before) :]}
        assert len(new) == len(partitions), f"rows did not come together in {case}"


@pytest.mark.parametrize("seed", ARROW_CASES, ids=lambda seed: f"case-{seed}")
def test_arrow_rows_are_written_as_the_model_says(memory_lake: Lake, seed: int) -> None:
    case = make_case(seed)
    table = _made(memory_lake, case)
    rows = arrow_rows(case.rows, case.given)
    match case.verb.removeprefix("source_"):
        case "append":
            table.append(rows)
        case "overwrite" if case.verb == "overwrite":
            table.overwrite(rows, where=f"id >= {FIRST_NEW}")
        case _:
            table.overwrite_partitions(rows)
    _check(table, case)


def _made(lake: Lake, case: Case) -> Table:
    table = lake.create_table(
        "s.t",
        case.schema,
        partition_by=[spelled(*term) for term in case.partition_by],
        order_by=[f"{spelled(transform, source)} {how}" for transform, source, how in case.order_by],
        format_version=case.version,
    )
    table.append(arrow_rows(case.before, case.schema.fields))
    return table


def _frame(spark: "SparkSession", case: Case) -> "DataFrame":
    """Return the frame, in two tasks; some of its text columns have a collation."""
    from icefield.spark.arrow_rows import frame_of_arrow  # noqa: PLC0415 - only cases on Spark load it
    from icefield.types.schema import Schema  # noqa: PLC0415

    given = Schema(tuple(case.given))
    rows = arrow_rows(case.rows, case.given)
    frame = frame_of_arrow(spark, rows.to_reader(), given).repartition(2)
    if not case.collated:
        return frame
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    numbered = frame.toDF(*(f"c{at}" for at in range(len(case.given))))
    columns = [
        F.expr(f"c{at} COLLATE UNICODE_CI") if f.name in case.collated else F.col(f"c{at}")
        for at, f in enumerate(case.given)
    ]
    return numbered.select(columns).toDF(*(f.name for f in case.given))


def _write(lake: Lake, table: Table, frame: "DataFrame", case: Case) -> None:
    options = {"distribution-mode": case.mode}
    match case.verb:
        case "append":
            table.append(frame, options=options)
        case "overwrite":
            table.overwrite(frame, where=f"id >= {FIRST_NEW}", options=options)
        case "overwrite_partitions":
            table.overwrite_partitions(frame, options=options)
        case _:
            icefield.register(frame.sparkSession, lake)
            writer = frame.write.format("icefield").option("overwrite-mode", "dynamic")
            writer.mode("append" if case.verb == "source_append" else "overwrite").save("s.t")


def _check(table: Table, case: Case) -> None:
    differing = same_rows(read_rows(table), expected_rows(case), case.schema.fields)
    assert not differing, f"{differing} in {case}"
    assert not list(faults_of_files(table)), str(case)
    assert not false_claims(table), str(case)


def _is_new(file: dict[str, object]) -> bool:
    return "-00000-0-" not in str(file["file_path"]) and "/00000-0-" not in str(file["file_path"])


@contextmanager
def _session(spark: "SparkSession", case: Case) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in case.settings}
    for key, value in case.settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)
