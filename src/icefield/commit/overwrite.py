"""Replace data files: some go, others come, in one snapshot.

What must still hold when the commit lands (serializable isolation): no snapshot since the planned one added a file
that may hold rows of the overwritten range, and every file that goes is still there. Otherwise rows that this
overwrite never saw would survive it, or rows that somebody else removed would come back.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.codec.manifest import decode_manifest
from icefield.codec.manifest_columns import ALL
from icefield.codec.manifest_inherit import inherit
from icefield.codec.manifest_schema import DELETED, EXISTING
from icefield.commit.action import Change, Workshop
from icefield.commit.manifests import ManifestRow, ManifestShape, write_added_manifests, write_manifest
from icefield.commit.snapshots import SnapshotDraft, propose_snapshot
from icefield.commit.summary import tally
from icefield.errors import ConcurrentChange
from icefield.model.metadata import TableMetadata
from icefield.model.partition import PartitionSpec
from icefield.model.snapshot import MAIN, Operation, Snapshot
from icefield.scan.manifests import find_spec, has_live_files, load_manifests
from icefield.scan.plan import ScanPlan, plan_added_files
from icefield.types.schema import Schema

SHOWN_FILES = 3


class OverwriteFiles:
    """Replaces every file of a scan plan by new ones; the new files hold what is to stay of partly matching ones."""

    def __init__(self, files: pa.Table, spec: PartitionSpec, schema: Schema, replaced: ScanPlan) -> None:
        self._files = files
        self._shape = ManifestShape(schema, spec)
        self._replaced = replaced
        self._manifests: list[ManifestRow] | None = None
        self._snapshot_id: int | None = None

    @property
    def changes_nothing(self) -> bool:
        """Nothing to remove and nothing to add."""
        return bool(self._files.num_rows + self._replaced.files.num_rows == 0)

    def propose(self, base: TableMetadata, workshop: Workshop) -> Change:
        if self._snapshot_id is None:
            self._snapshot_id = workshop.ambient.random_id()
        self._check_concurrent_files(base, workshop)
        if self._manifests is None:
            self._manifests = write_added_manifests(self._files, self._shape, base, workshop)
        partitions = self._shape.partitions_of(self._files) | set(self._replaced.files.column("partition").to_pylist())
        kept, rewritten = self._without_replaced(base, workshop, self._snapshot_id)
        draft = SnapshotDraft(
            self._snapshot_id,
            self._operation(),
            new=[*self._manifests, *rewritten],
            added=tally(self._files),
            removed=tally(self._replaced.files),
            kept=kept,
            changed_partitions=len(partitions),
        )
        change = propose_snapshot(draft, base, workshop)
        return Change(change.updates, change.requirements, [*change.files, *(_path(row) for row in rewritten)])

    def reusable_files(self) -> Sequence[str]:
        return [_path(row) for row in self._manifests or ()]

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
            entries = _live_entries(manifests.slice(at, 1), workshop)
            hit = pc.is_in(entries.column("file_path"), value_set=gone)
            if not pc.any(hit).as_py():
                continue
            untouched[at] = False
            missing -= set(entries.filter(hit).column("file_path").to_pylist())
            spec = find_spec(base, manifests.column("partition_spec_id")[at].as_py())
            shape = ManifestShape(base.schema_of_spec(spec), spec)
            rewritten.append(write_manifest(_mark(entries, hit, snapshot_id), shape, base, workshop))
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


def _live_entries(manifest: pa.Table, workshop: Workshop) -> pa.Table:
    location = manifest.column("manifest_path")[0].as_py()
    entries = inherit(decode_manifest(workshop.store.read(location), location, ALL), manifest)
    return entries.filter(pc.not_equal(entries.column("status"), DELETED))


def _mark(entries: pa.Table, gone: pa.ChunkedArray, snapshot_id: int) -> pa.Table:
    """Mark entries as deleted by this snapshot or as existing; both keep their sequence numbers. (spec: Manifests)"""
    status = pc.cast(pc.if_else(gone, DELETED, EXISTING), pa.int32())
    snapshots = pc.if_else(gone, pa.scalar(snapshot_id, pa.int64()), entries.column("snapshot_id"))
    names = entries.column_names
    marked = entries.set_column(names.index("status"), "status", status)
    return marked.set_column(names.index("snapshot_id"), "snapshot_id", snapshots)


def _path(row: ManifestRow) -> str:
    return str(row["manifest_path"])


def _some(files: pa.Table) -> str:
    return ", ".join(files.column("file_path").to_pylist()[:SHOWN_FILES])
