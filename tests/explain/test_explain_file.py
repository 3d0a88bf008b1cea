"""Why a file is read or not: the pass and the condition that decided, with what they saw; never against the plan."""

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from tests.effort import effort
from tests.plan.test_plan import build, planned, tables

import icefield
from icefield.errors import InvalidInput
from icefield.explain.explain_file import explain_file
from icefield.explain.file_reason import FileReason, Finding, Stage
from icefield.expr.prune.residual import residual
from icefield.expr.render.describe import describe
from icefield.lake import Lake
from icefield.plan.versions import resolve_version
from icefield.storage.location import local_path
from icefield.table.table import Table


@pytest.fixture
def table(memory_lake: Lake) -> Table:
    """Two manifests: January and February with two files, May with one."""
    made = memory_lake.create_table("a.t", "id long, ts timestamptz, ratio double", partition_by=["month(ts)"])
    made.append(rows((1, 1), (2, 1), (7, 2)))
    made.append(rows((8, 5), (9, 5)))
    return made


def rows(*pairs: tuple[int, int]) -> pa.Table:
    moments = pa.array([dt.datetime(2026, month, 3, tzinfo=dt.UTC) for _, month in pairs], pa.timestamp("us", "UTC"))
    ratio = [float("nan"), *[0.5] * (len(pairs) - 1)]
    return pa.table({"id": [n for n, _ in pairs], "ts": moments, "ratio": ratio})


def file_of(table: Table, month: int) -> str:
    files = table.scan().files().to_pylist()
    return next(str(row["file_path"]) for row in files if row["partition"] == f"ts_month=2026-0{month}")


def why(table: Table, where: str, month: int) -> FileReason:
    return table.scan(where).explain_file(file_of(table, month))


def found(reason: FileReason, stage: Stage, condition: int = 0) -> tuple[str, str, Finding]:
    (evaluation,) = [j for j in reason.conditions[condition].evaluations if j.stage is stage]
    return evaluation.condition, evaluation.values, evaluation.finding


def test_a_pruned_manifest_is_named_with_the_summary_that_was_seen(table: Table) -> None:
    reason = why(table, "ts < '2026-03-01' AND id > 0", 5)
    assert reason.ruled_out_by is Stage.MANIFEST
    condition = "ts < TIMESTAMP '2026-03-01 00:00:00+00:00'"
    assert reason.outcome == f"not read: by the summary of its manifest no row can match {condition}"
    assert found(reason, Stage.MANIFEST) == (
        "ts_month <= 2026-02",
        "ts_month from 2026-05 to 2026-05 (no nulls)",
        Finding.NONE,
    )
    assert found(reason, Stage.MANIFEST, 1) == ("TRUE", "", Finding.UNKNOWN)


def test_a_partition_that_rules_a_file_out_is_named_with_its_value(table: Table) -> None:
    reason = why(table, "ts >= '2026-02-01'", 1)
    assert (reason.ruled_out_by, reason.is_read) == (Stage.PARTITION, False)
    assert found(reason, Stage.MANIFEST)[1:] == ("ts_month from 2026-01 to 2026-02 (no nulls)", Finding.SOME)
    assert found(reason, Stage.PARTITION) == ("ts_month >= 2026-02", "ts_month=2026-01", Finding.NONE)


def test_statistics_that_rule_a_file_out_are_named_with_their_bounds(table: Table) -> None:
    reason = why(table, "id > 5", 1)
    assert reason.ruled_out_by is Stage.STATISTICS
    assert reason.outcome == "not read: by its statistics no row can match id > 5"
    assert found(reason, Stage.STATISTICS) == ("id > 5", "id from 1 to 2 (0 nulls in 2 values)", Finding.NONE)
    assert found(reason, Stage.PARTITION) == ("TRUE", "", Finding.UNKNOWN)


def test_a_file_that_is_read_says_what_is_left_to_filter_by(table: Table) -> None:
    reason = why(table, "ts >= '2026-01-01' AND id > 1", 1)
    assert reason.is_read
    assert reason.outcome == "read: rows are filtered by id > 1"
    assert found(reason, Stage.PARTITION)[2] is Finding.ALL
    assert found(reason, Stage.STATISTICS, 1)[2] is Finding.SOME
    assert why(table, "id >= 1", 1).outcome == "read: every row matches"
    assert why(table, "TRUE", 1).conditions == ()


def test_nan_counts_are_shown(table: Table) -> None:
    reason = why(table, "ratio > 1", 1)
    assert found(reason, Stage.STATISTICS) == (
        "ratio > 1.0",
        "ratio from 0.5 to 0.5 (0 nulls, 1 NaN in 2 values)",
        Finding.SOME,
    )


def test_conditions_that_only_together_rule_a_file_out_are_said_to(memory_lake: Lake) -> None:
    unknown = {"write.metadata.metrics.column.p": "none"}
    made = memory_lake.create_table("a.c", "p long, v long", partition_by=["p"], properties=unknown)
    made.append(pa.table({"p": [1, 1], "v": [20, 30]}))
    (location,) = made.scan().files()["file_path"].to_pylist()
    reason = made.scan("(p = 1 AND v < 10) OR (p = 2 AND v > 10)").explain_file(location)
    assert reason.outcome == "not read: no condition rules it out alone, but all that was seen together does"


