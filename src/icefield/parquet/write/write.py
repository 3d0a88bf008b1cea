"""Write rows to Parquet data files, one set of files per task, and report them as manifest columns.

A `WritePlan` has the settings that a task needs, and is sent to Spark's workers; a `DataWriter` takes batches, splits
them by partition, rolls files at the target size and returns one row per file. Files are written once, under their
final name, which contains the write id and the task: a retry never collides with another attempt's file, and files of
a write that did not commit can be identified. It ends in a fingerprint of the file's columns (`stored_columns`).

Raises SchemaMismatch for rows that do not fit the schema; after any error the caller calls `abort`.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from icefield.codec.manifest.rows import DataFiles
from icefield.errors import IcefieldError
from icefield.parquet.metrics import Bounds, WriterMetrics, footer_metrics
from icefield.parquet.nan_columns import NaNColumn, column_at, columns_with_statistics, count_nans, float_leaves
from icefield.parquet.read.stored_columns import file_name, fingerprint_of, stored_columns
from icefield.parquet.write.conform import conform_batch
from icefield.parquet.write.data_files import DataFile, as_columns
from icefield.parquet.write.dictionary import columns_with_dictionary
from icefield.parquet.write.geo_columns import as_parquet
from icefield.parquet.write.long_values import long_bounds
from icefield.parquet.write.options import ColumnChoice, open_writer
from icefield.parquet.write.order_check import OrderCheck
from icefield.parquet.write.plan import WritePlan
from icefield.storage.store import NewFile, Store
from icefield.types.arrow import python_values
from icefield.types.arrow_keys import comparable, encode_keys
from icefield.types.datatypes import PrimitiveType, Type, Value

MAX_OPEN_FILES = 64
MAX_BUFFERED_BYTES = 256 * 1024 * 1024
MAX_ROW_GROUP_ROWS = 1_048_576
PIECES_PER_FILE = 8
BATCH_OVERHEAD_BYTES = 4096  # Arrow's memory for a batch of a few columns, besides its values
# File systems allow names of 255 bytes and paths of 4096; rows with a long partition value must still be writable.
MAX_DIRECTORY_NAME = 128


class DataWriter:
    """Writes one task's rows."""

    def __init__(self, plan: WritePlan, store: Store, task: str) -> None:
        self._plan = plan
        self._store = store
        self._task = task
        self._fingerprint = fingerprint_of(stored_columns(plan.schema))
        self._count = 0
        self._open: OrderedDict[bytes, _OpenFile] = OrderedDict()  # by the partition's key
        self._finished: list[DataFile] = []
        self._held_bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows, in any column order; they are checked against the table's schema."""
        if batch.num_rows == 0:
            return
        rows = conform_batch(batch, self._plan.schema)
        self._held_bytes += rows.nbytes
        for partition, part in _split(rows, self._plan):
            for piece, size_bytes in _pieces(part, self._plan):
                nans = count_nans(piece, self._plan.schema)
                if not self._file(partition).may_take(nans):
                    self._finish(partition.key)
                self._file(partition).add(piece, size_bytes, nans)
                self._roll(partition.key)
        self._relieve()

    def close(self) -> DataFiles:
        """Finish all files and return one row per file, as columns of a manifest entry."""
        while self._open:
            self._finish(next(iter(self._open)))
        return as_columns(self._finished, self._plan.spec, self._plan.schema)

    def abort(self) -> None:
        """Remove all files of this writer; those that cannot be removed are left to orphan file cleanup."""
        begun = [file for file in self._open.values() if file.sink is not None]
        for file in begun:
            with suppress(IcefieldError):
                file.abort()
        for location in [*(f.location for f in begun), *(f.location for f in self._finished)]:
            with suppress(IcefieldError):
                self._store.delete(location)

    def _file(self, partition: "_Partition") -> "_OpenFile":
        key = partition.key
        if key in self._open:
            self._open.move_to_end(key)
            return self._open[key]
        self._count += 1
        name = file_name(f"{self._task}-{self._plan.write_id}-{self._count:05d}", self._fingerprint)
        location = self._plan.layout.location(name, [*partition_path(partition.values, self._plan)])
        self._open[key] = _OpenFile(self._plan, self._store, location, partition.values)
        return self._open[key]

    def _roll(self, key: bytes) -> None:
        file, target = self._open[key], self._plan.target_file_size_bytes
        if file.estimated_bytes >= target and not file.flushed_bytes:
            file.flush()  # the compression ratio is unknown until some rows are written
        if file.estimated_bytes >= target:
            self._finish(key)
        elif file.sink is not None:
            self._close_oldest()

    def _relieve(self) -> None:
        """Keep the buffered rows of all partitions within the memory limit of a task."""
        buffered = sum(f.buffered_bytes for f in self._open.values())
        for file in sorted(self._open.values(), key=lambda f: f.buffered_bytes, reverse=True):
            if buffered <= MAX_BUFFERED_BYTES:
                break
            buffered -= file.buffered_bytes
            file.flush()
            self._close_oldest()
        # A few rows of a small partition keep their whole batch in memory until they are copied.
        if self._held_bytes > MAX_BUFFERED_BYTES and len(self._open) > 1:
            for file in self._open.values():
                file.compact()
            self._held_bytes = buffered

    def _close_oldest(self) -> None:
        begun = [key for key, file in self._open.items() if file.sink is not None]
        for key in begun[: max(0, len(begun) - MAX_OPEN_FILES)]:
            self._finish(key)

    def _finish(self, key: bytes) -> None:
        self._finished.append(self._open[key].finish())
        del self._open[key]


