"""Strategies for types and schemas: every primitive type, nested in every way."""

import itertools
from collections.abc import Iterator

from hypothesis import strategies as st

from icefield.types.datatypes import (
    SIMPLE_TYPES,
    DecimalType,
    FixedType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
)
from icefield.types.schema import Schema

PRIMITIVES: tuple[PrimitiveType, ...] = (
    *SIMPLE_TYPES.values(),
    FixedType(1),
    FixedType(16),
    DecimalType(1, 0),
    DecimalType(9, 2),
    DecimalType(18, 18),
    DecimalType(38, 10),
)
# Few and short, so that they collide across depths; with a blank and letters of two and four bytes.
NAMES = st.sampled_from(["a", "b", "c", "id", "Name", "a b", "größe", "🧊"])


@st.composite
def schemas(
    draw: st.DrawFn, *, max_columns: int = 4, max_depth: int = 2, names: st.SearchStrategy[str] = NAMES
) -> Schema:
    """Draw a schema with ids in no order."""
    step = draw(st.sampled_from([1, 7, 210]))
    ids = iter([(i * step) % 211 for i in range(1, 211)])
    fields = _fields(draw, ids, max_columns, max_depth, names)
    return Schema(fields, schema_id=draw(st.integers(0, 5)))


def primitive_schema(*kinds: PrimitiveType, required: bool = False) -> Schema:
    """A schema with one column per type, named c1, c2, and so on."""
    return Schema(
        tuple(NestedField(i, f"c{i}", kind, required) for i, kind in zip(itertools.count(1), kinds, strict=False))
    )


def _fields(
    draw: st.DrawFn, ids: Iterator[int], most: int, depth: int, names: st.SearchStrategy[str]
) -> tuple[NestedField, ...]:
    chosen = draw(st.lists(names, min_size=1, max_size=most, unique=True))
    return tuple(
        NestedField(
            next(ids), name, _type(draw, ids, depth, names), draw(st.booleans()), draw(st.none() | st.just("doc"))
        )
        for name in chosen
    )


def _type(draw: st.DrawFn, ids: Iterator[int], depth: int, names: st.SearchStrategy[str]) -> Type:
    kinds = ["primitive", "primitive", "struct", "list", "map"] if depth else ["primitive"]
    match draw(st.sampled_from(kinds)):
        case "struct":
            return StructType(_fields(draw, ids, 3, depth - 1, names))
        case "list":
            return ListType(next(ids), _type(draw, ids, depth - 1, names), draw(st.booleans()))
        case "map":
            key = draw(st.sampled_from(PRIMITIVES))
            return MapType(next(ids), key, next(ids), _type(draw, ids, depth - 1, names), draw(st.booleans()))
        case _:
            return draw(st.sampled_from(PRIMITIVES))
