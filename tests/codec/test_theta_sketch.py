"""Theta sketches: hashes of single values as DataSketches computes them, and estimates of distinct values."""

from functools import reduce
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort

from icefield.codec.puffin.theta_sketch import EMPTY_SKETCH, MOST_HASHES, ThetaSketch, hash_values
from icefield.types.datatypes import BooleanType, DecimalType, FixedType, IntegerType, LongType, StringType
from icefield.types.datatypes import PrimitiveType as Kind
from icefield.types.values.binary import encode_value

MASK = (1 << 64) - 1


def rotated(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & MASK


def finished(value: int) -> int:
    value = ((value ^ (value >> 33)) * 0xFF51AFD7ED558CCD) & MASK
    value = ((value ^ (value >> 33)) * 0xC4CEB9FE1A85EC53) & MASK
    return value ^ (value >> 33)


def murmur3(data: bytes, seed: int) -> int:
    """The first half of the 128-bit hash, written down byte by byte."""
    one, two = 0x87C37B91114253D5, 0x4CF5AD432745937F
    first = second = seed
    blocks, tail = divmod(len(data), 16)
    for at in range(0, blocks * 16, 16):
        low, high = (int.from_bytes(data[at + half : at + half + 8], "little") for half in (0, 8))
        first ^= rotated(low * one & MASK, 31) * two & MASK
        first = ((rotated(first, 27) + second) * 5 + 0x52DCE729) & MASK
        second ^= rotated(high * two & MASK, 33) * one & MASK
        second = ((rotated(second, 31) + first) * 5 + 0x38495AB5) & MASK
    rest = data[len(data) - tail :]
    second ^= rotated(int.from_bytes(rest[8:], "little") * two & MASK, 33) * one & MASK
    first ^= rotated(int.from_bytes(rest[:8], "little") * one & MASK, 31) * two & MASK
    first, second = first ^ len(data), second ^ len(data)
    first = (first + second) & MASK
    return (finished(first) + finished((second + first) & MASK)) & MASK


def test_the_hash_of_the_seed_is_the_one_that_sketches_have() -> None:
    assert murmur3((9001).to_bytes(8, "little"), 0) & 0xFFFF == 0x93CC


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array(["a", "iceberg", "x" * 15, "y" * 16, "z" * 17, "é" * 20]), StringType()),
        (pa.array([0, 7, -7], pa.int32()), IntegerType()),
        (pa.array([0, 2**40, -1], pa.int64()), LongType()),
        (pa.array([True, False]), BooleanType()),
        (pa.array([b"12345678"], pa.binary(8)), FixedType(8)),
        (pa.array(["1.50", "-300.25"]).cast(pa.decimal128(10, 2)), DecimalType(10, 2)),
    ],
)
@pytest.mark.every_case
def test_values_are_hashed_by_their_single_value_serialization(values: pa.Array, kind: Kind) -> None:
    expected = {murmur3(encode_value(value, kind), 9001) >> 1 for value in values.to_pylist()}
    assert set(hash_values(values, kind).tolist()) == expected


def test_nulls_and_empty_texts_are_not_counted() -> None:
    assert len(hash_values(pa.array(["", None, "a", "a"]), StringType())) == 1


def test_few_values_are_counted_exactly_and_many_within_some_percent() -> None:
    sketch = EMPTY_SKETCH
    for start in range(0, 100_000, 1000):
        sketch = sketch.with_hashes(hash_values(pa.array(range(start, start + 1500), pa.int64()), LongType()))
        if start < 3000:
            assert sketch.estimate == start + 1500
    assert len(sketch.hashes) == MOST_HASHES
    assert abs(sketch.estimate - 100_500) < 5000
    assert sketch.encode()[:6] == bytes([3, 3, 3, 0, 0, 26])


def test_small_sketches_have_short_forms() -> None:
    one = hash_values(pa.array([1], pa.int64()), LongType())
    assert EMPTY_SKETCH.encode() == bytes([1, 3, 3, 0, 0, 30, 0xCC, 0x93])
    assert ThetaSketch.of(one).encode() == bytes([1, 3, 3, 0, 0, 58, 0xCC, 0x93]) + one.astype("<u8").tobytes()


@effort(40)
@given(st.lists(st.tuples(st.integers(0, 60_000), st.integers(1, 9_000)), min_size=1, max_size=5), st.randoms())
def test_sketches_of_parts_make_the_sketch_of_the_whole(parts: list[tuple[int, int]], random: Random) -> None:
    hashes = [hash_values(pa.array(range(at, at + count), pa.int64()), LongType()) for at, count in parts]
    whole = ThetaSketch.of(np.concatenate(hashes))
    sketches = [ThetaSketch.of(each) for each in hashes]
    random.shuffle(sketches)
    merged = reduce(ThetaSketch.merged, sketches, EMPTY_SKETCH)
    assert (merged.hashes.tolist(), merged.theta) == (whole.hashes.tolist(), whole.theta)
    distinct = len(set().union(*(range(at, at + count) for at, count in parts)))
    assert abs(merged.estimate - distinct) <= 0.1 * distinct
