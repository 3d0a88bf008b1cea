"""Names, types, transforms and defaults of columns, drawn at random."""

import itertools
from collections.abc import Collection
from random import Random
from typing import Any

from tests.histories.features import Features
from tests.histories.values import pool

from icefield.model.partition import parse_transform_call
from icefield.types.datatypes import (
    OPAQUE_TYPES,
    BooleanType,
    DateType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    Type,
    UnknownType,
)
from icefield.types.schema import Schema
from icefield.types.transforms import Identity

# Few, so that a name that was dropped comes back.
NAMES = ("a", "b", "c", "d", "größe", "a b")
KEYS = (IntegerType(), LongType(), StringType(), DateType(), BooleanType())
DEPTH = 2
_CALLS = {
    "identity": "{}",
    "bucket": "bucket(3, {})",
    "truncate": "truncate(2, {})",
    "year": "year({})",
    "month": "month({})",
    "day": "day({})",
    "hour": "hour({})",
    "void": "void({})",
}
_PLACEHOLDERS = itertools.count(1_000_000)


def draw_name(random: Random, taken: Collection[str]) -> str:
    """Draw a name that no sibling has."""
    return random.choice([*(name for name in NAMES if name not in taken), f"n{len(taken)}"])


def draw_field(random: Random, name: str, kinds: tuple[PrimitiveType, ...], depth: int = DEPTH) -> NestedField:
    """Draw a field; its ids and those inside it are placeholders."""
    kind = draw_type(random, kinds, depth)
    required = random.random() < 0.2 and not isinstance(kind, UnknownType)
    return NestedField(_placeholder(), name, kind, required)


def draw_type(random: Random, kinds: tuple[PrimitiveType, ...], depth: int = DEPTH) -> Type:
    """Draw a type, a primitive one mostly; lists and maps hold what a file can hold, and so nothing unknown."""
    shape = random.randrange(8) if depth else 0
    if shape == 5:
        return StructType(_draw_fields(random, kinds, depth))
    known = tuple(kind for kind in kinds if not isinstance(kind, UnknownType))
    if shape == 6:
        element = draw_type(random, known, depth - 1)
        return ListType(_placeholder(), element, _may_be_required(random, element))
    if shape == 7:
        key = random.choice([kind for kind in KEYS if kind in kinds])
        value = draw_type(random, known, depth - 1)
        return MapType(_placeholder(), key, _placeholder(), value, _may_be_required(random, value))
    return random.choice(kinds)


def draw_default(random: Random, kind: Type, features: Features) -> Any:
    """Draw a default that a column of a type may have, or none."""
    if not features.defaults or random.random() < 0.4:
        return None
    if isinstance(kind, StructType):
        return {} if features.struct_defaults else None
    if not isinstance(kind, PrimitiveType) or isinstance(kind, OPAQUE_TYPES):
        return None
    return random.choice(pool(kind))


def draw_partition_term(random: Random, schema: Schema, features: Features) -> str | None:
    """Draw a transform of a column that it can be applied to."""
    leaf = random.choice([leaf for leaf in schema.leaves if not leaf.repeated])
    word = random.choice(features.transforms)
    text = _CALLS[word].format(".".join(f"`{part}`" for part in leaf.path))
    transform, _ = parse_transform_call(text)
    if not transform.fits(leaf.type):
        return None
    barred = isinstance(leaf.type, features.not_partitioned_by) and isinstance(transform, Identity)
    return None if barred else text


def _draw_fields(random: Random, kinds: tuple[PrimitiveType, ...], depth: int) -> tuple[NestedField, ...]:
    names: list[str] = []
    for _ in range(random.randrange(1, 4)):
        names.append(draw_name(random, names))
    return tuple(draw_field(random, name, kinds, depth - 1) for name in names)


def _may_be_required(random: Random, kind: Type) -> bool:
    return random.random() < 0.2 and not isinstance(kind, UnknownType)


def _placeholder() -> int:
    """Return an id that no other field has; tables give their own."""
    return next(_PLACEHOLDERS)
