"""Deletion vectors: round trips, what the frame promises, and damaged blobs."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.codec.cases import LOCATION
from tests.codec.position_cases import positions_of_all_shapes

from icefield.codec.puffin.deletion_vector import (
    decode_deletion_vector,
    deletion_vector_blob,
    encode_deletion_vector,
)
from icefield.codec.puffin.roaring import Positions
from icefield.errors import CorruptFile, InvalidInput

ROWS = np.array([1, 2, 3, 70000, (5 << 32) + 1], np.int64)
# What Iceberg's own writer makes of the positions 1 and 9: see the puffin spec for the frame.
ONE_AND_NINE = bytes.fromhex(
    "00000024 d1d33964 0100000000000000 00000000 3a300000 01000000 0000 0100 10000000 0100 0900 92db7f23"
)


def framed(body: bytes) -> bytes:
    """Put a length and a checksum around magic and vector."""
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


@given(st.sets(st.integers(0, (1 << 63) - 1) | st.integers(0, 1 << 34) | st.integers(0, 1 << 17)))
def test_what_is_written_is_read(chosen: set[int]) -> None:
    blob = encode_deletion_vector(np.array(list(chosen), np.int64))
    assert decode_deletion_vector(blob, LOCATION, cardinality=len(chosen)).tolist() == sorted(chosen)


@pytest.mark.parametrize("positions", positions_of_all_shapes(below=1 << 40))
def test_positions_of_all_shapes_are_read(positions: Positions) -> None:
    assert np.array_equal(decode_deletion_vector(encode_deletion_vector(positions), LOCATION), positions)


def test_the_frame_is_that_of_the_spec() -> None:
    assert encode_deletion_vector(np.array([9, 1, 9], np.int64)).hex() == ONE_AND_NINE.hex()


def test_a_position_below_zero_is_refused() -> None:
    with pytest.raises(InvalidInput, match="position -3"):
        encode_deletion_vector(np.array([4, -3], np.int64))


def test_a_blob_says_whose_rows_and_how_many() -> None:
    blob = deletion_vector_blob(np.array([4, 2, 4], np.int64), "file:///t/a.parquet")
    assert (blob.type, blob.snapshot_id, blob.sequence_number, blob.codec) == ("deletion-vector-v1", -1, -1, None)
    assert blob.properties == {"referenced-data-file": "file:///t/a.parquet", "cardinality": "2"}
    assert decode_deletion_vector(blob.data, LOCATION).tolist() == [2, 4]


def test_another_number_of_positions_than_promised_is_refused() -> None:
    blob = encode_deletion_vector(ROWS)
    for promised in (4, 6):
        with pytest.raises(CorruptFile):
            decode_deletion_vector(blob, LOCATION, cardinality=promised)
    with pytest.raises(CorruptFile, match="more than"):
        decode_deletion_vector(blob, LOCATION, max_positions=4)


BODY = encode_deletion_vector(ROWS)[4:-4]


@pytest.mark.parametrize(
    ("blob", "fault"),
    [
        (b"", "has 0 bytes"),
        (framed(BODY)[:-1], "length field says"),
        (framed(BODY)[:-1] + b"\0", "checksum"),
        (framed(b"\0" + BODY[1:]), "magic"),
        (framed(BODY + b"\0"), "1 bytes follow"),
        (framed(BODY[:4] + b"\xff" * 8 + BODY[12:]), "claims to have"),
        (framed(BODY[:12] + b"\6\0\0\0" + BODY[16:]), "bitmap 5 follows bitmap 6"),
        (framed(BODY[:12] + b"\0\0\0\x80" + BODY[16:]), "bitmap 2147483648 follows"),
    ],
)
def test_a_blob_that_cannot_be_is_refused(blob: bytes, fault: str) -> None:
    with pytest.raises(CorruptFile, match=fault) as refused:
        decode_deletion_vector(blob, LOCATION)
    assert refused.value.location == LOCATION