def test_a_column_without_statistics_has_nothing_to_judge_by(memory_lake: Lake) -> None:
    properties = {"write.metadata.metrics.default": "none"}
    made = memory_lake.create_table("a.n", "v long", properties=properties)
    made.append(pa.table({"v": [20, 30]}))
    (location,) = made.scan().files()["file_path"].to_pylist()
    reason = made.scan("v > 3 AND _pos > 0").explain_file(location)
    assert [found(reason, Stage.STATISTICS, n)[1:] for n in (0, 1)] == [("", Finding.UNKNOWN)] * 2


def test_deletes_that_apply_to_the_file_are_listed(table: Table) -> None:
    table.set_properties({"write.delete.mode": "merge-on-read"})
    table.delete("id = 1")
    (delete,) = why(table, "id > 0", 1).deletes
    assert delete.kind == "positions"
    assert why(table, "id > 0", 2).deletes == ()
    assert f"positions in {delete.location}" in str(why(table, "id > 0", 1))


def test_the_end_of_a_location_names_the_file_if_it_names_one(table: Table) -> None:
    whole = file_of(table, 1)
    reason = table.scan().explain_file(whole.rsplit("/", 1)[1])
    assert reason.location == whole
    with pytest.raises(InvalidInput, match="no data file 'nothing.parquet'"):
        table.scan().explain_file("nothing.parquet")
    with pytest.raises(InvalidInput, match="no data file ''"):
        table.scan().explain_file("")


def test_a_location_that_names_two_files_is_refused(memory_lake: Lake) -> None:
    made = memory_lake.create_table("a.w", "p long", partition_by=["p"])
    made.append(pa.table({"p": [1]}))
    first = made.scan().files()["file_path"][0].as_py()
    data, name = memory_lake.store.read(first), first.rsplit("/", 1)[1]
    memory_lake.store.put_new(f"{made.location}/other/{name}", data)
    made.add_files([f"{made.location}/other/{name}"], partition={"p": 1})
    with pytest.raises(InvalidInput, match="names 2 data files"):
        made.scan().explain_file(name)


def test_a_whole_location_wins_over_what_it_may_be_short_for(memory_lake: Lake) -> None:
    made = memory_lake.create_table("a.w", "p long", partition_by=["p"])
    made.append(pa.table({"p": [1]}))
    first = made.scan().files()["file_path"][0].as_py()
    longer = f"{made.location}/other/{first.removeprefix('memory:').lstrip('/')}"
    memory_lake.store.put_new(longer, memory_lake.store.read(first))
    made.add_files([longer], partition={"p": 1})
    assert made.scan().explain_file(first).location == first


def test_only_manifests_that_may_list_the_file_are_opened(lake: Lake, tmp_path: Path) -> None:
    made = lake.create_table("a.w", "p long, id long", partition_by=["p"])
    for p in range(3):
        made.append(pa.table({"p": [p], "id": [p]}))
    wanted = next(f for f in made.scan().files().to_pylist() if f["partition"] == "p=1")
    manifests = {row["path"] for row in made.inspect("manifests").to_arrow().read_all().to_pylist()}
    mine = made.scan().explain_file(wanted["file_path"]).manifest
    with icefield.connect(tmp_path / "lake", durable=False) as other:
        for location in manifests - {mine}:
            Path(local_path(location)).unlink()
        assert other.table("a.w").scan("p = 1").explain_file(wanted["file_path"]).is_read


def test_values_for_programs_have_no_objects_in_them(table: Table) -> None:
    value: dict[str, Any] = why(table, "id > 5", 1).as_dict()
    assert (value["is-read"], value["ruled-out-by"], value["residual"]) == (False, "statistics", None)
    (condition,) = value["conditions"]
    assert condition["passes"][2] == {
        "pass": "statistics",
        "condition": "id > 5",
        "values": "id from 1 to 2 (0 nulls in 2 values)",
        "finding": "no row can match",
    }


@effort(60)
@given(tables())
def test_the_reason_for_a_file_is_what_planning_did(case: tuple[Any, Any, Any, Any]) -> None:
    columns, spec, writes, where = case
    try:
        lake, made = build(columns, spec, writes)
    except InvalidInput as refused:
        assume("overflow" not in str(refused) and "does not fit" not in str(refused))
        raise
    plan = planned(lake, made.metadata, where).files
    codes = dict(zip(plan["file_path"].to_pylist(), plan["residual_code"].to_pylist(), strict=True))
    for location in made.scan().files()["file_path"].to_pylist():
        reason = explain_file(
            lake.backend.reading, made.metadata, resolve_version(made.metadata, None), where, location
        )
        assert reason.is_read == (location in codes)
        if reason.is_read:
            assert reason.residual == describe(residual(where, codes[location]))
        assert str(reason).startswith(location)
