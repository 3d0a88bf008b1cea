"""PyIceberg reads what icefield wrote: from our catalog and from the metadata file, whole and by filter."""

from collections.abc import Sequence

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable
from tests.peers.case import KEY, TableCase
from tests.peers.gallery import Gallery
from tests.peers.normal import Row, normal_rows
from tests.peers.predicates import Predicate
from tests.peers.pyiceberg_quirks import can_judge, nulls_as_it_reads_them, nulls_match
from tests.peers.tables import all_tables, assorted_tables, overwritten

READ_BY = ("=", "<", "not in", "is null", "starts with")


@pytest.mark.parametrize("case", all_tables(), ids=lambda case: case.name)
def test_every_row_is_read_from_our_catalog(case: TableCase, gallery: Gallery, pyiceberg_catalog: SqlCatalog) -> None:
    gallery.table(case)
    rows = pyiceberg_catalog.load_table(case.full_name).scan().to_arrow()
    assert normal_rows(rows, case.schema) == nulls_as_it_reads_them(case)


@pytest.mark.parametrize("case", assorted_tables(), ids=lambda case: case.name)
def test_every_row_is_read_from_the_metadata_file(case: TableCase, gallery: Gallery) -> None:
    rows = StaticTable.from_metadata(gallery.table(case).metadata_location).scan().to_arrow()
    assert normal_rows(rows, case.schema) == nulls_as_it_reads_them(case)


def test_our_catalog_lists_the_tables(gallery: Gallery, pyiceberg_catalog: SqlCatalog) -> None:
    for case in assorted_tables():
        gallery.table(case)
    listed = {".".join(name) for name in pyiceberg_catalog.list_tables("peers")}
    assert listed == set(gallery.lake.tables("peers"))


@pytest.mark.parametrize("case", all_tables(), ids=lambda case: case.name)
def test_a_filter_finds_the_rows_that_match(case: TableCase, gallery: Gallery) -> None:
    table = StaticTable.from_metadata(gallery.table(case).metadata_location)
    for ask in _chosen(case):
        rows = table.scan(row_filter=ask.pyiceberg(), selected_fields=(KEY,)).to_arrow()
        assert _keys(rows, case, ask) == case.keys_matching(ask), str(ask)


def test_every_snapshot_has_the_rows_of_then(gallery: Gallery) -> None:
    case = overwritten()
    table = StaticTable.from_metadata(gallery.table(case).metadata_location)
    snapshots = sorted(table.metadata.snapshots, key=lambda s: s.sequence_number or 0)
    found = [_rows_at(table, s.snapshot_id, case) for s in snapshots]
    assert found == [normal_rows(rows, case.schema) for rows in case.versions()]


def _chosen(case: TableCase) -> Sequence[Predicate]:
    """Take a few per column; what statistics say of all others is judged without reading."""
    seen: dict[tuple[str, str], Predicate] = {}
    for ask in case.asks:
        if ask.operator in READ_BY and can_judge(case, ask):
            seen.setdefault((ask.column, ask.operator), ask)
    return list(seen.values())


def _keys(rows: pa.Table, case: TableCase, ask: Predicate) -> list[int]:
    left_out = case.keys_of_nan(ask)
    if nulls_match(ask):
        left_out |= set(case.keys_matching(Predicate(ask.column, "is null")))
    return sorted(key for key in rows.column(KEY).to_pylist() if key not in left_out)


def _rows_at(table: StaticTable, snapshot_id: int, case: TableCase) -> list[Row]:
    return normal_rows(table.scan(snapshot_id=snapshot_id).to_arrow(), case.schema)
