"""The types of the format, as immutable values. (spec: Schemas and Data Types)

`str(type)` is the spelling that goes on disk, exactly as the reference implementation writes it (`decimal(10, 2)`
with the blank: one engine of the field refuses it without).
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

from icefield.errors import InvalidInput

MAX_DECIMAL_PRECISION = 38

# A single value in memory: dates are days, times and timestamps micro- or nanoseconds, both from the epoch, as int.
Value = bool | int | float | str | bytes | Decimal | uuid.UUID


@dataclass(frozen=True)
class PrimitiveType:
    """A type without parts."""

    word: ClassVar[str] = ""

    def __str__(self) -> str:
        return self.word


@dataclass(frozen=True)
class BooleanType(PrimitiveType):
    word: ClassVar[str] = "boolean"


@dataclass(frozen=True)
class IntegerType(PrimitiveType):
    word: ClassVar[str] = "int"


@dataclass(frozen=True)
class LongType(PrimitiveType):
    word: ClassVar[str] = "long"


@dataclass(frozen=True)
class FloatType(PrimitiveType):
    word: ClassVar[str] = "float"


@dataclass(frozen=True)
class DoubleType(PrimitiveType):
    word: ClassVar[str] = "double"


@dataclass(frozen=True)
class DateType(PrimitiveType):
    word: ClassVar[str] = "date"


@dataclass(frozen=True)
class TimeType(PrimitiveType):
    word: ClassVar[str] = "time"


@dataclass(frozen=True)
class TimestampType(PrimitiveType):
    word: ClassVar[str] = "timestamp"


@dataclass(frozen=True)
class TimestamptzType(PrimitiveType):
    word: ClassVar[str] = "timestamptz"


@dataclass(frozen=True)
class StringType(PrimitiveType):
    word: ClassVar[str] = "string"


@dataclass(frozen=True)
class UUIDType(PrimitiveType):
    word: ClassVar[str] = "uuid"


@dataclass(frozen=True)
class BinaryType(PrimitiveType):
    word: ClassVar[str] = "binary"


@dataclass(frozen=True)
class UnknownType(PrimitiveType):
    """Only null is known of it: a column of nulls that has no other type."""

    word: ClassVar[str] = "unknown"


@dataclass(frozen=True)
class FixedType(PrimitiveType):
    length: int

    def __post_init__(self) -> None:
        if self.length < 1:
            raise InvalidInput(f"fixed needs a length of at least 1, got {self.length}")

    def __str__(self) -> str:
        return f"fixed[{self.length}]"


@dataclass(frozen=True)
class DecimalType(PrimitiveType):
    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= MAX_DECIMAL_PRECISION:
            raise InvalidInput(f"decimal precision must be 1 to {MAX_DECIMAL_PRECISION}, got {self.precision}")
        if not 0 <= self.scale <= self.precision:
            raise InvalidInput(f"decimal scale must be 0 to the precision {self.precision}, got {self.scale}")

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"


@dataclass(frozen=True)
class NestedField:
    """A named, numbered slot: a column, a struct's field, a list's element, a map's key or value.

    initial_default: what rows have that were written before the field was there; write_default: what new rows get
    that do not name it. (spec: Default values)
    """

    field_id: int
    name: str
    type: "Type"
    required: bool = False
    doc: str | None = None
    initial_default: Value | None = None
    write_default: Value | None = None


@dataclass(frozen=True)
class StructType:
    fields: tuple[NestedField, ...]

    def __str__(self) -> str:
        inner = ", ".join(f"{f.name}: {'' if f.required else 'optional '}{f.type}" for f in self.fields)
        return f"struct<{inner}>"


@dataclass(frozen=True)
class ListType:
    element_id: int
    element_type: "Type"
    element_required: bool = False

    @property
    def element(self) -> NestedField:
        """The element as a field; its name in paths is `element`."""
        return NestedField(self.element_id, "element", self.element_type, self.element_required)

    def __str__(self) -> str:
        return f"list<{self.element_type}>"


@dataclass(frozen=True)
class MapType:
    key_id: int
    key_type: "Type"
    value_id: int
    value_type: "Type"
    value_required: bool = False

    @property
    def key(self) -> NestedField:
        """The key as a field; keys are always required."""
        return NestedField(self.key_id, "key", self.key_type, required=True)

    @property
    def value(self) -> NestedField:
        """The value as a field."""
        return NestedField(self.value_id, "value", self.value_type, self.value_required)

    def __str__(self) -> str:
        return f"map<{self.key_type}, {self.value_type}>"


Type = PrimitiveType | StructType | ListType | MapType

SIMPLE_TYPES: dict[str, PrimitiveType] = {
    kind.word: kind()
    for kind in (
        BooleanType,
        IntegerType,
        LongType,
        FloatType,
        DoubleType,
        DateType,
        TimeType,
        TimestampType,
        TimestamptzType,
        StringType,
        UUIDType,
        BinaryType,
    )
}


def children(kind: Type) -> tuple[NestedField, ...]:
    """Return the fields directly inside a type; none for a primitive."""
    match kind:
        case StructType(fields):
            return fields
        case ListType():
            return (kind.element,)
        case MapType():
            return (kind.key, kind.value)
        case _:
            return ()


def walk(kind: Type, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], NestedField]]:
    """Yield every field below a type with its path, parents before children."""
    for field in children(kind):
        inner = (*path, field.name)
        yield inner, field
        yield from walk(field.type, inner)


def with_children(kind: Type, fields: tuple[NestedField, ...]) -> Type:
    """Return the same kind of type around other fields, in the order of `children`."""
    match kind:
        case StructType():
            return StructType(fields)
        case ListType():
            (element,) = fields
            return ListType(element.field_id, element.type, element.required)
        case MapType():
            key, value = fields
            return MapType(key.field_id, key.type, value.field_id, value.type, value.required)
        case _:
            return kind
