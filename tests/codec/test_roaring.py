"""Roaring bitmaps against CRoaring, the implementation in C: the same bytes, the same positions, the same refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap
from tests.codec.position_cases import positions_of_all_shapes

from icefield.codec.puffin.roaring import Positions, Reader, decode_bitmap, encode_bitmap

ANY = 1 << 32


def decode(data: bytes, max_positions: int = ANY) -> Positions:
    reader = Reader(memoryview(data))
    found = decode_bitmap(reader, max_positions)
    assert reader.at == len(data)
    return found


def optimized(values: Positions) -> BitMap:
    bitmap = BitMap(values.astype(np.uint32))
    bitmap.run_optimize()
    return bitmap


def words(*values: int) -> bytes:
    return np.array(values, "<u2").tobytes()


@pytest.mark.parametrize("values", positions_of_all_shapes(below=1 << 32))
def test_bytes_are_those_of_the_reference(values: Positions) -> None:
    assert encode_bitmap(values) == optimized(values).serialize()


@pytest.mark.parametrize("values", positions_of_all_shapes(below=1 << 32))
def test_bitmaps_without_runs_are_read_too(values: Positions) -> None:
    plain = BitMap(values.astype(np.uint32), optimize=False)
    assert np.array_equal(decode(plain.serialize()), values)


@given(st.sets(st.integers(0, (1 << 32) - 1) | st.integers(0, 1 << 18)))
def test_what_is_written_is_read(chosen: set[int]) -> None:
    values = np.array(sorted(chosen), np.int64)
    data = encode_bitmap(values)
    assert data == optimized(values).serialize()
    assert np.array_equal(decode(data), values)


def test_a_full_bitmap_is_refused_before_memory_is_taken() -> None:
    full = BitMap()
    full.add_range(0, 1 << 32)
    full.run_optimize()
    with pytest.raises(ValueError, match="holds 4294967296 positions, more than 1000"):
        decode(full.serialize(), 1000)


TWO = encode_bitmap(np.array([1, 9], np.int64))  # cookie 4, count 4, key 2, size 2, offset 4, values
RUN = encode_bitmap(np.arange(5, 105))  # cookie 4, flags 1, key 2, size 2, runs 2, start 2, length 2


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "ends after 0 bytes"),
        (words(7, 0) + TWO[4:], "not a valid cookie"),
        (TWO[:4] + words(1, 1) + TWO[8:], "claims to have 65537 containers"),
        (TWO[:-1], "ends after"),
        (TWO[:12] + words(20, 0) + TWO[16:], "not at the offset"),
        (TWO[:-4] + words(9, 1), "values of a container are not in order"),
        (TWO[:-4] + words(9, 9), "values of a container are not in order"),
        (RUN[:5] + words(0, 100) + RUN[9:], "hold 100 values, but it claims 101"),
        (RUN[:9] + words(2, 5, 49, 54, 49), "overlap or exceed it"),
        (RUN[:9] + words(1, 65535, 99), "overlap or exceed it"),
        (RUN[:9] + words(0), "hold 0 values"),
    ],
)
def test_a_bitmap_that_cannot_be_is_refused(data: bytes, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        decode(data)


def test_containers_out_of_order_are_refused() -> None:
    data = encode_bitmap(np.array([1, 1 << 16], np.int64))
    assert data[8:16] == words(0, 0, 1, 0)
    with pytest.raises(ValueError, match="containers of a bitmap are not in order"):
        decode(data[:8] + words(1, 0, 1, 0) + data[16:])


def test_a_count_of_bits_that_is_not_so_is_refused() -> None:
    data = bytearray(encode_bitmap(np.arange(0, 20000, 2, dtype=np.int64)))
    data[-1] ^= 1
    with pytest.raises(ValueError, match="10001 bits set, but claims 10000"):
        decode(bytes(data))
