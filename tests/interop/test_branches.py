"""Iceberg Java sees branches and tags by name, reads their rows, and goes on where branches were published."""

from pathlib import Path

import pytest
from tests.interop.handed_table import HandedTable
from tests.interop.iceberg_java import IcebergJava
from tests.peers.gallery import Gallery
from tests.peers.histories_of_branches import KINDS, make_history, pairs

pytestmark = pytest.mark.interop


@pytest.mark.parametrize(("version", "mode"), KINDS)
def test_java_reads_every_branch_and_tag(
    gallery: Gallery, java: IcebergJava, interop_folder: Path, version: int, mode: str
) -> None:
    name = f"t{version}_{mode.replace('-', '_')}"
    table, expected = make_history(gallery.lake, f"branches.{name}", version, mode)
    for ref, rows in expected.items():
        snapshot_id = table.refs()[ref].snapshot_id
        assert pairs(java.read(table.metadata_location, ["id", "value"], snapshot_id)) == rows, ref


@pytest.mark.parametrize("version", [2, 3])
def test_java_reads_refs_by_name_and_moves_what_we_published(
    gallery: Gallery, java: IcebergJava, interop_folder: Path, version: int
) -> None:
    name = f"named_{version}"
    java.sql("CREATE NAMESPACE IF NOT EXISTS java.branches")
    java.sql(
        f"CREATE TABLE java.branches.{name} (id BIGINT, value STRING) USING iceberg "
        f"TBLPROPERTIES ('format-version'='{version}')"
    )
    java.sql(f"INSERT INTO java.branches.{name} VALUES (1, 'a'), (2, 'b')")
    shared = HandedTable(gallery.lake, interop_folder, "branches", name)
    table = shared.ours()
    table.create_branch("staging")
    staging = table.at("staging")
    staging.delete(where="id = 1", mode="merge-on-read")
    staging.update({"value": "'staged'"}, where="id = 2")
    table.create_tag("before")
    with_three = table.overwrite(table.scan().to_arrow().read_all(), where="id = 1", check_rows=False)
    assert with_three is not None
    table.rollback("before")
    table.publish("staging")
    shared.hand_over(table)

    def read(ref: str) -> list[tuple[int, str]]:
        return pairs(java.sql(f"SELECT id, value FROM java.branches.{name} VERSION AS OF '{ref}'"))

    assert (read("before"), read("staging")) == ([(1, "a"), (2, "b")], [(2, "staged")])
    found = java.sql(f"SELECT name, type FROM java.branches.{name}.refs").to_pylist()
    assert {row["name"]: row["type"] for row in found} == {"main": "BRANCH", "staging": "BRANCH", "before": "TAG"}
    java.sql(f"INSERT INTO java.branches.{name}.branch_staging VALUES (3, 'java')")
    java.sql(f"CALL java.system.fast_forward('branches.{name}', 'main', 'staging')")
    table = shared.ours()
    assert pairs(table.scan().to_arrow().read_all()) == [(2, "staged"), (3, "java")]
    assert pairs(table.scan(as_of="before").to_arrow().read_all()) == [(1, "a"), (2, "b")]
