"""A branch that was published as one snapshot, and a revert: PyIceberg reads the same rows, of both refs."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable

import icefield


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


@pytest.mark.parametrize("version", [2, 3])
def test_pyiceberg_reads_what_was_published_and_reverted(version: int, tmp_path: Path) -> None:
    properties = {"write.delete.mode": "merge-on-read"}
    lake = icefield.connect(str(tmp_path))
    table = lake.create_table("t.t", "id long", format_version=version, properties=properties)
    table.append(rows(*range(10)))
    table.create_branch("staging")
    staging = table.at("staging")
    staging.delete(where="id = 1")
    staging.append(rows(100))
    table.delete(where="id = 5")
    table.compact()
    table.publish("staging")
    wrong = table.append(rows(7))
    assert wrong is not None
    table.revert(wrong.snapshot_id)
    peer = StaticTable.from_metadata(table.metadata_location)
    assert sorted(peer.scan().to_arrow()["id"].to_pylist()) == [0, 2, 3, 4, 6, 7, 8, 9, 100]
    branch = peer.metadata.refs["staging"].snapshot_id
    assert sorted(peer.scan(snapshot_id=branch).to_arrow()["id"].to_pylist()) == [0, *range(2, 10), 100]
