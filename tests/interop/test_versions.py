"""Format versions 1, 2 and 3 shared with Iceberg Java: each side writes on what the other wrote, and both agree."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from tests.commit.test_row_ids import assert_lineage, live_ids
from tests.interop.handed_table import HandedTable
from tests.interop.iceberg_java import IcebergJava
from tests.peers.gallery import Gallery
from tests.table.test_versions import without_counts, without_manifest_lists

from icefield import Lake, Table

pytestmark = pytest.mark.interop

OldWriter = Callable[[Lake, Table], None]
VERSIONS = pytest.mark.parametrize("version", [1, 2, 3])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "day": pa.array([f"d{i % 3}" for i in ids])})


class SharedTable(HandedTable):
    """A table of both that Java creates."""

    def __init__(self, lake: Lake, java: IcebergJava, folder: Path, name: str, version: int) -> None:
        super().__init__(lake, folder, "versions", name)
        self.java = java
        java.sql("CREATE NAMESPACE IF NOT EXISTS java.versions")
        java.sql(
            f"CREATE TABLE java.versions.{name} (id BIGINT, day STRING) USING iceberg PARTITIONED BY (day) "
            f"TBLPROPERTIES ('format-version'='{version}')"
        )

    def append_by_java(self, *ids: int) -> None:
        values = ", ".join(f"({i}, 'd{i % 3}')" for i in ids)
        self.java.sql(f"INSERT INTO java.versions.{self.name} VALUES {values}")

    def delete_by_java(self, where: str) -> None:
        self.java.sql(f"DELETE FROM java.versions.{self.name} WHERE {where}")

    def ids_by_java(self) -> list[int]:
        return sorted(self.java.sql(f"SELECT id FROM java.versions.{self.name}").column("id").to_pylist())


def ids_of(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().read_all()["id"].to_pylist())


@VERSIONS
def test_both_sides_write_in_turns(gallery: Gallery, java: IcebergJava, interop_folder: Path, version: int) -> None:
    shared = SharedTable(gallery.lake, java, interop_folder, f"turns_{version}", version)
    shared.append_by_java(1, 2, 3, 4)
    table = shared.ours()
    table.append(rows(5, 6))
    table.overwrite(rows(7), where="day = 'd1' and id < 2", check_rows=False)
    shared.hand_over(table)
    assert shared.ids_by_java() == ids_of(table) == [2, 3, 4, 5, 6, 7]
    shared.append_by_java(8)
    shared.delete_by_java("day = 'd2'")
    table = shared.ours()
    assert ids_of(table) == shared.ids_by_java() == [3, 4, 6, 7]
    table.append(rows(9))
    assert table.metadata.format_version == version
    assert version < 3 or table.metadata.next_row_id >= 9


def test_an_upgrade_by_either_side_goes_on_at_the_other(
    gallery: Gallery, java: IcebergJava, interop_folder: Path
) -> None:
    shared = SharedTable(gallery.lake, java, interop_folder, "upgraded", 1)
    shared.append_by_java(1, 2, 3)
    table = shared.ours()
    table.upgrade_format_version(2)
    table.append(rows(4))
    shared.hand_over(table)
    assert shared.ids_by_java() == [1, 2, 3, 4]
    java.sql("ALTER TABLE java.versions.upgraded SET TBLPROPERTIES ('format-version'='3')")
    table = shared.ours()
    assert (table.metadata.format_version, table.metadata.next_row_id) == (3, 0)
    table.append(rows(5, 6))
    shared.hand_over(table)
    shared.append_by_java(7)
    table = shared.ours()
    assert ids_of(table) == shared.ids_by_java() == [1, 2, 3, 4, 5, 6, 7]
    assert_lineage(gallery.lake, table)


def test_java_sees_the_row_ids_that_we_gave(gallery: Gallery, java: IcebergJava, interop_folder: Path) -> None:
    shared = SharedTable(gallery.lake, java, interop_folder, "lineage", 3)
    shared.append_by_java(1, 2, 3, 4)
    table = shared.ours()
    table.append(rows(5, 6, 7))
    table.overwrite(rows(8), where="day = 'd1'", check_rows=False)
    shared.hand_over(table)
    found = java.sql("SELECT _file, min(_row_id) AS first, count(*) AS n FROM java.versions.lineage GROUP BY _file")
    theirs = {row["_file"]: range(row["first"], row["first"] + row["n"]) for row in found.to_pylist()}
    assert theirs == live_ids(gallery.lake, table.snapshots()[-1])
    assert_lineage(gallery.lake, table)


@pytest.mark.parametrize("stop", [1, 2, 3])
@pytest.mark.parametrize("make_old", [without_manifest_lists, without_counts])
def test_java_reads_what_we_make_of_old_writers_tables(
    gallery: Gallery, java: IcebergJava, make_old: OldWriter, stop: int
) -> None:
    lake = gallery.lake
    name = f"old.{make_old.__name__}_{stop}"
    table = lake.create_table(name, "id long, day string", partition_by=["day"], format_version=1)
    table.append(rows(1, 2))
    table.append(rows(3))
    make_old(lake, table)
    table = lake.table(name)
    assert sorted(java.read(table.metadata_location, ["id"])["id"].to_pylist()) == [1, 2, 3]
    table.upgrade_format_version(stop)
    table.append(rows(4))
    table.overwrite(rows(5), where="id = 1", check_rows=False)
    assert sorted(java.read(table.metadata_location, ["id"])["id"].to_pylist()) == [2, 3, 4, 5]


def test_java_reads_compressed_metadata(gallery: Gallery, java: IcebergJava) -> None:
    table = gallery.lake.create_table(
        "old.gz", "id long, day string", properties={"write.metadata.compression-codec": "gzip"}, format_version=3
    )
    table.append(rows(1, 2))
    assert sorted(java.read(table.metadata_location, ["id"])["id"].to_pylist()) == [1, 2]
