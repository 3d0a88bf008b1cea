"""What a row-level change did, as text for people and as values for programs."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from icefield.model.snapshot import Snapshot
from icefield.plan.metrics import ScanMetrics
from icefield.showing import ShownAsText


@dataclass(frozen=True, repr=False)
class ChangeResult(ShownAsText):
    """What `delete`, `update`, `merge` or `upsert` did; with `dry_run`, what it would do.

    Attributes:
        verb: The name of the change.
        snapshot: The new snapshot; None if no row changed, and for a dry run.
        is_dry_run: Nothing was written; the counts are of what would be done.
        is_repeated: An earlier run under the same idempotency key had landed, so nothing was done.
        mode: `copy-on-write`, `merge-on-read` or `auto`.
        engine: Which engine moved the rows, and why.
        filter: The filter by which data files were chosen or pruned.
        scan: How many files, rows and bytes there were, and what pruned those that were not read.
        rows_matched: Rows of the table that matched the filter, or a source row.
        rows_updated: Rows with new values.
        rows_deleted: Rows that were deleted.
        rows_inserted: New rows.
        rows_copied: Rows that only moved to a new file.
        files_read: Data files that were opened, or would be.
        bytes_read: Their size.
        files_rewritten: Data files whose other rows were copied to new ones.
        files_dropped: Data files that were removed because all their rows changed.
        bytes_removed: The size of the files that were rewritten or dropped.
        files_added: New data files. A dry run writes none, and does not know how many there would be: 0.
        bytes_added: Their size.
        delete_files_added: New position delete files, or deletion vectors.
        seconds: The time of each phase: `source`, `plan`, `rows`, `commit`.
    """

    verb: str
    snapshot: Snapshot | None = None
    is_dry_run: bool = False
    is_repeated: bool = False
    mode: str | None = None
    engine: str | None = None
    filter: str | None = None
    scan: ScanMetrics = field(default_factory=ScanMetrics)
    rows_matched: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_inserted: int = 0
    rows_copied: int = 0
    files_read: int = 0
    bytes_read: int = 0
    files_rewritten: int = 0
    files_dropped: int = 0
    bytes_removed: int = 0
    files_added: int = 0
    bytes_added: int = 0
    delete_files_added: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)

    def as_dict(self) -> dict[str, object]:
        """Return plain values; the snapshot id is a string, because JSON readers round large integers."""
        own = {
            name.replace("_", "-"): getattr(self, name)
            for name in self.__dataclass_fields__
            if name not in ("snapshot", "scan", "seconds")
        }
        scan = {name.replace("_", "-"): value for name, value in asdict(self.scan).items()}
        snapshot_id = None if self.snapshot is None else str(self.snapshot.snapshot_id)
        return {"snapshot-id": snapshot_id, **own, "scan": scan, "seconds": dict(self.seconds)}

    def __str__(self) -> str:
        counts = (
            (self.rows_updated, "updated"),
            (self.rows_deleted, "deleted"),
            (self.rows_inserted, "inserted"),
            (self.rows_copied, "copied"),
        )
        rows = ", ".join(f"{count:,} {word}" for count, word in counts if count)
        verb = f"{self.verb} (dry run)" if self.is_dry_run else self.verb
        files = (
            f"{self.files_read:,} of {self.scan.files:,} read",
            f"{self.files_rewritten:,} rewritten",
            f"{self.files_dropped:,} dropped",
            f"{self.files_added:,} added",
            f"{self.delete_files_added:,} delete files added",
        )
        pruned = (
            f"{self.scan.files_in_pruned_manifests:,} with their manifests",
            f"{self.scan.files_pruned_by_partition:,} by partition",
            f"{self.scan.files_pruned_by_statistics:,} by statistics",
        )
        lines = [
            f"{verb}: {rows or 'no row changed'} ({self.rows_matched:,} matched)",
            f"  files    {', '.join(files)}",
            f"  pruned   {', '.join(pruned)}",
            f"  filter   {self.filter}",
            f"  engine   {self.engine}",
        ]
        if self.seconds:
            lines.append("  seconds  " + ", ".join(f"{name} {value:.2f}" for name, value in self.seconds.items()))
        return "\n".join(lines)