def partition_path(values: tuple[Value | None, ...], plan: WritePlan) -> Iterator[str]:
    """Yield `name=value` directories, for humans only: readers take partition values from manifests."""
    for part, value in zip(plan.spec.fields, values, strict=True):
        to_human_string = part.transform.to_human_string(value, plan.spec.source_type(part, plan.schema))
        yield f"{quote(part.name, safe='')}={quote(to_human_string, safe='')}"[:MAX_DIRECTORY_NAME]


@dataclass(frozen=True)
class _Partition:
    """A partition: its values, and the key that identifies it (-0.0 equals 0.0, NaN not even itself)."""

    key: bytes = b""
    values: tuple[Value | None, ...] = ()


@dataclass
class _OpenFile:
    """One data file being written: rows are buffered until a row group is full, and only then the file is opened.

    So a task can buffer rows of very many partitions with few open files, and need not close files that are too small.
    """

    plan: WritePlan
    store: Store
    location: str
    key: tuple[Value | None, ...]
    batches: list[pa.RecordBatch] = field(default_factory=list)
    buffered_bytes: int = 0
    buffered_rows: int = 0
    flushed_bytes: int = 0
    record_count: int = 0
    nan_counts: dict[int, int] = field(default_factory=dict)
    nan_columns: dict[int, NaNColumn] = field(default_factory=dict)
    long_bounds: dict[int, dict[int, Bounds]] = field(default_factory=dict)
    row_groups: int = 0
    sink: NewFile | None = None

    def __post_init__(self) -> None:
        self._footers: list[pq.FileMetaData] = []
        self._writer: pq.ParquetWriter | None = None
        self._order = OrderCheck(self.plan.schema, self.plan.order)

    @property
    def estimated_bytes(self) -> float:
        """The size that the file would have if it were closed now."""
        written = 0 if self.sink is None else self.sink.tell()
        # The compression ratio is unknown until rows are written: rows that do not compress must not overfill the file.
        ratio = written / self.flushed_bytes if self.flushed_bytes else 1.0
        return written + self.buffered_bytes * ratio

    def may_take(self, nans: Mapping[int, int]) -> bool:
        """Return False if a column has its first NaN after row groups with statistics were written."""
        return self._writer is None or all(i in self.nan_columns for i, count in nans.items() if count)

    def add(self, batch: pa.RecordBatch, size_bytes: int, nans: Mapping[int, int]) -> None:
        for field_id, count in nans.items():
            self.nan_counts[field_id] = self.nan_counts.get(field_id, 0) + count
        self._order.add(batch)
        self.batches.append(batch)
        self.buffered_bytes += size_bytes + BATCH_OVERHEAD_BYTES
        self.buffered_rows += batch.num_rows
        self.record_count += batch.num_rows
        if self.buffered_bytes >= self.plan.parquet.row_group_bytes or self.buffered_rows >= MAX_ROW_GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        if not self.batches:
            return
        table = pa.Table.from_batches(self.batches)
        writer = self._begun(table)
        writer.write_table(as_parquet(table, writer.schema), row_group_size=self.buffered_rows)
        for leaf in float_leaves(self.plan.schema):
            if leaf.field.field_id in self.nan_columns:
                self.nan_columns[leaf.field.field_id].add(column_at(table, leaf.path))
        for field_id, bounds in long_bounds(table, self.plan.schema):
            self.long_bounds.setdefault(field_id, {})[self.row_groups] = bounds
        self.row_groups += 1
        self.flushed_bytes += self.buffered_bytes
        self.batches, self.buffered_bytes, self.buffered_rows = [], 0, 0

    def compact(self) -> None:
        """Copy the buffered rows, so that they keep no other memory alive."""
        if self.batches:
            arrays = [pa.concat_arrays(list(parts)) for parts in zip(*(b.columns for b in self.batches), strict=True)]
            self.batches = [pa.RecordBatch.from_arrays(arrays, schema=self.batches[0].schema)]

    def finish(self) -> DataFile:
        self.flush()
        assert self._writer is not None
        assert self.sink is not None
        self._writer.close()
        size_bytes = self.sink.tell()
        self.sink.close()
        plan = self.plan
        writer_metrics = WriterMetrics(self.nan_counts, self.nan_columns, self.long_bounds)
        metrics = footer_metrics(self._footers[0], plan.schema.leaves, plan.modes, writer_metrics)
        is_ordered = self._order.holds and not plan.order.is_unsorted
        order_id = plan.order.order_id if is_ordered else None
        return DataFile(self.location, self.key, self.record_count, size_bytes, metrics, sort_order_id=order_id)

    def abort(self) -> None:
        if self._writer is not None:
            self._writer.is_open = False  # or it would write its footer when garbage-collected, to a removed file
        if self.sink is not None:
            self.sink.abort()

    def _begun(self, first_rows: pa.Table) -> pq.ParquetWriter:
        if self._writer is None:
            schema, options = self.plan.schema, self.plan.parquet
            self.sink = self.store.open_new(self.location)
            self.nan_columns = {field_id: NaNColumn() for field_id, count in self.nan_counts.items() if count}
            columns = ColumnChoice(
                columns_with_dictionary(first_rows, schema, options.dictionary_bytes, options.dictionaries),
                columns_with_statistics(schema, self.nan_columns),
            )
            self._writer = open_writer(self.sink, schema, options, columns, self._footers)
        return self._writer


