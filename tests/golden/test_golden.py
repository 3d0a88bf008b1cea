"""Golden tables: what Iceberg Java and PyIceberg wrote reads here as their makers read it."""

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.golden.expected import Expected, catalogue_line, plain_value, rows_of
from tests.golden.reading import EXPECTED, LINEAGE, cases, differences, load, names, scan
from tests.golden.store import ROOT, GoldenStore

from icefield.cache.reading import ReadContext
from icefield.codec.json.view import decode_view, encode_view
from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.decode import decode_manifest
from icefield.codec.manifest.schema import DELETED, partition_column
from icefield.errors import LocationRefused, Unsupported
from icefield.plan.manifest_list import load_manifests
from icefield.table.scan import TableScan
from icefield.types.arrow import arrow_schema, physical_array

pytestmark = pytest.mark.every_case

FOLDER = Path(__file__).parent
# Tables that open, and whose rows are refused.
REFUSED = {
    "java_avro_data": "data files in Avro",
    "java_orc_data": "data files in ORC",
}
IN_MANIFESTS = ManifestColumns(("status", "content", "file_path", "record_count"))


def to_arrow(planned: TableScan) -> pa.Table:
    return planned.to_arrow().read_all()


@pytest.mark.parametrize("expected", cases(without=REFUSED))
def test_reads_what_its_maker_reads(expected: Expected) -> None:
    assert differences(expected, to_arrow) == {}


@pytest.mark.parametrize("expected", cases(without=REFUSED))
def test_counts_what_its_maker_reads(expected: Expected) -> None:
    counts = [scan(expected, where=f["where"]).count() for f in expected.get("filters", ())]
    assert counts == [len(f["rows"]) for f in expected.get("filters", ())]
    assert scan(expected).count() == len(expected["rows"])


@pytest.mark.parametrize("expected", cases(without=names() - names("lineage")))
def test_rows_have_the_lineage_that_its_maker_reads(expected: Expected) -> None:
    planned = scan(expected, select=[*expected["columns"], *LINEAGE])
    assert rows_of(to_arrow(planned), arrow_schema(planned.schema)) == expected["lineage"]


@pytest.mark.parametrize("expected", [e for e in EXPECTED if e["name"] in REFUSED], ids=lambda e: str(e["name"]))
def test_opens_tables_whose_rows_it_refuses(expected: Expected) -> None:
    planned = scan(expected)
    assert [f.name for f in planned.schema.fields] == expected["columns"]
    with pytest.raises(Unsupported):
        to_arrow(planned)


@pytest.mark.parametrize("expected", cases())
def test_manifest_lists_are_as_their_maker_wrote_them(expected: Expected) -> None:
    metadata = load(expected["metadata"])
    assert metadata.format_version == expected["format_version"]
    assert {str(s.snapshot_id) for s in metadata.snapshots} == expected["snapshots"].keys()
    for snapshot in metadata.snapshots:
        listed = load_manifests(ReadContext(GoldenStore()), snapshot)
        assert listed is not None
        assert listed["manifest_path"].to_pylist() == expected["snapshots"][str(snapshot.snapshot_id)]
        for row in listed.to_pylist():
            assert _about(row) == _about(_as_listed(expected["manifests"][row["manifest_path"]]))


@pytest.mark.parametrize("expected", cases())
def test_manifests_are_as_their_maker_wrote_them(expected: Expected) -> None:
    for path, manifest in expected["manifests"].items():
        entries = decode_manifest(GoldenStore().read(path), path, IN_MANIFESTS)
        live = [row for row in _entries(entries) if row.pop("status") != DELETED]
        assert live == manifest["files"]
        if None not in manifest["counts"]:
            assert entries.num_rows == sum(manifest["counts"])


def test_every_golden_table_is_expected_and_catalogued() -> None:
    kept = {path.name for path in (FOLDER / "tables").iterdir()}
    assert kept == {e["name"] for e in EXPECTED}
    catalogue = (FOLDER / "README.md").read_text().splitlines()
    assert [line for line in map(catalogue_line, EXPECTED) if line not in catalogue] == []


def test_golden_tables_stay_small() -> None:
    sizes: dict[str, int] = {}
    for path in (p for p in (FOLDER / "tables").rglob("*") if p.is_file()):
        name = path.relative_to(FOLDER / "tables").parts[0]
        sizes[name] = sizes.get(name, 0) + path.stat().st_size
    assert max(sizes.values()) < 60_000
    assert sum(sizes.values()) < 2_000_000


def test_the_store_of_golden_tables_travels_and_keeps_to_them() -> None:
    store = pickle.loads(pickle.dumps(GoldenStore()))
    assert store.read(f"file:{ROOT}/java_empty/metadata/version-hint.text") == b"1"
    with pytest.raises(LocationRefused):
        store.read(f"{ROOT}/../etc/hosts")
    with pytest.raises(Unsupported):
        store.put_new(f"{ROOT}/new", b"")


@pytest.mark.parametrize("path", sorted((FOLDER / "views").glob("*.json")), ids=lambda path: str(path.stem))
def test_views_come_back_as_their_maker_wrote_them(path: Path) -> None:
    view = decode_view(path.read_bytes(), str(path))
    assert json.loads(encode_view(view)) == json.loads(path.read_text())


def _as_listed(manifest: dict[str, Any]) -> dict[str, Any]:
    added, existing, deleted = manifest["counts"]
    return manifest | {
        "partition_spec_id": manifest["spec_id"],
        "added_files_count": added,
        "existing_files_count": existing,
        "deleted_files_count": deleted,
    }


def _about(row: dict[str, Any]) -> dict[str, Any]:
    names = ("content", "partition_spec_id", "sequence_number")
    counts = ("added_files_count", "existing_files_count", "deleted_files_count")
    return {name: row[name] for name in (*names, *counts)}


def _entries(entries: pa.Table) -> list[dict[str, Any]]:
    fields = [name for name in entries.column_names if name.startswith(partition_column(0)[:-1])]
    partitions = {
        name.rpartition(".")[2]: [plain_value(v) for v in physical_array(entries[name].combine_chunks()).to_pylist()]
        for name in fields
    }
    return [
        {
            "status": row["status"],
            "path": row["file_path"],
            "content": row["content"] or 0,
            "record_count": row["record_count"],
            "partition": {field_id: values[at] for field_id, values in partitions.items()},
        }
        for at, row in enumerate(entries.select(IN_MANIFESTS.fields).to_pylist())
    ]
