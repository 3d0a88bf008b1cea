"""The rows that only one of two versions has, without those that were only moved to another file.

before    a: 0 1 2 3
after     b: 0 2 3 7        a was written again: row 1 is removed, row 7 added
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from icefield.cache.reading import ReadContext
from icefield.commit.replay.difference import Difference, load_deleted
from icefield.commit.replay.row_ids import Lost
from icefield.commit.replay.rows import RowChange, Side, find_removed_rows, without_moved_rows
from icefield.commit.snapshot.moved_rows import NO_POSITIONS
from icefield.model.metadata import TableMetadata
from icefield.parquet.read.deletes import Positions
from icefield.storage.store import Store


@dataclass(frozen=True)
class NetRows:
    """Rows by file: those of the second version only, and those of the first only."""

    added: Sequence[Lost]
    removed: Sequence[Lost]


def find_net_rows(side: Side, metadata: TableMetadata, context: ReadContext) -> NetRows:
    """Find the rows that distinguish two versions. side: the second one."""
    change = find_removed_rows(side.difference, metadata, context)
    net, moved = without_moved_rows(side, change, metadata, context)
    added = _added(side.difference, change, moved, metadata, context.store)
    return NetRows(list(added), list(_removed(net, metadata, context.store)))


def has_new_rows(side: Side, metadata: TableMetadata, context: ReadContext) -> bool:
    """Return whether the second version has rows that the first does not have."""
    if not (side.difference.added.num_rows or side.difference.changed):
        return False
    return any(len(each.positions) for each in find_net_rows(side, metadata, context).added)


def _removed(change: RowChange, metadata: TableMetadata, store: Store) -> Iterator[Lost]:
    deleted = load_deleted(change.whole, metadata, store)
    for task, gone in zip(change.whole, deleted, strict=True):
        yield Lost(task, np.setdiff1d(np.arange(task.record_count), gone))
    yield from (Lost(task, positions) for task, positions in change.some)


def _added(
    difference: Difference, change: RowChange, moved: Mapping[str, Positions], metadata: TableMetadata, store: Store
) -> Iterator[Lost]:
    tasks = list(difference.after.tasks(difference.added))
    for task, gone in zip(tasks, load_deleted(tasks, metadata, store), strict=True):
        out = np.union1d(gone, moved.get(task.location, NO_POSITIONS))
        yield Lost(task, np.setdiff1d(np.arange(task.record_count), out))
    yield from (Lost(task, positions) for task, positions in change.restored)
