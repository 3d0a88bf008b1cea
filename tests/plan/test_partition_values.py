"""The column `_partition`: of every file of a version, and of appended files for as long as manifests list them."""

import pyarrow as pa
import pytest

from icefield.errors import Unsupported
from icefield.lake import Lake
from icefield.table.table import Table


def rows(first: int) -> pa.Table:
    return pa.table({"id": [first, first + 1], "p": pa.array([0, 1], pa.int32())})


@pytest.fixture
def table(memory_lake: Lake) -> Table:
    made = memory_lake.create_table("a.t", "id long, p int", partition_by=["p"])
    made.append(rows(0))
    made.append(rows(10))
    return made


def test_every_row_has_the_partition_of_its_file(table: Table) -> None:
    read = table.scan(select=["p", "_partition"]).to_arrow().read_all().to_pylist()
    assert len(read) == 4
    assert all(row["_partition"] == {"p": row["p"]} for row in read)
    assert table.scan("_partition.p = 1").count() == 2


def test_older_specs_are_null_in_newer_fields(table: Table) -> None:
    with table.evolve() as change:
        change.add_partition_field("bucket(4, id)")
    table.append(rows(20))
    read = table.scan(select=["id", "_partition"]).to_arrow().read_all().to_pylist()
    assert {row["id"] for row in read if row["_partition"]["id_bucket"] is None} == {0, 1, 10, 11}


def test_appended_files_that_no_manifest_lists_any_more_are_refused(table: Table) -> None:
    first = table.snapshots()[0].snapshot_id
    appended = table.scan_appends(first, select=["id", "_partition"])
    assert appended.to_arrow().read_all().num_rows == 2
    table.rewrite_manifests()
    later = table.scan_appends(first, select=["id", "_partition"])
    with pytest.raises(Unsupported, match=r"cannot determine _partition for 2 file\(s\)"):
        later.to_arrow().read_all()
    assert table.scan_appends(first, select=["id", "p"]).to_arrow().read_all().num_rows == 2
