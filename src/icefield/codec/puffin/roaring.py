"""32-bit Roaring bitmaps in their portable format, as sorted positions. (RoaringFormatSpec)

A bitmap is a list of containers, one per value of the 16 high bits: sorted values, 65,536 bits, or runs, whichever is
smallest. This is not a library because the input is not trusted: every size is checked against the buffer before it is
used, values must ascend, and too many positions are refused before memory is allocated for them.

Raises ValueError; the caller, which has the file's location, turns that into CorruptFile.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Positions: TypeAlias = npt.NDArray[np.int64]

_COOKIE_WITHOUT_RUNS = 12346
_COOKIE = 12347
_NO_OFFSETS_BELOW = 4
_MAX_CONTAINERS = 1 << 16
_MAX_ARRAY = 4096
_BITMAP_BYTES = 8192
_U16 = np.dtype("<u2")
_U32 = np.dtype("<u4")

_Words: TypeAlias = npt.NDArray[np.uint16]


@dataclass
class Reader:
    """A read position in a buffer that only moves forward, and never past the end."""

    data: memoryview
    at: int = 0

    def take(self, size: int) -> memoryview:
        """Return the next bytes and advance."""
        if size > len(self.data) - self.at:
            raise ValueError(f"it ends after {len(self.data)} bytes, {size} more are needed at {self.at}")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        """Return the next little-endian number."""
        return int.from_bytes(self.take(size), "little")


def decode_bitmap(reader: Reader, max_positions: int) -> Positions:
    """Decode one bitmap of at most `max_positions` values; the reader ends after it."""
    start = reader.at
    runs = _read_cookie(reader)
    header = np.frombuffer(reader.take(4 * len(runs)), _U16).reshape(-1, 2)
    keys = header[:, 0]
    sizes = header[:, 1].astype(np.int64) + 1
    if np.any(keys[1:] <= keys[:-1]):
        raise ValueError("the containers of a bitmap are not in order")
    if int(sizes.sum()) > max_positions:
        raise ValueError(f"it holds {int(sizes.sum())} positions, more than {max_positions}")
    offsets = _read_offsets(reader, runs)
    positions = np.empty(int(sizes.sum()), np.int64)
    filled = 0
    for index, (key, size) in enumerate(zip(keys.tolist(), sizes.tolist(), strict=True)):
        if offsets is not None and int(offsets[index]) != reader.at - start:
            raise ValueError(f"container {index} is not at the offset that the bitmap gives")
        values = _read_container(reader, size, is_run=bool(runs[index]))
        positions[filled : filled + size] = values
        positions[filled : filled + size] += key << 16
        filled += size
    return positions


def encode_bitmap(values: Positions) -> bytes:
    """Encode values (sorted, unique, below 2^32), each container in its smallest form."""
    keys, parts = split_by_high_bits(values, 16)
    header = np.column_stack((keys, [len(part) - 1 for part in parts])).astype(_U16).tobytes()
    bodies = []
    flags = np.zeros(len(parts), bool)
    for index, part in enumerate(parts):
        body, flags[index] = _encode_container(part.astype(_U16))
        bodies.append(body)
    if flags.any():
        cookie = (_COOKIE | (len(parts) - 1) << 16).to_bytes(4, "little")
        head = cookie + np.packbits(flags, bitorder="little").tobytes() + header
    else:
        head = _COOKIE_WITHOUT_RUNS.to_bytes(4, "little") + len(parts).to_bytes(4, "little") + header
    return head + _offsets(bodies, len(head), with_runs=bool(flags.any())) + b"".join(bodies)


def split_by_high_bits(values: Positions, bits: int) -> tuple[Positions, list[Positions]]:
    """Split sorted values by their high bits: the distinct high parts, and the low parts of each."""
    high = values >> bits
    starts = np.flatnonzero(np.diff(high, prepend=-1))
    parts = np.split(values & ((1 << bits) - 1), starts[1:]) if len(values) else []
    return high[starts], parts


def _read_cookie(reader: Reader) -> npt.NDArray[np.bool_]:
    """Return, for each container, whether it consists of runs."""
    cookie = reader.number(4)
    if cookie == _COOKIE_WITHOUT_RUNS:
        count = reader.number(4)
        if count > _MAX_CONTAINERS:
            raise ValueError(f"a bitmap claims to have {count} containers")
        return np.zeros(count, bool)
    if cookie & 0xFFFF != _COOKIE:
        raise ValueError(f"a bitmap begins with {cookie}, which is not a valid cookie")
    count = (cookie >> 16) + 1
    flags = np.frombuffer(reader.take((count + 7) // 8), np.uint8)
    return np.unpackbits(flags, bitorder="little", count=count).astype(bool)


def _read_offsets(reader: Reader, runs: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32] | None:
    # A cookie with runs and few containers is the one form without offsets.
    if runs.any() and len(runs) < _NO_OFFSETS_BELOW:
        return None
    return np.frombuffer(reader.take(4 * len(runs)), _U32)


def _read_container(reader: Reader, size: int, *, is_run: bool) -> npt.NDArray[np.generic]:
    if is_run:
        return _read_runs(reader, size)
    if size > _MAX_ARRAY:
        return _read_bits(reader, size)
    values = np.frombuffer(reader.take(2 * size), _U16)
    if np.any(values[1:] <= values[:-1]):
        raise ValueError("the values of a container are not in order")
    return values


def _read_bits(reader: Reader, size: int) -> npt.NDArray[np.generic]:
    bits = np.unpackbits(np.frombuffer(reader.take(_BITMAP_BYTES), np.uint8), bitorder="little")
    values = np.flatnonzero(bits)
    if len(values) != size:
        raise ValueError(f"a container has {len(values)} bits set, but claims {size}")
    return values


def _read_runs(reader: Reader, size: int) -> npt.NDArray[np.generic]:
    count = reader.number(2)
    runs = np.frombuffer(reader.take(4 * count), _U16).reshape(-1, 2).astype(np.int64)
    firsts, lengths = runs[:, 0], runs[:, 1] + 1
    ends = firsts + lengths
    if np.any(firsts[1:] < ends[:-1]) or (count and int(ends[-1]) > _MAX_CONTAINERS):
        raise ValueError("the runs of a container overlap or exceed it")
    if int(lengths.sum()) != size:
        raise ValueError(f"the runs of a container hold {int(lengths.sum())} values, but it claims {size}")
    before = np.cumsum(lengths) - lengths
    values: Positions = np.arange(size) + np.repeat(firsts - before, lengths)
    return values


def _encode_container(part: _Words) -> tuple[bytes, bool]:
    """Return a container's bytes, and whether they are runs; at equal size runs are not used, as in CRoaring."""
    ends = np.flatnonzero(np.diff(part.astype(np.int64), append=-2) != 1)
    plain_bytes = min(2 * len(part), _BITMAP_BYTES)
    if 2 + 4 * len(ends) < plain_bytes:
        firsts = part[np.concatenate(([0], ends[:-1] + 1))]
        runs = np.column_stack((firsts, part[ends] - firsts)).astype(_U16)
        return len(ends).to_bytes(2, "little") + runs.tobytes(), True
    if len(part) <= _MAX_ARRAY:
        return part.tobytes(), False
    bits = np.zeros(_MAX_CONTAINERS, bool)
    bits[part] = True
    return np.packbits(bits, bitorder="little").tobytes(), False


def _offsets(bodies: list[bytes], head_bytes: int, *, with_runs: bool) -> bytes:
    if with_runs and len(bodies) < _NO_OFFSETS_BELOW:
        return b""
    first = head_bytes + 4 * len(bodies)
    return np.array(list(_running_sum(bodies, first)), _U32).tobytes()


def _running_sum(bodies: list[bytes], first: int) -> Iterator[int]:
    for body in bodies:
        yield first
        first += len(body)
