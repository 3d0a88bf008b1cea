"""Deletion vectors: the deleted positions of one data file as a blob. (puffin spec: deletion-vector-v1 blob type)

A blob is self-contained: a reader needs only its offset and length from the manifest, not the Puffin footer.

Raises CorruptFile for bytes that are not a deletion vector, InvalidInput for positions that cannot be written.
"""

import zlib

import numpy as np

from icefield.codec.puffin.puffin import Blob
from icefield.codec.puffin.roaring import Positions, Reader, decode_bitmap, encode_bitmap, split_by_high_bits
from icefield.errors import CorruptFile, InvalidInput

DELETION_VECTOR = "deletion-vector-v1"
REFERENCED_DATA_FILE = "referenced-data-file"
CARDINALITY = "cardinality"
MAX_POSITIONS = 1 << 28  # 2 GiB of positions; a few bytes of runs can encode any number

_MAGIC = 1681511377
_MAX_KEY = (1 << 31) - 1
_FRAME_BYTES = 12  # length, magic and checksum
_MIN_BITMAP_BYTES = 12  # its key, and a bitmap without containers


def decode_deletion_vector(
    blob: bytes, location: str, *, cardinality: int | None = None, max_positions: int = MAX_POSITIONS
) -> Positions:
    """Return the deleted positions in order.

    cardinality: how many there are according to the manifest or the footer; any other number is refused.
    """
    limit = max_positions if cardinality is None else min(max_positions, cardinality)
    try:
        positions = _decode(Reader(_checked_vector(blob)), limit)
        if cardinality is not None and len(positions) != cardinality:
            raise ValueError(f"it holds {len(positions)} positions, but its cardinality is {cardinality}")
    except ValueError as error:
        raise CorruptFile(location, f"it is not a valid deletion vector: {error}") from error
    return positions


def encode_deletion_vector(positions: Positions) -> bytes:
    """Encode positions, in any order and with duplicates, as Iceberg's own writer would."""
    ordered = _ordered(positions)
    if len(ordered) and ordered[0] < 0:
        raise InvalidInput(f"a row cannot be at position {int(ordered[0])}")
    keys, parts = split_by_high_bits(ordered, 32)
    bitmaps = [int(key).to_bytes(4, "little") + encode_bitmap(part) for key, part in zip(keys, parts, strict=True)]
    body = _MAGIC.to_bytes(4, "little") + len(bitmaps).to_bytes(8, "little") + b"".join(bitmaps)
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def deletion_vector_blob(positions: Positions, data_file: str) -> Blob:
    """Return the blob of a data file's deletion vector, with the properties that the spec requires."""
    ordered = _ordered(positions)
    properties = {REFERENCED_DATA_FILE: data_file, CARDINALITY: str(len(ordered))}
    return Blob(DELETION_VECTOR, encode_deletion_vector(ordered), properties=properties)


def _ordered(positions: Positions) -> Positions:
    values = np.asarray(positions, np.int64)
    # Sorting is most of the work, and positions from an ordered scan are sorted already.
    return values if np.all(values[1:] > values[:-1]) else np.unique(values)


def _checked_vector(blob: bytes) -> memoryview:
    if len(blob) < _FRAME_BYTES:
        raise ValueError(f"it has {len(blob)} bytes")
    length = int.from_bytes(blob[:4], "big")
    if length != len(blob) - 8:
        raise ValueError(f"its length field says {length} bytes, but it has {len(blob) - 8}")
    body = memoryview(blob)[4:-4]
    if int.from_bytes(body[:4], "little") != _MAGIC:
        raise ValueError("the magic number is missing")
    if zlib.crc32(body) != int.from_bytes(blob[-4:], "big"):
        raise ValueError("it does not match its checksum")
    return body[4:]


def _decode(reader: Reader, limit: int) -> Positions:
    count = reader.number(8)
    if count * _MIN_BITMAP_BYTES > len(reader.data):
        raise ValueError(f"it claims to have {count} bitmaps")
    parts: list[Positions] = []
    last = -1
    for _ in range(count):
        key = reader.number(4)
        if not last < key <= _MAX_KEY:
            raise ValueError(f"bitmap {key} follows bitmap {last}")
        part = decode_bitmap(reader, limit)
        limit -= len(part)
        parts.append(part + (key << 32))
        last = key
    if reader.at != len(reader.data):
        raise ValueError(f"{len(reader.data) - reader.at} bytes follow its last bitmap")
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
