"""An open data file: its columns by id, the row groups that may match, and the deleted rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from icefield.errors import CorruptFile
from icefield.expr.bind.bound import Bound
from icefield.parquet.metrics import start_of
from icefield.parquet.read.deletes import DeletedRows, EqualityDeletes, Positions
from icefield.parquet.read.layout import Layouts
from icefield.parquet.read.project import Projection
from icefield.parquet.read.small_file import RUN_BYTES, open_small_file
from icefield.parquet.read.task import FileTask
from icefield.storage.sizes import check_size
from icefield.storage.store import Store
from icefield.types import metadata_columns
from icefield.types.arrow import arrow_field, arrow_schema, repeated_value
from icefield.types.datatypes import NestedField, StructType, Type, Value
from icefield.types.metadata_columns import DELETED, FILE, POSITION, ROW_ID, SPEC_ID, is_metadata_column
from icefield.types.schema import Schema

BATCH_ROWS = 65_536
BATCHES_AHEAD = 4
Keys = Sequence[tuple[EqualityDeletes, Projection]]


class OpenFile:
    """Reads the rows of one file.

    Raises Unsupported, MissingFile, CorruptFile for a file of another size, and Arrow's errors for corrupt bytes.
    """

    def __init__(self, store: Store, task: FileTask, layouts: Layouts) -> None:
        self._task = task
        source = store.open_input(task.location)
        check_size(task.location, source.size(), task.file_size_bytes)
        self._source = source
        self._small = open_small_file(source) if not task.is_part else None
        schema = self._fragment.physical_schema if self._small is None else self._small.schema_arrow
        self._layout = layouts.find(schema, task.location)

    @cached_property
    def _fragment(self) -> Any:
        return _fragment(self._source, "us")

    def rows(self, wanted: Schema, where: Bound, deleted: DeletedRows) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the row groups that may contain matches, with the wanted columns.

        Deleted rows are omitted, unless the column that marks them is selected.
        """
        by_id, columns = self._layout.by_id, self._layout.wanted(wanted, where)
        if columns.needs_nanoseconds:
            self._fragment, self._small = _fragment(self._source, "ns"), None
        constants = self._task.constants
        data = Projection(columns.stored, by_id, constants) if constants else columns.projection
        keys = [(k, Projection(k.fields, by_id, self._task.constants)) for k in deleted.keys]
        names = dict.fromkeys(chain(columns.names, *(projection.stored_names for _, projection in keys)))
        deletes = bool(keys or len(deleted.positions))
        for batch, positions in self._batches(list(names), columns.pushed):
            if not (deletes or columns.has_metadata):
                yield data.project(batch)
                continue
            keep = _kept(batch, positions, deleted.positions, keys)
            if not columns.marks_deleted and not keep.all():
                batch, positions, keep = batch.filter(pa.array(keep)), positions[keep], keep[keep]
            rows = data.project(batch)
            yield self._complete(rows, wanted, _Placed(positions, ~keep)) if columns.has_metadata else rows

    def _batches(self, names: list[str], pushed: pc.Expression | None) -> Iterator[tuple[pa.RecordBatch, Positions]]:
        """Yield batches with the positions of their rows in the whole file."""
        footer = self._fragment.metadata if self._small is None else self._small.metadata
        if self._task.file_size_bytes is not None and footer.num_rows != self._task.record_count:
            found, expected = footer.num_rows, self._task.record_count
            raise CorruptFile(self._task.location, f"it has {found:,} rows, but metadata says {expected:,}")
        if self._small is not None and (leaves := self._layout.leaves(names, footer.num_columns)):
            # The planner has judged the only row group, by the same statistics.
            rows = self._small.reader.read_row_group(0, column_indices=leaves, use_threads=False)
            yield from _placed(rows.to_batches(BATCH_ROWS))
            return
        starts = np.cumsum([0, *(footer.row_group(i).num_rows for i in range(footer.num_row_groups))])
        chosen = [group.id for group in self._chosen(pushed).row_groups]
        positions = _PositionsAhead([(starts[i], starts[i + 1]) for i in chosen])
        # Arrow prefetches everything that is requested, so a part of the file is requested at a time.
        for some in _runs(chosen, [footer.row_group(i).total_byte_size for i in chosen]):
            part = self._fragment.subset(row_group_ids=some)
            for batch in part.to_batches(
                columns=names, batch_size=BATCH_ROWS, batch_readahead=BATCHES_AHEAD, use_threads=True
            ):
                yield batch, positions.take(batch.num_rows)

    def _chosen(self, pushed: pc.Expression | None) -> Any:
        """Choose the row groups that may match and start in the task's part of the file."""
        fragment = self._fragment if pushed is None else self._fragment.subset(pushed)
        if not self._task.is_part:
            return fragment
        start, end, footer = self._task.start, self._task.end, self._fragment.metadata
        inside = [g.id for g in fragment.row_groups if start <= start_of(footer.row_group(g.id)) < end]
        return self._fragment.subset(row_group_ids=inside)

    def _complete(self, batch: pa.RecordBatch, wanted: Schema, placed: "_Placed") -> pa.RecordBatch:
        """Add the selected metadata columns, in schema order."""
        columns = [
            self._metadata_column(f, batch, placed) if is_metadata_column(f.field_id) else batch.column(f.name)
            for f in wanted.fields
        ]
        return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(wanted))

    def _metadata_column(self, field: NestedField, batch: pa.RecordBatch, placed: "_Placed") -> pa.Array:
        task, positions, rows = self._task, placed.positions, len(placed.positions)
        match field.field_id:
            case FILE.field_id:
                return pa.repeat(pa.scalar(task.location), rows)
            case POSITION.field_id:
                return pa.array(positions)
            case DELETED.field_id:
                return pa.array(placed.deleted)
            case SPEC_ID.field_id:
                return pa.array(np.full(rows, task.spec_id, np.int32))
            case metadata_columns.PARTITION_ID:
                return _repeated_struct(task.partition, field.type, rows)
        if task.first_row_id is None:
            # A snapshot from before the table had lineage. (spec: Row Lineage for Upgraded Tables)
            return pa.nulls(rows, pa.int64())
        inherited = (
            positions + task.first_row_id if field.field_id == ROW_ID.field_id else np.full(rows, task.sequence_number)
        )
        stored, whole = batch.column(field.name), pa.array(inherited, pa.int64())
        return whole if stored.null_count == rows else pc.coalesce(stored, whole)


