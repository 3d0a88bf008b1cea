"""Rows as Arrow columns, with a Python type for each type of row.

The type of an Arrow table does not say what its rows are. A subclass of Rows does, and has its columns as attributes:

    >>> class Cities(Rows):
    ...     name: Column
    ...     people: Column
    >>> cities = Cities(pa.table({"name": ["Oslo", "Rome"], "people": [1, 3]}))
    >>> cities.choose(np.array([False, True])).name.to_pylist()
    ['Rome']
"""

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icefield.types.arrays import Mask

FEW = 64


Column = pa.ChunkedArray


class Rows:
    """Rows as columns. The table is checked once, where it is given a type.

    Subclasses annotate their columns as Column. With `partial=True` any of these columns may be missing, and a missing
    one must not be used.
    """

    REQUIRED: ClassVar[frozenset[str]] = frozenset()
    __slots__ = ("_column", "table")

    def __init_subclass__(cls, *, partial: bool = False) -> None:
        # Not from the namespace of the class: from Python 3.14 on, annotations are made when they are asked for.
        own = [name for name, kind in inspect.get_annotations(cls).items() if kind is Column]
        for name in own:
            # methodcaller adds no Python frame: columns are used far more often than tables are built.
            setattr(cls, name, property(methodcaller("_column", name)))
        cls.REQUIRED = cls.REQUIRED if partial else cls.REQUIRED.union(own)

    def __init__(self, table: pa.Table) -> None:
        if not set(table.column_names) >= self.REQUIRED:
            missing = ", ".join(sorted(self.REQUIRED - set(table.column_names)))
            raise TypeError(f"{type(self).__name__} without {missing}")
        self.table = table
        self._column = table.column

    def __reduce__(self) -> tuple[object, ...]:
        return self.trusted, (self.table,)

    @classmethod
    def trusted(cls, table: pa.Table) -> Self:
        """Wrap a table that is known to have the columns, without the check."""
        made = cls.__new__(cls)
        made.table = table
        made._column = table.column  # noqa: SLF001 - it is made here
        return made

    @classmethod
    def concat(cls, parts: Iterable[Self]) -> Self:
        """Concatenate one or more parts, in order; a column that is missing from a part is null there."""
        tables = [part.table for part in parts]
        if len(tables) == 1:
            return cls.trusted(tables[0])
        alike = all(table.schema == tables[0].schema for table in tables)
        if alike:
            return cls.trusted(pa.concat_tables(tables))
        return cls.trusted(pa.concat_tables(with_types_of_values(tables), promote_options="permissive"))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Rows) and bool(self.table.equals(other.table))

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        return self.table.column(name)

    def __contains__(self, name: str) -> bool:
        return bool(self.table.schema.get_field_index(name) >= 0)

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("rows are columns; iterate over to_pylist()")

    if TYPE_CHECKING:
        num_rows: int
        column_names: Sequence[str]
    else:
        num_rows = property(attrgetter("table.num_rows"), doc="How many rows there are.")
        column_names = property(attrgetter("table.column_names"), doc="The names of the columns, in order.")

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as Python values."""
        rows: list[dict[str, Any]] = self.table.to_pylist()
        return rows

    def choose(self, chosen: Mask) -> Self:
        """Return the selected rows; all and none, the most common cases, cost nothing."""
        count = np.count_nonzero(chosen)
        if count == len(chosen):
            return self
        if count == 0:
            return self.slice(0, 0)
        if len(chosen) <= FEW:
            first = int(chosen.argmax())
            if np.count_nonzero(chosen[first : first + count]) == count:
                # In small tables only: a slice of a large one would keep all of its rows in memory.
                return self.slice(first, int(count))
        return self.trusted(self.table.filter(pa.array(chosen)))

    def filter(self, chosen: pa.Array | pa.ChunkedArray) -> Self:
        """Return the rows for which a condition is true."""
        if len(chosen) <= FEW and not chosen.null_count:
            return self.choose(chosen.to_numpy(zero_copy_only=False))
        return self.trusted(self.table.filter(chosen))

    def take(self, indices: pa.Array | npt.NDArray[np.int64] | Sequence[int]) -> Self:
        """Return rows by number."""
        return self.trusted(
            self.table.take(indices if isinstance(indices, pa.Array) else pa.array(indices, pa.int64()))
        )

    def sort_by(self, *names: str) -> Self:
        """Return the rows in ascending order of some columns."""
        return self.trusted(self.table.sort_by([(name, "ascending") for name in names]))

    def slice(self, start: int, count: int) -> Self:
        """Return consecutive rows."""
        return self.trusted(self.table.slice(start, count))

    def replaced(self, columns: Mapping[str, pa.Array | pa.ChunkedArray]) -> Self:
        """Return the rows with some columns replaced."""
        table = self.table
        for name, column in columns.items():
            table = table.set_column(table.schema.get_field_index(name), name, column)
        return self.trusted(table)

    def extended(self, columns: Mapping[str, pa.Array | pa.ChunkedArray]) -> Self:
        """Return the rows with columns added."""
        table = self.table
        for name, column in columns.items():
            table = table.append_column(name, column)
        return self.trusted(table)

    def select(self, names: Sequence[str]) -> Self:
        """Return the rows with some of their columns, which must include all that are required."""
        return type(self)(self.table.select(names))

    def without(self, names: Iterable[str]) -> Self:
        """Return the rows without some optional columns."""
        dropped = list(names)
        return self.trusted(self.table.drop_columns(dropped)) if dropped else self


def with_types_of_values(tables: Sequence[pa.Table]) -> list[pa.Table]:
    """Give columns that have nulls alone the type that they have elsewhere.

    A void partition field is of its source's type, which may have been promoted since: from date to timestamp.
    """
    first, found = tables[0].schema, list(tables)
    if all(table.schema.equals(first) for table in tables):
        return found
    for name in first.names:
        having = [at for at, table in enumerate(found) if name in table.column_names]
        types = {found[at].schema.field(name).type for at in having}
        if len(types) > 1:
            kinds = [found[at].schema.field(name).type for at in having if found[at][name].null_count < len(found[at])]
            kind = kinds[-1] if kinds else found[having[-1]].schema.field(name).type
            for at in having:
                place, rows = found[at].column_names.index(name), len(found[at])
                if found[at][name].null_count == rows:
                    found[at] = found[at].set_column(place, name, pa.nulls(rows, kind))
    return found
