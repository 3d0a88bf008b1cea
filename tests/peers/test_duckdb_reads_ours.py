"""DuckDB reads what icefield wrote from the metadata file, whole and by filter."""

import pytest
from tests.peers.case import KEY, TableCase
from tests.peers.duckdb_quirks import can_judge
from tests.peers.duckdb_reader import DuckDBReader
from tests.peers.gallery import Gallery
from tests.peers.normal import normal_rows
from tests.peers.tables import all_tables, overwritten

ASKED = ("=", "<", ">=", "in", "is null", "starts with")  # the others judge the same statistics once more


@pytest.mark.parametrize("case", all_tables(), ids=lambda case: case.name)
def test_every_row_is_read(case: TableCase, gallery: Gallery, duckdb_reader: DuckDBReader) -> None:
    rows = duckdb_reader.read(gallery.table(case).metadata_location)
    assert normal_rows(rows, case.schema) == case.normal_rows()


@pytest.mark.parametrize("case", all_tables(), ids=lambda case: case.name)
def test_a_filter_finds_the_rows_that_match(case: TableCase, gallery: Gallery, duckdb_reader: DuckDBReader) -> None:
    asks = [ask for ask in case.asks if ask.operator in ASKED and can_judge(case, ask)]
    location = gallery.table(case).metadata_location
    found = duckdb_reader.keys_matching(location, KEY, [ask.duckdb() for ask in asks])
    for ask, keys in zip(asks, found, strict=True):
        assert sorted(set(keys) - case.keys_of_nan(ask)) == case.keys_matching(ask), str(ask)


def test_every_snapshot_has_the_rows_of_then(gallery: Gallery, duckdb_reader: DuckDBReader) -> None:
    case = overwritten()
    table = gallery.table(case)
    found = [duckdb_reader.read(table.metadata_location, snapshot_id=s.snapshot_id) for s in table.snapshots()]
    assert [normal_rows(rows, case.schema) for rows in found] == [normal_rows(r, case.schema) for r in case.versions()]
