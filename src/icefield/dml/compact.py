"""Rewrite small files, and files with deleted rows, as fewer and larger ones. The rows stay the same.

The files of a partition are read and written in order, so that the new position of every row is known: rows that are
deleted concurrently are deleted in the new files too. Memory is bounded by the batches in flight.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pyarrow.compute as pc

from icefield.codec.manifest.rows import DataFiles
from icefield.commit.actions.rewrite import MovedRows, RewriteFiles
from icefield.commit.snapshot.manifests import AddedFiles
from icefield.dml.write import TableWrite, Verb
from icefield.engine.file_works import MergedFiles, MergeFiles, delete_destination
from icefield.engine.local import local_name
from icefield.expr.parse.ast import Predicate
from icefield.model.snapshot import Snapshot
from icefield.plan.partition.keys import PARTITION_KEY
from icefield.plan.planned_files import PlannedFiles
from icefield.properties.table import TARGET_FILE_SIZE_BYTES

COMPACT = Verb("compact", None)
SMALL = 0.75  # of the target size: smaller files are compacted
GROUP_FILES = 8  # of the target size: about what one task writes


def compact(write: TableWrite, where: Predicate | str | Any) -> Snapshot | None:
    """Compact the files that may hold matching rows; None if there is nothing to gain."""
    plan = write.plan(where)
    groups = list(_groups(plan.files, TARGET_FILE_SIZE_BYTES.read(write.base.properties), write.base.spec.spec_id))
    if not groups:
        return None
    chosen = PlannedFiles.concat(groups)
    settings = write.write_plan(moves_rows=True)
    engine = write.engine(chosen.total_bytes)
    merged = write.run(engine, MergeFiles(settings), [plan.tasks(group) for group in groups])
    files = DataFiles.concat(each.files for each in merged)
    planned = plan.version.snapshot
    age = planned.sequence_number if planned is not None and write.base.format_version > 1 else None
    moved = [_moved_rows(write, group, each) for group, each in zip(groups, merged, strict=True)]

    def make() -> RewriteFiles:
        return RewriteFiles(
            files=AddedFiles(files, write.shape, age),
            read_set=write.read_set(replace(plan, files=chosen), COMPACT),
            target=write.target,
            moved=[rows for rows in moved if rows is not None],
            place=delete_destination(settings, local_name()),
        )

    return write.commit(make, files)


def _groups(files: PlannedFiles, target_bytes: int, spec_id: int) -> Iterator[PlannedFiles]:
    """Yield groups of files of one partition worth rewriting: two small ones, deleted rows, or an old spec."""
    worth = pc.or_(
        pc.less(files.file_size_in_bytes, int(target_bytes * SMALL)),
        pc.or_(files.delete_keys.is_valid(), pc.not_equal(files.spec_id, spec_id)),
    )
    chosen = files.filter(worth).sort_by("spec_id", PARTITION_KEY)
    keys = zip(chosen.spec_id.to_pylist(), chosen.partition_key.to_pylist(), strict=True)
    start = 0
    for (of_spec, _), same in groupby(keys):
        partition = chosen.slice(start, len(list(same)))
        start += partition.num_rows
        for group in _cut(partition, target_bytes * GROUP_FILES):
            if group.num_rows > 1 or group.delete_keys.null_count == 0 or of_spec != spec_id:
                yield group


def _cut(files: PlannedFiles, most_bytes: int) -> Iterator[PlannedFiles]:
    """Split files into groups of about one size, so that a large partition becomes many tasks."""
    numbers = np.cumsum(files.file_size_in_bytes.to_numpy()) // most_bytes
    begins = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
    for begin, end in pairwise([*begins, files.num_rows]):
        yield files.slice(begin, end - begin)


def _moved_rows(write: TableWrite, group: PlannedFiles, merged: MergedFiles) -> MovedRows | None:
    """Return the new positions of a group's rows, or None if they cannot be derived."""
    spec_id = write.base.spec.spec_id
    if group.spec_id[0].as_py() != spec_id or len(AddedFiles(merged.files, write.shape).partitions) != 1:
        return None  # the rows of another spec were split by partition
    if merged.starts is None:
        return None
    ends = np.cumsum(merged.files.record_count.to_numpy())
    return MovedRows(merged.starts, merged.locations, ends)
