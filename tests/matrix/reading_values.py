"""Values at the edges of their types, for the rows and the filters of the matrix.

A file draws each column from all of its type's values or from a few plain ones, so that statistics are sometimes
narrow, and other encodings (milliseconds, small and unsigned integers) are sometimes possible.
"""

import math
from decimal import Decimal
from random import Random
from typing import Any

from tests.expr.cases import float32, pool_of
from tests.peers.samples import LONG_TEXT

from icefield.types.calendar import MICROS_PER_DAY, NANOS_PER_DAY
from icefield.types.datatypes import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    Type,
    UnknownType,
)
from icefield.types.values.binary import scaled

NULLS = 0.2
# The year 1, before 1582, before 1900, around the epoch, today, the year 9999.
_DAYS = [-719_162, -141_429, -141_428, -141_427, -25_568, -1, 0, 1, 59, 19_782, 2_932_896]
_MORE_MICROS = (0, 1, 999, 1000, 43_200_000_000, MICROS_PER_DAY - 1)
_MICROS = [day * MICROS_PER_DAY + more for day in _DAYS for more in _MORE_MICROS]
_NANO_DAYS = [-106_000, -25_568, -1, 0, 19_782, 106_000]
_NANOS = [day * NANOS_PER_DAY + more for day in _NANO_DAYS for more in (0, 1, 999, 1000)]
_FLOATS = [math.nan, -math.inf, -1.5, -0.0, 0.0, 0.1, 1.0, 1.5, math.inf]
_TEXTS = ["", "a", "ab", "a%b", "it's", 'say "x"', "back\\slash", "${x}", "é", "\U0010ffff", "new\nline", LONG_TEXT]
_FEW: dict[type[PrimitiveType], list[Any]] = {
    IntegerType: [0, 1, 2, 200],
    LongType: [0, 1, 2, 200],
    FloatType: [-0.0, 1.5],
    DoubleType: [-0.0, 1.5],
    StringType: ["a", "ab", "b"],
    TimestampType: [0, 1000, 86_400_000_000, -1000],
    TimestamptzType: [0, 1000, 86_400_000_000, -1000],
    DateType: [0, 1, 19_782],
}


def draw_primitive(random: Random, kind: PrimitiveType, *, few: bool = False) -> Any:
    """Draw a value that is not null."""
    return random.choice((_FEW.get(type(kind)) if few else None) or _pool(kind))


class ColumnValues:
    """Draws the values of one column in one file."""

    def __init__(self, random: Random, field: NestedField) -> None:
        self._random = random
        self._field = field
        self._few = random.random() < 0.4
        self._nulls = random.choice([0, NULLS, NULLS, 1 if random.random() < 0.2 else NULLS])

    def draw(self) -> Any:
        """Draw a value of the column."""
        return self._value(self._field)

    def _value(self, field: NestedField) -> Any:
        if isinstance(field.type, UnknownType) or (not field.required and self._random.random() < self._nulls):
            return None
        return self._present(field.type)

    def _present(self, kind: Type) -> Any:
        random = self._random
        match kind:
            case StructType(fields):
                return {f.field_id: self._value(f) for f in fields}
            case ListType():
                return [self._value(kind.element) for _ in range(random.randrange(3))]
            case MapType():
                keys = sorted({self._value(kind.key) for _ in range(random.randrange(3))})
                return [(key, self._value(kind.value)) for key in keys]
            case _:
                assert isinstance(kind, PrimitiveType)
                return draw_primitive(random, kind, few=self._few)


def _pool(kind: PrimitiveType) -> list[Any]:
    match kind:
        case BooleanType():
            return [False, True]
        case DateType():
            return _DAYS
        case TimestampType() | TimestamptzType():
            return _MICROS
        case TimestampNsType() | TimestamptzNsType():
            return _NANOS
        case FloatType():
            return [float32(v) for v in _FLOATS] + [float32(3.4028235e38), 1.401298464324817e-45]
        case DoubleType():
            return [*_FLOATS, float32(0.1), 1e300, 5e-324]
        case DecimalType(precision, scale):
            top = 10**precision - 1
            return [scaled(n, scale) for n in (-top, -top // 10, -10, -1, 0, 1, 10, top // 10, top)]
        case StringType():
            return _TEXTS
        case _:
            return list(pool_of(kind))


def fits(value: Any, kind: Type) -> bool:
    """Return whether a value of a wider type is one of a narrower type too."""
    if value is None:
        return True
    match kind:
        case IntegerType():
            return bool(-(1 << 31) <= value < 1 << 31)
        case FloatType():
            return bool(math.isnan(value) or math.isinf(value) or (abs(value) < 3.4e38 and float32(value) == value))
        case DecimalType(precision, scale):
            return bool(abs(unscaled(value, scale)) < 10**precision)
        case _:
            return True


def unscaled(value: Decimal, scale: int) -> int:
    """Return the whole number that is stored for a decimal; exact, whatever the context's precision."""
    return int(f"{value:.{scale}f}".replace(".", ""))
