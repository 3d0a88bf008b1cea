"""Iceberg Java reads tables with our equality deletes, and with what they were converted to."""

import pytest
from tests.interop.iceberg_java import IcebergJava
from tests.peers.deleted import COLUMNS, CONVERTED, EXPECTED, WITH_EQUALITY, DeletedCase, sorted_rows
from tests.peers.gallery import Gallery

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("case", [*WITH_EQUALITY, *CONVERTED], ids=str)
def test_java_reads_the_same_rows(case: DeletedCase, gallery: Gallery, java: IcebergJava) -> None:
    location = gallery.table(case).metadata_location
    assert sorted_rows(java.read(location, COLUMNS)) == EXPECTED


@pytest.mark.parametrize("case", WITH_EQUALITY, ids=str)
def test_java_applies_them_to_filtered_rows(case: DeletedCase, gallery: Gallery, java: IcebergJava) -> None:
    """It prunes equality deletes by their statistics: those that we write must not rule out a key."""
    location = gallery.table(case).metadata_location
    conditions = ["id = 4", "id < 7 AND p = 'b'", "n = 0", "p = 'c' AND id > 30"]
    expected = [
        [row[0] for row in EXPECTED if row[0] == 4],
        [row[0] for row in EXPECTED if row[0] < 7 and row[1] == "b"],
        [row[0] for row in EXPECTED if row[2] == 0],
        [row[0] for row in EXPECTED if row[1] == "c" and row[0] > 30],
    ]
    assert [sorted(keys) for keys in java.keys_matching(location, "id", conditions)] == expected
