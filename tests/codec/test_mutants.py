"""Damaged files: each decodes to something or is refused as corrupt; never another error, never a crash or a hang."""

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.codec.avro_writer import container
from tests.codec.cases import LOCATION, header, make_manifest, manifest_row

from icefield.codec.avro_container import Limits, parse_header, raw_blocks
from icefield.codec.manifest import decode_manifest
from icefield.codec.manifest_columns import ALL, PLAN
from icefield.codec.manifest_encode import encode_manifest
from icefield.codec.manifest_header import decode_manifest_header
from icefield.codec.manifest_list import ManifestListHeader, decode_manifest_list, encode_manifest_list
from icefield.codec.manifest_list_schema import MANIFEST_LIST_ARROW_SCHEMA
from icefield.errors import CorruptFile

LIMITS = Limits(block_bytes=1 << 20, total_bytes=1 << 22, rows=1 << 16, elements=1 << 18)
WANT = PLAN.with_statistics([1, 2, 40, 2147483546])


def manifest_bytes(seed: int, codec: str) -> bytes:
    made = make_manifest(seed, version=3, rows=9)
    return encode_manifest(made.table, header(3, partition=made.partition), made.partition, LOCATION, codec)


def list_bytes(seed: int, codec: str) -> bytes:
    rows = pa.Table.from_pylist([manifest_row(Random(seed + i)) for i in range(5)], MANIFEST_LIST_ARROW_SCHEMA)
    return encode_manifest_list(rows, ManifestListHeader(1, None, 1, 3, 0), LOCATION, codec)


def mutant(data: bytes, dice: Random) -> bytes:
    """Damage a file anywhere, or its rows within a sound frame, or its schema."""
    header = parse_header(data, LOCATION)
    (block,) = raw_blocks(data, header, LOCATION)
    schema, rows, count = header.schema.decode(), bytes(block.data), block.rows
    match dice.randrange(5):
        case 0:
            return mutate(data, dice)
        case 1:
            schema = mutate(schema.encode(), dice).decode(errors="replace")
        case 2:
            count = max(0, count + dice.choice([-1, 1, 1 << 40]))
        case _:
            rows = mutate(rows, dice)
    return container(schema, [(count, rows)], {k: v.decode() for k, v in header.metadata.items() if k[:5] != "avro."})


def mutate(data: bytes, dice: Random) -> bytes:
    """Change, cut out or double some bytes."""
    out = bytearray(data)
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(out))
        match dice.randrange(6):
            case 0:
                out[at] = dice.randrange(256)
            case 1:
                out[at] ^= 1 << dice.randrange(8)
            case 2:
                out[at] = dice.choice([0, 1, 2, 0x7F, 0x80, 0xFF])
            case 3:
                del out[at : at + dice.randint(1, 5)]
            case 4:
                out[at:at] = out[at : at + dice.randint(1, 9)]
            case 5:
                out[at:at] = b"\xff" * dice.randint(1, 11)
    return bytes(out)


def survives(decode: Callable[[bytes], Any], data: bytes) -> bool:
    try:
        decode(data)
    except CorruptFile as error:
        return error.location != LOCATION
    return True


def decode_all(data: bytes) -> None:
    decode_manifest_header(data, LOCATION)
    decode_manifest(data, LOCATION, WANT, LIMITS).validate(full=True)
    for column in decode_manifest(data, LOCATION, ALL, LIMITS).columns:
        column.validate(full=True)


def decode_list(data: bytes) -> None:
    decode_manifest_list(data, LOCATION, LIMITS).to_pylist()


@pytest.mark.parametrize(("make", "decode"), [(manifest_bytes, decode_all), (list_bytes, decode_list)])
@pytest.mark.parametrize(("engine", "mutants"), [("plain", 100), ("compiled", 1000)], indirect=["engine"])
@pytest.mark.usefixtures("engine")
def test_mutants_decode_or_are_refused(
    make: Callable[[int, str], bytes], decode: Callable[[bytes], None], mutants: int
) -> None:
    whole = [make(seed, "null") for seed in range(7)]
    outcomes = [survives(decode, mutant(whole[i % 7], Random(i))) for i in range(mutants)]
    assert 0.02 < sum(outcomes) / len(outcomes) < 0.98, "mutants should fall on both sides"


@pytest.mark.parametrize("codec", ["deflate", "snappy", "zstandard"])
def test_mutants_of_compressed_files_decode_or_are_refused(codec: str) -> None:
    data = manifest_bytes(3, codec)
    first = parse_header(data, LOCATION).end
    outcomes = [survives(decode_all, data[:first] + mutate(data[first:], Random(seed))) for seed in range(150)]
    assert not all(outcomes)


@pytest.mark.usefixtures("engine")
def test_a_file_cut_off_anywhere_is_refused() -> None:
    data = manifest_bytes(5, "null")
    first = parse_header(data, LOCATION).end
    sizes = sorted(Random(0).sample(range(first + 1, len(data)), 150))
    assert not any(survives(decode_all, data[:size]) for size in sizes)
