"""Iceberg Java reads tables before, during and after they are compacted, sorted, clustered and swept."""

import pytest
from tests.interop.iceberg_java import IcebergJava
from tests.peers.gallery import Gallery
from tests.peers.test_compaction import EXPECTED, STEPS, build, build_many, keep_up, sorted_rows

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("step", STEPS)
def test_java_reads_the_same_rows(gallery: Gallery, java: IcebergJava, step: str, version: int) -> None:
    table = build(gallery, f"java-{step}", version)
    table.delete("id = 31", mode="merge-on-read")
    STEPS[step](table)
    assert sorted_rows(java.read(table.metadata_location, ("id", "p", "n"))) == EXPECTED


@pytest.mark.parametrize("version", [1, 2, 3])
def test_java_reads_the_same_rows_before_during_and_after_upkeep(
    gallery: Gallery, java: IcebergJava, version: int
) -> None:
    looks = []

    def look(location: str) -> None:
        looks.append(location)
        assert sorted_rows(java.read(location, ("id", "p", "n"))) == EXPECTED

    keep_up(build_many(gallery, "java-upkeep", version), look)
    assert len(set(looks)) >= 7
