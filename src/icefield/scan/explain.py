"""Say what a scan reads and what ruled the rest out, as text for people and as values for programs."""

from dataclasses import asdict, dataclass

from icefield.scan.plan import ScanPlan

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True)
class Explanation:
    """The funnel of a scan: what there was, what was pruned by what, what is left to read."""

    table: str
    snapshot_id: int | None
    filter: str
    columns: tuple[str, ...]
    plan: ScanPlan

    def as_dict(self) -> dict[str, object]:
        """Return plain values; the snapshot id is a text, as JSON readers round large integers."""
        return {
            "table": self.table,
            "snapshot-id": None if self.snapshot_id is None else str(self.snapshot_id),
            "filter": self.filter,
            "columns": list(self.columns),
            **{key.replace("_", "-"): value for key, value in asdict(self.plan.funnel).items()},
            "files-that-match-whole": self.plan.whole_files.num_rows,
        }

    def __str__(self) -> str:
        funnel = self.plan.funnel
        at = "empty table" if self.snapshot_id is None else f"snapshot {self.snapshot_id}"
        opened = funnel.manifests - funnel.manifests_pruned
        pruned = (
            f"{funnel.files_in_pruned_manifests:,} with their manifests, "
            f"{funnel.files_pruned_by_partition:,} by partition, {funnel.files_pruned_by_statistics:,} by statistics"
        )
        whole = self.plan.whole_files.num_rows
        return "\n".join(
            (
                f"scan of {self.table} at {at}",
                f"  where      {self.filter}",
                f"  columns    {', '.join(self.columns)}",
                f"  manifests  {funnel.manifests:,} in all, {funnel.manifests_pruned:,} pruned, {opened:,} read",
                f"  files      {funnel.files:,} in all, pruned: {pruned}",
                f"             {funnel.files_read:,} to read, {whole:,} of them match whole",
                f"  rows       {funnel.rows:,} in all, {funnel.rows_read:,} in the files to read",
                f"  bytes      {human_bytes(funnel.bytes_read)} in the files to read",
            )
        )


def human_bytes(count: float) -> str:
    """Write a size with a unit."""
    for unit in UNITS[:-1]:
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} {UNITS[-1]}"
