"""The Avro container: framing, codecs, limits, and the same bytes for the same content."""

import bz2
import io
import zlib
from collections.abc import Callable

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.codec.avro_writer import AvroWriter, container, deflate, long

from icefield.codec.avro.compression import CODECS
from icefield.codec.avro.container import (
    BLOCK_BYTES,
    Limits,
    encode_container,
    encode_long,
    iterate_blocks,
    parse_header,
    raw_blocks,
)
from icefield.errors import CorruptFile, InvalidInput

LONGS = '{"type":"record","name":"r","fields":[{"name":"x","type":"long"}]}'


def metadata(codec: str, **more: str) -> dict[str, str]:
    return {"avro.schema": LONGS, "avro.codec": codec} | more


def contents(data: bytes, limits: Limits | None = None) -> bytes:
    header = parse_header(data, "f")
    return b"".join(bytes(block.data) for block in raw_blocks(data, header, "f", limits or Limits()))


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=30)
@given(values=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50), text=st.text(max_size=20))
def test_what_is_written_is_read_by_us(codec: str, values: list[int], text: str) -> None:
    rows = [encode_long(value) for value in values]
    ends = [sum(len(row) for row in rows[: i + 1]) for i in range(len(rows))]
    data = encode_container(metadata(codec, note=text), b"".join(rows), ends, "f")
    assert parse_header(data, "f").metadata["note"].decode() == text
    assert contents(data) == b"".join(rows)
    assert sum(block.rows for block in raw_blocks(data, parse_header(data, "f"), "f")) == len(values)


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2"])
def test_what_is_written_is_read_by_fastavro(codec: str) -> None:
    values = [0, -1, 2**63 - 1, -(2**63), *range(100)]
    rows = [encode_long(value) for value in values]
    ends = [sum(len(row) for row in rows[: i + 1]) for i in range(len(rows))]
    data = encode_container(metadata(codec), b"".join(rows), ends, "f")
    assert list(fastavro.reader(io.BytesIO(data))) == [{"x": value} for value in values]


def test_rows_are_gathered_to_blocks_of_a_good_size() -> None:
    rows, size = 300, 1000
    ends = [size * (i + 1) for i in range(rows)]
    data = encode_container(metadata("null"), bytes(rows * size), ends, "f")
    blocks = list(iterate_blocks(data, parse_header(data, "f"), "f"))
    assert sum(block.rows for block in blocks) == rows
    assert all(BLOCK_BYTES <= len(block.data) < BLOCK_BYTES + size for block in blocks[:-1])
    assert len(blocks) == 5


def test_the_same_content_gives_the_same_bytes_and_another_place_another_marker() -> None:
    def write(location: str) -> bytes:
        return encode_container(metadata("deflate"), encode_long(5), [1], location)

    assert write("a") == write("a")
    assert parse_header(write("a"), "a").sync != parse_header(write("b"), "b").sync


def test_a_header_in_sized_runs_is_read() -> None:
    data = container(LONGS, [(1, long(7))], {"k": "v", "avro.codec": "null"}, AvroWriter(run=1, sized=True))
    assert parse_header(data, "f").metadata["k"] == b"v"
    assert contents(data) == long(7)


def test_without_a_codec_blocks_are_plain() -> None:
    assert contents(container(LONGS, [(1, long(7))])) == long(7)


def streamed_zstd(data: bytes) -> bytes:
    """A frame that does not say its size, as streams make them."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data[: len(data) // 2])
        stream.flush()
        stream.write(data[len(data) // 2 :])
    return bytes(sink.getvalue())


def snappy(data: bytes) -> bytes:
    return bytes(pa.compress(data, "snappy", asbytes=True)) + zlib.crc32(data).to_bytes(4, "big")


OTHERS: dict[str, Callable[[bytes], bytes]] = {
    "deflate": deflate,
    "zstandard": streamed_zstd,
    "snappy": snappy,
    "bzip2": bz2.compress,
}


@pytest.mark.parametrize("codec", OTHERS)
@pytest.mark.parametrize("raw", [b"", b"x", b"row" * 100_000, bytes(range(256)) * 50], ids=len)
def test_blocks_of_other_compressors_are_read(codec: str, raw: bytes) -> None:
    assert contents(container(LONGS, [(1, OTHERS[codec](raw))], {"avro.codec": codec})) == raw


@pytest.mark.parametrize("codec", OTHERS)
def test_a_block_that_grows_beyond_the_limit_is_refused(codec: str) -> None:
    bomb = container(LONGS, [(1, OTHERS[codec](bytes(5_000_000)))], {"avro.codec": codec})
    assert len(contents(bomb)) == 5_000_000
    with pytest.raises(CorruptFile, match=r"limit of 4000000 bytes|claims to hold 5000000"):
        contents(bomb, Limits(block_bytes=4_000_000))


def test_blocks_that_together_grow_beyond_the_limit_are_refused() -> None:
    bomb = container(LONGS, [(1, deflate(bytes(5_000)))] * 3, {"avro.codec": "deflate"})
    assert len(contents(bomb, Limits(total_bytes=15_000))) == 15_000
    with pytest.raises(CorruptFile, match="limit of 4999 bytes"):
        contents(bomb, Limits(total_bytes=14_999))


def test_limits_beyond_what_positions_can_count_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at once"):
        Limits(total_bytes=2**31)


@pytest.mark.parametrize("codec", [*OTHERS, "xz", "\xff"])
@pytest.mark.parametrize(
    "damage", [lambda b: b[:-2], lambda b: b"\xff" + b[1:], lambda b: b[:1], lambda _: b"\xff" * 9]
)
def test_damaged_blocks_are_corrupt(codec: str, damage: Callable[[bytes], bytes]) -> None:
    whole = OTHERS.get(codec, bytes)(bytes(range(200)))
    with pytest.raises(CorruptFile):
        contents(container(LONGS, [(1, damage(whole))], {"avro.codec": codec}))


def test_a_snappy_block_that_fails_its_checksum_is_corrupt() -> None:
    damaged = snappy(b"abcdefgh")[:-1] + b"\x00"
    with pytest.raises(CorruptFile, match="checksum"):
        contents(container(LONGS, [(1, damaged)], {"avro.codec": "snappy"}))


WHOLE = container(LONGS, [(1, long(7)), (2, long(1) + long(2))], {"note": "x"})


@pytest.mark.parametrize("size", range(len(WHOLE)))
def test_a_file_that_is_cut_off_is_corrupt_or_ends_between_blocks(size: int) -> None:
    begin = parse_header(WHOLE, "f").end
    first_end = next(iterate_blocks(WHOLE, parse_header(WHOLE, "f"), "f")).next_begin
    if size in (begin, first_end):
        contents(WHOLE[:size])
    else:
        with pytest.raises(CorruptFile):
            contents(WHOLE[:size])


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not an Avro file"),
        (b"PAR1" + bytes(100), "not an Avro file"),
        (b"Obj\x01" + bytes(40), "no schema"),
        (WHOLE.replace(b"avro.schema", b"avro.scheme"), "no schema"),
        (WHOLE[:-1] + b"\xff", "sync marker"),
    ],
)
def test_files_that_are_no_avro_files_are_corrupt(data: bytes, why: str) -> None:
    with pytest.raises(CorruptFile, match=why):
        contents(data)
