"""Real files to damage: those of Iceberg Java and PyIceberg among the golden tables, and our own writer's."""

import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

import pyarrow as pa
from tests.codec.cases import LOCATION, header, make_manifest, manifest_row
from tests.codec.position_cases import positions_of_all_shapes
from tests.golden.store import FOLDER

from icefield.codec.avro.compression import CODECS
from icefield.codec.json.keys import deflate_json
from icefield.codec.manifest.encode import encode_manifest
from icefield.codec.manifest.list import ManifestListHeader, encode_manifest_list
from icefield.codec.manifest.list_schema import MANIFEST_LIST_ARROW_SCHEMA
from icefield.codec.manifest.rows import ManifestEntries, Manifests
from icefield.codec.puffin.deletion_vector import deletion_vector_blob, encode_deletion_vector
from icefield.codec.puffin.puffin import MAGIC, TAIL_BYTES, Blob, decode_footer, encode_puffin, footer_size

_VERSIONS = (1, 2, 3)


class File(NamedTuple):
    """A sound file; the name says which."""

    name: str
    data: bytes


@cache
def metadata_files() -> Sequence[File]:
    """Return metadata.json files, some gzipped."""
    plain = _golden("tables/*/metadata/*.json")
    return (*plain, *(File(f"{f.name} gzipped", deflate_json(f.data)) for f in plain[::9] if f.data[0] != 0x1F))


@cache
def view_files() -> Sequence[File]:
    """Return metadata.json files of views."""
    plain = _golden("views/*.json")
    return (*plain, *(File(f"{f.name} gzipped", deflate_json(f.data)) for f in plain))


@cache
def manifest_files() -> Sequence[File]:
    """Return manifests of all versions, codecs and writers."""
    ours = []
    for seed in range(4 * len(_VERSIONS)):
        version, codec = _VERSIONS[seed % 3], CODECS[seed % len(CODECS)]
        made = make_manifest(seed, version, rows=7)
        head = header(version, partition=made.partition)
        data = encode_manifest(ManifestEntries.trusted(made.table), head, made.partition, LOCATION, codec)
        ours.append(File(f"manifest {seed} of ours, version {version}, {codec}", data))
    return (*_golden("tables/*/metadata/*-m*.avro"), *ours)


@cache
def manifest_list_files() -> Sequence[File]:
    """Return manifest lists of all versions, codecs and writers."""
    ours = []
    for seed in range(4 * len(_VERSIONS)):
        version, codec = _VERSIONS[seed % 3], CODECS[seed % len(CODECS)]
        rows = [manifest_row(Random(seed + i)) | {"first_row_id": 0} for i in range(5)]
        table = pa.Table.from_pylist([row | {"content": 0} for row in rows], MANIFEST_LIST_ARROW_SCHEMA)
        data = encode_manifest_list(
            Manifests.trusted(table), ManifestListHeader(1, None, 1, version, 0), LOCATION, codec
        )
        ours.append(File(f"list {seed} of ours, version {version}, {codec}", data))
    return (*_golden("tables/*/metadata/snap-*.avro"), *ours)


@cache
def puffin_files() -> Sequence[File]:
    """Return Puffin files with deletion vectors and with statistics, blobs compressed and not, and a packed footer."""
    sketch = Blob("apache-datasketches-theta-v1", b"sketch" * 50, [1, 2], 7, 8, "zstd", {"ndv": "4"})
    plain = Blob("something-else", b"content", [2147483647], 1 << 62, 1)
    vectors = [deletion_vector_blob(p, "s3://lake/a") for p in positions_of_all_shapes(1 << 20)[:6]]
    ours, _ = encode_puffin([sketch, plain, *vectors], {"created-by": "me"})
    packed = puffin_file(pa.Codec("lz4").compress(puffin_payload(ours), asbytes=True), puffin_body(ours), flags=1)
    golden = (*_golden("tables/*/data/*.puffin"), *_golden("tables/*/metadata/*.stats"))
    return (*golden, File("puffin of ours", ours), File("puffin of ours, footer packed", packed))


def puffin_payload(data: bytes) -> bytes:
    """Return the footer's payload as it is."""
    return data[-footer_size(data, "") + len(MAGIC) : -TAIL_BYTES]


def puffin_body(data: bytes) -> bytes:
    """Return what is before the footer."""
    return data[: -footer_size(data, "")]


def puffin_file(payload: bytes, body: bytes, flags: int = 0) -> bytes:
    """Write a file from its parts."""
    tail = len(payload).to_bytes(4, "little") + flags.to_bytes(4, "little") + MAGIC
    return body + MAGIC + payload + tail


@cache
def vector_files() -> Sequence[File]:
    """Return deletion vector blobs; large ones are rare, because damage to them is slow to find."""
    golden = [
        File(f"vector in {file.name}", file.data[blob.offset : blob.offset + blob.length])
        for file in puffin_files()
        for blob in decode_footer(file.data, "").blobs
        if blob.type == "deletion-vector-v1" and blob.compression_codec is None
    ]
    made = [encode_deletion_vector(shape) for shape in positions_of_all_shapes(below=1 << 34)]
    small = [File(f"shape {at}", data) for at, data in enumerate(made) if len(data) < 1000]
    large = [File(f"shape {at}", data) for at, data in enumerate(made) if 1000 <= len(data) < 20_000]
    return (*golden, *small * 3, *large)


def vector_body(blob: bytes) -> bytes:
    """Return a vector without its frame."""
    return blob[4:-4]


def vector_frame(body: bytes) -> bytes:
    """Frame a body with the length and checksum that it should have."""
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def bitmap_files() -> Sequence[File]:
    """Return the first 32-bit bitmaps of vectors that have one."""
    return tuple(File(f.name, f.data[20:-4]) for f in vector_files() if len(f.data) > 28)


def strings(*lines: str) -> Sequence[File]:
    """Return strings as files; each is its own name."""
    return tuple(File(line, line.encode()) for line in lines)


def _golden(pattern: str) -> tuple[File, ...]:
    paths: list[Path] = sorted(FOLDER.glob(pattern))
    assert paths, f"no golden file is like {pattern}"
    return tuple(File(str(path.relative_to(FOLDER)), path.read_bytes()) for path in paths)
