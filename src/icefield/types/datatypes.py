"""The types of the format, as immutable values. (spec: Schemas and Data Types)

`str(type)` is the form in metadata files, exactly as Iceberg Java writes it (`decimal(10, 2)` with the blank: at least
one engine refuses it without).

Values of a primitive type can be compared, sorted and have bounds. `variant` is neither primitive nor nested: it has no
order, and no fields inside. (spec: Semi-structured Types)
"""

import dataclasses
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import ClassVar

from icefield.errors import InvalidInput
from icefield.types.unknown_keys import UnknownKeys

MAX_DECIMAL_PRECISION = 38
MAX_FIXED_LENGTH = (1 << 31) - 1
DEFAULT_CRS = "OGC:CRS84"
UUID_BYTES = 16
MAX_DIGITS = 10  # of a number in the name of a type or transform

# A single value in memory: dates are days, times and timestamps micro- or nanoseconds, both from the epoch, as int.
Value = bool | int | float | str | bytes | Decimal | uuid.UUID


class EmptyStruct:
    """The only default of a struct column besides null: a struct of its fields' own defaults, `{}` in JSON."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EmptyStruct)

    def __hash__(self) -> int:
        return hash(EmptyStruct)

    def __repr__(self) -> str:
        return "{}"


EMPTY_STRUCT = EmptyStruct()
Default = Value | EmptyStruct


class EdgeAlgorithm(StrEnum):
    """How the edges of a geography are interpolated between its points. (spec: Edge-Interpolation Algorithm)"""

    SPHERICAL = "spherical"
    VINCENTY = "vincenty"
    THOMAS = "thomas"
    ANDOYER = "andoyer"
    KARNEY = "karney"


@dataclass(frozen=True)
class PrimitiveType:
    """A primitive type."""

    word: ClassVar[str] = ""

    def __str__(self) -> str:
        return self.word


class BooleanType(PrimitiveType):
    word: ClassVar[str] = "boolean"


class IntegerType(PrimitiveType):
    word: ClassVar[str] = "int"


class LongType(PrimitiveType):
    word: ClassVar[str] = "long"


class FloatType(PrimitiveType):
    word: ClassVar[str] = "float"


class DoubleType(PrimitiveType):
    word: ClassVar[str] = "double"


class DateType(PrimitiveType):
    word: ClassVar[str] = "date"


class TimeType(PrimitiveType):
    word: ClassVar[str] = "time"


class TimestampType(PrimitiveType):
    word: ClassVar[str] = "timestamp"


class TimestamptzType(PrimitiveType):
    word: ClassVar[str] = "timestamptz"


class TimestampNsType(PrimitiveType):
    word: ClassVar[str] = "timestamp_ns"


class TimestamptzNsType(PrimitiveType):
    word: ClassVar[str] = "timestamptz_ns"


class StringType(PrimitiveType):
    word: ClassVar[str] = "string"


class UUIDType(PrimitiveType):
    word: ClassVar[str] = "uuid"


class BinaryType(PrimitiveType):
    word: ClassVar[str] = "binary"


class UnknownType(PrimitiveType):
    """The type of a column that has only nulls."""

    word: ClassVar[str] = "unknown"


@dataclass(frozen=True)
class FixedType(PrimitiveType):
    length: int

    def __post_init__(self) -> None:
        if not 1 <= self.length <= MAX_FIXED_LENGTH:
            raise InvalidInput(f"fixed needs a length of 1 to {MAX_FIXED_LENGTH}, got {self.length}")

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


@dataclass(frozen=True, eq=False)
class GeometryType(PrimitiveType):
    """Shapes on a plane, as WKB. Reference systems that differ only in case are the same, as in Iceberg Java."""

    crs: str = DEFAULT_CRS

    def __post_init__(self) -> None:
        _check_crs(self.crs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GeometryType) and self.crs.lower() == other.crs.lower()

    def __hash__(self) -> int:
        return hash((GeometryType, self.crs.lower()))

    def __str__(self) -> str:
        return f"geometry({self.crs})"


@dataclass(frozen=True, eq=False)
class GeographyType(PrimitiveType):
    """Shapes on the globe, as WKB. Reference systems that differ only in case are the same, as in Iceberg Java."""

    crs: str = DEFAULT_CRS
    algorithm: EdgeAlgorithm = EdgeAlgorithm.SPHERICAL

    def __post_init__(self) -> None:
        _check_crs(self.crs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GeographyType) and self._key == other._key

    def __hash__(self) -> int:
        return hash((GeographyType, self._key))

    def __str__(self) -> str:
        return f"geography({self.crs}, {self.algorithm})"

    @property
    def _key(self) -> tuple[str, EdgeAlgorithm]:
        return self.crs.lower(), self.algorithm


@dataclass(frozen=True)
class VariantType:
    """A semi-structured value, in Parquet's variant encoding."""

    word: ClassVar[str] = "variant"

    def __str__(self) -> str:
        return self.word


@dataclass(frozen=True)
class NestedField:
    """A field with a name and an id: a column, a struct's field, a list's element, a map's key or value.

    initial_default: the value in rows that were written before the field was added; write_default: the value in new
    rows without the field. Only columns and fields of structs have them, not elements, keys and values.
    (spec: Default values)
    """

    field_id: int
    name: str
    type: "Type"
    required: bool = False
    doc: str | None = None
    initial_default: Default | None = None
    write_default: Default | None = None
    unknown_keys: UnknownKeys = dataclasses.field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class StructType:
    fields: tuple[NestedField, ...]
    unknown_keys: UnknownKeys = dataclasses.field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        inner = ", ".join(f"{f.name}: {'' if f.required else 'optional '}{f.type}" for f in self.fields)
        return f"struct<{inner}>"


@dataclass(frozen=True)
class ListType:
    element_id: int
    element_type: "Type"
    element_required: bool = False
    unknown_keys: UnknownKeys = dataclasses.field(default=None, compare=False, repr=False)

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
    unknown_keys: UnknownKeys = dataclasses.field(default=None, compare=False, repr=False)

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


Type = PrimitiveType | VariantType | StructType | ListType | MapType

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
        TimestampNsType,
        TimestamptzNsType,
        StringType,
        UUIDType,
        BinaryType,
        UnknownType,
    )
}
# Types whose values can only be tested for null: no order, no bounds, no defaults.
# (spec: Default values; Bound serialization)
OPAQUE_TYPES = (UnknownType, VariantType, GeometryType, GeographyType)


def children(kind: Type) -> tuple[NestedField, ...]:
    """Return the fields directly inside a type; none for a primitive or a variant."""
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
    """Return the same nested type with other fields, in the order of `children`."""
    match kind:
        case StructType():
            return StructType(fields, kind.unknown_keys)
        case ListType():
            (element,) = fields
            return ListType(element.field_id, element.type, element.required, kind.unknown_keys)
        case MapType():
            key, value = fields
            return MapType(key.field_id, key.type, value.field_id, value.type, value.required, kind.unknown_keys)
        case _:
            return kind


def _check_crs(crs: str) -> None:
    # The string form has no escapes, so these could not be parsed again. (spec: Appendix C)
    if not crs or crs != crs.strip() or any(mark in crs for mark in "(),"):
        raise InvalidInput(f"expected a coordinate reference system such as {DEFAULT_CRS}, got {crs!r}")
