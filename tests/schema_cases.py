"""Strategies for types and schemas: every primitive type, nested in every way."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from icefield.types.datatypes import (
    SIMPLE_TYPES,
    DecimalType,
    EdgeAlgorithm,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    TimestampNsType,
    TimestamptzNsType,
    Type,
    UnknownType,
    VariantType,
)
from icefield.types.schema import Schema

NEW_IN_V3 = (UnknownType, TimestampNsType, TimestamptzNsType)
# The types of versions 1 and 2.
PRIMITIVES: tuple[PrimitiveType, ...] = (
    *(kind for kind in SIMPLE_TYPES.values() if not isinstance(kind, NEW_IN_V3)),
    FixedType(1),
    FixedType(16),
    DecimalType(1, 0),
    DecimalType(9, 2),
    DecimalType(18, 18),
    DecimalType(38, 10),
)
V3_TYPES: tuple[PrimitiveType | VariantType, ...] = (
    *(kind() for kind in NEW_IN_V3),
    VariantType(),
    GeometryType(),
    GeometryType("srid:4326"),
    GeographyType(),
    GeographyType("EPSG:4326", EdgeAlgorithm.KARNEY),
)
ALL_TYPES = (*PRIMITIVES, *V3_TYPES)
# Few and short, so that they collide across depths; with a blank and letters of two and four bytes.
NAMES = st.sampled_from(["a", "b", "c", "id", "Name", "a b", "größe", "🧊"])


@st.composite
def schemas(
    draw: st.DrawFn,
    *,
    max_columns: int = 4,
    max_depth: int = 2,
    names: st.SearchStrategy[str] = NAMES,
    kinds: Sequence[PrimitiveType | VariantType] = PRIMITIVES,
) -> Schema:
    """Draw a schema with ids in no order; `kinds` are the types that nested ones are made of."""
    step = draw(st.sampled_from([1, 7, 210]))
    ids = iter([(i * step) % 211 for i in range(1, 211)])
    fields = _Drawn(draw, ids, names, kinds).fields(max_columns, max_depth)
    return Schema(fields, schema_id=draw(st.integers(0, 5)))


def primitive_schema(*kinds: PrimitiveType, required: bool = False) -> Schema:
    """A schema with one column per type, named c1, c2, and so on."""
    return Schema(
        tuple(NestedField(i, f"c{i}", kind, required) for i, kind in zip(itertools.count(1), kinds, strict=False))
    )


@dataclass(frozen=True)
class _Drawn:
    draw: st.DrawFn
    ids: Iterator[int]
    names: st.SearchStrategy[str]
    kinds: Sequence[PrimitiveType | VariantType]

    def fields(self, most: int, depth: int) -> tuple[NestedField, ...]:
        chosen = self.draw(st.lists(self.names, min_size=1, max_size=most, unique=True))
        return tuple(self._field(name, depth) for name in chosen)

    def _field(self, name: str, depth: int) -> NestedField:
        field_id, kind = next(self.ids), self._type(depth)
        return NestedField(field_id, name, kind, self._required(kind), self.draw(st.none() | st.just("doc")))

    def _required(self, kind: Type) -> bool:
        return self.draw(st.booleans()) and not isinstance(kind, UnknownType)

    def _type(self, depth: int) -> Type:
        shapes = ["primitive", "primitive", "struct", "list", "map"] if depth else ["primitive"]
        match self.draw(st.sampled_from(shapes)):
            case "struct":
                return StructType(self.fields(3, depth - 1))
            case "list":
                element_id, element = next(self.ids), self._type(depth - 1)
                return ListType(element_id, element, self._required(element))
            case "map":
                key_id, value_id = next(self.ids), next(self.ids)
                key, value = self.draw(st.sampled_from(PRIMITIVES)), self._type(depth - 1)
                return MapType(key_id, key, value_id, value, self._required(value))
            case _:
                return self.draw(st.sampled_from(self.kinds))
