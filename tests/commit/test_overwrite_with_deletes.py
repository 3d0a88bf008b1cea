"""Overwrites of tables with row-level deletes: deleted rows stay deleted, vectors go with their files."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import icefield
from icefield.backend import Backend
from icefield.codec.manifest.encode import encode_manifest
from icefield.codec.manifest.header import DELETE_MANIFEST
from icefield.codec.manifest.rows import ManifestEntries
from icefield.codec.manifest.schema import ADDED, POSITION_DELETES, entry_arrow_schema
from icefield.codec.puffin.deletion_vector import deletion_vector_blob
from icefield.codec.puffin.puffin import encode_puffin
from icefield.commit.action import ProposedChange, WriteContext
from icefield.commit.loop import Committer, TableCommit
from icefield.commit.snapshot.build import SnapshotDraft, propose_snapshot
from icefield.commit.snapshot.manifests import ManifestShape, describe_manifest
from icefield.commit.snapshot.summary import NOTHING
from icefield.errors import ConcurrentChange
from icefield.lake import Lake
from icefield.model.metadata import TableMetadata
from icefield.model.names import parse_table_name
from icefield.model.snapshot import Operation
from icefield.plan.manifest_list import load_manifests
from icefield.table.table import Table


@dataclass(frozen=True)
class DeletePositions:
    """Another engine's delete: a deletion vector for one data file."""

    data_file: str
    positions: tuple[int, ...]

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        location = f"{base.location}/data/{context.ambient.random_uuid()}.puffin"
        puffin, footer = encode_puffin([deletion_vector_blob(np.array(self.positions, np.int64), self.data_file)])
        context.store.put_new(location, puffin)
        shape = ManifestShape(base.schema, base.spec, DELETE_MANIFEST)
        entry = {
            "status": ADDED,
            "content": POSITION_DELETES,
            "file_path": location,
            "file_format": "PUFFIN",
            "record_count": len(self.positions),
            "file_size_in_bytes": len(puffin),
            "referenced_data_file": self.data_file,
            "content_offset": footer.blobs[0].offset,
            "content_size_in_bytes": footer.blobs[0].length,
        }
        entries = ManifestEntries(pa.Table.from_pylist([entry], schema=entry_arrow_schema(shape.partition)))
        manifest = f"{base.location}/metadata/{context.ambient.random_uuid()}.avro"
        data = encode_manifest(entries, shape.header(base.format_version), shape.partition, manifest)
        context.store.put_new(manifest, data)
        new = [describe_manifest(manifest, len(data), entries, shape)]
        draft = SnapshotDraft(context.ambient.random_id(), Operation.DELETE, new, NOTHING)
        return propose_snapshot(draft, base, context)

    def reusable_files(self) -> tuple[str, ...]:
        return ()


@pytest.fixture
def lake() -> Lake:
    return icefield.connect("memory:")


@pytest.fixture
def table(lake: Lake) -> Table:
    """Two files of ids 0..4 and 10..14, with id 1 and id 11 deleted by vectors."""
    made = lake.create_table("t.t", "id long, s string", format_version=3)
    for first in (0, 10):
        made.append(pa.table({"id": list(range(first, first + 5)), "s": ["x"] * 5}))
    for file in made.scan().files()["file_path"].to_pylist():
        delete(lake, made, DeletePositions(file, (1,)))
    return made


def delete(lake: Lake, table: Table, action: DeletePositions) -> None:
    committer = Committer(Backend(lake.catalog, lake.store, lake.ambient))
    committer.commit([TableCommit(parse_table_name(table.name), [action], table.metadata.table_uuid)])


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().read_all().column("id").to_pylist())


def vectors(lake: Lake, table: Table) -> int:
    manifests = load_manifests(lake.backend.reading, table.metadata.current_snapshot)
    assert manifests is not None
    deletes = manifests.filter(pc.equal(manifests["content"], DELETE_MANIFEST))
    live = pc.add(deletes["added_files_count"], deletes["existing_files_count"])
    return pc.sum(live).as_py() or 0


def test_rows_deleted_by_vectors_are_not_read_or_counted(table: Table) -> None:
    assert ids(table) == [0, 2, 3, 4, 10, 12, 13, 14]
    assert table.count() == 8
    assert table.scan(where="id < 10").count() == 4


def test_rows_that_stay_of_a_file_stay_without_its_deleted_ones(lake: Lake, table: Table) -> None:
    before = {r["id"]: r["_row_id"] for r in table.scan(select=["id", "_row_id"]).to_arrow().read_all().to_pylist()}
    table.overwrite(pa.table({"id": [99], "s": ["new"]}), where="id = 3", check_rows=False)
    assert ids(table) == [0, 2, 4, 10, 12, 13, 14, 99]
    after = {r["id"]: r["_row_id"] for r in table.scan(select=["id", "_row_id"]).to_arrow().read_all().to_pylist()}
    assert {i: after[i] for i in before if i != 3} == {i: before[i] for i in before if i != 3}
    assert after[99] not in before.values()


def test_the_vector_of_a_removed_file_goes_with_it(lake: Lake, table: Table) -> None:
    assert vectors(lake, table) == 2
    snapshot = table.overwrite(pa.table({"id": [99], "s": ["new"]}), where="id < 10", check_rows=False)
    assert snapshot is not None
    assert vectors(lake, table) == 1
    assert ids(table) == [10, 12, 13, 14, 99]
    assert snapshot.summary["removed-dvs"] == snapshot.summary["removed-position-deletes"] == "1"
    table.overwrite(pa.table({"id": [100], "s": ["new"]}))
    assert vectors(lake, table) == 0
    assert ids(table) == [100]


def test_a_concurrent_delete_of_replaced_rows_is_not_lost(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = table.scan(where="id < 10").files()["file_path"].to_pylist()
    racing = lake.table("t.t")
    swap = lake.catalog.swap

    def delete_first(swaps: object) -> None:
        monkeypatch.setattr(lake.catalog, "swap", swap)
        # A vector is replaced as a whole; here a second one is enough for a conflict.
        delete(lake, racing, DeletePositions(file, (1, 2)))
        swap(swaps)  # type: ignore[arg-type]

    monkeypatch.setattr(lake.catalog, "swap", delete_first)
    with pytest.raises(ConcurrentChange, match="deleted rows of files that it rewrites"):
        table.overwrite(pa.table({"id": [99], "s": ["new"]}), where="id = 3", check_rows=False)


def test_a_concurrent_delete_elsewhere_is_no_conflict(
    lake: Lake, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(pa.table({"id": [20, 21], "s": ["y", "y"]}))
    (other,) = table.scan(where="id >= 20").files()["file_path"].to_pylist()
    racing = lake.table("t.t")
    swap = lake.catalog.swap

    def delete_first(swaps: object) -> None:
        monkeypatch.setattr(lake.catalog, "swap", swap)
        delete(lake, racing, DeletePositions(other, (0,)))
        swap(swaps)  # type: ignore[arg-type]

    monkeypatch.setattr(lake.catalog, "swap", delete_first)
    table.overwrite(pa.table({"id": [99], "s": ["new"]}), where="id = 3", check_rows=False)
    assert ids(table) == [0, 2, 4, 10, 12, 13, 14, 21, 99]