def _pieces(batch: pa.RecordBatch, plan: WritePlan) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Split a batch that is large relative to a row group or a file: both are closed only between batches.

    Each piece is returned with its size, which is expensive to compute.
    """
    size_bytes = batch.nbytes
    most_bytes = min(plan.parquet.row_group_bytes, plan.target_file_size_bytes) // PIECES_PER_FILE
    rows = max(1, min(MAX_ROW_GROUP_ROWS, batch.num_rows * most_bytes // max(1, size_bytes)))
    for start in range(0, batch.num_rows, rows):
        piece = batch.slice(start, rows)
        yield piece, size_bytes * piece.num_rows // batch.num_rows


def _split(batch: pa.RecordBatch, plan: WritePlan) -> Iterator[tuple[_Partition, pa.RecordBatch]]:
    """Split rows by partition; rows of one partition keep their order."""
    if not plan.spec.fields:
        yield _Partition(), batch
        return
    columns = plan.spec.columns(plan.schema)
    arrays = [
        part.transform.apply(column_at(batch, plan.schema.paths[part.source_id]), kind)
        for part in plan.spec.fields
        for kind in (plan.spec.source_type(part, plan.schema),)
    ]
    codes = _group_codes(arrays)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order].astype(np.int64), prepend=-1))
    firsts = pa.array(order[starts])
    distinct = [array.take(firsts) for array in arrays]
    keys = encode_keys(distinct, len(firsts)).to_pylist()
    values = zip(*(_values(a, c.type) for a, c in zip(distinct, columns, strict=True)), strict=True)
    partitions = map(_Partition, keys, values)
    grouped = batch if len(starts) == 1 else batch.take(pa.array(order))
    for partition, start, stop in zip(partitions, starts, [*starts[1:], len(codes)], strict=True):
        yield partition, grouped.slice(start, stop - start)


def _values(array: pa.Array, kind: Type) -> list[Value | None]:
    assert isinstance(kind, PrimitiveType)
    return python_values(array, kind)


def _group_codes(arrays: Sequence[pa.Array]) -> np.ndarray:
    """Number the distinct tuples of values, with the narrowest integers, which sort fastest; null is a value too."""
    codes = np.zeros(len(arrays[0]), np.int64)
    for position, array in enumerate(arrays):
        # NaNs may differ in their bits; they are in one partition, whose rows would otherwise be reordered.
        encoded = comparable(array).dictionary_encode(null_encoding="encode")
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy(zero_copy_only=False)
        if position:
            codes = np.unique(codes, return_inverse=True)[1]
    return codes.astype(np.min_scalar_type(codes.max()))
