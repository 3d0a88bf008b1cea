"""Repairs that are well defined: they lose nothing that could still be read.

    a branch or tag that points at no snapshot      is dropped: nothing can be read through it
    a statistics file that does not exist           is forgotten: statistics are optional
    a data file that does not exist                 is removed from the table, but only if the caller names it: its rows
                                                    are lost, unless the file is restored

What is not repaired: a missing or unreadable manifest or manifest list (which files it named is not known; restore it,
or roll back), a file of another size or with other rows (which of the two is right is not known), a file that is listed
twice (which entry is the right one is not known), numbers and summaries (they are part of snapshots, which are
immutable), the pointer (whether a crashed commit should take effect is not ours to decide), and dangling deletes (they
do no harm).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from icefield.commit.action import NOTHING_TO_DO, CommitTarget, ProposedChange, WriteContext
from icefield.commit.validate.key_history import forget_branches
from icefield.dml.head import TableHead
from icefield.dml.verbs import DELETE
from icefield.dml.write import TableWrite
from icefield.errors import InvalidInput
from icefield.fsck.finding import Check, Finding, Repair
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import MAIN
from icefield.model.updates import (
    AssertTableUUID,
    RemovePartitionStatistics,
    RemoveSnapshotRef,
    RemoveStatistics,
    Update,
)


@dataclass(frozen=True)
class StatisticsRef:
    """A statistics file that metadata names. size_bytes: None if metadata has none."""

    snapshot_id: int
    location: str
    size_bytes: int | None
    is_of_partitions: bool


@dataclass(frozen=True)
class RepairMetadata:
    """Drops refs that point at no snapshot, as of the base, and forgets statistics files."""

    statistics: Sequence[StatisticsRef] = ()

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        names = dangling_refs(base)
        updates: list[Update] = [RemoveSnapshotRef(name) for name in names]
        updates += forget_branches(base, names)
        for file in self.statistics:
            updates.append((RemovePartitionStatistics if file.is_of_partitions else RemoveStatistics)(file.snapshot_id))
        return ProposedChange(updates, [AssertTableUUID(base.table_uuid)]) if updates else NOTHING_TO_DO

    def reusable_files(self) -> Sequence[str]:
        return ()


def dangling_refs(metadata: TableMetadata) -> list[str]:
    """Return the branches and tags whose snapshot is not there."""
    known = {snapshot.snapshot_id for snapshot in metadata.snapshots}
    return [name for name, ref in metadata.refs.items() if ref.snapshot_id not in known and name != MAIN]


def repair(
    head: TableHead,
    findings: Sequence[Finding],
    statistics: Sequence[StatisticsRef],
    drop_files: Sequence[str],
    *,
    dry_run: bool,
) -> list[Repair]:
    """Repair what was found, or return what would be repaired."""
    missing = {f.location for f in findings if f.check is Check.MISSING_FILES}
    if present := sorted(set(drop_files) - missing):
        raise InvalidInput(
            f"{present[0]} is not a missing file of {head.name}",
            hint="Files that exist are removed with Table.delete_files",
        )
    names = dangling_refs(head.load().metadata)
    gone = [file for file in statistics if file.location in missing]
    done = [Repair(Check.REFS, f"drop {name!r}, which points at no snapshot") for name in names]
    done += [Repair(Check.MISSING_FILES, f"forget the statistics file {file.location}") for file in gone]
    done += [Repair(Check.MISSING_FILES, f"remove {location} and its rows from the table") for location in drop_files]
    if dry_run:
        return done
    if names or gone:
        head.commit([RepairMetadata(gone)])
    if drop_files:
        TableWrite.begin(head, CommitTarget()).replace_named(None, drop_files, DELETE)
    return done
