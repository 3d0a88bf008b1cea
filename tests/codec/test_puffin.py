"""Puffin files: round trips, the bytes of the spec, and damaged files."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.codec.cases import LOCATION

from icefield.codec.puffin.puffin import (
    MAGIC,
    TAIL_BYTES,
    Blob,
    StoredBlob,
    decode_blob,
    decode_footer,
    encode_puffin,
    footer_size,
)
from icefield.errors import CorruptFile, InvalidInput

SKETCH = Blob("some-sketch", b"abc" * 100, (1, 2), 7, 8, "zstd", {"ndv": "3"})
PLAIN = Blob("deletion-vector-v1", b"xyz", properties={"referenced-data-file": "ü"})

text = st.text(max_size=9)
longs = st.integers(-(1 << 63), (1 << 63) - 1)
blobs = st.builds(
    Blob,
    text,
    st.binary(max_size=99),
    st.lists(st.integers(-(1 << 31), (1 << 31) - 1), max_size=3),
    longs,
    longs,
    st.sampled_from([None, "zstd"]),
    st.dictionaries(text, text, max_size=2),
)


def content(data: bytes, stored: StoredBlob) -> bytes:
    return decode_blob(data[stored.offset : stored.offset + stored.length], stored, LOCATION)


def with_footer(payload: bytes, flags: int = 0, body: bytes = b"") -> bytes:
    """Put any footer around any blobs."""
    size = len(payload).to_bytes(4, "little")
    return MAGIC + body + MAGIC + payload + size + flags.to_bytes(4, "little") + MAGIC


@given(st.lists(blobs, max_size=4), st.dictionaries(text, text, max_size=2))
def test_what_is_written_is_read(made: list[Blob], properties: dict[str, str]) -> None:
    data, footer = encode_puffin(made, properties)
    found = decode_footer(data, LOCATION)
    assert found == footer
    assert found.properties == properties
    assert [content(data, stored) for stored in found.blobs] == [blob.data for blob in made]
    assert [(b.type, tuple(b.fields), b.snapshot_id, b.sequence_number, b.codec, b.properties) for b in made] == [
        (b.type, b.fields, b.snapshot_id, b.sequence_number, b.compression_codec, b.properties) for b in found.blobs
    ]


def test_a_file_without_blobs_is_that_of_the_spec() -> None:
    payload = b'{"blobs":[]}'
    assert encode_puffin([])[0] == b"PFA1PFA1" + payload + b"\x0c\0\0\0" + b"\0\0\0\0" + b"PFA1"


def test_the_footer_has_the_names_of_the_spec_and_no_others() -> None:
    data, _ = encode_puffin([SKETCH, PLAIN], {"created-by": "me"})
    size = footer_size(data, LOCATION)
    footer = json.loads(data[-size + 4 : -TAIL_BYTES])
    assert list(footer) == ["blobs", "properties"]
    assert list(footer["blobs"][0]) == [
        *("type", "fields", "snapshot-id", "sequence-number", "offset", "length", "compression-codec", "properties")
    ]
    assert footer["blobs"][1] == {
        "type": "deletion-vector-v1",
        "fields": [],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": 4 + footer["blobs"][0]["length"],
        "length": 3,
        "properties": {"referenced-data-file": "ü"},
    }


def test_the_footer_is_read_from_the_end_alone() -> None:
    data, footer = encode_puffin([SKETCH, PLAIN])
    size = footer_size(data[-TAIL_BYTES:], LOCATION)
    assert decode_footer(data[-size:], LOCATION, file_bytes=len(data)) == footer
    with pytest.raises(CorruptFile, match="not in the"):
        decode_footer(data[-size + 1 :], LOCATION, file_bytes=len(data))


def test_compressed_footers_and_blobs_of_other_writers_are_read() -> None:
    body = pa.Codec("lz4").compress(b"rows" * 50, asbytes=True)
    blob = {"type": "t", "fields": [1], "snapshot-id": 1, "sequence-number": 2, "offset": 4, "length": len(body)}
    payload = json.dumps({"blobs": [{**blob, "compression-codec": "lz4", "later": [1]}], "new": 1}).encode()
    data = with_footer(pa.Codec("lz4").compress(payload, asbytes=True), 1, body)
    (stored,) = decode_footer(data, LOCATION).blobs
    assert content(data, stored) == b"rows" * 50


def test_only_codecs_that_all_can_read_are_written() -> None:
    with pytest.raises(InvalidInput, match="lz4"):
        encode_puffin([Blob("t", b"x", codec="lz4")])


GOOD = {"type": "t", "fields": [], "snapshot-id": 1, "sequence-number": 2, "offset": 4, "length": 0}
FEW = json.dumps({"blobs": [GOOD]}).encode()


def blob_json(**changed: object) -> bytes:
    return json.dumps({"blobs": [{**GOOD, **{k.replace("_", "-"): v for k, v in changed.items()}}]}).encode()


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "is not a Puffin file"),
        (with_footer(FEW)[:-1], "is not a Puffin file"),
        (MAGIC + with_footer(FEW)[8:], "not in the"),
        (b"XFA1" + with_footer(FEW)[4:], "magic number"),
        (with_footer(FEW)[:4] + b"XFA1" + with_footer(FEW)[8:], "magic number"),
        (with_footer(FEW)[:-12] + b"\xff\xff\xff\xff\0\0\0\0PFA1", "claims to have -1"),
        (with_footer(FEW, 2), "flags"),
        (with_footer(FEW, 1), "does not decode"),
        (with_footer(b"", 1), "nothing to decompress"),
        (with_footer(b"[]"), "does not decode"),
        (with_footer(b"{}"), "does not decode"),
        (with_footer(b'{"blobs":' + b"[" * 100_000), "does not decode"),
        (with_footer(blob_json(length=1)), "not before the footer"),
        (with_footer(blob_json(offset=3)), "not before the footer"),
        (with_footer(blob_json(offset=-4)), "does not decode"),
        (with_footer(blob_json(snapshot_id=1 << 63)), "does not decode"),
        (with_footer(blob_json(fields=[1 << 31])), "does not decode"),
        (with_footer(blob_json(properties={"a": 1})), "does not decode"),
    ],
)
def test_a_file_that_cannot_be_is_refused(data: bytes, fault: str) -> None:
    with pytest.raises(CorruptFile, match=fault) as refused:
        decode_footer(data, LOCATION)
    assert refused.value.location == LOCATION


def test_a_blob_that_does_not_decompress_is_refused() -> None:
    packed = pa.Codec("zstd").compress(b"0" * 10_000, asbytes=True)
    stored = StoredBlob("t", (), 1, 1, 4, len(packed), "zstd")
    for codec, data, limit in (
        ("zstd", packed[:-2], 1 << 20),
        ("zstd", packed, 9_999),
        ("lz4", packed, 1 << 20),
        ("gzip", packed, 1 << 20),
        ("zstd", b"", 1 << 20),
    ):
        place = StoredBlob("t", (), 1, 1, 4, len(data), codec)
        with pytest.raises(CorruptFile, match="does not decode"):
            decode_blob(data, place, LOCATION, max_bytes=limit)
    with pytest.raises(CorruptFile, match="the footer says"):
        decode_blob(packed[:-1], stored, LOCATION)
