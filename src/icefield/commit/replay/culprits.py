"""Which snapshots removed a file, or deleted rows of it, for the report of a collision."""

from collections.abc import Sequence
from dataclasses import replace

from icefield.cache.reading import ReadContext
from icefield.commit.replay.row_ids import Lost
from icefield.commit.validate.read_set import removed_by
from icefield.errors import MissingFile
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation, Snapshot
from icefield.plan.plan import ScanPlan, plan_added_deletes

MOST_LOOKED_AT = 100


def find_culprits(
    context: ReadContext, metadata: TableMetadata, snapshots: Sequence[Snapshot], lost: Sequence[Lost], plan: ScanPlan
) -> dict[str, tuple[int, ...]]:
    """Return the snapshots that removed or deleted rows of files; those that expired are not known.

    plan: of a version that has the files.
    """
    found: dict[str, list[int]] = {each.task.location: [] for each in lost}
    files = plan.files.at(found)
    for snapshot in [s for s in snapshots if s.operation != Operation.REPLACE][:MOST_LOOKED_AT]:
        try:
            gone = removed_by(context, snapshot)
            for path in found:
                like = replace(plan, files=files.at([path]))
                if path in gone or plan_added_deletes(context, metadata, snapshot, like).num_rows:
                    found[path].append(snapshot.snapshot_id)
        except MissingFile:  # expired
            continue
    return {path: tuple(ids) for path, ids in found.items()}
