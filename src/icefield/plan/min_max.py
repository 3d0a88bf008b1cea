"""The minimum or maximum of a column: from bounds if they are exact, else from as few files as possible.

    exact       every row matches, none is deleted, and the bound is a value of the file: nothing is read
    candidate   its bounds allow a better value than the best so far: read, the most promising first

Bounds of strings and bytes may be truncated: they are not exact, but still prune files. Partition values are exact.
NaN is greater than every number, as in Spark: it is the minimum only if there is no other value.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest.columns import ManifestColumns
from icefield.codec.manifest.rows import ManifestEntries
from icefield.expr.bind.bound import Bound, Compare, NotNull, Reference
from icefield.expr.parse.ast import Operator
from icefield.expr.prune.ordered import column_of, value_of
from icefield.expr.prune.statistics import FieldStatistics
from icefield.model.partition import PartitionSpec
from icefield.plan.entries_of_files import INHERITED
from icefield.plan.file_statistics import column_statistics, partition_statistics
from icefield.plan.partition.constants import identity_sources
from icefield.plan.plan import ScanPlan
from icefield.types.arrays import Mask
from icefield.types.arrow import arrow_array, arrow_type
from icefield.types.datatypes import BooleanType
from icefield.types.metadata_columns import is_metadata_column
from icefield.types.schema import Schema
from icefield.types.sort_keys import BYTES

# Reads some files of a plan, by their rows in it, for values that match the `better` filter; yields the best of each.
ReadBest = Callable[[Sequence[int], Bound], Iterator["Best"]]


class Side(Enum):
    """Minimum or maximum; the operator is how a better value compares with another."""

    LEAST = Operator.LT
    GREATEST = Operator.GT

    def pick(self, values: pa.Array) -> pa.Scalar:
        """Return the value at this end."""
        return pc.min(values) if self is Side.LEAST else pc.max(values)

    def compare(self, values: pa.Array, value: pa.Scalar) -> pa.Array:
        """Return which values are closer to this end than the given one."""
        return pc.less(values, value) if self is Side.LEAST else pc.greater(values, value)


@dataclass(frozen=True)
class MinMax:
    """The column, and which end of its values."""

    reference: Reference
    side: Side

    @property
    def columns(self) -> ManifestColumns:
        """The manifest columns that are needed."""
        field_id = self.reference.field_id
        want = ManifestColumns((*INHERITED, "record_count"))
        return want if is_metadata_column(field_id) else want.with_statistics([field_id])


def find_min_max(
    wanted: MinMax,
    plan: ScanPlan,
    listed: Iterable[tuple[PartitionSpec, ManifestEntries]],
    read: ReadBest,
    width: int = 1,
) -> pa.Scalar:
    """Find the value, or null if there is none. width: how many files are read concurrently."""
    known = [_known(wanted, plan, spec, entries) for spec, entries in listed]
    best = Best(wanted)
    for files in known:
        best.exact(files)
    promising = [candidate for files in known for candidate in best.candidates(files)]
    waiting = iter(_most_promising_first(promising, wanted.side))
    while some := list(islice((c.row for c in waiting if best.may_lose_to(c)), width)):
        for found in read(some, best.beaten_by()):
            best.merge(found)
    return best.scalar()


@dataclass(frozen=True)
class _Known:
    """What metadata says about some planned files.

    bound: at the wanted end, in the form of `OrderedColumn.array`. exact: where it is a value that the scan has.
    open_value, open_nan: whether there may be other values, or a NaN. sure_nan: whether there certainly is one.
    """

    rows: pa.Array
    bound: pa.Array
    exact: Mask
    open_value: Mask
    sure_nan: Mask
    open_nan: Mask


@dataclass(frozen=True)
class _Candidate:
    row: int
    bound: Any
    open_value: bool
    open_nan: bool


class Best:
    """The best value so far, in the form of `OrderedColumn.array`, and whether there was a NaN; picklable."""

    def __init__(self, wanted: MinMax) -> None:
        self._reference = wanted.reference
        self._side = wanted.side
        self.value: Any = None
        self.saw_nan = False

    def exact(self, files: _Known) -> None:
        """Use the files that need no reading."""
        self.saw_nan |= bool(files.sure_nan.any())
        self._take(files.bound.filter(pa.array(files.exact)))

    def candidates(self, files: _Known) -> Iterator[_Candidate]:
        """Yield the files that may hold a better value."""
        hopeful = files.open_value
        if self.value is not None:
            better = self._side.compare(files.bound, pa.scalar(self.value, files.bound.type))
            hopeful = hopeful & pc.fill_null(better, fill_value=True).to_numpy(zero_copy_only=False)
        for at in np.flatnonzero(hopeful | files.open_nan):
            bound, row = files.bound[at].as_py(), files.rows[at].as_py()
            yield _Candidate(row, bound, bool(hopeful[at]), bool(files.open_nan[at]))

    def may_lose_to(self, candidate: _Candidate) -> bool:
        """Return whether the file may still hold a better value."""
        if self._side is Side.GREATEST and self.saw_nan:
            return False
        nan_matters = not self.saw_nan and (self._side is Side.GREATEST or self.value is None)
        if candidate.open_nan and nan_matters:
            return True
        return candidate.open_value and (candidate.bound is None or self._is_better(candidate.bound))

    def beaten_by(self) -> Bound:
        """Return the filter for values that are better than the best so far."""
        kind = self._reference.type
        if self.value is None or isinstance(kind, BooleanType):
            return NotNull(self._reference)
        return Compare(self._reference, self._side.value, value_of(self.value, kind))

    def add(self, values: pa.Array) -> None:
        """Update the best with values that were read."""
        ordered = column_of(values, self._reference.type)
        self.saw_nan |= bool((values.is_valid().to_numpy(zero_copy_only=False) & ~ordered.known).any())
        self._take(ordered.array())

    def merge(self, other: "Best") -> None:
        """Update the best with a result of another process."""
        self.saw_nan |= other.saw_nan
        if other.value is not None and self._is_better(other.value):
            self.value = other.value

    def scalar(self) -> pa.Scalar:
        """Return the result as a value of the column's type."""
        kind = self._reference.type
        if self.saw_nan and (self._side is Side.GREATEST or self.value is None):
            return pa.scalar(math.nan, arrow_type(kind))
        value = None if self.value is None else value_of(self.value, kind)
        return arrow_array([value], kind)[0]

    def _take(self, ordered: pa.Array) -> None:
        found = self._side.pick(ordered).as_py()
        if found is not None and self._is_better(found):
            self.value = found

    def _is_better(self, other: Any) -> bool:
        if self.value is None:
            return True
        return bool(other < self.value if self._side is Side.LEAST else other > self.value)


