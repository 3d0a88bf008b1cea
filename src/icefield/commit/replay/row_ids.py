"""Find rows in other files by their row ids, in format version 3. (spec: Row Lineage)

A row that was only moved keeps its id and the number of its last change; a row that was changed keeps only its id.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from icefield.expr.bind.bound import TRUE
from icefield.model.metadata import TableMetadata
from icefield.parquet.read.deletes import Positions
from icefield.parquet.read.read_ahead import read_ahead
from icefield.parquet.read.task import FileTask
from icefield.storage.store import Store
from icefield.types.arrays import Mask
from icefield.types.metadata_columns import LAST_UPDATED, POSITION, ROW_ID, with_free_names


@dataclass(frozen=True)
class Lost:
    """Rows of a file, as it was in the base, that are not where they were."""

    task: FileTask
    positions: Positions


def find_by_ids(
    lost: Sequence[Lost],
    files: Sequence[FileTask],
    metadata: TableMetadata,
    store: Store,
    into: dict[str, list[Positions]],
    *,
    changed: bool = False,
) -> list[Lost]:
    """Collect the places of rows among the live rows of files; return those that are nowhere.

    changed: also of rows that were changed.
    """
    if not files:
        return list(lost)
    wanted = _lineage_of(lost, metadata, store)
    order = np.argsort(wanted.ids)
    ids, updated = wanted.ids[order], wanted.updated[order]
    is_found = np.zeros(len(ids), np.bool_)
    for task, lineage in zip(files, _read(files, metadata, store), strict=True):
        at = np.minimum(np.searchsorted(ids, lineage.ids), len(ids) - 1)
        same = (ids[at] == lineage.ids) & (changed | (updated[at] == lineage.updated))
        if same.any():
            into.setdefault(task.location, []).append(lineage.positions[same])
            is_found[order[at[same]]] = True
    return split_lost(lost, is_found)


def without_ids(lost: Sequence[Lost], metadata: TableMetadata, store: Store) -> list[Lost]:
    """Return the rows that have no id, because they are older than row ids."""
    return split_lost(lost, _lineage_of(lost, metadata, store).ids >= 0)


@dataclass(frozen=True)
class _Lineage:
    positions: Positions
    ids: Positions
    updated: Positions


def _read(tasks: Sequence[FileTask], metadata: TableMetadata, store: Store) -> Iterator[_Lineage]:
    """Yield the lineage of the live rows of each file; rows of older versions that have no id are left out."""
    schema, names = with_free_names(metadata.schema, (POSITION, ROW_ID, LAST_UPDATED))
    empty = pa.schema([(name, pa.int64()) for name in names]).empty_table()
    for reader, task in read_ahead(store, metadata, tasks):
        batches = [pa.Table.from_batches([batch]) for batch in reader.read(task, schema, names, TRUE)]
        rows = pa.concat_tables([empty, *batches], promote_options="permissive").drop_null()
        yield _Lineage(*(rows.column(name).to_numpy() for name in names))


def _lineage_of(lost: Sequence[Lost], metadata: TableMetadata, store: Store) -> _Lineage:
    # Deleted rows have ids, too.
    sources = [replace(each.task, deletes=()) for each in lost]
    known = zip(_read(sources, metadata, store), lost, strict=True)
    return _joined([_at(lineage, each.positions) for lineage, each in known])


def _at(lineage: _Lineage, positions: Positions) -> _Lineage:
    """Return the lineage of rows by position; -1 for rows that have none."""
    at = np.searchsorted(lineage.positions, positions)
    known = np.append(lineage.positions, -1)[np.minimum(at, len(lineage.positions))] == positions
    pick = np.where(known, np.minimum(at, max(len(lineage.positions) - 1, 0)), 0)
    filled = [np.append(column, -1) for column in (lineage.ids, lineage.updated)]
    return _Lineage(positions, *(np.where(known, column[pick], -1) for column in filled))


def _joined(parts: Sequence[_Lineage]) -> _Lineage:
    return _Lineage(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("positions", "ids", "updated"))
    )


def split_lost(lost: Sequence[Lost], is_found: Mask) -> list[Lost]:
    """Return the rows that were not found. is_found: for each of the rows of all files, in order."""
    start, rest = 0, []
    for each in lost:
        left = each.positions[~is_found[start : start + len(each.positions)]]
        start += len(each.positions)
        if len(left):
            rest.append(Lost(each.task, left))
    return rest
