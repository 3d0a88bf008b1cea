"""The 32-bit Murmur3 hash, seed 0, over whole columns. (spec: Appendix B)

Vectorized with numpy, so that a Spark worker needs no compiler to compute buckets.
"""

import numpy as np
import numpy.typing as npt

UInt32s = npt.NDArray[np.uint32]

_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
_FIVE, _ADD = np.uint32(5), np.uint32(0xE6546B64)


def hash_longs(values: npt.NDArray[np.int64]) -> UInt32s:
    """Hash each value as 8 little-endian bytes."""
    bits = values.view(np.uint64)
    state = np.zeros(len(values), np.uint32)
    for word in (bits.astype(np.uint32), (bits >> np.uint64(32)).astype(np.uint32)):
        state = _mix_word(state, word)
    return _finish(state, np.full(len(values), 8, np.uint32))


def hash_bytes(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> UInt32s:
    """Hash the byte ranges [start, start + length) of data."""
    padded = np.concatenate([data, np.zeros(4, np.uint8)])
    words = np.ndarray((len(padded) - 3,), "<u4", padded, 0, (1,))
    state = np.zeros(len(starts), np.uint32)
    whole = lengths // 4
    for index in range(int(whole.max(initial=0))):
        rows = np.nonzero(whole > index)[0]
        state[rows] = _mix_word(state[rows], words[starts[rows] + 4 * index])
    rest = lengths % 4
    rows = np.nonzero(rest)[0]
    tail = words[starts[rows] + 4 * whole[rows]] & ((np.uint32(1) << (8 * rest[rows]).astype(np.uint32)) - np.uint32(1))
    state[rows] ^= _rotate(tail * _C1, 15) * _C2
    return _finish(state, lengths.astype(np.uint32))


def _mix_word(state: UInt32s, word: UInt32s) -> UInt32s:
    state = state ^ (_rotate(word * _C1, 15) * _C2)
    return _rotate(state, 13) * _FIVE + _ADD


def _finish(state: UInt32s, lengths: UInt32s) -> UInt32s:
    state = state ^ lengths
    state = (state ^ (state >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    state = (state ^ (state >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return state ^ (state >> np.uint32(16))


def _rotate(value: UInt32s, by: int) -> UInt32s:
    return (value << np.uint32(by)) | (value >> np.uint32(32 - by))
