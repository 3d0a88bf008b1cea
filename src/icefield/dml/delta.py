"""Row-level changes: merge-on-read deletes, and upserts.

A row is identified by its data file and its position. With merge-on-read, delete files hold the positions; with
copy-on-write, the data files are rewritten without those rows.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from icefield.codec.manifest.rows import DataFiles
from icefield.commit.actions.row_delta import RowDelta
from icefield.commit.snapshot.manifests import AddedFiles
from icefield.commit.validate.read_set import ReadSet
from icefield.dml.write import TableWrite, Verb
from icefield.engine.file_works import DeleteRows, delete_destination
from icefield.engine.local import local_name
from icefield.engine.upsert import UpsertPlan
from icefield.errors import Unsupported
from icefield.expr.parse.ast import Predicate
from icefield.model.snapshot import Snapshot
from icefield.parquet.write.delete_files import DeleteEntry, delete_locations
from icefield.parquet.write.plan import WritePlan
from icefield.plan.planned_files import PlannedFiles
from icefield.properties.table import (
    DELETE_ISOLATION,
    DELETE_MODE,
    MERGE_ISOLATION,
    MERGE_MODE,
    MERGE_ON_READ,
    SERIALIZABLE,
)
from icefield.types.arrow import arrow_schema
from icefield.types.schema import Schema

DELETE, UPSERT = Verb("delete", DELETE_ISOLATION), Verb("upsert", MERGE_ISOLATION)


def delete_matching(write: TableWrite, where: Predicate | str | Any) -> Snapshot | None:
    """Delete matching rows, by copy-on-write or merge-on-read as the table's properties say."""
    if DELETE_MODE.read(write.base.properties) != MERGE_ON_READ:
        return write.replace_matching(no_rows(write.base.schema), where, DELETE)
    plan = write.plan(where)
    partial, deleted = plan.partial_files, list[DeleteEntry]()
    if partial.num_rows:
        work = DeleteRows(plan.version.schema, plan.where, _plan_deletes(write), write.base.has_row_ids)
        engine = write.engine(partial.total_bytes)
        done = write.run(engine, work, engine.group(plan.tasks(partial)))
        deleted = [entry for each in done for entry in each.entries]
    read_set, nothing = write.read_set(plan, DELETE), write.no_files
    if not deleted:
        return write.replace_files(nothing, replace(read_set, plan=replace(plan, files=plan.whole_files)))
    return _commit_delta(write, nothing, deleted, plan.whole_files, read_set)


def no_rows(schema: Schema) -> pa.Table:
    """Return a table without rows; Arrow's `empty_table` fails for UUIDs inside nested types."""
    return pa.Table.from_batches([], arrow_schema(schema))


def upsert(write: TableWrite, rows: object, on: Sequence[str] | None) -> Snapshot | None:
    """Replace the rows whose keys occur in the source rows, and insert the other source rows.

    Columns that the source does not have keep their values in replaced rows.
    """
    source = write.open_upsert(rows, on)
    if source is None:
        return None
    scan = write.plan_bound(source.where)
    read_set = replace(write.read_set(scan, UPSERT), keys=source.keys)
    if source.keys is None:
        # Too many keys to hold: a row added concurrently within their range counts as a conflict.
        read_set = replace(read_set, isolation=SERIALIZABLE)
    by_delete_files = MERGE_MODE.read(write.base.properties) == MERGE_ON_READ
    plan = UpsertPlan(
        scan,
        write.write_plan(moves_rows=bool(scan.files.num_rows)),
        _plan_deletes(write) if by_delete_files and scan.files.num_rows else None,
        write.base.has_row_ids,
    )
    done = write.engine(scan.files.total_bytes, rows).upsert(source, plan)
    touched = scan.files.at(done.touched)
    if done.deletes:
        return _commit_delta(write, done.files, done.deletes, scan.files.slice(0, 0), read_set)
    return write.replace_files(done.files, replace(read_set, plan=replace(scan, files=touched)), touched)


def _plan_deletes(write: TableWrite) -> WritePlan:
    """Return the settings for new delete files."""
    if write.base.format_version == 1:
        raise Unsupported(
            "format version 1 does not support row-level deletes",
            hint="Upgrade the table, or delete by copy-on-write",
        )
    return write.write_plan(moves_rows=False)


def _commit_delta(
    write: TableWrite, files: DataFiles, deletes: Sequence[DeleteEntry], removed: PlannedFiles, read_set: ReadSet
) -> Snapshot | None:
    def make() -> RowDelta:
        return RowDelta(
            files=AddedFiles(files, write.shape),
            read_set=read_set,
            target=write.target,
            deletes=deletes,
            has_vectors=write.base.has_row_ids,
            removed=removed,
            place=delete_destination(write.write_plan(moves_rows=False), local_name()),
        )

    return write.commit(make, files, delete_locations(deletes))
