"""Add rows, and delete the earlier rows that have their keys by equality deletes, in one snapshot: a blind upsert.

Nothing of the table is read, so nothing that it reads can change: like an append, it does not conflict. The order of
sequence numbers decides. Equality deletes apply to data files with a lower sequence number, not to those of their own
snapshot (spec: Scan Planning):

    sequence number   data            equality deletes    rows with id 1 afterwards
    1                 (id 1, n 0)                         n 0
    2                 (id 1, n 7)     id 1                n 7
    3                 (id 1, n 9)     id 1                n 9

What must be true at commit time: the deletes reach every data file that may hold one of the keys. Deletes in partitions
reach the files of their own spec only; deletes of an unpartitioned spec reach all files.
"""

from collections.abc import Sequence

from icefield.cache.reading import ReadContext
from icefield.codec.manifest.header import DATA_MANIFEST, DELETE_MANIFEST
from icefield.codec.manifest.rows import DataFiles
from icefield.commit.action import NOTHING_TO_DO, ON_MAIN, CommitTarget, ProposedChange, WriteContext
from icefield.commit.snapshot.build import SnapshotDraft, propose_snapshot
from icefield.commit.snapshot.manifests import AddedFiles, AddedManifests
from icefield.commit.snapshot.merge_manifests import merge_manifests
from icefield.commit.snapshot.summary import tally, tally_deletes
from icefield.commit.validate.idempotency_key import was_made
from icefield.errors import ConcurrentChange
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation, Snapshot
from icefield.plan.manifest_list import load_manifest_list


class EqualityUpsert:
    """Adds data files, and equality delete files for each spec; the manifests are written once for all attempts."""

    def __init__(self, files: AddedFiles, deletes: Sequence[AddedFiles], target: CommitTarget = ON_MAIN) -> None:
        self._target = target
        self._files = files
        self._deletes = deletes
        self._manifests = AddedManifests(files, *deletes)

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot of this action; None if it was never proposed."""
        return self._manifests.snapshot_id

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        if self._manifests.are_in(base) or was_made(base, self._target.ref, self._target.idempotency_key):
            return NOTHING_TO_DO
        self._check_specs(base, context)
        manifests, snapshot_id = self._manifests.write(base, context)
        parent = base.ref_head(self._target.ref)
        # Streams commit often, and each commit adds manifests of both kinds.
        merged = merge_manifests(parent, base, context, snapshot_id, (DATA_MANIFEST, DELETE_MANIFEST))
        draft = SnapshotDraft(
            snapshot_id,
            Operation.OVERWRITE,
            new=[*manifests, *(merged.manifests if merged else ())],
            kept=merged.kept if merged else None,
            added=tally(self._files.columns),
            added_deletes=tally_deletes(DataFiles.concat(group.columns for group in self._deletes)),
            changed_partitions=len(frozenset().union(*(group.partitions for group in (self._files, *self._deletes)))),
            target=self._target,
        )
        return propose_snapshot(draft, base, context)

    def prepare(self, base: TableMetadata, context: WriteContext) -> None:
        """Write the files that every base needs, before waiting in the commit queue, to hold it for less time."""
        self._manifests.write(base, context)

    def reusable_files(self) -> Sequence[str]:
        return self._manifests.locations

    def _check_specs(self, base: TableMetadata, context: WriteContext) -> None:
        """Raise ConcurrentChange if the table has files that the deletes do not reach."""
        specs = [group.shape.spec for group in self._deletes]
        if unknown := [spec for spec in specs if spec not in base.specs]:
            raise _conflict(f"partition spec {unknown[0].spec_id} was concurrently changed")
        if any(spec.is_unpartitioned for spec in specs):
            return
        missed = live_spec_ids(context.reading, base.ref_head(self._target.ref)) - {spec.spec_id for spec in specs}
        if missed:
            raise _conflict(f"data files of partition spec {min(missed)} were concurrently added")


def live_spec_ids(context: ReadContext, snapshot: Snapshot | None) -> set[int]:
    """Return the ids of the specs that data files of a snapshot have; only the manifest list is read."""
    listed = load_manifest_list(context, snapshot)
    return set() if listed is None else set(listed.live_data.partition_spec_id.to_pylist())


def _conflict(why: str) -> ConcurrentChange:
    return ConcurrentChange(f"cannot upsert: {why}", hint="Nothing was changed; run it again")