def _known(wanted: MinMax, plan: ScanPlan, spec: PartitionSpec, entries: ManifestEntries) -> _Known:
    rows = pc.index_in(entries.file_path, value_set=plan.files.file_path).combine_chunks()
    planned = plan.files.take(rows)
    whole = pc.and_(planned.must_match, planned.delete_keys.is_null()).to_numpy()
    source = _statistics(wanted.reference, plan.version.schema, spec, entries)
    if source is None:
        return _nothing_known(rows, wanted.reference)
    bounds = source.of_column.lower if wanted.side is Side.LEAST else source.of_column.upper
    exact = whole & bounds.known if source.is_exact else np.zeros(len(rows), np.bool_)
    sure_nan = whole & source.has_nan
    statistics = source.of_column
    return _Known(
        rows, bounds.array(), exact, statistics.may_be_value & ~exact, sure_nan, statistics.may_be_nan & ~sure_nan
    )


@dataclass(frozen=True)
class _Source:
    """The bounds; is_exact: they are values of the column, has_nan: whether there certainly is a NaN."""

    of_column: FieldStatistics
    is_exact: bool
    has_nan: Mask


def _statistics(reference: Reference, schema: Schema, spec: PartitionSpec, entries: ManifestEntries) -> _Source | None:
    for term in identity_sources(spec, schema):
        if term.source_id == reference.field_id:
            values = partition_statistics(entries, spec, schema)(term.field_id)
            if values is not None:
                return _Source(values, is_exact=True, has_nan=values.may_be_nan)
    columns = column_statistics(entries, schema)(reference.field_id)
    if columns is None:
        return None
    if is_metadata_column(reference.field_id):
        # It is not a statistic of the file, only a bound, which no row needs to have.
        return _Source(columns, is_exact=False, has_nan=np.zeros(entries.num_rows, np.bool_))
    nans = pc.fill_null(entries[f"nan_count.{reference.field_id}"], 0).to_numpy()
    has_nan = columns.may_be_nan & (nans > 0)
    return _Source(columns, not isinstance(reference.type, BYTES), has_nan)


def _nothing_known(rows: pa.Array, reference: Reference) -> _Known:
    none, every = np.zeros(len(rows), np.bool_), np.ones(len(rows), np.bool_)
    unknown = column_of(pa.nulls(len(rows), arrow_type(reference.type)), reference.type).array()
    return _Known(rows, unknown, none, every, none, every)


def _most_promising_first(candidates: Sequence[_Candidate], side: Side) -> list[_Candidate]:
    unknown = [candidate for candidate in candidates if candidate.bound is None]
    known = [candidate for candidate in candidates if candidate.bound is not None]
    # A good bound early prunes other files; a file without a bound may hold anything, so it is read last.
    return [*sorted(known, key=lambda c: c.bound, reverse=side is Side.GREATEST), *unknown]
