"""A MERGE of a small source: tasks read the files and return the rows that match; the rest is done in this process.

    source     few rows, fetched once (`source.fetch_rows`) instead of their keys alone
    match      `FindMatchedRows`: one Spark task for each group of files; no shuffle, no broadcast, no generated code
    clauses    `LocalMerge` over the rows that matched: new rows, and delete files for their old versions

That is one job over the table instead of four, and Spark plans nothing, which is most of the cost of a small merge.
What this process holds is bounded: by the source, and by MOST_MATCHED_BYTES. All other merges take the shuffle of
`merge`: those that may rewrite files, sort new rows, need rows that match nothing, or have expressions for Spark alone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

import pyarrow as pa
from pyspark.sql import SparkSession

from icefield.cache.reading import ReadContext
from icefield.engine.change import Changed, ChangePlan, Merge, MergeSource, When
from icefield.engine.engine import Site
from icefield.engine.file_works import FindMatchedRows, MatchedRows
from icefield.engine.local import local_name
from icefield.engine.local_merge import LocalMerge, MergeTarget
from icefield.errors import NeedsSpark
from icefield.model.metadata import TableMetadata
from icefield.parquet.read.read import TableFiles
from icefield.parquet.read.task import FileTask
from icefield.properties.table import MERGE_ON_READ
from icefield.spark.change.expressions import check_ansi, expressions_of
from icefield.spark.change.source import MOST_KEYS_HERE
from icefield.spark.change.suits_local import suits_local
from icefield.spark.file_work import group_files, run_work

MOST_FILES = 1_000  # that may get a delete file, one after another
MOST_MATCHED_BYTES = 64 * 1024 * 1024  # from all tasks
MOST_MATCHED_BYTES_OF_GROUP = 32 * 1024 * 1024


def merge_small(
    session: SparkSession, context: ReadContext, base: TableMetadata, given: tuple[MergeSource, Merge, ChangePlan]
) -> Changed | None:
    """Run a MERGE of a small source; None if it is not one, or if rows show that it needs Spark. Nothing is left then.

    That is so if too many rows match, or if a value is one that only Spark can evaluate.
    """
    source, merge, plan = given
    if not _is_small(source, merge, plan, base):
        return None
    site = Site(context.store, TableFiles.of(base), local_name())
    try:
        check_ansi(session, [*expressions_of(merge.clauses), *([] if merge.rest is None else [merge.rest])])
        work = LocalMerge(replace(source, rows=source.fetched), merge, MergeTarget.of(plan), site)
    except NeedsSpark:
        return None
    try:
        return work.run(_found(session, work, plan, site))
    except NeedsSpark:
        work.results.abort()
        return None
    except BaseException:
        work.results.abort()
        raise


def _found(
    session: SparkSession, work: LocalMerge, plan: ChangePlan, site: Site
) -> Iterator[tuple[FileTask, Iterable[pa.RecordBatch]]]:
    """Find the rows that match; all, before any is yielded."""
    tasks = list(plan.scan.tasks(plan.scan.files))
    groups = list(group_files(tasks))
    most_bytes = min(MOST_MATCHED_BYTES_OF_GROUP, MOST_MATCHED_BYTES // max(1, len(groups)))
    find = FindMatchedRows.of(work.read, work.keys, most_bytes)
    return _by_file(list(run_work(session, find, groups, site.files, site.store)), tasks)


def _is_small(source: MergeSource, merge: Merge, plan: ChangePlan, base: TableMetadata) -> bool:
    return (
        source.fetched is not None
        and source.fetched.num_rows <= MOST_KEYS_HERE
        and plan.scan.files.num_rows <= MOST_FILES
        and plan.settings.mode == MERGE_ON_READ
        and not merge.has(When.NOT_MATCHED_BY_SOURCE)
        and suits_local(plan, base)
    )


def _by_file(
    found: Iterable[MatchedRows], tasks: Iterable[FileTask]
) -> Iterator[tuple[FileTask, Iterable[pa.RecordBatch]]]:
    """Yield files with their rows; all rows of a file were found by one task."""
    by_location = {task.location: task for task in tasks}
    for location, parts in groupby(found, lambda part: part.location):
        yield by_location[location], [part.rows for part in parts]
