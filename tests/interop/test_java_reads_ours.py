"""Iceberg Java reads what icefield wrote from the metadata file, and plans with our statistics."""

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.interop.expressions import expression_json
from tests.interop.iceberg_java import IcebergJava
from tests.interop.java_quirks import UNREADABLE, can_judge, without_times
from tests.peers.case import KEY, TableCase
from tests.peers.gallery import Gallery
from tests.peers.normal import normal_rows
from tests.peers.predicates import Predicate
from tests.peers.tables import all_tables, overwritten, primitives

pytestmark = pytest.mark.interop

TABLES = [case for case in all_tables() if case.name not in UNREADABLE]
# Spark has no type for times of day, and so cannot open a table that has one.
READ = [replace(without_times(primitives()), name="primitives_but_time")]
READ += [case for case in TABLES if without_times(case).schema == case.schema]


@pytest.mark.parametrize("case", READ, ids=lambda case: case.name)
def test_every_row_is_read(case: TableCase, gallery: Gallery, java: IcebergJava) -> None:
    rows = java.read(gallery.table(case).metadata_location, case.schema.names)
    assert (normal_rows(rows, case.schema) if rows.num_rows else []) == case.normal_rows()


@pytest.mark.parametrize("case", READ, ids=lambda case: case.name)
def test_a_filter_finds_the_rows_that_match(case: TableCase, gallery: Gallery, java: IcebergJava) -> None:
    asks = _chosen(case)
    found = java.keys_matching(gallery.table(case).metadata_location, KEY, [ask.spark() for ask in asks])
    for ask, keys in zip(asks, found, strict=True):
        assert sorted(set(keys) - case.keys_of_nan(ask)) == case.keys_matching(ask), str(ask)


@pytest.mark.parametrize("case", [case for case in TABLES if case.asks], ids=lambda case: case.name)
def test_no_file_with_a_matching_row_is_ruled_out(case: TableCase, gallery: Gallery, java: IcebergJava) -> None:
    table = gallery.table(case)
    asks = [ask for ask in case.asks if can_judge(case, ask)]
    planned = java.planned_files(table.metadata_location, [expression_json(ask) for ask in asks])
    files = {path: _read(path) for path in table.scan().files()["file_path"].to_pylist()}
    ruled_out: Counter[str] = Counter()
    for ask, paths in zip(asks, planned, strict=True):
        assert paths <= files.keys()
        for path, rows in files.items():
            hits = zip(ask.matches(rows), ask.is_nan(rows), strict=True)
            assert path in paths or not any(match and not nan for match, nan in hits), f"{ask}: {path}"
            ruled_out[str(ask)] += path not in paths
    assert max(ruled_out.values()) > 0  # or it would plan everything, whatever our manifests say


def test_every_snapshot_has_the_rows_of_then(gallery: Gallery, java: IcebergJava) -> None:
    case = overwritten()
    table = gallery.table(case)
    found = [java.read(table.metadata_location, case.schema.names, s.snapshot_id) for s in table.snapshots()]
    assert [normal_rows(rows, case.schema) for rows in found] == [normal_rows(r, case.schema) for r in case.versions()]


def _chosen(case: TableCase) -> list[Predicate]:
    """Take a few per column: each is a query of its own, and planning is judged with all of them."""
    seen: dict[tuple[str, str], Predicate] = {}
    for ask in case.asks:
        if ask.operator in ("=", "in", "is null") and can_judge(case, ask):
            seen.setdefault((ask.column, ask.operator), ask)
    return list(seen.values())


def _read(location: str) -> pa.Table:
    return pq.read_table(location.removeprefix("file://"), partitioning=None)
