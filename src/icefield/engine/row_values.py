"""Clauses bound to the columns of a table and of a source, and evaluated on rows of both.

    condition     rows -> the rows for which it is true
    assignments   rows -> new rows, with the columns of the table

Rows are numbers into a batch of the table and into the source, so that only the columns that an expression needs are
copied. Bound clauses are picklable.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.engine.change import Clause, Effect
from icefield.errors import SchemaMismatch
from icefield.types.arrays import Longs, Mask
from icefield.types.datatypes import NestedField


@dataclass(frozen=True)
class Column:
    """A column of one side, by name."""

    side: str
    name: str


@dataclass(frozen=True)
class Side:
    """The rows of one side: which rows of a batch."""

    batch: pa.RecordBatch
    numbers: Longs

    def select(self, names: Iterable[str]) -> pa.RecordBatch:
        """Return the rows with some columns."""
        chosen = sorted(set(names))
        return self.batch.select(chosen).take(pa.array(self.numbers))

    def column(self, name: str) -> pa.Array:
        """Return one column of the rows."""
        return self.batch.column(name).take(pa.array(self.numbers))


@dataclass(frozen=True)
class Rows:
    """Rows of the table, source rows, or pairs of both; by the names of the sides."""

    sides: Mapping[str, Side]
    count: int

    def where(self, mask: Mask) -> "Rows":
        """Return some of the rows."""
        kept = {name: Side(side.batch, side.numbers[mask]) for name, side in self.sides.items()}
        return Rows(kept, int(mask.sum()))

    def slices(self, most: int) -> Iterator["Rows"]:
        """Yield the rows, at most so many at a time."""
        for start in range(0, self.count, most):
            end = min(self.count, start + most)
            yield Rows(
                {name: Side(side.batch, side.numbers[start:end]) for name, side in self.sides.items()}, end - start
            )

    def batches(self, columns: Iterable[Column]) -> dict[str, pa.RecordBatch]:
        """Return the rows of each side with some columns."""
        names: dict[str, list[str]] = {}
        for column in columns:
            names.setdefault(column.side, []).append(column.name)
        return {side: self.sides[side].select(some) for side, some in names.items()}


class RowExpression(Protocol):
    """A value for each row; picklable."""

    @property
    def columns(self) -> frozenset[Column]:
        """The columns that it reads."""
        ...

    def evaluate(self, rows: Rows) -> pa.Array:
        """Return the values."""
        ...


@dataclass(frozen=True)
class FieldOfSource:
    """The value of a column of the source, or of a field inside a struct."""

    side: str
    path: tuple[str, ...]

    @property
    def columns(self) -> frozenset[Column]:
        return frozenset((Column(self.side, self.path[0]),))

    def evaluate(self, rows: Rows) -> pa.Array:
        found = rows.sides[self.side].column(self.path[0])
        for name in self.path[1:]:
            found = pc.struct_field(found, name)
        return found


@dataclass(frozen=True)
class StructFields:
    """New values for some fields of a struct. copied: the struct of the source that they come from, if all of them do.

    As in Spark, a new struct is null where the copied one is null; an updated one only where both it and the copied one
    are. (Spark: AssignmentUtils)
    """

    fields: Mapping[str, "RowExpression | StructFields"]
    copied: FieldOfSource | None = None

    @property
    def columns(self) -> frozenset[Column]:
        """The columns that it reads."""
        return frozenset().union(*(value.columns for value in self.fields.values()))

    def inserted(self, rows: Rows) -> pa.StructArray:
        """Return the struct of new rows; fields that are not assigned are added later, with their default."""
        arrays = [
            value.inserted(rows) if isinstance(value, StructFields) else value.evaluate(rows)
            for value in self.fields.values()
        ]
        mask = None if self.copied is None else self.copied.evaluate(rows).is_null()
        return pa.StructArray.from_arrays(arrays, names=list(self.fields), mask=mask)

    def updated(self, old: pa.StructArray, rows: Rows) -> pa.StructArray:
        """Return the struct with its other fields kept."""
        arrays = []
        for inner, each in zip(old.flatten(), old.type, strict=True):
            value = self.fields.get(each.name)
            if value is None:
                arrays.append(inner)
            else:
                arrays.append(value.updated(inner, rows) if isinstance(value, StructFields) else value.evaluate(rows))
        mask = None if self.copied is None else pc.and_(old.is_null(), self.copied.evaluate(rows).is_null())
        return pa.StructArray.from_arrays(arrays, names=[each.name for each in old.type], mask=mask)


Assigned = Mapping[str, RowExpression | StructFields]


@dataclass(frozen=True)
class BoundClause:
    """A clause with bound expressions. fields: the columns of new rows. target: the name of the table's side."""

    clause: Clause
    fields: tuple[NestedField, ...]
    target: str
    condition: RowExpression | None = None
    assigned: Assigned = field(default_factory=dict)

    @property
    def columns(self) -> frozenset[Column]:
        """The columns that it reads."""
        read = self.condition.columns if self.condition else frozenset()
        if self.clause.effect is Effect.UPDATE:
            whole = {name for name, value in self.assigned.items() if not isinstance(value, StructFields)}
            read |= {Column(self.target, f.name) for f in self.fields if f.name not in whole}
        return read.union(*(value.columns for value in self.assigned.values()))

    def applies_to(self, rows: Rows) -> Mask:
        """Return a mask of the rows for which the condition is true."""
        if self.condition is None:
            return np.ones(rows.count, np.bool_)
        found = self.condition.evaluate(rows).fill_null(False)
        return found.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]

    def new_rows(self, rows: Rows) -> dict[str, pa.Array]:
        """Return the columns of the rows after the change; those with their default are missing."""
        if self.clause.effect is Effect.INSERT:
            self._check_required(rows.count)
            return {
                name: value.inserted(rows) if isinstance(value, StructFields) else value.evaluate(rows)
                for name, value in self.assigned.items()
            }
        found: dict[str, pa.Array] = {}
        for each in self.fields:
            value = self.assigned.get(each.name)
            if value is not None and not isinstance(value, StructFields):
                found[each.name] = value.evaluate(rows)
            else:
                old = rows.sides[self.target].column(each.name)
                found[each.name] = old if value is None else value.updated(old, rows)
        return found

    def _check_required(self, rows: int) -> None:
        for each in self.fields:
            if each.name not in self.assigned and each.required and each.write_default is None:
                raise SchemaMismatch(
                    f"cannot insert {rows} row{'s' if rows > 1 else ''}: the required column {each.name!r} gets no "
                    "value, and has no default",
                    hint="Assign it in the clause, or include it in the source",
                )
