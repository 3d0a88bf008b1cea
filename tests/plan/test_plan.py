"""Planning on whole tables: no pass may drop a file with a matching row, and what it claims must be true."""

import itertools
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.effort import effort
from tests.expr.cases import TYPES, Row, expressions, references, rows_of

import icefield
from icefield.ambient import SeededAmbient
from icefield.codec.manifest.list import ManifestListHeader, decode_manifest_list, encode_manifest_list
from icefield.codec.manifest.rows import Manifests
from icefield.errors import CorruptFile, InvalidInput
from icefield.expr.bind.bind import bind
from icefield.expr.bind.bound import FALSE, TRUE, Bound, Reference
from icefield.expr.prune import evaluate, residual
from icefield.expr.render.rows import matches
from icefield.lake import Lake
from icefield.model.metadata import TableMetadata
from icefield.parquet.read.read import table_reader
from icefield.parquet.read.task import FileTask
from icefield.plan import plan as planning
from icefield.plan.plan import ScanPlan, plan_scan
from icefield.plan.versions import resolve_version
from icefield.table.table import Table
from icefield.types.arrow import arrow_array, python_values
from icefield.types.datatypes import LongType, NestedField
from icefield.types.schema import Schema
from icefield.types.transforms import SIMPLE_TRANSFORMS, Bucket, Transform, Truncate

TRANSFORMS: tuple[Transform, ...] = (*SIMPLE_TRANSFORMS.values(), Bucket(3), Truncate(2))
Write = list[Row]


def call_of(transform: Transform, column: str) -> str:
    match transform:
        case Bucket(count):
            return f"bucket({count}, {column})"
        case Truncate(width):
            return f"truncate({width}, {column})"
        case _:
            return column if transform.word == "identity" else f"{transform.word}({column})"


@st.composite
def tables(draw: st.DrawFn) -> tuple[tuple[Reference, ...], list[str], list[Write], Bound]:
    """A schema of two columns, a spec over them, some writes and a filter."""
    kinds = draw(st.tuples(st.sampled_from(TYPES), st.sampled_from(TYPES)))
    columns = references(kinds)
    fits = [(t, c) for t, c in itertools.product(TRANSFORMS, columns) if t.fits(c.type)]
    chosen = draw(st.lists(st.sampled_from(fits), max_size=2, unique_by=lambda f: (f[0].word, f[1].field_id)))
    spec = [call_of(transform, column.path[0]) for transform, column in chosen]
    writes = draw(st.lists(st.lists(rows_of(columns), min_size=1, max_size=5), min_size=1, max_size=3))
    return columns, spec, writes, draw(expressions(columns))


def build(columns: Sequence[Reference], spec: Sequence[str], writes: Sequence[Write]) -> tuple[Lake, Table]:
    lake = icefield.connect("memory:", ambient=SeededAmbient(3))
    schema = Schema(tuple(NestedField(c.field_id, c.path[0], c.type) for c in columns))
    table = lake.create_table("a.t", schema, partition_by=spec)
    for rows in writes:
        arrays = [arrow_array([row[c.field_id] for row in rows], c.type) for c in columns]
        table.append(pa.Table.from_arrays(arrays, names=[c.path[0] for c in columns]))
    return lake, table


def planned(lake: Lake, metadata: TableMetadata, where: Bound) -> ScanPlan:
    return plan_scan(lake.backend.reading, metadata, resolve_version(metadata, None), where)


def rows_in(lake: Lake, metadata: TableMetadata, columns: Sequence[Reference], files: pa.Table) -> list[Row]:
    """Read files with no filter at all."""
    names = [c.path[0] for c in columns]
    rows: list[Row] = []
    reader = table_reader(lake.store, metadata)
    for path in files["file_path"].to_pylist():
        for batch in reader.read(FileTask(path, 0, 1, 0), metadata.schema, names, TRUE):
            values = [python_values(a, c.type) for a, c in zip(batch.columns, columns, strict=True)]
            rows += [dict(zip((c.field_id for c in columns), row, strict=True)) for row in zip(*values, strict=True)]
    return rows


