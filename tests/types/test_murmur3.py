"""The column-wise hash is Murmur3."""

import struct

import mmh3
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort

from icefield.types.murmur3 import hash_bytes, hash_longs


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=20))
@effort()
def test_longs_hash_as_their_eight_bytes(values: list[int]) -> None:
    hashed = hash_longs(np.array(values, np.int64)).tolist()
    assert hashed == [mmh3.hash(struct.pack("<q", v), signed=False) for v in values]


@given(st.lists(st.binary(max_size=40), max_size=12))
@effort()
def test_bytes_of_every_length_hash_alike(values: list[bytes]) -> None:
    data = np.frombuffer(b"".join(values), np.uint8)
    lengths = np.array([len(v) for v in values], np.int64)
    starts = np.cumsum(lengths) - lengths
    assert hash_bytes(data, starts, lengths).tolist() == [mmh3.hash(v, signed=False) for v in values]


def test_hashing_leaves_its_input_as_it_was() -> None:
    data = np.frombuffer(b"abcdefgh", np.uint8).copy()
    before = data.copy()
    hash_bytes(data, np.array([1, 3]), np.array([5, 2]))
    assert np.array_equal(data, before)
