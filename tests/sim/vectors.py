"""Deletion vectors, decoded without icefield (spec: Puffin, deletion-vector-v1; the Roaring format).

length (big endian) | D1 D3 39 64 | bitmaps: count, then (upper half, 32-bit bitmap) of each | CRC-32 of the middle
"""

import struct
from collections.abc import Iterator

MAGIC = b"\xd1\xd3\x39\x64"
NO_RUNS, WITH_RUNS = 12346, 12347
NO_OFFSETS_BELOW = 4  # containers of a bitmap with runs
ARRAY_UP_TO = 4096


def decode_vector(blob: bytes) -> list[int]:
    """Return the positions of a vector."""
    (length,) = struct.unpack_from(">I", blob)
    assert blob[4:8] == MAGIC, blob[4:8]
    assert len(blob) == length + 8, "a length, and a checksum after it"
    (count,) = struct.unpack_from("<Q", blob, 8)
    found, at = list[int](), 16
    for _ in range(count):
        (upper,) = struct.unpack_from("<I", blob, at)
        values, at = _decode_bitmap(blob, at + 4)
        found += [upper << 32 | value for value in values]
    return found


def _decode_bitmap(blob: bytes, start: int) -> tuple[list[int], int]:
    (cookie,) = struct.unpack_from("<I", blob, start)
    at, runs = start + 4, 0
    if cookie == NO_RUNS:
        (size,) = struct.unpack_from("<I", blob, at)
        at += 4
    else:
        assert cookie & 0xFFFF == WITH_RUNS, cookie
        size = (cookie >> 16) + 1
        runs = int.from_bytes(blob[at : at + (size + 7) // 8], "little")
        at += (size + 7) // 8
    heads = [struct.unpack_from("<HH", blob, at + 4 * each) for each in range(size)]
    at += 4 * size
    if cookie == NO_RUNS or size >= NO_OFFSETS_BELOW:
        at += 4 * size
    found: list[int] = []
    for each, (key, last) in enumerate(heads):
        low, at = _decode_container(blob, at, last + 1, is_run=bool(runs >> each & 1))
        found += [key << 16 | value for value in low]
    return found, at


def _decode_container(blob: bytes, at: int, count: int, *, is_run: bool) -> tuple[list[int], int]:
    if is_run:
        (runs,) = struct.unpack_from("<H", blob, at)
        return list(_decode_runs(blob, at + 2, runs)), at + 2 + 4 * runs
    if count <= ARRAY_UP_TO:
        return list(struct.unpack_from(f"<{count}H", blob, at)), at + 2 * count
    bits = int.from_bytes(blob[at : at + 8192], "little")
    return [value for value in range(1 << 16) if bits >> value & 1], at + 8192


def _decode_runs(blob: bytes, at: int, runs: int) -> Iterator[int]:
    for each in range(runs):
        first, more = struct.unpack_from("<HH", blob, at + 4 * each)
        yield from range(first, first + more + 1)
