"""Every decoder of files, with real files of its kind and the damage that fits them."""

import gzip
from dataclasses import replace
from random import Random

import numpy as np
from tests.fuzz.corpus import (
    File,
    bitmap_files,
    manifest_files,
    manifest_list_files,
    metadata_files,
    puffin_body,
    puffin_file,
    puffin_files,
    puffin_payload,
    vector_body,
    vector_files,
    vector_frame,
    view_files,
)
from tests.fuzz.harness import LOCATION, Decoder
from tests.fuzz.mutate import Damage, Mutation, framed, mutate_bytes, one_of
from tests.fuzz.mutate_avro import any_avro
from tests.fuzz.mutate_json import any_json

from icefield.codec.avro.container import parse_header, raw_blocks
from icefield.codec.json.keys import GZIP_MAGIC
from icefield.codec.json.metadata import decode_metadata, encode_metadata
from icefield.codec.json.view import decode_view, encode_view
from icefield.codec.manifest.columns import ALL, PLAN
from icefield.codec.manifest.decode import decode_manifest
from icefield.codec.manifest.header import decode_manifest_header
from icefield.codec.manifest.list import (
    ManifestListHeader,
    decode_manifest_list,
    is_spliceable,
    partition_summaries,
    splice_manifest_list,
)
from icefield.codec.manifest.list_schema import MANIFEST_LIST_ARROW_SCHEMA
from icefield.codec.manifest.rows import Manifests
from icefield.codec.puffin.deletion_vector import decode_deletion_vector
from icefield.codec.puffin.puffin import TAIL_BYTES, decode_blob, decode_footer
from icefield.codec.puffin.roaring import Reader, decode_bitmap

STATISTICS = PLAN.with_statistics([1, 2, 40, 2147483546])
REWRITTEN = replace(PLAN, partition=False, data_file=True)
MOST_BLOB_BYTES = 1 << 24
MOST_POSITIONS = 1 << 20


def decode_table_metadata(file: File) -> None:
    """Decode all of it, the snapshots that are decoded on demand too, and what came through must be writable."""
    metadata = decode_metadata(file.data, LOCATION)
    list(metadata.snapshots)
    decode_metadata(encode_metadata(metadata), LOCATION)


def decode_view_metadata(file: File) -> None:
    view = decode_view(file.data, LOCATION)
    assert decode_view(encode_view(view), LOCATION) == view


def decode_entries(file: File) -> None:
    decode_manifest_header(file.data, LOCATION)
    for want in (STATISTICS, ALL, REWRITTEN):
        for column in decode_manifest(file.data, LOCATION, want).table.columns:
            column.validate(full=True)


def decode_list(file: File) -> None:
    manifests = decode_manifest_list(file.data, LOCATION)
    manifests.table.validate(full=True)
    partition_summaries(manifests, 1).validate(full=True)
    if is_spliceable(file.data, LOCATION, 2):
        none = MANIFEST_LIST_ARROW_SCHEMA.empty_table()
        splice_manifest_list(file.data, LOCATION, Manifests.trusted(none), ManifestListHeader(2, 1, 2), LOCATION)


def decode_container(file: File) -> None:
    header = parse_header(file.data, LOCATION)
    assert 0 < header.end <= len(file.data)
    assert header.codec is not None
    for block in raw_blocks(file.data, header, LOCATION):
        assert block.rows >= 0
        assert block.next_begin <= len(file.data)


def decode_puffin_footer(file: File) -> None:
    footer = decode_footer(file.data, LOCATION)
    assert all(blob.offset + blob.length <= len(file.data) - TAIL_BYTES for blob in footer.blobs)
    assert decode_footer(file.data[1:], LOCATION, file_bytes=len(file.data)) == footer


def decode_puffin_blobs(file: File) -> None:
    for blob in decode_footer(file.data, LOCATION).blobs:
        stored = file.data[blob.offset : blob.offset + blob.length]
        assert len(decode_blob(stored, blob, LOCATION, max_bytes=MOST_BLOB_BYTES)) <= MOST_BLOB_BYTES


def decode_vector(file: File) -> None:
    positions = decode_deletion_vector(file.data, LOCATION, max_positions=MOST_POSITIONS)
    assert len(positions) <= MOST_POSITIONS
    assert np.all(positions[1:] > positions[:-1])
    assert not len(positions) or positions[0] >= 0


def decode_roaring(file: File) -> None:
    reader = Reader(memoryview(file.data))
    positions = decode_bitmap(reader, MOST_POSITIONS)
    assert reader.at <= len(file.data)
    assert np.all(positions[1:] > positions[:-1])


def metadata_mutation(data: bytes, rng: Random, other: bytes) -> Damage:
    """Damage the document, below the compression most often where there is one."""
    if not data.startswith(GZIP_MAGIC) or rng.random() < 0.2:
        return any_json(data, rng, other)
    return _gzipped(data, rng, other)


def puffin_mutation(data: bytes, rng: Random, other: bytes) -> Damage:
    """Damage the whole, the footer, the packed footer or the blobs, each within a sound frame."""
    payload, body = puffin_payload(data), puffin_body(data)
    is_packed = data[-8] == 1
    match rng.randrange(4):
        case 0:
            return mutate_bytes(data, rng, other)
        case 1:
            changed, what = mutate_bytes(body, rng, other)
            return puffin_file(payload, changed, int(is_packed)), f"blobs: {what}"
        case _:
            change = mutate_bytes if is_packed else any_json
            changed, what = change(payload, rng, payload)
            return puffin_file(changed, body, int(is_packed)), f"footer: {what}"


def _inflated(data: bytes) -> bytes:
    return gzip.decompress(data) if data.startswith(GZIP_MAGIC) else data


def _deflated(data: bytes) -> bytes:
    return gzip.compress(data, compresslevel=1, mtime=0)


_gzipped: Mutation = framed(_inflated, _deflated, any_json)
_in_frame: Mutation = framed(vector_body, vector_frame)
vector_mutation: Mutation = one_of(*[_in_frame] * 9, mutate_bytes)

FILE_DECODERS = (
    Decoder("metadata", metadata_files, decode_table_metadata, metadata_mutation),
    Decoder("view", view_files, decode_view_metadata, metadata_mutation),
    Decoder("container", manifest_files, decode_container, any_avro),
    Decoder("manifest", manifest_files, decode_entries, any_avro, normal=300),
    Decoder("manifest-plain", manifest_files, decode_entries, any_avro, normal=100, many=500, engine="plain"),
    Decoder("list", manifest_list_files, decode_list, any_avro, normal=300),
    Decoder("list-plain", manifest_list_files, decode_list, any_avro, normal=150, many=500, engine="plain"),
    Decoder("puffin-footer", puffin_files, decode_puffin_footer, puffin_mutation, many=5000),
    Decoder("puffin-blobs", puffin_files, decode_puffin_blobs, puffin_mutation),
    Decoder("vector", vector_files, decode_vector, vector_mutation, many=5000),
    Decoder("roaring", bitmap_files, decode_roaring, mutate_bytes, many=5000, refusals=(ValueError,)),
)
