"""Damage to Avro containers that knows their frame, so that what is inside is read: schema, codec, counts, rows."""

from dataclasses import dataclass, replace
from functools import cache
from random import Random

from tests.fuzz.mutate import BOUNDARIES, Damage, mutate_bytes, one_of
from tests.fuzz.mutate_json import any_json

from icefield.codec.avro.compression import CODECS, compress
from icefield.codec.avro.container import CODEC_KEY, MAGIC, encode_long, parse_header, raw_blocks
from icefield.errors import CorruptFile

_COUNTS = (0, 1, -1, *BOUNDARIES[:-1], *(-number for number in BOUNDARIES))
_CODEC_NAMES = (*CODECS, "", "xz", "Deflate", "zstandard\0", "x" * 1000)


@dataclass(frozen=True)
class _Container:
    keys: tuple[tuple[bytes, bytes], ...]
    sync: bytes
    blocks: tuple[tuple[int, bytes], ...]

    def encode(self, codec: str) -> bytes:
        """Write the file with the rows in a codec, whatever the header says."""
        head = MAGIC + encode_long(len(self.keys))
        for pair in self.keys:
            head += b"".join(encode_long(len(text)) + text for text in pair)
        packed = [(rows, compress(codec, raw)) for rows, raw in self.blocks]
        body = b"".join(encode_long(rows) + encode_long(len(data)) + data + self.sync for rows, data in packed)
        return head + b"\0" + self.sync + body

    def named(self, codec: str) -> "_Container":
        """Return the same with this codec's name in the header."""
        kept = tuple((key, value) for key, value in self.keys if key != CODEC_KEY.encode())
        return replace(self, keys=(*kept, (CODEC_KEY.encode(), codec.encode())))


def mutate_avro(data: bytes, rng: Random, other: bytes) -> Damage:
    """Damage one part of a container and write the rest soundly."""
    container, spare = _parsed(data), _parsed(other)
    if container is None or spare is None:
        return mutate_bytes(data, rng, other)
    codec = rng.choice(CODECS) if rng.random() < 0.3 else "null"
    damaged, what = rng.choice(_PARTS)(container.named(codec), rng, spare)
    return damaged.encode(codec), f"{what} ({codec})"


def _schema(container: _Container, rng: Random, spare: _Container) -> tuple[_Container, str]:
    """Damage a value of the header, the Avro schema most often."""
    at = 0 if rng.random() < 0.7 else rng.randrange(len(container.keys))
    key, value = container.keys[at]
    changed, what = any_json(value, rng, spare.keys[0][1])
    return _with_key(container, at, (key, changed)), f"{key.decode()}: {what}"


def _header(container: _Container, rng: Random, spare: _Container) -> tuple[_Container, str]:
    at = rng.randrange(len(container.keys))
    key, value = container.keys[at]
    match rng.randrange(5):
        case 0:
            return replace(container, keys=container.keys[:at] + container.keys[at + 1 :]), f"without {key!r}"
        case 1:
            return replace(container, keys=(*container.keys, (key, b""))), f"{key!r} again and empty"
        case 2:
            return replace(container, keys=container.keys + spare.keys), "keys of another file"
        case 3:
            name = rng.choice(_CODEC_NAMES)
            return container.named(name), f"codec {name[:20]!r}"
        case _:
            changed, what = mutate_bytes(value, rng, key)
            return _with_key(container, at, (key, changed)), f"{key!r}: {what}"


def _block(container: _Container, rng: Random, spare: _Container) -> tuple[_Container, str]:
    if not container.blocks:
        return replace(container, blocks=spare.blocks), "blocks of another file"
    at = rng.randrange(len(container.blocks))
    rows, raw = container.blocks[at]
    match rng.randrange(5):
        case 0:
            return replace(container, blocks=spare.blocks), "blocks of another file"
        case 1:
            return replace(container, blocks=container.blocks * rng.choice((0, 2, 9))), "no blocks, or more"
        case 2:
            count = rows + rng.choice((-1, 1))
        case _:
            count = rng.choice(_COUNTS)
    return _with_block(container, at, (count, raw)), f"{count} rows in block {at}"


def _rows(container: _Container, rng: Random, spare: _Container) -> tuple[_Container, str]:
    if not container.blocks:
        return _block(container, rng, spare)
    at = rng.randrange(len(container.blocks))
    rows, raw = container.blocks[at]
    if rng.random() < 0.5:
        place, count = rng.randrange(len(raw) + 1), rng.choice(_COUNTS)
        changed, what = raw[:place] + encode_long(count) + raw[place + 1 :], f"the long {count} at {place}"
    else:
        changed, what = mutate_bytes(raw, rng, spare.blocks[0][1] if spare.blocks else b"")
    return _with_block(container, at, (rows, changed)), f"rows of block {at}: {what}"


def _marker(container: _Container, rng: Random, spare: _Container) -> tuple[_Container, str]:
    changed, what = mutate_bytes(container.sync, rng, spare.sync)
    return replace(container, sync=changed), f"sync marker: {what}"


def _with_key(container: _Container, at: int, pair: tuple[bytes, bytes]) -> _Container:
    return replace(container, keys=(*container.keys[:at], pair, *container.keys[at + 1 :]))


def _with_block(container: _Container, at: int, block: tuple[int, bytes]) -> _Container:
    return replace(container, blocks=(*container.blocks[:at], block, *container.blocks[at + 1 :]))


@cache
def _parsed(data: bytes) -> _Container | None:
    try:
        header = parse_header(data, "")
        blocks = tuple((block.rows, bytes(block.data)) for block in raw_blocks(data, header, ""))
    except CorruptFile:
        return None
    # The schema first, so that damage can aim at it.
    pairs = sorted(header.metadata.items(), key=lambda pair: pair[0] != "avro.schema")
    return _Container(tuple((key.encode(), value) for key, value in pairs), header.sync, blocks)


_PARTS = (_schema, _schema, _rows, _rows, _rows, _block, _header, _marker)
any_avro = one_of(mutate_avro, mutate_avro, mutate_avro, mutate_bytes)
