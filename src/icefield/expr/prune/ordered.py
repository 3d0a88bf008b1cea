"""Columns of comparable values, some of them unknown: bounds of files, partition values.

There are three representations, each with the order of its types: numbers in numpy, decimals as two 64-bit halves,
strings and bytes in Arrow (compared as unsigned bytes, which for UTF-8 is the order of code points).
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icefield.expr.parse.ast import Operator
from icefield.types.arrow import physical_array
from icefield.types.datatypes import (
    MAX_DECIMAL_PRECISION,
    BooleanType,
    DecimalType,
    PrimitiveType,
    StringType,
    UUIDType,
    Value,
)
from icefield.types.sort_keys import BYTES, FLOATS
from icefield.types.values.binary import unscaled

Bools = npt.NDArray[np.bool_]

_MANY_VALUES = 100


class Order(Protocol):
    """How to compare values; operands are whole columns, or the result of `operand` for one value."""

    def operand(self, value: Value) -> Any: ...

    def less(self, left: Any, right: Any) -> Bools: ...

    def equal(self, left: Any, right: Any) -> Bools: ...

    def among(self, column: Any, values: Sequence[Value]) -> Bools: ...

    def array(self, column: Any, unknown: Bools) -> pa.Array: ...

    def at(self, column: Any, chosen: Bools) -> Any: ...


@dataclass(frozen=True)
class OrderedColumn:
    """Values with one order; where `known` is False the value is undefined."""

    order: Order
    values: Any
    known: Bools

    def compare(self, operator: Operator, value: Value) -> Bools:
        """Return a mask of the values that are known and for which the comparison with the given value is true."""
        operand = self.order.operand(value)
        match operator:
            case Operator.LT:
                return self.known & self.order.less(self.values, operand)
            case Operator.GE:
                return self.known & ~self.order.less(self.values, operand)
            case Operator.GT:
                return self.known & self.order.less(operand, self.values)
            case Operator.LE:
                return self.known & ~self.order.less(operand, self.values)
            case Operator.EQ:
                return self.known & self.order.equal(self.values, operand)
            case Operator.NE:
                return self.known & ~self.order.equal(self.values, operand)

    def among(self, values: Sequence[Value]) -> Bools:
        """Return a mask of the values that are known and equal one of the given values."""
        return self.known & self.order.among(self.values, values)

    def same_as(self, other: "OrderedColumn") -> Bools:
        """Return a mask of the rows in which both values are known and equal."""
        return self.known & other.known & self.order.equal(self.values, other.values)

    def above(self, other: "OrderedColumn") -> Bools:
        """Return a mask of the rows in which both values are known and this one is greater."""
        return self.known & other.known & self.order.less(other.values, self.values)

    def array(self) -> pa.Array:
        """Return the values as an Arrow array of this order, null where unknown."""
        return self.order.array(self.values, ~self.known)

    def at(self, chosen: Bools) -> "OrderedColumn":
        """Return the chosen rows."""
        return OrderedColumn(self.order, self.order.at(self.values, chosen), self.known[chosen])

    def known_where(self, mask: Bools) -> "OrderedColumn":
        """Return the column with the values outside the mask unknown."""
        return replace(self, known=self.known & mask)


def any_within(lower: OrderedColumn, upper: OrderedColumn, values: Sequence[Value]) -> Bools:
    """Return a mask of the rows whose bounds may include one of the sorted values; an unknown bound excludes none."""
    if isinstance(lower.order, Numbers):
        return _any_number_within(lower, upper, np.array(values, lower.values.dtype))
    if len(values) > _MANY_VALUES:
        return ~lower.compare(Operator.GT, values[-1]) & ~upper.compare(Operator.LT, values[0])
    found = np.zeros(len(lower.known), np.bool_)
    for value in values:
        found |= ~lower.compare(Operator.GT, value) & ~upper.compare(Operator.LT, value)
    return found


def value_of(ordered: Any, kind: PrimitiveType) -> Value:
    """Convert a Python value from `OrderedColumn.array` to the in-memory value of a type."""
    match kind:
        case StringType():
            return str(ordered, "utf-8")
        case UUIDType():
            return uuid.UUID(bytes=ordered)
        case BooleanType():
            return bool(ordered)
        case _:
            return ordered  # type: ignore[no-any-return]


def column_of(array: pa.Array, kind: PrimitiveType) -> OrderedColumn:
    """Convert an Arrow column of this type (or of its physical type); null and NaN become unknown."""
    plain = physical_array(array)
    known = plain.is_valid().to_numpy(zero_copy_only=False)
    if isinstance(kind, DecimalType):
        return OrderedColumn(Wide(kind.scale), _halves(plain.cast(pa.decimal128(38, kind.scale))), known)
    if isinstance(kind, BYTES):
        return OrderedColumn(Bytes(), plain.cast(pa.binary()), known)
    if isinstance(kind, FLOATS):
        floats = pc.fill_null(plain.cast(pa.float64()), 0.0).to_numpy()
        return OrderedColumn(Numbers(), floats, known & ~np.isnan(floats))
    integers = pc.fill_null(plain.cast(pa.int64()), 0).to_numpy()
    return OrderedColumn(Numbers(), integers, known)


@dataclass(frozen=True)
class Numbers:
    """Integers, and floats without NaN; -0.0 equals 0.0."""

    def operand(self, value: Value) -> Any:
        return float(value) if isinstance(value, float) else int(value)

    def less(self, left: Any, right: Any) -> Bools:
        return np.asarray(left < right)

    def equal(self, left: Any, right: Any) -> Bools:
        return np.asarray(left == right)

    def among(self, column: Any, values: Sequence[Value]) -> Bools:
        if len(values) == 1:
            return self.equal(column, self.operand(values[0]))
        return np.isin(column, np.array(values, column.dtype))

    def array(self, column: Any, unknown: Bools) -> pa.Array:
        return pa.array(column, mask=unknown)

    def at(self, column: Any, chosen: Bools) -> Any:
        return column[chosen]


@dataclass(frozen=True)
class Wide:
    """Decimals of one scale as (high, low) halves of a 128-bit integer."""

    scale: int

    def operand(self, value: Value) -> Any:
        number = unscaled(value, self.scale)  # type: ignore[arg-type]
        return np.int64(number >> 64), np.uint64(number & 0xFFFF_FFFF_FFFF_FFFF)

    def less(self, left: Any, right: Any) -> Bools:
        (left_high, left_low), (right_high, right_low) = left, right
        return np.asarray((left_high < right_high) | ((left_high == right_high) & (left_low < right_low)))

    def equal(self, left: Any, right: Any) -> Bools:
        return np.asarray((left[0] == right[0]) & (left[1] == right[1]))

    def among(self, column: Any, values: Sequence[Value]) -> Bools:
        found = np.zeros(len(column[0]), np.bool_)
        for value in values:
            found |= self.equal(column, self.operand(value))
        return found

    def array(self, column: Any, unknown: Bools) -> pa.Array:
        high, low = column
        words = np.column_stack([low, high.view(np.uint64)])
        kind = pa.decimal128(MAX_DECIMAL_PRECISION, self.scale)
        whole = pa.Array.from_buffers(kind, len(words), [None, pa.py_buffer(words.tobytes())])
        return pc.if_else(pa.array(unknown), None, whole)

    def at(self, column: Any, chosen: Bools) -> Any:
        high, low = column
        return high[chosen], low[chosen]


@dataclass(frozen=True)
class Bytes:
    """Strings, bytes and UUIDs, as an Arrow binary column."""

    def operand(self, value: Value) -> Any:
        if isinstance(value, str):
            return pa.scalar(value.encode(), pa.binary())
        return pa.scalar(value.bytes if isinstance(value, uuid.UUID) else value, pa.binary())

    def less(self, left: Any, right: Any) -> Bools:
        return _bools(pc.less(left, right))

    def equal(self, left: Any, right: Any) -> Bools:
        return _bools(pc.equal(left, right))

    def among(self, column: Any, values: Sequence[Value]) -> Bools:
        return _bools(pc.is_in(column, value_set=pa.array([self.operand(v).as_py() for v in values], pa.binary())))

    def array(self, column: Any, unknown: Bools) -> pa.Array:
        return pc.if_else(pa.array(unknown), None, column)

    def at(self, column: Any, chosen: Bools) -> Any:
        return column.filter(pa.array(chosen))


def _bools(answer: pa.Array) -> Bools:
    return pc.fill_null(answer, fill_value=False).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _halves(array: pa.Array) -> tuple[Any, Any]:
    words = np.frombuffer(array.buffers()[1], "<u8")[2 * array.offset : 2 * (array.offset + len(array))]
    return words[1::2].view(np.int64), words[0::2]


def _any_number_within(lower: OrderedColumn, upper: OrderedColumn, values: npt.NDArray[Any]) -> Bools:
    first = np.where(lower.known, np.searchsorted(values, lower.values, side="left"), 0)
    reached = first < len(values)
    smallest = values[np.where(reached, first, 0)]
    return np.asarray(reached & (~upper.known | (smallest <= upper.values)))
