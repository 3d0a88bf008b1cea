"""Scan metrics: what planning looked at, and what it pruned."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ScanMetrics:
    """How many manifests, files, rows and bytes there were, and what pruned them.

    Manifest lists do not have file sizes, so `bytes_listed` does not include the files of pruned manifests.
    """

    manifests: int = 0
    manifests_pruned: int = 0
    files: int = 0
    files_in_pruned_manifests: int = 0
    files_pruned_by_partition: int = 0
    files_pruned_by_statistics: int = 0
    files_read: int = 0
    rows: int = 0
    rows_in_pruned_manifests: int = 0
    rows_pruned_by_partition: int = 0
    rows_pruned_by_statistics: int = 0
    rows_read: int = 0
    bytes_listed: int = 0
    bytes_pruned_by_partition: int = 0
    bytes_pruned_by_statistics: int = 0
    bytes_read: int = 0

    def __add__(self, other: "ScanMetrics") -> "ScanMetrics":
        return ScanMetrics(*(getattr(self, name) + getattr(other, name) for name in ScanMetrics.__dataclass_fields__))

    def by_iceberg_names(self) -> dict[str, int]:
        """Return the counts that Iceberg's scan reports have too, under their names there."""
        return {
            "total-data-manifests": self.manifests,
            "scanned-data-manifests": self.manifests - self.manifests_pruned,
            "skipped-data-manifests": self.manifests_pruned,
            "result-data-files": self.files_read,
            "skipped-data-files": self.files_pruned_by_partition + self.files_pruned_by_statistics,
            "total-file-size-in-bytes": self.bytes_read,
        }