def check_plan(columns: Sequence[Reference], spec: Sequence[str], writes: Sequence[Write], where: Bound) -> None:
    try:
        lake, table = build(columns, spec, writes)
    except InvalidInput as error:
        if "overflow" not in str(error):
            raise
        return  # hours of timestamps at the end of time are refused, as they must be
    metadata = table.metadata
    plan = planned(lake, metadata, where)
    every_row = [row for rows in writes for row in rows]
    expected = sum(matches(where, row) for row in every_row)
    read = rows_in(lake, metadata, columns, plan.files)
    assert sum(matches(where, row) for row in read) == expected, "a file with a matching row was pruned"
    assert all(matches(where, row) for row in rows_in(lake, metadata, columns, plan.whole_files))
    metrics = plan.metrics
    assert metrics.rows == len(every_row)
    assert metrics.rows_read == len(read)
    pruned = metrics.files_in_pruned_manifests + metrics.files_pruned_by_partition + metrics.files_pruned_by_statistics
    assert metrics.files == metrics.files_read + pruned


@effort(120)
@given(tables())
def test_pruning_never_drops_a_matching_row(case: tuple[Any, Any, Any, Any]) -> None:
    try:
        check_plan(*case)
    except InvalidInput as refused:
        # The least values of a type have no multiple of the width below them.
        assume("does not fit" not in str(refused))
        raise


LONGS = references([LongType(), LongType()])
BREAKS: list[tuple[ModuleType, str, Callable[..., Any]]] = [
    (planning, "project_inclusive", lambda where, terms: FALSE),
    (planning, "might_match", lambda where, statistics, rows: ~evaluate.might_match(where, statistics, rows)),
    (residual, "must_match", evaluate.might_match),
]


@pytest.mark.parametrize(("module", "name", "broken"), BREAKS, ids=[name for _, name, _ in BREAKS])
def test_the_property_can_fail(
    module: ModuleType, name: str, broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, broken)
    writes: list[Write] = [[{1: n, 2: n} for n in range(5)]]
    where = bind("c1 = 2", Schema(tuple(NestedField(c.field_id, c.path[0], c.type) for c in LONGS)))
    with pytest.raises(AssertionError):
        check_plan(LONGS, ["bucket(3, c1)"], writes, where)


def test_partition_texts_and_sequence_numbers_are_shown() -> None:
    _, table = build(LONGS, ["c1"], [[{1: 5, 2: 0}], [{1: None, 2: 0}]])
    shown = table.scan().files().select(["partition", "sequence_number", "record_count"]).to_pylist()
    assert sorted(map(str, shown)) == sorted(
        map(
            str,
            [
                {"partition": "c1=5", "sequence_number": 1, "record_count": 1},
                {"partition": "c1=null", "sequence_number": 2, "record_count": 1},
            ],
        )
    )


def rewrite_list(lake: Lake, table: Table, change: Callable[[Manifests], Manifests]) -> None:
    """Put another manifest list in place of the current one."""
    snapshot = table.metadata.current_snapshot
    assert snapshot is not None
    location = snapshot.manifest_list
    rows = change(decode_manifest_list(lake.store.read(location), location))
    header = ManifestListHeader(snapshot.snapshot_id, None, snapshot.sequence_number)
    lake.store.delete(location)
    lake.store.put_new(location, encode_manifest_list(rows, header, location))


def replaced(name: str, value: int) -> Callable[[Manifests], Manifests]:
    def change(rows: Manifests) -> Manifests:
        return rows.replaced({name: pa.array([value] * rows.num_rows, rows[name].type)})

    return change


def test_a_manifest_of_an_unknown_spec_is_a_damaged_table() -> None:
    lake, table = build(LONGS, [], [[{1: 1, 2: 1}]])
    rewrite_list(lake, table, replaced("partition_spec_id", 9))
    with pytest.raises(CorruptFile, match="partition spec 9"):
        table.scan().count()


def test_summaries_without_bounds_prune_nothing() -> None:
    lake, table = build(LONGS, ["c1"], [[{1: 1, 2: 1}]])

    def blank(rows: Manifests) -> Manifests:
        summaries = pa.array([[{"contains_null": False}]], rows.partitions.type)
        return rows.replaced({"partitions": summaries})

    rewrite_list(lake, table, blank)
    assert table.scan(where="c1 = 1").count() == 1
    assert table.scan(where="c1 = 2").count() == 0
