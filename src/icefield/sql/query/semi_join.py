"""Keys of small tables as filters of the tables that they are joined with.

    SELECT * FROM orders WHERE id IN (SELECT order_id FROM items WHERE sku = 'a')
      ->  orders: id IN (3, 17, 40)

If the filtered files of one side have few rows, the keys in them are read before the query is planned, of the version
that the query reads. Up to a thousand keys become a set, more of them a range.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icefield.engine.queries.probe import Keys
from icefield.errors import InvalidFilter
from icefield.expr.bind.bind import find_reference
from icefield.expr.bind.bound import TRUE, Bound, Compare, NotNull, all_of, conjuncts, one_of
from icefield.expr.bind.bound import Reference as BoundColumn
from icefield.expr.parse.ast import Column, Operator
from icefield.sql.query.references import Reference
from icefield.types.datatypes import (
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
    Value,
)

MOST_ROWS = 10_000
MOST_KEY_BYTES = 64 * 1024 * 1024
MOST_KEYS = 1_000
FEW_FILES = 8

_NUMBERS = {DateType: pa.int32(), TimestampType: pa.int64(), TimestamptzType: pa.int64()}
_KINDS = (IntegerType, LongType, DecimalType, StringType, *_NUMBERS)


@dataclass(frozen=True)
class Occurrence:
    """A table in a plan, and the filter of its rows there."""

    table: int
    where: Bound


def key_filters(
    tables: Sequence[Reference], occurrences: Sequence[Occurrence], keys: Sequence[Keys]
) -> Mapping[int, Bound]:
    """Return filters by keys of other tables, by the index of the occurrence that they restrict."""
    reader = _KeyReader(tables, occurrences)
    found: dict[int, Bound] = {}
    for key in keys:
        where = reader.find(key)
        if where is not None:
            found[key.target] = all_of(found.get(key.target, TRUE), where)
    return found


class _KeyReader:
    """Reads keys, each column of an occurrence once."""

    def __init__(self, tables: Sequence[Reference], occurrences: Sequence[Occurrence]) -> None:
        self._tables = tables
        self._occurrences = occurrences
        self._read: dict[tuple[int, int], pa.Array | None] = {}
        self._files: dict[int, int] = {}

    def find(self, key: Keys) -> Bound | None:
        """Return the filter by the keys of a join; None if it is not worthwhile."""
        target, source = self._column(key.target, key.target_column), self._column(key.source, key.source_column)
        is_same = target is not None and source is not None and target.type == source.type
        if target is None or source is None or not is_same or not isinstance(target.type, _KINDS):
            return None
        if key.target == key.source or not _is_selective(self._occurrences[key.source].where):
            return None
        if self._file_count(key.target) < FEW_FILES:
            return None
        values = self._values(key.source, source)
        return None if values is None else _filter_of(target, values)

    def _column(self, occurrence: int, name: str) -> BoundColumn | None:
        schema = self._tables[self._occurrences[occurrence].table].version.schema
        try:
            return find_reference(Column((name,)), schema)
        except InvalidFilter:
            return None

    def _file_count(self, occurrence: int) -> int:
        if occurrence not in self._files:
            each = self._occurrences[occurrence]
            self._files[occurrence] = self._tables[each.table].scan(each.where).files().num_rows
        return self._files[occurrence]

    def _values(self, occurrence: int, column: BoundColumn) -> pa.Array | None:
        at = (occurrence, column.field_id)
        if at not in self._read:
            each = self._occurrences[occurrence]
            self._read[at] = _read_values(self._tables[each.table], each.where, column)
        return self._read[at]


def _is_selective(where: Bound) -> bool:
    return any(not isinstance(part, NotNull) for part in conjuncts(where))


def _read_values(table: Reference, where: Bound, column: BoundColumn) -> pa.Array | None:
    """Return the distinct values of a column that are not null; None if too much would have to be read."""
    scan = table.scan(where, [table.version.schema.name_of(column.field_id)])
    files = scan.files()
    rows, size = pc.sum(files["record_count"]).as_py() or 0, pc.sum(files["file_size_in_bytes"]).as_py() or 0
    if rows > MOST_ROWS or size > MOST_KEY_BYTES:
        return None
    read = scan.to_arrow().read_all().column(0)
    return pc.unique(read.drop_null()).sort()


def _filter_of(column: BoundColumn, values: pa.Array) -> Bound:
    number = _NUMBERS.get(type(column.type))
    plain: list[Value] = (values if number is None else values.cast(number)).to_pylist()
    if len(plain) <= MOST_KEYS:
        return one_of(column, plain)
    return all_of(Compare(column, Operator.GE, plain[0]), Compare(column, Operator.LE, plain[-1]))
