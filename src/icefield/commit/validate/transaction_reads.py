"""What a transaction read from a table, and whether it would read the same now. (serializable isolation)

    transaction A                             transaction B
    sum(scan("id < 10")); delete("id = 1")    sum(scan("id < 10")); delete("id = 2")

Each changes what the other one read. The second one to commit finds that the rows which match its filter are no longer
those that it read, and fails with ConcurrentChange. Rows are compared, not files and not snapshots: a compaction, a
delete of other rows in the same file, or an append of rows that do not match is not a conflict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from icefield.deferred import deferred_imports
from icefield.errors import ConcurrentChange, MissingFile
from icefield.expr.bind.bound import TRUE, Bound, columns_of
from icefield.model.snapshot import MAIN, Operation, Snapshot
from icefield.types.metadata_columns import LINEAGE, is_metadata_column, with_columns

with deferred_imports(__name__):
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from icefield.cache.reading import ReadContext
    from icefield.expr.prune.residual import residual
    from icefield.model.metadata import TableMetadata
    from icefield.model.names import TableName
    from icefield.parquet.read.read import table_reader
    from icefield.parquet.read.task import DeleteFile
    from icefield.plan.plan import ScanPlan, plan_scan
    from icefield.plan.versions import AsOf, ResolvedVersion
    from icefield.types.arrow import arrow_schema
    from icefield.types.arrow_keys import KeyIndex
    from icefield.types.schema import Schema

MAX_BYTES_TO_COMPARE = 64 * 1024 * 1024


@dataclass(frozen=True)
class RowsRead:
    """The rows of a branch or tag that match a filter; with the schema they were read with."""

    ref: str
    where: Bound
    schema: Schema


def find_read(
    metadata: TableMetadata, version: ResolvedVersion, as_of: AsOf, where: Bound, columns: Iterable[int] = ()
) -> RowsRead | None:
    """Return the read of a branch or tag; None for a version by id or time, which never changes.

    A filter on the position of rows (`_file`, `_pos`, …) counts as a read of all rows, wherever they are. A read of row
    lineage, in a filter or a column, also conflicts with rewritten rows.
    """
    is_head = not isinstance(as_of, int) and version.snapshot == metadata.current_snapshot
    ref = as_of if isinstance(as_of, str) and as_of in metadata.refs else MAIN if is_head else None
    if ref is None:
        return None
    named = columns_of(where)
    lineage = tuple(f for f in LINEAGE if f.field_id in {*named, *columns})
    schema = with_columns(version.schema, lineage) if lineage else version.schema
    return RowsRead(ref, TRUE if any(map(is_metadata_column, named)) else where, schema)


@dataclass
class Reads:
    """Everything that was read from one version of a table."""

    version: TableMetadata
    rows: dict[RowsRead, None] = field(default_factory=dict)

    def note(self, read: RowsRead) -> None:
        """Add a read, unless a read of all rows covers it."""
        whole = RowsRead(read.ref, TRUE, read.schema)
        if read == whole:
            self.rows = {each: None for each in self.rows if each.ref != read.ref or each.schema != read.schema}
        if whole not in self.rows:
            self.rows[read] = None

    def check(self, table: TableName, now: TableMetadata, context: ReadContext) -> None:
        """Raise ConcurrentChange if one of the reads would return different rows in this version."""
        for read in self.rows:
            comparison = _Comparison(read, self.version, now, context)
            if comparison.differs():
                raise ConcurrentChange(
                    f"cannot commit: rows of {table}, which the transaction read, were changed concurrently"
                    f"{comparison.culprit()}",
                    hint="Nothing was changed; run the transaction again",
                )


@dataclass(frozen=True)
class _Comparison:
    """One read, before and after."""

    read: RowsRead
    version: TableMetadata
    now: TableMetadata
    context: ReadContext

    def differs(self) -> bool:
        if self.read.ref not in self.version.refs and self.read.ref not in self.now.refs:
            return False  # a branch created by the transaction, or an empty table
        if self._before == self._after or self._only_moved():
            return False
        try:
            return self._rows_differ()
        except MissingFile:
            return True  # already removed: its rows are unknown

    def culprit(self) -> str:
        if self._after is None:
            return ""
        return f"; the newest snapshot of {self.read.ref} is {self._after.snapshot_id} ({self._after.operation})"

    @property
    def _before(self) -> Snapshot | None:
        return _head(self.version, self.read.ref)

    @property
    def _after(self) -> Snapshot | None:
        return _head(self.now, self.read.ref)

    def _only_moved(self) -> bool:
        """Return whether all snapshots since then only rewrote rows or manifests."""
        for snapshot in self.now.ancestors(self._after):
            if self._before is not None and snapshot.snapshot_id == self._before.snapshot_id:
                return True
            if snapshot.operation != Operation.REPLACE:
                return False
        return False

    def _rows_differ(self) -> bool:
        sides = [_Side(self._plan(snapshot), self.now, self.context) for snapshot in (self._before, self._after)]
        deletes = [side.deletes() for side in sides]
        for side, mine, other in zip(sides, deletes, reversed(deletes), strict=True):
            side.keep({path for path, found in mine.items() if other.get(path, _ABSENT) != found})
        if not any(side.files.num_rows for side in sides):
            return False
        if any(one.has_rows and not other.files.num_rows for one, other in (sides, reversed(sides))):
            return True
        if sum(side.size_bytes for side in sides) > MAX_BYTES_TO_COMPARE:
            return True
        before, after = (side.rows() for side in sides)
        return not _same_rows(before, after)

    def _plan(self, snapshot: Snapshot | None) -> ScanPlan:
        return plan_scan(self.context, self.now, ResolvedVersion(snapshot, self.read.schema), self.read.where)


_ABSENT = frozenset({None})


class _Side:
    """The files of one version that may hold matching rows."""

    def __init__(self, plan: ScanPlan, metadata: TableMetadata, context: ReadContext) -> None:
        self._plan = plan
        self._metadata = metadata
        self._store = context.store
        self.files = plan.files

    def deletes(self) -> dict[str, frozenset[DeleteFile]]:
        """Return the deletes that apply to each file."""
        found: dict[str, frozenset[DeleteFile]] = dict.fromkeys(self._paths(), frozenset())
        having = self.files.filter(self.files.delete_keys.is_valid())
        found |= {task.location: frozenset(task.deletes) for task in self._plan.tasks(having)}
        return found

    def keep(self, paths: set[str]) -> None:
        """Remove the files that the other side has with the same deletes."""
        self.files = self.files.at(paths)

    @property
    def has_rows(self) -> bool:
        """Whether metadata alone proves that there is a matching row."""
        whole = self.files.filter(pc.and_(self.files.must_match, self.files.delete_keys.is_null()))
        return bool((pc.sum(whole.record_count).as_py() or 0) > 0)

    @property
    def size_bytes(self) -> int:
        return self.files.total_bytes

    def rows(self) -> pa.Table:
        schema, names = self._plan.version.schema, [f.name for f in self._plan.version.schema.fields]
        return pa.Table.from_batches(self._batches(schema, names), arrow_schema(schema))

    def _batches(self, schema: Schema, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        reader = table_reader(self._store, self._metadata)
        for task in self._plan.tasks(self.files):
            yield from reader.read(task, schema, names, residual(self._plan.where, task.residual_code))

    def _paths(self) -> list[str]:
        paths: list[str] = self.files.file_path.to_pylist()
        return paths


def _head(metadata: TableMetadata, ref: str) -> Snapshot | None:
    return metadata.snapshot_by_id(metadata.refs[ref].snapshot_id) if ref in metadata.refs else None


def _same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Return whether two tables have the same rows, in any order."""
    if one.num_rows != other.num_rows:
        return False
    both = pa.concat_tables([one, other])
    try:
        codes = KeyIndex([leaf for column in both.columns for leaf in _leaves(column)], both.num_rows).codes
    except pa.ArrowNotImplementedError:
        return Counter(map(repr, one.to_pylist())) == Counter(map(repr, other.to_pylist()))
    size = int(codes.max()) + 1 if len(codes) else 0
    before, after = (np.bincount(part, minlength=size) for part in (codes[: one.num_rows], codes[one.num_rows :]))
    return bool(np.array_equal(before, after))


def _leaves(column: pa.ChunkedArray) -> Iterator[pa.Array]:
    """Yield columns that identify the values of a column: structs by their fields, lists and maps as strings."""
    whole = column.combine_chunks()
    whole = whole.storage if isinstance(whole.type, pa.BaseExtensionType) else whole
    if pa.types.is_struct(whole.type):
        yield whole.is_null()
        for child in whole.flatten():
            yield from _leaves(pa.chunked_array([child]))
    elif pa.types.is_nested(whole.type):
        yield pa.array(map(repr, whole), pa.string())
    elif pa.types.is_null(whole.type):
        return
    else:
        yield whole
