"""A quick test of which rows may have one of many keys, so that only those rows are looked up.

Each key sets one slot of a table, chosen by a hash of its columns. A row whose slot is not set has none of the keys; a
row whose slot is set may have one. The table is built once, while `pc.index_in` builds its own for every call.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.types.arrays import Mask
from icefield.types.arrow_keys import comparable

Words = npt.NDArray[np.uint64]
SLOTS_PER_KEY = 16
LEAST_BITS, MOST_BITS = 10, 26
WORD_BYTES = 8
HASH_BITS = 64
FOLD = np.uint64(29)
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: neighbouring numbers end far apart


class KeyFilter:
    """The hashed keys of some rows. Equal keys in the sense of `KeyIndex` are never missed."""

    def __init__(self, columns: Sequence[pa.Array], rows: int) -> None:
        bits = min(max((rows * SLOTS_PER_KEY).bit_length(), LEAST_BITS), MOST_BITS)
        self._shift = np.uint64(HASH_BITS - bits)
        self._taken = np.zeros(1 << bits, np.bool_)
        self._taken[self._slots(columns, rows)] = True

    def may_match(self, columns: Sequence[pa.Array], rows: int) -> Mask:
        """Return a mask of the rows that may have one of the keys; columns may be narrower than those of the keys."""
        return self._taken[self._slots(columns, rows)]

    def _slots(self, columns: Sequence[pa.Array], rows: int) -> npt.NDArray[np.int64]:
        mixed: Words | None = None
        for word in chain.from_iterable(_words(comparable(column)) for column in columns):
            mixed = word * MULTIPLIER if mixed is None else (mixed ^ (mixed >> FOLD) ^ word) * MULTIPLIER
        # As signed numbers, which index without a copy.
        return np.zeros(rows, np.int64) if mixed is None else (mixed >> self._shift).view(np.int64)


def _words(column: pa.Array) -> Iterator[Words]:
    """Yield numbers that are equal for equal values; values under nulls are undefined, since null equals nothing."""
    kind, types = column.type, pa.types
    if len(column) == 0:
        return  # it may have no buffers
    if types.is_string(kind) or types.is_binary(kind):
        yield from _words_of_bytes(column)
    elif types.is_decimal(kind) or (types.is_fixed_size_binary(kind) and kind.byte_width >= WORD_BYTES):
        yield from _words_of_fixed(column, kind.byte_width)
    elif types.is_integer(kind) or types.is_temporal(kind):
        width = kind.bit_width // 8
        numbers = np.frombuffer(column.buffers()[1], f"<i{width}")[column.offset : column.offset + len(column)]
        yield numbers.astype(np.int64, copy=False).view(np.uint64)
    # Booleans and short values tell too little.


def _words_of_fixed(column: pa.Array, width: int) -> Iterator[Words]:
    whole = np.frombuffer(column.buffers()[1], np.uint8)
    values = whole[: len(whole) // width * width].reshape(-1, width)[column.offset : column.offset + len(column)]
    for start in dict.fromkeys((0, width - WORD_BYTES)):
        yield np.ascontiguousarray(values[:, start : start + WORD_BYTES]).view("<u8").reshape(-1)


def _words_of_bytes(column: pa.Array) -> Iterator[Words]:
    """Yield the length of each value, its first bytes and its last ones."""
    _, offsets_buffer, data = column.buffers()
    offsets = np.frombuffer(offsets_buffer, "<i4")[column.offset : column.offset + len(column) + 1].astype(np.int64)
    starts, ends = offsets[:-1], offsets[1:]
    lengths = ends - starts
    yield lengths.view(np.uint64)
    if data is None or len(data) < WORD_BYTES:
        data = (b"" if data is None else bytes(data)).ljust(WORD_BYTES)
    size = len(data)
    # A word at every byte.
    words = np.ndarray((size - WORD_BYTES + 1,), "<u8", buffer=data, strides=(1,))
    # Near the end of the buffer a word is read earlier, and shifted; the bytes after a short value are cleared.
    at = np.minimum(starts, size - WORD_BYTES)
    first = words[at] >> ((starts - at) * 8).clip(0, HASH_BITS - 1).view(np.uint64)
    kept = np.minimum(lengths, WORD_BYTES)
    yield np.where(kept > 0, (first << ((WORD_BYTES - kept) * 8).clip(0, HASH_BITS - 1).view(np.uint64)), np.uint64(0))
    is_long = lengths >= WORD_BYTES
    yield np.where(is_long, words[np.where(is_long, ends - WORD_BYTES, 0)], np.uint64(0))
