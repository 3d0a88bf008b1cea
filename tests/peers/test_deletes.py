"""Other engines read tables with our equality deletes, and with what they were converted to."""

import pytest
from pyiceberg.table import StaticTable
from tests.peers.deleted import CONVERTED, EXPECTED, WITH_EQUALITY, DeletedCase, sorted_rows
from tests.peers.duckdb_quirks import DELETES_OF_TWO_SPECS
from tests.peers.duckdb_reader import DuckDBReader
from tests.peers.gallery import Gallery

READ_BY_DUCKDB = [case for case in WITH_EQUALITY if case.layout != DELETES_OF_TWO_SPECS]


@pytest.mark.parametrize("case", [*READ_BY_DUCKDB, *CONVERTED], ids=str)
def test_duckdb_reads_the_same_rows(case: DeletedCase, gallery: Gallery, duckdb_reader: DuckDBReader) -> None:
    table = gallery.table(case)
    assert sorted_rows(table.scan().to_arrow().read_all()) == EXPECTED
    assert sorted_rows(duckdb_reader.read(table.metadata_location)) == EXPECTED


@pytest.mark.parametrize("case", CONVERTED, ids=str)
def test_pyiceberg_reads_converted_deletes(case: DeletedCase, gallery: Gallery) -> None:
    table = StaticTable.from_metadata(gallery.table(case).metadata_location)
    assert sorted_rows(table.scan().to_arrow()) == EXPECTED
