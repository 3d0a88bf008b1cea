"""The files of a plan as lists of read tasks, each list of about one size; large files are split at row groups."""

from collections.abc import Iterator
from dataclasses import replace

from icefield.cache.reading import ReadContext
from icefield.model.metadata import TableMetadata
from icefield.parquet.read.task import FileTask
from icefield.plan.partition.values import open_tasks
from icefield.plan.plan import ScanPlan
from icefield.plan.planned_files import PlannedFiles
from icefield.plan.splits import Split, plan_splits
from icefield.types.schema import Schema


def pack_tasks(
    context: ReadContext, metadata: TableMetadata, plan: ScanPlan, files: PlannedFiles, wanted: Schema
) -> Iterator[list[FileTask]]:
    """Yield what a worker reads as one task, for the wanted columns."""
    sizes = files.file_size_in_bytes.to_pylist()
    opened = open_tasks(context, metadata, plan, files, wanted)
    tasks = {task.location: (task, size) for task, size in zip(opened, sizes, strict=True)}
    for splits in plan_splits(context, metadata, plan, files):
        yield [_part(*tasks[split.location], split) for split in splits]


def _part(task: FileTask, size: int, split: Split) -> FileTask:
    # The last split has no end: if the recorded size is wrong, no row group is lost.
    return replace(task, start=split.start, end=split.end if split.end < size else task.end)
