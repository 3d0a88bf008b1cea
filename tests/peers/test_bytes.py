"""Our manifests and manifest lists have the Avro schemas and the headers of those that Iceberg Java wrote.

Every manifest of the golden tables is compared with one that we write for the same schema, spec and format version.
"""

import io
import json
from collections.abc import Iterator
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from tests.golden.expected import Expected
from tests.golden.reading import cases, load
from tests.golden.store import GoldenStore
from tests.histories.spelling import spelt_alike
from tests.peers.avro_files import AvroFile

from icefield.codec.manifest.encode import encode_manifest
from icefield.codec.manifest.list import ManifestListHeader, decode_manifest_list, encode_manifest_list
from icefield.codec.manifest.rows import ManifestEntries
from icefield.codec.manifest.schema import entry_arrow_schema
from icefield.commit.snapshot.manifests import ManifestShape
from icefield.model.metadata import TableMetadata

BY_JAVA = [case for case in cases() if case.id.startswith("java_")]
# Java repeats the Avro schema as one of Iceberg's; nothing reads it.
ONLY_JAVA = {"iceberg.schema"}
# What a manifest was written for; the specification has it, and Java leaves it out.
ONLY_OURS = {"schema-id"}
# In version 1 the specification requires it, and Java allows null.
NULLABLE_IN_JAVA = "snapshot_id"


@pytest.mark.parametrize("expected", BY_JAVA)
def test_manifest_lists_are_like_javas(expected: Expected) -> None:
    metadata = load(expected["metadata"])
    for snapshot in metadata.snapshots:
        if not snapshot.manifest_list:
            continue
        data = GoldenStore().read(snapshot.manifest_list)
        theirs, ours = _open(data), _open(_our_list(data, snapshot.manifest_list))
        version = int(theirs.header["format-version"])
        assert _plain(ours.schema, version) == _plain(theirs.schema, version)
        assert _without(ours.header, ()) == _without(theirs.header, ONLY_JAVA)
        assert ours.records == theirs.records


@pytest.mark.parametrize("expected", BY_JAVA)
def test_manifests_are_like_javas(expected: Expected) -> None:
    metadata = load(expected["metadata"])
    for path in expected["manifests"]:
        theirs = _open(GoldenStore().read(path))
        version = int(theirs.header["format-version"])
        ours = _open(_our_manifest(theirs.header, metadata))
        assert _plain(ours.schema, version) == _plain(theirs.schema, version)
        assert _without(ours.header, ONLY_OURS) == _without(theirs.header, ONLY_JAVA)


def _our_list(data: bytes, location: str) -> bytes:
    header = _open(data).header
    parent, first_row = header["parent-snapshot-id"], header.get("first-row-id")
    return encode_manifest_list(
        decode_manifest_list(data, location),
        ManifestListHeader(
            snapshot_id=int(header["snapshot-id"]),
            parent_snapshot_id=None if parent == "null" else int(parent),
            sequence_number=int(header.get("sequence-number", "0")),
            format_version=int(header["format-version"]),
            first_row_id=None if first_row is None else int(first_row),
        ),
        "ours",
    )


def _our_manifest(header: dict[str, str], metadata: TableMetadata) -> bytes:
    schema = metadata.schema_by_id(json.loads(header["schema"])["schema-id"])
    spec = next(s for s in metadata.specs if s.spec_id == int(header["partition-spec-id"]))
    shape = ManifestShape(schema, spec, int(header.get("content") == "deletes"))
    nothing: pa.Table = entry_arrow_schema(shape.partition).empty_table()
    return encode_manifest(
        ManifestEntries.trusted(nothing), shape.header(int(header["format-version"])), shape.partition, "ours"
    )


def _open(data: bytes) -> AvroFile:
    reader: Any = fastavro.reader(io.BytesIO(data))
    header: dict[str, str] = dict(reader.metadata)
    return AvroFile(header, json.loads(header["avro.schema"]), list(reader))


def _plain(schema: dict[str, Any], version: int) -> Any:
    """Leave out docs, and in version 1 the order of fields and what Java allows to be null."""
    plain = _without_docs(schema)
    if version == 1:
        fields = {field["name"]: field for field in plain["fields"]}
        if NULLABLE_IN_JAVA in fields:
            fields[NULLABLE_IN_JAVA] = {"field-id": fields[NULLABLE_IN_JAVA]["field-id"]}
        plain["fields"] = fields
    return plain


def _without_docs(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without_docs(value) for key, value in node.items() if key != "doc"}
    return [_without_docs(each) for each in node] if isinstance(node, list) else node


def _without(header: dict[str, str], keys: set[str] | tuple[()]) -> dict[str, Any]:
    """Return what a header says; JSON as what it means, for its blanks and the order of its keys are free."""
    return dict(_meanings(header, {*keys, "avro.schema"}))


def _meanings(header: dict[str, str], left_out: set[str]) -> Iterator[tuple[str, Any]]:
    for key, value in header.items():
        if key not in left_out:
            yield key, spelt_alike(json.loads(value)) if value[:1] in "[{" else value
