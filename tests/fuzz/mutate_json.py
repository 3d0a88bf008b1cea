"""Damage to JSON that knows JSON: another type, keys gone or doubled, depth, huge numbers, half characters."""

import json
from random import Random
from typing import Any

from tests.fuzz.mutate import BOUNDARIES, Damage, Mutation, framed, mutate_bytes, one_of

_HOLE = "@@hole@@"
_DEEP = 100_000
_SPLIT = ('"', "{", "}", "[", "]", ",", ":", "-", "1e5", "null", "true", '"x"', "\\", "\\u", "9" * 30, "//", "\x00")

# Values as they are in the text; a good part of them could not be made by a JSON writer.
_VALUES = (
    *("null", "true", "false", "{}", "[]", '""', "[null]", "[[]]", '{"":{}}', '{"type":"struct","fields":[]}'),
    *("-1", "-0", "0.0", "1.5", "1e2", "1e999", "-1e-999", "1" * 20, "9" * 5000, "NaN", "Infinity", "01", "0x1"),
    *(str(sign * number) for number in BOUNDARIES for sign in (1, -1)),
    *('"\\ud800"', '"\\udc00\\ud800"', '"\\ud83e\\uddca"', '"\\u0000"', '"\udcff"', '"é"', '"' + "x" * 3000 + '"'),
    *('"1"', '"-1"', '"identity"', '"void"', '"bucket[0]"', '"bucket[99999999999]"', '"truncate[-1]"', '"unknown"'),
    *('"decimal(38, 38)"', '"decimal(99, 1)"', '"fixed[0]"', '"fixed[99999999999]"', '"geometry( "', '"variant"'),
    *('"struct"', '"list"', '"map"', '"record"', '"array"', '"enum"', '"long"', '"2017-11-16"', '"tag"', '"sql"'),
    *("[" * _DEEP, '{"a":' * _DEEP, "[" * 300 + "]" * 300, '{"type":' * 300 + '"int"' + "}" * 300),
)


def mutate_json(data: bytes, rng: Random, other: bytes) -> Damage:
    """Change one to three places of a document; what is not JSON is damaged as bytes."""
    done = []
    for _ in range(1 if rng.random() < 0.7 else rng.randint(2, 3)):
        try:
            tree = json.loads(data)
            data, what = _change(tree, rng)
        except (ValueError, RecursionError):
            data, what = mutate_bytes(data, rng, other)
        done.append(what)
    return data, ", ".join(done)


def mutate_json_text(data: bytes, rng: Random, other: bytes) -> Damage:
    """Put a piece of syntax anywhere."""
    at, cut, piece = rng.randrange(len(data) + 1), rng.randrange(6), rng.choice(_SPLIT)
    return data[:at] + piece.encode() + data[at + cut :], f"{piece[:9]!r} over {cut} bytes at {at}"


def json_inside(unwrap: Any, wrap: Any) -> Mutation:
    """Return the mutation of a document inside a sound frame."""
    return framed(unwrap, wrap, any_json)


def _change(tree: Any, rng: Random) -> Damage:
    """Change one node of a tree."""
    root = [tree]
    parent, key = _walk(root, rng)
    where = f"{key!r:.40}"
    match rng.randrange(6):
        case 0 if isinstance(parent, dict):
            del parent[key]
            return _text(root), f"without {where}"
        case 1 if isinstance(parent, dict):
            value = rng.choice((_HOLE, parent[key]))
            parent[_HOLE] = value
            name = json.dumps(key)
            text = _text(root).decode().replace(f'"{_HOLE}":', f"{name}:", 1)
            return _filled(text, "1"), f"{where} twice"
        case 2:
            donor, donor_key = _walk(root, rng)
            # By way of text: a tree that held itself would have no end.
            parent[key] = json.loads(json.dumps(donor[donor_key]))
            return _text(root), f"{where} as {donor_key!r:.40}"
        case 3 if isinstance(parent, list):
            del parent[key]
            return _text(root), f"without element {where}"
        case 4 if isinstance(parent[key], str | int) and not isinstance(parent[key], bool):
            parent[key] = _near(parent[key], rng)
            return _text(root), f"another {where}"
        case _:
            raw = rng.choice(_VALUES)
            parent[key] = _HOLE
            return _filled(_text(root).decode(), raw), f"{raw[:20]} at {where}"


def _walk(root: list[Any], rng: Random) -> tuple[Any, Any]:
    """Choose a node, as its parent and its key."""
    parent, key = root, 0
    while isinstance(parent[key], dict | list) and parent[key] and rng.random() < 0.85:
        parent = parent[key]
        key = rng.choice(list(parent)) if isinstance(parent, dict) else rng.randrange(len(parent))
    return parent, key


def _near(value: str | int, rng: Random) -> str | int:
    if isinstance(value, int):
        return rng.choice((-value, value + 1, value - 1, value << 32, ~value))
    at = rng.randrange(len(value) + 1)
    return rng.choice((value + value, value[:at], value[:at] + rng.choice("\ud800 .,()[]é\0") + value[at:]))


def _text(root: list[Any]) -> bytes:
    return json.dumps(root[0] if root else None).encode()


def _filled(text: str, raw: str) -> bytes:
    return text.replace(f'"{_HOLE}"', raw, 1).encode("utf-8", "surrogatepass")


any_json = one_of(mutate_json, mutate_json, mutate_json, mutate_json_text, mutate_bytes)
