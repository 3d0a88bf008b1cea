"""Bound values: trees over typed columns that evaluate on record batches, a whole array at a time.

A value that can fail (an overflow, a division by zero) is evaluated only for the rows that need it, as in Spark:
`CASE WHEN x <> 0 THEN 1 / x END` does not divide by zero. Trees are frozen and can be pickled.
Raises InvalidInput where Spark fails in ANSI mode.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.errors import InvalidInput
from icefield.types.arrow import arrow_type, repeated_value
from icefield.types.datatypes import BooleanType, PrimitiveType, Type
from icefield.types.datatypes import Value as PlainValue

Batches = Mapping[str, pa.RecordBatch]
Kernel = Callable[..., pa.Array]


@dataclass(frozen=True)
class ColumnReference:
    """A column that a value reads: its side, its field id, and its path of names."""

    side: str
    field_id: int
    path: tuple[str, ...]


@dataclass(frozen=True)
class Rows:
    """The rows that a value is evaluated on: for each side a batch with the columns of its schema by name."""

    batches: Batches
    count: int

    def where(self, mask: pa.BooleanArray, references: Iterable[ColumnReference]) -> "Rows":
        """Return some of the rows, with the columns of these references only."""
        names: dict[str, list[str]] = {}
        for reference in references:
            names.setdefault(reference.side, []).append(reference.path[0])
        kept = {side: self.batches[side].select(sorted(set(some))).filter(mask) for side, some in names.items()}
        return Rows(kept, pc.sum(mask).as_py() or 0)


@dataclass(frozen=True)
class Value(ABC):
    """A typed expression."""

    type: Type

    @property
    def children(self) -> tuple["Value", ...]:
        return ()

    @cached_property
    def can_fail(self) -> bool:
        """Whether the evaluation raises for some rows."""
        return any(child.can_fail for child in self.children)

    @cached_property
    def references(self) -> frozenset[ColumnReference]:
        """The columns that it reads."""
        return frozenset(reference for child in self.children for reference in child.references)

    def evaluate(self, batches: Batches, num_rows: int) -> pa.Array:
        """Return the value of every row; the batches hold the columns of `references` under their names."""
        try:
            return self.array(Rows(batches, num_rows))
        except RecursionError as error:
            raise InvalidInput("the expression is nested too deeply") from error

    @abstractmethod
    def array(self, rows: Rows) -> pa.Array:
        """Return the value of every row."""

    def array_where(self, rows: Rows, mask: pa.BooleanArray) -> pa.Array:
        """Return the values of all rows, those outside of the mask undefined; none of them can fail."""
        if not self.can_fail:
            return self.array(rows)
        found = self.array(rows.where(mask, self.references))
        if len(found) == rows.count:
            return found
        chosen = np.asarray(mask)
        return found.take(pa.array(np.cumsum(chosen) - 1, mask=~chosen))


@dataclass(frozen=True)
class Column(Value):
    """A column, or a field of a struct."""

    reference: ColumnReference

    @cached_property
    def references(self) -> frozenset[ColumnReference]:
        return frozenset((self.reference,))

    def array(self, rows: Rows) -> pa.Array:
        first, *inner = self.reference.path
        found = rows.batches[self.reference.side].column(first)
        for name in inner:
            found = pc.struct_field(found, name)
        wanted = arrow_type(self.type)
        if found.type == wanted or not isinstance(self.type, PrimitiveType):
            return found
        return found.cast(wanted)


@dataclass(frozen=True)
class Constant(Value):
    """A literal; `value` has the in-memory form of its type, or is None for null."""

    value: PlainValue | None

    def array(self, rows: Rows) -> pa.Array:
        return repeated_value(self.value, self.type, rows.count)


@dataclass(frozen=True)
class Call(Value):
    """A function of arrays. `checked`: whether it raises for some values; `strict`: whether it is null if one is.

    As in Spark, an argument of a strict function is not evaluated where the one before it is null; `last_first`: the
    last argument is evaluated first.
    """

    kernel: Kernel
    arguments: tuple[Value, ...]
    checked: bool = False
    strict: bool = True
    last_first: bool = False

    @property
    def children(self) -> tuple[Value, ...]:
        return self.arguments

    @cached_property
    def can_fail(self) -> bool:
        return self.checked or any(child.can_fail for child in self.children)

    def array(self, rows: Rows) -> pa.Array:
        if not self.strict or len(self.arguments) == 1:
            return self.kernel(*(argument.array(rows) for argument in self.arguments))
        ordered = reversed(self.arguments) if self.last_first else iter(self.arguments)
        found = [next(ordered).array(rows)]
        for argument in ordered:
            before = found[-1]
            found.append(argument.array_where(rows, before.is_valid()) if before.null_count else argument.array(rows))
        return self.kernel(*(reversed(found) if self.last_first else found))


@dataclass(frozen=True)
class And(Value):
    """AND with SQL's three truth values; the right side is evaluated where the left one is not false."""

    left: Value
    right: Value

    @property
    def children(self) -> tuple[Value, ...]:
        return (self.left, self.right)

    def array(self, rows: Rows) -> pa.Array:
        left = self.left.array(rows)
        return pc.and_kleene(left, self.right.array_where(rows, pc.fill_null(left, True)))


@dataclass(frozen=True)
class Or(Value):
    """OR with SQL's three truth values; the right side is evaluated where the left one is not true."""

    left: Value
    right: Value

    @property
    def children(self) -> tuple[Value, ...]:
        return (self.left, self.right)

    def array(self, rows: Rows) -> pa.Array:
        left = self.left.array(rows)
        undecided = pc.invert(pc.fill_null(left, False))
        return pc.or_kleene(left, self.right.array_where(rows, undecided))


@dataclass(frozen=True)
class Choose(Value):
    """CASE: the value of the first branch whose condition is true, else `otherwise`."""

    branches: tuple[tuple[Value, Value], ...]
    otherwise: Value

    @property
    def children(self) -> tuple[Value, ...]:
        return (*(each for branch in self.branches for each in branch), self.otherwise)

    def array(self, rows: Rows) -> pa.Array:
        undecided = repeated_value(True, BooleanType(), rows.count)
        chosen = []
        for condition, value in self.branches:
            is_true = pc.fill_null(condition.array_where(rows, undecided), False)
            mask = pc.and_(is_true, undecided)
            undecided = pc.and_not(undecided, mask)
            chosen.append((mask, value))
        result = self.otherwise.array_where(rows, undecided)
        for mask, value in chosen:
            result = if_else(mask, value.array_where(rows, mask), result)
        return result


@dataclass(frozen=True)
class Coalesce(Value):
    """The first value that is not null."""

    parts: tuple[Value, ...]

    @property
    def children(self) -> tuple[Value, ...]:
        return self.parts

    def array(self, rows: Rows) -> pa.Array:
        result = self.parts[0].array(rows)
        for part in self.parts[1:]:
            if result.null_count == 0:
                break
            mask = result.is_null()
            result = if_else(mask, part.array_where(rows, mask), result)
        return result


def if_else(mask: pa.BooleanArray, left: pa.Array, right: pa.Array) -> pa.Array:
    """Choose row by row between arrays of one type."""
    if isinstance(left.type, pa.BaseExtensionType):
        chosen: Any = pc.if_else(mask, left.storage, right.storage)
        return pa.ExtensionArray.from_storage(left.type, chosen)
    return pc.if_else(mask, left, right)
