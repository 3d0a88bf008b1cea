"""Entries that move to a new manifest keep what they inherited; their data_file bytes are copied where they can be."""

from typing import Any

import pyarrow as pa
import pytest
from tests.codec.cases import entry, header, make_manifest, table

from icefield.codec.manifest.columns import ALL, ManifestColumns
from icefield.codec.manifest.decode import decode_manifest
from icefield.codec.manifest.encode import encode_manifest
from icefield.codec.manifest.inherit import inherit
from icefield.codec.manifest.list_schema import MANIFEST_LIST_ARROW_SCHEMA
from icefield.codec.manifest.rewrite import ManifestSource, rewrite_manifests
from icefield.codec.manifest.rows import ManifestEntries, Manifests
from icefield.errors import CorruptFile, InvalidInput
from icefield.types.datatypes import IntegerType, LongType, NestedField

EXISTING, ADDED, DELETED = 0, 1, 2
SPANS = ManifestColumns(("status",), data_file=True)


def manifest(sequence_number: int = 7, snapshot_id: int = 70, **changes: Any) -> pa.Table:
    row = {"manifest_path": "old", "sequence_number": sequence_number, "added_snapshot_id": snapshot_id, "content": 0}
    return pa.Table.from_pylist([row | changes], MANIFEST_LIST_ARROW_SCHEMA)


def source(rows: pa.Table, status: list[int | None], listed: pa.Table | None = None, **shape: Any) -> ManifestSource:
    partition, version = shape.get("partition", ()), shape.get("version", 2)
    made = header(version, shape.get("content", 0), partition)
    data = encode_manifest(ManifestEntries.trusted(rows), made, partition, "old", shape.get("codec", "deflate"))
    return ManifestSource(
        "old", data, Manifests.trusted(manifest() if listed is None else listed), pa.array(status, pa.int8())
    )


def spans(data: bytes) -> list[bytes]:
    found: list[bytes] = decode_manifest(data, "x", SPANS)["data_file"].to_pylist()
    return found


def test_entries_are_kept_deleted_or_left_out_with_what_they_inherited() -> None:
    numbers = {"sequence_number": 3, "file_sequence_number": 4, "snapshot_id": 30}
    rows = table([entry(file_path=p, **n) for p, n in (("a", {}), ("b", numbers), ("c", {}), ("d", {}))])
    old = source(rows, [EXISTING, DELETED, None, DELETED])
    new = decode_manifest(rewrite_manifests([old], header(), (), 99, "new"), "new", ALL)
    assert new.select(
        ["file_path", "status", "snapshot_id", "sequence_number", "file_sequence_number"]
    ).to_pylist() == [
        {"file_path": "a", "status": EXISTING, "snapshot_id": 70, "sequence_number": 7, "file_sequence_number": 7},
        {"file_path": "b", "status": DELETED, "snapshot_id": 99, "sequence_number": 3, "file_sequence_number": 4},
        {"file_path": "d", "status": DELETED, "snapshot_id": 99, "sequence_number": 7, "file_sequence_number": 7},
    ]


def test_an_entry_that_stays_added_keeps_inheriting() -> None:
    new = decode_manifest(rewrite_manifests([source(table([entry()]), [ADDED])], header(), (), 99, "new"), "new")
    assert new["sequence_number"].to_pylist() == [None]
    assert new["snapshot_id"].to_pylist() == [70]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("version", [1, 2, 3])
def test_data_files_are_copied_byte_by_byte(seed: int, version: int) -> None:
    made = make_manifest(seed, version, rows=5)
    listed = manifest(0 if version == 1 else 7, first_row_id=1000 if version == 3 else None)
    if version == 3:
        made.rows[:] = [row | {"first_row_id": 5} for row in made.rows]
    old = source(made.table, [0, None, 2, 0, 0], listed, version=version, partition=made.partition)
    new = rewrite_manifests([old], header(version, partition=made.partition), made.partition, 99, "new", "snappy")
    before = spans(old.data)
    assert spans(new) == [before[i] for i in (0, 2, 3, 4)]


@pytest.mark.parametrize("seed", range(8))
def test_an_older_manifest_is_written_anew_with_the_same_files(seed: int) -> None:
    made = make_manifest(seed, 1, rows=4)
    old = source(made.table, [0, 0, 2, None], manifest(0), version=1, partition=made.partition)
    data = rewrite_manifests([old], header(2, partition=made.partition), made.partition, 99, "new")
    new = decode_manifest(data, "new", ALL)
    expected = inherit(ManifestEntries.trusted(made.table), Manifests.trusted(manifest(0))).slice(0, 3)
    kept = expected.without(("status", "snapshot_id"))
    assert new.table.select(kept.column_names).equals(kept.table)
    assert new["sequence_number"].to_pylist() == [0, 0, 0]
    assert new["content"].to_pylist() == [0, 0, 0]


def test_row_ids_that_were_inherited_are_written_down() -> None:
    rows = table([entry(record_count=5), entry(record_count=6, first_row_id=2), entry(record_count=7)])
    old = source(rows, [EXISTING, EXISTING, EXISTING], manifest(first_row_id=100), version=3)
    new = decode_manifest(rewrite_manifests([old], header(3), (), 99, "new"), "new", ALL)
    assert new["first_row_id"].to_pylist() == [100, 2, 105]


def test_several_manifests_become_one_in_order() -> None:
    narrow, wide = [NestedField(1000, "p", IntegerType())], [NestedField(1000, "p", LongType())]
    sources = [
        source(table([entry(**{"partition.1000": i})], narrow), [0], manifest(i + 1), partition=narrow)
        for i in range(2)
    ]
    sources.append(source(table([entry(**{"partition.1000": 2**40})], wide), [0], manifest(3), partition=wide))
    new = decode_manifest(rewrite_manifests(sources, header(partition=wide), wide, 99, "new"), "new")
    assert new["partition.1000"].to_pylist() == [0, 1, 2**40]
    assert new["sequence_number"].to_pylist() == [1, 2, 3]
    assert new.table.schema.field("partition.1000").type == pa.int64()


def test_sources_that_do_not_belong_together_are_refused() -> None:
    deletes = source(table([entry(content=1)]), [0], content=1)
    with pytest.raises(InvalidInput, match="content 1"):
        rewrite_manifests([deletes], header(), (), 99, "new")
    with pytest.raises(InvalidInput, match="1 entries by 2 new statuses"):
        rewrite_manifests([source(table([entry()]), [0, 0])], header(), (), 99, "new")


def test_a_bad_source_is_named() -> None:
    good = source(table([entry()]), [0], codec="null")
    bad = ManifestSource("bad", good.data[:-20], good.manifest, good.status)
    with pytest.raises(CorruptFile) as error:
        rewrite_manifests([good, bad], header(), (), 99, "new")
    assert error.value.location == "bad"
