"""Theta sketches: estimates of how many distinct values a column has, in statistics files. (puffin spec: Blob types)

A sketch keeps the smallest hashes of the values, at most 4,096. If there are more distinct values, theta is the
smallest hash that it does not keep, and the share of theta in the range of hashes tells how many values there are.

    byte 0  longs of the preamble, 1 to 3     4  zero      8..11   how many hashes        16..23  theta
         1  3, the version                    5  flags    12..15  1.0, the sampling       then the hashes, ascending
         2  3, a compact sketch            6..7  hash of the seed

Values are hashed by their single-value serialization, as DataSketches does: Murmur3 with 128 bits, of which 63 are
used. An empty value is not counted.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.types.datatypes import (
    BinaryType,
    BooleanType,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    PrimitiveType,
    StringType,
    UUIDType,
)
from icefield.types.values.binary import encode_value

THETA_SKETCH = "apache-datasketches-theta-v1"
MOST_HASHES = 4096
UInt64s = npt.NDArray[np.uint64]

_SEED = 9001
_SEED_HASH = 0x93CC
_ALL = 2**63 - 1  # theta of a sketch that keeps every hash
_READ_ONLY, _EMPTY, _COMPACT, _ORDERED, _SINGLE = 2, 4, 8, 16, 32
_C1, _C2 = np.uint64(0x87C37B91114253D5), np.uint64(0x4CF5AD432745937F)
_BLOCK = 16


@dataclass(frozen=True)
class ThetaSketch:
    """Hashes, ascending, all below theta."""

    hashes: UInt64s
    theta: int = _ALL

    @classmethod
    def of(cls, hashes: UInt64s) -> "ThetaSketch":
        """Keep the smallest of some hashes, which may occur several times."""
        return EMPTY_SKETCH.with_hashes(hashes)

    def with_hashes(self, hashes: UInt64s) -> "ThetaSketch":
        """Add hashes."""
        return self.merged(ThetaSketch(hashes[hashes > 0]))

    def merged(self, other: "ThetaSketch") -> "ThetaSketch":
        """Return a sketch of the values of both; below the smaller theta, both keep every hash."""
        theta = min(self.theta, other.theta)
        known = np.unique(np.concatenate([self.hashes, other.hashes]))
        known = known[known < np.uint64(theta)]
        if len(known) <= MOST_HASHES:
            return ThetaSketch(known, theta)
        return ThetaSketch(known[:MOST_HASHES], int(known[MOST_HASHES]))

    @property
    def estimate(self) -> float:
        """About how many distinct values there are; exactly, if they are few."""
        return len(self.hashes) / (self.theta / 2**63) if self.theta < _ALL else float(len(self.hashes))

    def encode(self) -> bytes:
        """Encode as a compact, ordered sketch."""
        flags = _READ_ONLY | _COMPACT | _ORDERED
        count, data = len(self.hashes), self.hashes.astype("<u8").tobytes()
        if count == 0 and self.theta == _ALL:
            return _preamble(1, flags | _EMPTY)
        if count == 1 and self.theta == _ALL:
            return _preamble(1, flags | _SINGLE) + data
        counts = count.to_bytes(4, "little") + np.float32(1.0).tobytes()
        if self.theta == _ALL:
            return _preamble(2, flags) + counts + data
        return _preamble(3, flags) + counts + self.theta.to_bytes(8, "little") + data


EMPTY_SKETCH = ThetaSketch(np.empty(0, np.uint64))


def hash_values(values: pa.Array, kind: PrimitiveType) -> UInt64s:
    """Hash the distinct values of a column that are neither null nor empty."""
    stored = values.storage if isinstance(values, pa.ExtensionArray) else values
    distinct = stored.unique().drop_null()
    if isinstance(kind, DecimalType):
        distinct = pa.array([encode_value(value, kind) for value in distinct.to_pylist()], pa.large_binary())
    elif isinstance(kind, BooleanType):
        distinct = distinct.cast(pa.uint8())
    if isinstance(kind, _OF_BYTES):
        return _hash_texts(distinct.cast(pa.large_binary()))
    width = distinct.type.bit_width // 8
    rows = np.zeros((len(distinct), _BLOCK), np.uint8)
    plain = distinct.view(_PLAIN[width]) if distinct.type != _PLAIN[width] else distinct
    rows[:, :width] = plain.to_numpy(zero_copy_only=False).view(np.uint8).reshape(len(distinct), width)
    return _hash_rows(rows, width)


_OF_BYTES = (StringType, BinaryType, FixedType, UUIDType, DecimalType, GeometryType, GeographyType)
_PLAIN = {1: pa.uint8(), 4: pa.int32(), 8: pa.int64()}


def _hash_texts(values: pa.LargeBinaryArray) -> UInt64s:
    """Hash values of any length, those of one length at a time."""
    bounds = np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    starts, lengths = bounds[:-1], np.diff(bounds)
    found = [np.empty(0, np.uint64)]
    for length in np.unique(lengths[lengths > 0]).tolist():
        at = starts[lengths == length]
        width = -(-length // _BLOCK) * _BLOCK
        rows = np.zeros((len(at), width), np.uint8)
        rows[:, :length] = data[at[:, None] + np.arange(length)]
        found.append(_hash_rows(rows, length))
    return np.concatenate(found)


def _hash_rows(rows: npt.NDArray[np.uint8], length: int) -> UInt64s:
    """Hash rows of one length, each padded with zeros to whole blocks; return the upper 63 bits."""
    with np.errstate(over="ignore"):
        words = rows.view("<u8").astype(np.uint64)
        first = np.full(len(rows), _SEED, np.uint64)
        second = first.copy()
        for block in range(length // _BLOCK):
            one, two = words[:, 2 * block], words[:, 2 * block + 1]
            first = first ^ _mix(one, _C1, 31, _C2)
            first = (_rotate(first, 27) + second) * np.uint64(5) + np.uint64(0x52DCE729)
            second = second ^ _mix(two, _C2, 33, _C1)
            second = (_rotate(second, 31) + first) * np.uint64(5) + np.uint64(0x38495AB5)
        if length % _BLOCK:
            second = second ^ _mix(words[:, -1], _C2, 33, _C1)
            first = first ^ _mix(words[:, -2], _C1, 31, _C2)
        first, second = first ^ np.uint64(length), second ^ np.uint64(length)
        first = first + second
        second = second + first
        return (_finish(first) + _finish(second)) >> np.uint64(1)


def _mix(word: UInt64s, before: np.uint64, by: int, after: np.uint64) -> UInt64s:
    return _rotate(word * before, by) * after


def _rotate(value: UInt64s, by: int) -> UInt64s:
    return (value << np.uint64(by)) | (value >> np.uint64(64 - by))


def _finish(value: UInt64s) -> UInt64s:
    value = (value ^ (value >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    value = (value ^ (value >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return value ^ (value >> np.uint64(33))


def _preamble(longs: int, flags: int) -> bytes:
    return bytes([longs, 3, 3, 0, 0, flags]) + _SEED_HASH.to_bytes(2, "little")
