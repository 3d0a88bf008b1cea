"""Convert equality deletes to position deletes: scans get faster, and no row changes.

Only the data files that equality deletes apply to are read, and of them only the key columns. Equality deletes that
apply to no file, and position deletes of removed files, are dropped.
"""

from typing import Any

import numpy as np

from icefield.commit.actions.rewrite_deletes import RewriteDeletes, equality_deletes
from icefield.commit.snapshot.manifests import AddedFiles
from icefield.commit.validate.references import remove_unreferenced
from icefield.dml.head import preview
from icefield.dml.verbs import Verb
from icefield.dml.write import TableWrite
from icefield.engine.file_works import ConvertKeys, delete_destination
from icefield.engine.local import local_name
from icefield.expr.bind.bound import TRUE
from icefield.expr.parse.ast import Predicate
from icefield.model.snapshot import Snapshot
from icefield.parquet.write.delete_files import DeleteEntry, delete_locations
from icefield.plan.plan import ScanPlan
from icefield.plan.planned_files import PlannedFiles

CONVERT = Verb("convert equality deletes", None)


def convert_equality_deletes(
    write: TableWrite, where: Predicate | str | Any, *, is_dry_run: bool = False
) -> Snapshot | None:
    """Convert the equality deletes of files that may hold matching rows; None if there is nothing to do.

    is_dry_run: read the keys, but store nothing; the snapshot is the one that would be committed.
    """
    plan = write.plan_bound(TRUE)
    if plan.deletes is None:
        return None
    chosen = _files_with_key_deletes(plan)
    if where is not None:
        chosen = chosen.at(write.plan(where).files.paths)
    settings, has_vectors = write.delete_plan(is_dry_run=is_dry_run), write.base.has_row_ids
    deletes: list[DeleteEntry] = []
    if chosen.num_rows:
        engine = write.engine(chosen.total_bytes)
        work = ConvertKeys(plan.version.schema, settings, has_vectors, is_dry_run)
        done = write.run(engine, work, engine.group(plan.tasks(chosen)))
        deletes = [entry for each in done for entry in each.entries]

    action = RewriteDeletes(
        files=AddedFiles(write.no_files, write.shape),
        read_set=write.read_set(plan, CONVERT),
        target=write.target,
        replaced={task.location: equality_deletes(task) for task in plan.tasks(chosen)},
        deletes=deletes,
        has_vectors=has_vectors,
        place=delete_destination(settings, local_name()),
    )
    if action.changes_nothing:
        return None
    if is_dry_run:
        return preview(action, write.head, write.base)
    made = write.commit(lambda: action, write.no_files, delete_locations(deletes))
    if made is not None and made.snapshot_id == action.snapshot_id:
        return made
    # Another writer converted or removed the same files concurrently.
    remove_unreferenced(write.reading, delete_locations(deletes), write.head.load().metadata, write.base)
    return None


def _files_with_key_deletes(plan: ScanPlan) -> PlannedFiles:
    """Return the planned files that equality deletes apply to."""
    files = plan.files.filter(plan.files.delete_keys.is_valid()).sort_by("spec_id", "partition_key")
    return files.choose(np.array([task.has_key_deletes for task in plan.tasks(files)], np.bool_))
