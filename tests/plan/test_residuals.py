"""Residuals on whole tables: each file is read with what its partition and statistics left of the filter."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from tests.effort import effort
from tests.plan.test_plan import LONGS, build, planned, rows_in, tables

from icefield.errors import InvalidInput
from icefield.expr.bind.bind import bind
from icefield.expr.bind.bound import TRUE, Bound
from icefield.expr.prune.residual import residual
from icefield.expr.render.rows import matches
from icefield.lake import Lake
from icefield.parquet.read.read import TableReader
from icefield.plan.planned_files import PlannedFiles
from icefield.plan.residuals import MOST_GROUPS, group_by_residual
from icefield.types.schema import Schema


@effort(80)
@given(tables())
def test_a_file_s_residual_matches_the_rows_that_the_filter_matches(case: tuple[Any, Any, Any, Any]) -> None:
    columns, spec, writes, where = case
    try:
        lake, table = build(columns, spec, writes)
    except InvalidInput as refused:
        assume("overflow" not in str(refused) and "does not fit" not in str(refused))
        raise
    plan = planned(lake, table.metadata, where)
    for at in range(plan.files.num_rows):
        file = plan.files.slice(at, 1)
        left = residual(where, file["residual_code"][0].as_py())
        rows = rows_in(lake, table.metadata, columns, file)
        assert [matches(left, row) for row in rows] == [matches(where, row) for row in rows]
        assert (left == TRUE) == file["must_match"][0].as_py()


def test_the_reader_gets_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    _, table = build(LONGS, ["c1"], [[{1: 1, 2: n} for n in (1, 2)], [{1: 2, 2: n} for n in (3, 4)]])
    given: list[Bound] = []
    read = TableReader.read

    def spy(reader: TableReader, task: Any, schema: Schema, select: Sequence[str], where: Bound) -> Any:
        given.append(where)
        return read(reader, task, schema, select, where)

    monkeypatch.setattr(TableReader, "read", spy)
    rows = table.scan(where="c1 < 3 AND c2 >= 2").to_arrow().read_all()
    assert sorted(rows["c2"].to_pylist()) == [2, 3, 4]
    assert set(given) == {TRUE, bind("c2 >= 2", table.schema)}


def test_a_file_that_partition_and_statistics_rule_out_together_is_not_read(memory_lake: Lake) -> None:
    unknown = {"write.metadata.metrics.column.p": "none"}
    table = memory_lake.create_table("a.t", "p long, v long", partition_by=["p"], properties=unknown)
    table.append(pa.table({"p": [1, 1], "v": [20, 30]}))
    # The partition rules out the second alternative, the statistics the first.
    plan = table.scan(where="(p = 1 AND v < 10) OR (p = 2 AND v > 10)").explain().plan
    assert plan.files.num_rows == 0
    assert plan.metrics.files_pruned_by_statistics == 1


def planned_files(*files: tuple[int, int]) -> PlannedFiles:
    """Planned files, given as (code, bytes)."""
    codes, sizes = zip(*files, strict=True)
    columns = {"residual_code": pa.array(codes, pa.int64()), "file_size_in_bytes": pa.array(sizes, pa.int64())}
    return PlannedFiles.trusted(pa.table(columns))


def test_files_with_one_residual_are_one_group() -> None:
    files = planned_files((5, 1), (5, 1))
    assert group_by_residual(files, 100) == [(5, files)]
    assert group_by_residual(files.slice(0, 0), 100) == [(0, files.slice(0, 0))]


def test_only_a_residual_of_many_bytes_gets_a_group_of_its_own() -> None:
    groups = group_by_residual(planned_files((0b0101, 60), (0b0100, 10), (0b0101, 60), (0b1100, 10)), 100)
    assert [(code, group.num_rows) for code, group in groups] == [(0b0101, 2), (0b0100, 2)]


def test_groups_are_few_and_hold_every_file() -> None:
    groups = group_by_residual(planned_files(*((code, 100 + code) for code in range(1, 10))), 100)
    assert len(groups) == MOST_GROUPS + 1
    assert sum(group.num_rows for _, group in groups) == 9
    assert [code for code, _ in groups[:-1]] == [9, 8, 7, 6]
    assert groups[-1][0] == 0