def _fragment(source: pa.NativeFile, int96_unit: str) -> Any:
    """Open a file; INT96 timestamps are read with the given unit.

    Nanoseconds, Arrow's default, only cover the years 1677 to 2262.
    """
    return ds.ParquetFileFormat(coerce_int96_timestamp_unit=int96_unit).make_fragment(source)


@dataclass(frozen=True)
class _Placed:
    """The positions of a batch's rows in their file, and which of them are deleted."""

    positions: Positions
    deleted: npt.NDArray[np.bool_]


def _runs(groups: Sequence[int], sizes: Sequence[int]) -> Iterator[list[int]]:
    """Split row groups into runs of about one size; a larger row group is a run of its own."""
    run: list[int] = []
    held = 0
    for group, size in zip(groups, sizes, strict=True):
        if run and held + size > RUN_BYTES:
            yield run
            run, held = [], 0
        run.append(group)
        held += size
    if run:
        yield run


def _placed(batches: Sequence[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, Positions]]:
    """Yield consecutive batches of a whole file with the positions of their rows."""
    first = 0
    for batch in batches:
        yield batch, np.arange(first, first + batch.num_rows)
        first += batch.num_rows


class _PositionsAhead:
    """Yields the positions of rows in ranges of a file, in order."""

    def __init__(self, ranges: Sequence[tuple[int, int]]) -> None:
        self._ranges = list(reversed(ranges))

    def take(self, rows: int) -> Positions:
        taken: list[Positions] = []
        while rows:
            start, end = self._ranges.pop()
            middle = min(end, start + rows)
            taken.append(np.arange(start, middle))
            rows -= middle - start
            if middle < end:
                self._ranges.append((middle, end))
        return np.concatenate(taken) if taken else np.zeros(0, np.int64)


def _repeated_struct(values: Mapping[str, Value | None], kind: Type, rows: int) -> pa.StructArray:
    assert isinstance(kind, StructType)
    columns = [repeated_value(values.get(f.name), f.type, rows) for f in kind.fields]
    return pa.StructArray.from_arrays(columns, fields=[arrow_field(f) for f in kind.fields])


def _kept(batch: pa.RecordBatch, positions: Positions, deleted: Positions, keys: Keys) -> npt.NDArray[np.bool_]:
    keep = np.ones(batch.num_rows, np.bool_)
    if len(deleted) and len(positions):
        near = deleted[np.searchsorted(deleted, positions[0]) : np.searchsorted(deleted, positions[-1], "right")]
        keep &= ~np.isin(positions, near, assume_unique=True)
    for equality, projection in keys:
        keep &= ~equality.deleted(projection.project(batch))
    return keep
