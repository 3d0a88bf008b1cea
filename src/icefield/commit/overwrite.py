"""Replace data files: some go, others come, in one snapshot.

What must still hold when the commit lands (serializable isolation): no snapshot since the planned one added a file
that may hold rows of the overwritten range, and every file that goes is still there. Otherwise rows that this
overwrite never saw would survive it, or rows that somebody else removed would come back.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest_rewrite import ManifestSource
from icefield.codec.manifest_schema import DELETED, EXISTING
from icefield.commit.action import Change, Workshop
from icefield.commit.manifests import AddedManifests, ManifestRow, ManifestShape, load_entries, rewrite_without
from icefield.commit.snapshots import SnapshotDraft, propose_snapshot
from icefield.commit.summary import tally
from icefield.errors import ConcurrentChange
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.model.snapshot import MAIN, Operation, Snapshot
from icefield.scan.manifests import has_live_files, load_manifests
from icefield.scan.plan import ScanPlan, plan_added_files
from icefield.types.schema import Schema

SHOWN_FILES = 3


class OverwriteFiles:
    """Replaces every file of a scan plan by new ones; the new files hold what is to stay of partly matching ones."""

    def __init__(self, files: pa.Table, spec: PartitionSpec, schema: Schema, replaced: ScanPlan) -> None:
        self._files = files
        self._shape = ManifestShape(schema, spec)
        self._replaced = replaced
        self._manifests: AddedManifests | None = None

    @property
    def changes_nothing(self) -> bool:
        """Nothing to remove and nothing to add."""
        return bool(self._files.num_rows + self._replaced.files.num_rows == 0)

    def propose(self, base: TableMetadata, workshop: Workshop) -> Change:
        self._check_concurrent_files(base, workshop)
        if self._manifests is None:
            self._manifests = AddedManifests(self._files, self._shape, workshop.ambient.random_id())
        added, snapshot_id = self._manifests.write(base, workshop), self._manifests.snapshot_id
        partitions = self._shape.partitions_of(self._files) | set(self._replaced.files.column("partition").to_pylist())
        kept, rewritten = self._without_replaced(base, workshop, snapshot_id)
        draft = SnapshotDraft(
            snapshot_id,
            self._operation(),
            new=[*added, *rewritten],
            added=tally(self._files),
            removed=tally(self._replaced.files),
            kept=kept,
            changed_partitions=len(partitions),
        )
        change = propose_snapshot(draft, base, workshop)
        return Change(change.updates, change.requirements, [*change.files, *(_path(row) for row in rewritten)])

    def reusable_files(self) -> Sequence[str]:
        return self._manifests.locations if self._manifests else ()

    def _operation(self) -> Operation:
        if self._files.num_rows == 0:
            return Operation.DELETE
        return Operation.OVERWRITE if self._replaced.files.num_rows else Operation.APPEND

    def _check_concurrent_files(self, base: TableMetadata, workshop: Workshop) -> None:
        for snapshot in self._snapshots_since(base):
            found = plan_added_files(workshop.store, base, snapshot, self._replaced)
            if found.num_rows:
                raise ConcurrentChange(
                    f"cannot overwrite: snapshot {snapshot.snapshot_id} ({snapshot.operation}) meanwhile added "
                    f"{found.num_rows} file(s) that may hold matching rows, such as {_some(found)}",
                    hint="Nothing was changed; run the overwrite again to see the new rows",
                )

    def _snapshots_since(self, base: TableMetadata) -> Iterator[Snapshot]:
        """Yield every snapshot that came between the plan and the base."""
        planned = self._replaced.point.snapshot
        for snapshot in base.ancestors(base.ref_head(MAIN)):
            if planned is not None and snapshot.snapshot_id == planned.snapshot_id:
                return
            yield snapshot
        if planned is not None:
            raise ConcurrentChange(
                f"cannot overwrite: snapshot {planned.snapshot_id}, on which it was planned, left main's history",
                hint="Nothing was changed; run the overwrite again",
            )

    def _without_replaced(
        self, base: TableMetadata, workshop: Workshop, snapshot_id: int
    ) -> tuple[pa.Table | None, list[ManifestRow]]:
        """Return the manifests that stay as they are, and new ones for those that lose files."""
        manifests = load_manifests(workshop.store, base.ref_head(MAIN))
        if manifests is None:
            return None, []
        gone = self._replaced.files.column("file_path").combine_chunks()
        missing = set(gone.to_pylist())
        untouched = np.ones(manifests.num_rows, np.bool_)
        rewritten: list[ManifestRow] = []
        planned = set(self._replaced.files.column("manifest_path").to_pylist())
        for at in _planned_first(manifests, planned):
            if not missing:
                break
            manifest = manifests.slice(at, 1)
            data, entries = load_entries(manifest, workshop)
            status = _statuses(entries, gone)
            hit = pc.equal(status, DELETED)
            if not pc.any(hit).as_py():
                continue
            untouched[at] = False
            missing -= set(entries.filter(hit).column("file_path").to_pylist())
            source = ManifestSource(manifest.column("manifest_path")[0].as_py(), data, manifest, status)
            rewritten.append(rewrite_without(source, entries, base, workshop, snapshot_id))
        if missing:
            raise ConcurrentChange(
                f"cannot overwrite: {len(missing)} file(s) that it replaces were meanwhile removed, "
                f"such as {min(missing)}",
                hint="Nothing was changed; run the overwrite again",
            )
        # A manifest that only remembers deleted files has told its story in the snapshot that deleted them.
        return manifests.filter(pa.array(untouched & has_live_files(manifests))), rewritten


def _planned_first(manifests: pa.Table, planned: set[str]) -> list[int]:
    """Order manifests so that those which held the files at planning time come first; usually no other is opened."""
    paths = manifests.column("manifest_path").to_pylist()
    return sorted(range(len(paths)), key=lambda at: paths[at] not in planned)


def _statuses(entries: pa.Table, gone: pa.Array) -> pa.Array:
    """Mark live entries as deleted now or as existing; what was deleted before is left out. (spec: Manifests)"""
    live = pc.not_equal(entries.column("status"), DELETED).combine_chunks()
    hit = pc.is_in(entries.column("file_path").combine_chunks(), value_set=gone)
    return pc.if_else(live, pc.if_else(hit, DELETED, EXISTING), None).cast(pa.int32())


def _path(row: ManifestRow) -> str:
    return str(row["manifest_path"])


def _some(files: pa.Table) -> str:
    return ", ".join(files.column("file_path").to_pylist()[:SHOWN_FILES])
