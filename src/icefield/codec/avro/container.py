"""The Avro object container: a header with metadata, then blocks of rows between sync markers.

parse_header() reads the header alone; parse_container() also decompresses the blocks; encode_container() writes a file.
Raises CorruptFile for anything that is not an Avro file, or that exceeds the limits.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any

from icefield.codec.avro.compression import compress, decompress
from icefield.codec.avro.kernel import BAD_LENGTH, open_run, read_varint, write_varint
from icefield.codec.decompression import most_inflated
from icefield.errors import CorruptFile, InvalidInput

MAGIC = b"Obj\x01"
SYNC_BYTES = 16
SCHEMA_KEY, CODEC_KEY = "avro.schema", "avro.codec"

# Rows are collected into blocks of about this size, as in Java; one row per block would double the file size.
BLOCK_BYTES = 64 * 1024
MAX_TOTAL_BYTES = 2**31 - 1024

# The integers of one byte, which are most of those in a header and in a small manifest.
_ONE_BYTE = {value: bytes((2 * value if value >= 0 else -2 * value - 1,)) for value in range(-64, 64)}


@dataclass(frozen=True)
class Limits:
    """How much memory a file may take. Real manifests stay far below: Java splits them at 8 MiB compressed.

    The limit for a compressed file also depends on its own size; see `growth`.
    """

    block_bytes: int = 256 * 1024 * 1024
    total_bytes: int = 1024 * 1024 * 1024
    rows: int = 10_000_000
    elements: int = 100_000_000

    def __post_init__(self) -> None:
        # Positions in the decompressed rows are kept in 32 bits.
        if self.total_bytes > MAX_TOTAL_BYTES:
            raise InvalidInput(f"cannot decode more than {MAX_TOTAL_BYTES} bytes at once, asked for {self.total_bytes}")


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True)
class Header:
    """The header of a file: its metadata, the sync marker, and the offset of the first block."""

    metadata: Mapping[str, bytes]
    sync: bytes
    end: int

    @property
    def schema(self) -> bytes:
        return self.metadata[SCHEMA_KEY]

    @property
    def codec(self) -> str:
        return self.metadata.get(CODEC_KEY, b"null").decode("ascii", "replace")


@dataclass(frozen=True)
class Block:
    """A block of rows as stored in the file."""

    rows: int
    data: memoryview
    next_begin: int
    """Where in the file the next block begins."""


def parse_header(data: bytes, location: str) -> Header:
    """Parse the header of a file."""
    if data[:4] != MAGIC:
        raise CorruptFile(location, "it is not an Avro file: the magic bytes are missing")
    metadata: dict[str, bytes] = {}
    count, _, position = open_run(data, 4, len(data))
    while position >= 0 and count > 0:
        key, position = _read_bytes(data, position)
        value, position = _read_bytes(data, position)
        metadata[key.decode("utf-8", "replace")] = value
        count -= 1
        if count == 0:
            count, _, position = open_run(data, position, len(data))
    sync = data[position : position + SYNC_BYTES]
    if position < 0 or len(sync) < SYNC_BYTES:
        raise CorruptFile(location, "its Avro header is truncated or corrupt")
    if SCHEMA_KEY not in metadata:
        raise CorruptFile(location, "its Avro header holds no schema")
    return Header(metadata, sync, position + SYNC_BYTES)


def iterate_blocks(data: bytes, header: Header, location: str) -> Iterator[Block]:
    """Yield the blocks as stored, checking the sync marker after each."""
    view, position, size = memoryview(data), header.end, len(data)
    while position < size:
        rows, position = read_varint(data, position, size)
        length, position = read_varint(data, position, size)
        end = position + length
        if position < 0 or rows < 0 or length < 0 or end + SYNC_BYTES > size:
            raise CorruptFile(location, f"a block after byte {header.end} is truncated or corrupt")
        if data[end : end + SYNC_BYTES] != header.sync:
            raise CorruptFile(location, f"the block that ends at byte {end} is not followed by the sync marker")
        yield Block(rows, view[position:end], end + SYNC_BYTES)
        position = end + SYNC_BYTES


def raw_blocks(data: bytes, header: Header, location: str, limits: Limits = DEFAULT_LIMITS) -> Iterator[Block]:
    """Yield the decompressed blocks."""
    codec, left = header.codec, most_inflated(len(data), limits.total_bytes)
    for block in iterate_blocks(data, header, location):
        raw = raw_data(block, codec, location, min(limits.block_bytes, left))
        left -= len(raw)
        yield Block(block.rows, raw, block.next_begin)


def raw_data(block: Block, codec: str, location: str, limit: int = DEFAULT_LIMITS.block_bytes) -> Any:
    """Return the bytes of a block's rows."""
    try:
        return decompress(codec, block.data, limit)
    except ValueError as error:
        raise CorruptFile(location, str(error)) from error


def encode_header(metadata: Mapping[str, str], sync: bytes) -> bytes:
    """Encode the header of a file."""
    out = bytearray(MAGIC)
    out += encode_long(len(metadata))
    for key, value in metadata.items():
        for text in (key.encode(), value.encode()):
            out += encode_long(len(text)) + text
    return bytes(out) + b"\0" + sync


def encode_block(rows: int, raw: bytes, codec: str, sync: bytes) -> bytes:
    """Encode one block with the sync marker after it."""
    data = compress(codec, raw)
    return encode_long(rows) + encode_long(len(data)) + data + sync


def encode_container(metadata: Mapping[str, str], raw: bytes, row_ends: Sequence[int], location: str) -> bytes:
    """Encode a file from the concatenated rows in `raw`; the codec is the one named in the metadata."""
    sync = sync_marker(metadata, location)
    return encode_header(metadata, sync) + encode_blocks(raw, row_ends, metadata[CODEC_KEY], sync)


def encode_blocks(raw: bytes, row_ends: Sequence[int], codec: str, sync: bytes) -> bytes:
    """Encode rows as blocks of the target size."""
    parts = []
    for first, last in pairwise(_block_cuts(row_ends)):
        begin = row_ends[first - 1] if first else 0
        parts.append(encode_block(last - first, raw[begin : row_ends[last - 1]], codec, sync))
    return b"".join(parts)


def sync_marker(metadata: Mapping[str, str], location: str) -> bytes:
    """Derive the sync marker from the content of the file, so that equal content gives equal bytes."""
    digest = blake2b(location.encode(), digest_size=SYNC_BYTES)
    for key, value in metadata.items():
        digest.update(f"\0{key}\0{value}".encode())
    return digest.digest()


def encode_long(value: int) -> bytes:
    """Encode one Avro long."""
    if value in _ONE_BYTE:
        return _ONE_BYTE[value]
    out = bytearray(10)
    return bytes(out[: write_varint(out, 0, value)])


def _read_bytes(data: bytes, position: int) -> tuple[bytes, int]:
    if 0 <= position < len(data) and data[position] < 0x80:  # a length of one byte, as of most keys and values
        length, position = (data[position] >> 1) ^ -(data[position] & 1), position + 1
    else:
        length, position = read_varint(data, position, len(data))
    if position < 0 or not 0 <= length <= len(data) - position:
        return b"", BAD_LENGTH
    return data[position : position + length], position + length


def _block_cuts(row_ends: Sequence[int]) -> list[int]:
    cuts, begin = [0], 0
    for row, end in enumerate(row_ends):
        if end - begin >= BLOCK_BYTES:
            cuts.append(row + 1)
            begin = end
    if cuts[-1] < len(row_ends):
        cuts.append(len(row_ends))
    return cuts
