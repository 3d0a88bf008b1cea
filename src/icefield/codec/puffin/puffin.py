"""Puffin files: blobs and the footer that describes them. (puffin spec)

A footer is read from the end of a file: `footer_size` returns from the last bytes how many are needed, `decode_footer`
takes those, or the whole file. Blobs of unknown types are listed like any other.

Raises CorruptFile for bytes that are not a Puffin file, InvalidInput for a codec that cannot be written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow as pa

from icefield.codec.decompression import most_inflated
from icefield.codec.json.snapshots import Int, Long, NaturalLong
from icefield.errors import CorruptFile, InvalidInput

MAGIC = b"PFA1"
TAIL_BYTES = 12  # payload size, flags and magic, at the end of every file
MAX_FOOTER_BYTES = 1 << 28
MAX_BLOB_BYTES = 1 << 31
ZSTD, LZ4 = CODECS = ("zstd", "lz4")
UNKNOWN = -1  # snapshot and sequence number of a blob that is written before its commit

_COMPRESSED = 1


@dataclass(frozen=True)
class Blob:
    """A blob to write, compressed by `codec`."""

    type: str
    data: bytes
    fields: Sequence[int] = ()
    snapshot_id: int = UNKNOWN
    sequence_number: int = UNKNOWN
    codec: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


class StoredBlob(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A blob as the footer describes it."""

    type: str
    fields: tuple[Int, ...]
    snapshot_id: Long
    sequence_number: Long
    offset: NaturalLong
    length: NaturalLong
    compression_codec: str | None = None
    properties: dict[str, str] = msgspec.field(default_factory=dict)


class Footer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The contents of a file."""

    blobs: tuple[StoredBlob, ...]
    properties: dict[str, str] = msgspec.field(default_factory=dict)


_FOOTER = msgspec.json.Decoder(Footer)


def footer_size(tail: bytes, location: str) -> int:
    """Return the size of the footer at the end of a file, given at least its last `TAIL_BYTES`."""
    if len(tail) < TAIL_BYTES or not tail.endswith(MAGIC):
        raise CorruptFile(location, "it is not a Puffin file: the magic bytes at its end are missing")
    payload = int.from_bytes(tail[-TAIL_BYTES:-8], "little", signed=True)
    if not 0 <= payload <= MAX_FOOTER_BYTES:
        raise CorruptFile(location, f"its footer claims to have {payload} bytes")
    return len(MAGIC) + payload + TAIL_BYTES


def decode_footer(tail: bytes, location: str, *, file_bytes: int | None = None) -> Footer:
    """Decode the footer, given the end of a file of `file_bytes`, or by default the whole file."""
    size = footer_size(tail, location)
    file_bytes = len(tail) if file_bytes is None else file_bytes
    footer_at = file_bytes - size
    if size > len(tail) or footer_at < len(MAGIC):
        raise CorruptFile(location, f"its footer of {size} bytes is not in the {len(tail)} bytes at its end")
    if tail[len(tail) - size :][: len(MAGIC)] != MAGIC or (len(tail) == file_bytes and not tail.startswith(MAGIC)):
        raise CorruptFile(location, "a magic number of Puffin files is missing")
    try:
        footer = _FOOTER.decode(_payload(tail[len(tail) - size + len(MAGIC) :]))
        _check_places(footer, footer_at)
    except (ValueError, OSError, RecursionError) as error:
        raise CorruptFile(location, f"its footer does not decode: {error}") from error
    return footer


def decode_blob(data: bytes, blob: StoredBlob, location: str, *, max_bytes: int = MAX_BLOB_BYTES) -> bytes:
    """Return a blob's content, given its bytes in the file."""
    if len(data) != blob.length:
        raise CorruptFile(location, f"a blob has {len(data)} bytes, but the footer says {blob.length}")
    if blob.compression_codec is None:
        return data
    try:
        return _decompress(data, blob.compression_codec, max_bytes)
    except (ValueError, OSError) as error:
        raise CorruptFile(location, f"a blob of type {blob.type!r} does not decode: {error}") from error


def encode_puffin(blobs: Sequence[Blob], properties: Mapping[str, str] | None = None) -> tuple[bytes, Footer]:
    """Encode a whole file; return also the footer, which has the offsets and lengths that manifests need."""
    body = bytearray(MAGIC)
    stored = []
    for blob in blobs:
        data = _compress(blob.data, blob.codec)
        stored.append(
            StoredBlob(
                blob.type,
                tuple(blob.fields),
                blob.snapshot_id,
                blob.sequence_number,
                len(body),
                len(data),
                blob.codec,
                dict(blob.properties),
            )
        )
        body += data
    footer = Footer(tuple(stored), dict(properties or {}))
    payload = msgspec.json.encode(footer)
    body += MAGIC + payload + len(payload).to_bytes(4, "little") + bytes(4) + MAGIC
    return bytes(body), footer


def _payload(footer: bytes) -> bytes:
    """Return the footer's JSON from the bytes after its first magic number."""
    payload, flags = footer[:-TAIL_BYTES], int.from_bytes(footer[-8:-4], "little")
    if flags & ~_COMPRESSED:
        raise ValueError(f"it has unknown flags ({flags:#x})")
    return _decompress(payload, LZ4, MAX_FOOTER_BYTES) if flags else payload


def _check_places(footer: Footer, footer_at: int) -> None:
    for blob in footer.blobs:
        if blob.offset < len(MAGIC) or blob.offset + blob.length > footer_at:
            raise ValueError(f"a blob of {blob.length} bytes at {blob.offset} is not before the footer at {footer_at}")


def _decompress(data: bytes, codec: str, limit: int) -> bytes:
    if codec not in CODECS:
        raise ValueError(f"the codec {codec!r} is not one of {', '.join(CODECS)}")
    if not data:
        raise ValueError("there is nothing to decompress")
    limit = most_inflated(len(data), limit)
    step = min(limit + 1, 64 + 8 * len(data))
    parts, size = [], 0
    with pa.CompressedInputStream(pa.BufferReader(data), codec) as stream:
        while part := stream.read(step):
            parts.append(part)
            size += len(part)
            if size > limit:
                raise ValueError(f"it grows beyond {limit} bytes")
    return b"".join(parts)


def _compress(data: bytes, codec: str | None) -> bytes:
    if codec is None:
        return data
    # Arrow's lz4 frames lack the content size, which the spec requires; and Iceberg's own reader has no lz4.
    if codec != ZSTD:
        raise InvalidInput(f"blobs are written uncompressed or with zstd, not with {codec!r}")
    compressor: Any = pa.Codec(ZSTD)
    compressed: bytes = compressor.compress(data, asbytes=True)
    return compressed
