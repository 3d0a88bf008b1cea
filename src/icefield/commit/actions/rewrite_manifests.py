"""Merge manifests up to the target size of the table; no row or data file changes.

It is repeated on every base from its manifests, so it does not conflict with any commit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from icefield.commit.action import NOTHING_TO_DO, ON_MAIN, CommitTarget, ProposedChange, WriteContext
from icefield.commit.snapshot.build import SnapshotDraft, propose_snapshot
from icefield.commit.snapshot.merge_manifests import count_bad, merge_all
from icefield.commit.snapshot.summary import NOTHING
from icefield.commit.validate.idempotency_key import was_made
from icefield.model.metadata import TableMetadata
from icefield.model.snapshot import Operation


@dataclass
class RewriteManifests:
    """Merges small manifests, of data and of deletes, of each spec."""

    target: CommitTarget = ON_MAIN
    snapshot_id: int | None = field(init=False, default=None)

    def propose(self, base: TableMetadata, context: WriteContext) -> ProposedChange:
        if was_made(base, self.target.ref, self.target.idempotency_key):
            return NOTHING_TO_DO
        if self.snapshot_id is None:
            self.snapshot_id = context.ambient.random_id()
        merged = merge_all(base.ref_head(self.target.ref), base, context, self.snapshot_id)
        if merged is None:
            return NOTHING_TO_DO
        extra = {
            # (spec: Optional Snapshot Summary Fields)
            "manifests-created": str(len(merged.manifests)),
            "manifests-kept": str(merged.kept.num_rows),
            "manifests-replaced": str(merged.replaced),
        }
        draft = SnapshotDraft(
            self.snapshot_id,
            Operation.REPLACE,
            merged.manifests,
            NOTHING,
            kept=merged.kept,
            target=self.target,
            extra=extra,
        )
        return propose_snapshot(draft, base, context)

    def count(self, base: TableMetadata, context: WriteContext) -> int:
        """Return how many manifests are not good; at most so many are replaced."""
        return count_bad(base.ref_head(self.target.ref), base, context)

    def reusable_files(self) -> Sequence[str]:
        return ()
