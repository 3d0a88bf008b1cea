"""Write small files, and files with deleted rows, together as fewer and larger ones; the rows stay the same.

Files of one partition are read one after the other and written in that order, so that it is known where every row went:
rows that others delete meanwhile are deleted in the new files too. Memory is bounded by the batches on their way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.commit.manifests import NewFiles
from icefield.commit.rewrite import MovedRows, RewriteFiles
from icefield.expr.ast import Predicate
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Snapshot
from icefield.parquet.deletes import Positions
from icefield.parquet.file_task import DeleteKind, FileTask
from icefield.parquet.read_ahead import read_ahead
from icefield.parquet.write import WritePlan
from icefield.properties import TARGET_FILE_SIZE_BYTES
from icefield.scan.partitions import PARTITION_KEY
from icefield.scan.plan import ScanPlan
from icefield.storage.store import Store
from icefield.table_write import LOCAL_TASK, TableWrite, Verb

COMPACT = Verb("compact", None)
SMALL = 0.75  # of the target size: files that are smaller are worth writing together


def compact(write: TableWrite, where: Predicate | str | Any) -> Snapshot | None:
    """Compact the files that may hold matching rows; None if there is nothing to gain."""
    plan = write.plan(where)
    groups = list(_groups(plan.files, TARGET_FILE_SIZE_BYTES.read(write.base.properties), write.base.spec.spec_id))
    if not groups:
        return None
    settings = write.write_plan(moves_rows=True)
    written: list[pa.Table] = []
    moved: list[MovedRows] = []
    try:
        for number, group in enumerate(groups):
            files, rows = _rewrite(write, settings, plan, group, f"{LOCAL_TASK}-{number}")
            written.append(files)
            moved.extend(rows)
    except BaseException:
        write.discard(written)
        raise
    files = pa.concat_tables(written)
    planned = plan.point.snapshot
    age = planned.sequence_number if planned is not None and write.base.format_version > 1 else None

    def make() -> RewriteFiles:
        return RewriteFiles(
            files=NewFiles(files, write.shape, age),
            footing=write.footing(replace(plan, files=pa.concat_tables(groups)), COMPACT),
            target=write.target,
            moved=moved,
            writer=write.delete_writer(settings),
        )

    return write.commit(make, files)


def _groups(files: pa.Table, target_bytes: int, spec_id: int) -> Iterator[pa.Table]:
    """Yield files of one partition that are worth writing together: two small ones, deleted rows, or an old spec."""
    worth = pc.or_(
        pc.less(files.column("file_size_in_bytes"), int(target_bytes * SMALL)),
        pc.or_(files.column("delete_keys").is_valid(), pc.not_equal(files.column("spec_id"), spec_id)),
    )
    chosen = files.filter(worth).sort_by([("spec_id", "ascending"), (PARTITION_KEY, "ascending")])
    keys = list(zip(*(chosen.column(name).to_pylist() for name in ("spec_id", PARTITION_KEY)), strict=True))
    start = 0
    for (of_spec, _), same in groupby(keys):
        group = chosen.slice(start, len(list(same)))
        start += group.num_rows
        if group.num_rows > 1 or group.column("delete_keys").null_count == 0 or of_spec != spec_id:
            yield group


@dataclass
class _Reading:
    """Reads files one after the other, and remembers how many rows there were before each, and which were left out."""

    store: Store
    base: TableMetadata
    settings: WritePlan
    tasks: Sequence[FileTask]

    def __post_init__(self) -> None:
        self.starts: dict[str, int] = {}
        self.left_out: dict[str, Positions] = {}
        self._rows = 0

    @property
    def knows_places(self) -> bool:
        """Whether a row's place tells its number: not where rows are deleted by key, which leaves gaps unseen."""
        return all(d.kind is not DeleteKind.EQUALITY for task in self.tasks for d in task.deletes)

    def batches(self) -> Iterator[pa.RecordBatch]:
        for reader, task in read_ahead(self.store, self.base, self.tasks):
            self.starts[task.location] = self._rows
            self.left_out[task.location] = reader.deleted_positions(task)
            for batch in reader.read_without(task, self.settings.schema, np.zeros(0, np.int64)):
                self._rows += batch.num_rows
                yield batch


def _rewrite(
    write: TableWrite, settings: WritePlan, plan: ScanPlan, group: pa.Table, task: str
) -> tuple[pa.Table, list[MovedRows]]:
    reading = _Reading(write.store, write.base, settings, list(plan.tasks(group)))
    files = write.write_batches(settings, reading.batches(), task)
    same_spec = group.column("spec_id")[0].as_py() == settings.spec.spec_id
    in_order = same_spec and len(NewFiles(files, write.shape).partitions) == 1  # rows of another spec are split anew
    if not (in_order and reading.knows_places):
        return files, []
    ends = np.cumsum(files.column("record_count").to_numpy())
    return files, [MovedRows(reading.starts, reading.left_out, files.column("file_path").to_pylist(), ends)]
