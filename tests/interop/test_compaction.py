"""Iceberg Java reads tables that were compacted, sorted, clustered, and whose manifests were rewritten."""

import pytest
from tests.interop.iceberg_java import IcebergJava
from tests.peers.gallery import Gallery
from tests.peers.test_compaction import EXPECTED, STEPS, build, sorted_rows

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("step", STEPS)
def test_java_reads_the_same_rows(gallery: Gallery, java: IcebergJava, step: str, version: int) -> None:
    table = build(gallery, f"java-{step}", version)
    table.delete("id = 31", mode="merge-on-read")
    STEPS[step](table)
    assert sorted_rows(java.read(table.metadata_location, ("id", "p", "n"))) == EXPECTED
