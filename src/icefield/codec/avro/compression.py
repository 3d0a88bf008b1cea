"""Compress and decompress Avro blocks: null, deflate, snappy, zstandard, bzip2.

`decompress` raises ValueError for bytes that do not decompress, or that would exceed the limit, before it allocates
memory for them.
"""

import bz2
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa

try:
    from isal import isal_zlib

    _inflater: Any = isal_zlib
except ImportError:  # a platform without a wheel; half the speed
    _inflater = zlib

_RAW_STREAM = -15
# Manifests are written once and read often. Measured on manifests: isal's levels are 4 times as fast, but the output is
# 25 % larger and takes longer to read; zlib's level 6 is half as fast, and the output is 9 % smaller.
_DEFLATE_LEVEL = 1
# The highest compression ratio of deflate; that of snappy is 64 bytes from 3.
_DEFLATE_MAX_RATIO = 1032
_SNAPPY_MAX_RATIO = 32
_CHECKSUM_BYTES = 4

NULL, DEFLATE, SNAPPY, ZSTANDARD, BZIP2 = CODECS = ("null", "deflate", "snappy", "zstandard", "bzip2")


def decompress(codec: str, data: memoryview, limit: int) -> Any:
    """Return a block's raw bytes, at most `limit` of them."""
    if codec not in _DECOMPRESS:
        raise ValueError(f"the codec {codec!r} is not one of {', '.join(_DECOMPRESS)}")
    try:
        raw = _DECOMPRESS[codec](data, limit)
    except (zlib.error, _inflater.error, OSError, EOFError) as error:
        raise ValueError(f"a block does not decompress as {codec}: {error}") from error
    if len(raw) > limit:
        raise ValueError(f"a block grows beyond the limit of {limit} bytes")
    return raw


def compress(codec: str, data: bytes) -> bytes:
    """Return a block's bytes as they are stored."""
    return _COMPRESS[codec](data)


def _pass_through(data: Any, _limit: int) -> Any:
    return data


def _inflate(data: memoryview, limit: int) -> Any:
    if len(data) * _DEFLATE_MAX_RATIO <= limit:
        return _inflater.decompress(data, _RAW_STREAM, 64 + 4 * len(data))
    stream = _inflater.decompressobj(_RAW_STREAM)
    raw = stream.decompress(data, limit + 1)
    if not stream.eof and len(raw) <= limit:
        raise EOFError("the stream is truncated")
    return raw


def _unsnap(data: memoryview, limit: int) -> Any:
    size = _snappy_size(data)
    body, checksum = data[:-_CHECKSUM_BYTES], data[-_CHECKSUM_BYTES:]
    if size > min(limit, _SNAPPY_MAX_RATIO * len(data)):
        raise ValueError(f"a snappy block of {len(data)} bytes claims to hold {size}")
    raw = _arrow_codec("snappy").decompress(body, decompressed_size=size, asbytes=True)
    if zlib.crc32(raw) != int.from_bytes(checksum, "big"):
        raise ValueError("a snappy block does not match its checksum")
    return raw


def _snappy_size(data: memoryview) -> int:
    size = 0
    for index, byte in enumerate(data[:5]):
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return size
    raise ValueError("a snappy block does not begin with its size")


def _unzstd(data: memoryview, limit: int) -> Any:
    # Java writes streaming frames without a content size, which only a stream reader can decompress.
    step = min(limit + 1, 64 + 8 * len(data))
    parts, size = [], 0
    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        while size <= limit and (part := stream.read(step)):
            parts.append(part)
            size += len(part)
    return b"".join(parts)


def _decompress_bzip2(data: memoryview, limit: int) -> Any:
    stream = bz2.BZ2Decompressor()
    raw = stream.decompress(data, limit + 1)
    if not stream.eof and len(raw) <= limit:
        raise EOFError("the stream is truncated")
    return raw


def _compress_deflate(data: bytes) -> bytes:
    return zlib.compress(data, _DEFLATE_LEVEL, _RAW_STREAM)


def _compress_snappy(data: bytes) -> bytes:
    body: bytes = _arrow_codec("snappy").compress(data, asbytes=True)
    return body + zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "big")


def _compress_zstd(data: bytes) -> bytes:
    compressed: bytes = _arrow_codec("zstd").compress(data, asbytes=True)
    return compressed


@cache
def _arrow_codec(name: str) -> Any:
    return pa.Codec(name)


_DECOMPRESS: dict[str, Callable[[memoryview, int], Any]] = {
    NULL: _pass_through,
    DEFLATE: _inflate,
    SNAPPY: _unsnap,
    ZSTANDARD: _unzstd,
    BZIP2: _decompress_bzip2,
}

_COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    NULL: bytes,
    DEFLATE: _compress_deflate,
    SNAPPY: _compress_snappy,
    ZSTANDARD: _compress_zstd,
    BZIP2: bz2.compress,
}
