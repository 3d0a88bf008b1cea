"""Seeded damage to bytes: what a bad disk, a cut transfer or a hostile writer may do to a file.

A mutation takes the bytes, the rng and another file of the same kind, and returns the damaged bytes and what was done,
in words that a failing test can show. The same rng give the same damage.
"""

from collections.abc import Callable, Sequence
from random import Random

Damage = tuple[bytes, str]
Mutation = Callable[[bytes, Random, bytes], Damage]

BOUNDARIES = (0, 1, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63)
_EDGE_BYTES = (0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF)
_MOST_AT_ONCE = 4


def mutate_bytes(data: bytes, rng: Random, other: bytes) -> Damage:
    """Damage bytes once or a few times."""
    done = []
    for _ in range(1 if rng.random() < 0.6 else rng.randint(2, _MOST_AT_ONCE)):
        data, what = rng.choice(_OPERATIONS)(data, rng, other)
        done.append(what)
    return data, ", ".join(done)


def one_of(*mutations: Mutation) -> Mutation:
    """Return the mutation that throws rng for which of some to do."""

    def mutate(data: bytes, rng: Random, other: bytes) -> Damage:
        return rng.choice(mutations)(data, rng, other)

    return mutate


def framed(
    unwrap: Callable[[bytes], bytes], wrap: Callable[[bytes], bytes], inside: Mutation = mutate_bytes
) -> Mutation:
    """Return the mutation that damages what is inside a sound frame: below a checksum or a compression."""

    def mutate(data: bytes, rng: Random, other: bytes) -> Damage:
        damaged, what = inside(unwrap(data), rng, unwrap(other))
        return wrap(damaged), f"inside the frame: {what}"

    return mutate


def text_mutation(words: Sequence[str]) -> Mutation:
    """Return the mutation that puts words of a language, and what breaks parsers, into its strings."""
    hard = ("(" * 3000, "[" * 300, "9" * 5000, " " * 3000, "`", "``", "'", '"', "\\", "\0", "\ud800", "é", "🧊", "--")
    pieces = [word.encode("utf-8", "surrogatepass") for word in (*words, *hard)]

    def mutate(data: bytes, rng: Random, other: bytes) -> Damage:
        done = []
        for _ in range(rng.randint(1, 3)):
            at, cut = rng.randrange(len(data) + 1), rng.choice((0, 0, 1, 4))
            piece = rng.choice(pieces)
            data = data[:at] + piece + data[at + cut :]
            done.append(f"{piece[:12]!r} over {cut} bytes at {at}")
        return data, ", ".join(done)

    return one_of(mutate, mutate, mutate_bytes)


def _flip(data: bytes, rng: Random, other: bytes) -> Damage:
    at, bit = _place(data, rng), rng.randrange(8)
    return data[:at] + bytes(byte ^ 1 << bit for byte in data[at : at + 1]) + data[at + 1 :], f"bit {bit} of {at}"


def _set(data: bytes, rng: Random, other: bytes) -> Damage:
    at, value = _place(data, rng), rng.choice((*_EDGE_BYTES, rng.randrange(256)))
    return data[:at] + bytes([value]) + data[at + 1 :], f"{value} at {at}"


def _cut(data: bytes, rng: Random, other: bytes) -> Damage:
    end = _place(data, rng)
    return data[:end], f"cut at {end}"


def _extend(data: bytes, rng: Random, other: bytes) -> Damage:
    size = rng.choice((1, 8, 16, 1000))
    tail = rng.choice((bytes(size), b"\xff" * size, rng.randbytes(size), data[-size:]))
    return data + tail, f"{size} bytes more"


def _delete(data: bytes, rng: Random, other: bytes) -> Damage:
    at, size = _block(data, rng)
    return data[:at] + data[at + size :], f"{size} bytes less at {at}"


def _double(data: bytes, rng: Random, other: bytes) -> Damage:
    at, size = _block(data, rng)
    return data[: at + size] + data[at:], f"{size} bytes twice at {at}"


def _copy(data: bytes, rng: Random, other: bytes) -> Damage:
    at, size = _block(data, rng)
    to = _place(data, rng)
    return data[:to] + data[at : at + size] + data[to + size :], f"{size} bytes of {at} over {to}"


def _move(data: bytes, rng: Random, other: bytes) -> Damage:
    at, size = _block(data, rng)
    rest, to = data[:at] + data[at + size :], _place(data, rng)
    return rest[:to] + data[at : at + size] + rest[to:], f"{size} bytes from {at} to {to}"


def _splice(data: bytes, rng: Random, other: bytes) -> Damage:
    end, begin = _place(data, rng), _place(other, rng)
    return data[:end] + other[begin:], f"cut at {end} and another file from {begin}"


def _blow_up(data: bytes, rng: Random, other: bytes) -> Damage:
    at, size = _place(data, rng), rng.randint(1, 11)
    varint = b"\xff" * size + bytes([rng.choice((0, 1, 2, 0x7F))])
    return data[:at] + varint + data[at + rng.randint(0, 2) :], f"a varint of {size + 1} bytes at {at}"


def _boundary(data: bytes, rng: Random, other: bytes) -> Damage:
    at, width = _place(data, rng), rng.choice((1, 2, 4, 8))
    number, order = rng.choice(BOUNDARIES), "big" if rng.random() < 0.3 else "little"
    value = (number & (1 << 8 * width) - 1).to_bytes(width, "big" if order == "big" else "little")
    return data[:at] + value + data[at + width :], f"{number} in {width} {order}-endian bytes at {at}"


def _place(data: bytes, rng: Random) -> int:
    """Choose where; near the ends often, because heads and tails decide how the rest is read."""
    size = len(data)
    match rng.randrange(6):
        case 0:
            return rng.randrange(min(size, 16) + 1)
        case 1:
            return max(0, size - rng.randrange(32))
        case _:
            return rng.randrange(size + 1)


def _block(data: bytes, rng: Random) -> tuple[int, int]:
    at = _place(data, rng)
    return at, min(len(data) - at, rng.choice((1, 2, 4, 8, 16, rng.randrange(len(data) + 1))))


_OPERATIONS: tuple[Mutation, ...] = (
    _flip,
    _flip,
    _set,
    _set,
    _cut,
    _extend,
    _delete,
    _double,
    _copy,
    _move,
    _splice,
    _blow_up,
    _boundary,
)
