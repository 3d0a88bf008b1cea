"""Tables and views of the lake as temporary views of the session, for the subqueries of a change.

SQL text refers to DataFrames by name only. The names are unique, and exist until the change is done.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from icefield.dml.head import TableHead
from icefield.engine.change import Relations
from icefield.engine.rows import SessionChoice
from icefield.plan.versions import resolve_version
from icefield.table.scan import TableScan
from icefield.view import Reading, Source


@contextmanager
def opened_relations(session: SparkSession, relations: Relations) -> Iterator[bool]:
    """Open relations, each at one version. Yield whether the changed table is one of those that are read."""
    if not relations.names:
        yield False
        return
    head: TableHead = relations.head
    target = head.name
    # Views of the lake must not see temporary views, and the changed table is read as it was before the change.
    reading = Reading(
        Source(head.backend, SessionChoice(session), head.beside),
        pinned={target: lambda: _scan_of(relations, head).to_spark(session)},
    )
    frames = {name: reading.frame(table) for name, table in relations.names.items()}
    try:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
        yield target in reading.opened
    finally:
        for name in frames:
            session.catalog.dropTempView(name)


def _scan_of(relations: Relations, head: TableHead) -> TableScan:
    assert relations.base is not None
    version = resolve_version(relations.base, relations.ref)
    return TableScan(head.backend.reading, head.name, relations.base, version)
