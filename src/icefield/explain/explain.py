"""Explain what a scan reads and what pruned the rest, as text for people and as values for programs."""

from collections import Counter
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
import pyarrow.compute as pc

from icefield.explain.report_tree import Outline
from icefield.expr.prune.residual import residual
from icefield.expr.render.describe import describe
from icefield.parquet.read.task import DeleteFile
from icefield.plan.metrics import ScanMetrics
from icefield.plan.plan import ScanPlan
from icefield.plan.residuals import residual_counts
from icefield.showing import ShownAsText, format_bytes

SHOWN_RESIDUALS = 5


@dataclass(frozen=True, repr=False)
class Explanation(ShownAsText):
    """What a scan reads: how many manifests, files, rows and bytes there are, what pruned them, and how many are left.

    Print it for people, or use `as_dict`. `engine` says which engine counts the rows, and why.
    """

    table: str
    snapshot_id: int | None
    filter: str
    columns: tuple[str, ...]
    plan: ScanPlan
    engine: str

    @cached_property
    def delete_files(self) -> int:
        """How many delete files, or deletion vectors, apply to the files to read."""
        return _count_delete_files(self.plan)

    @property
    def files_with_deletes(self) -> int:
        """How many of the files to read have deletes."""
        return int(self.plan.files.num_rows - self.plan.files.delete_keys.null_count)

    @cached_property
    def residuals(self) -> list[tuple[str, int]]:
        """The residual filters, with the number of files of each, the most frequent first."""
        counts: Counter[str] = Counter()
        for code, count in residual_counts(self.plan.files):
            counts[describe(residual(self.plan.where, code))] += count
        return counts.most_common()

    def as_dict(self) -> dict[str, object]:
        """Return plain values; the snapshot id is a string, because JSON readers round large integers."""
        return {
            "table": self.table,
            "snapshot-id": None if self.snapshot_id is None else str(self.snapshot_id),
            "filter": self.filter,
            "columns": list(self.columns),
            **{key.replace("_", "-"): value for key, value in asdict(self.plan.metrics).items()},
            "files-that-match-whole": self.plan.whole_files.num_rows,
            "files-with-deletes": self.files_with_deletes,
            "delete-files": self.delete_files,
            "engine": self.engine,
            "residuals": [{"filter": text, "files": count} for text, count in self.residuals],
        }

    def outline(self) -> Outline:
        """Return the report as nested lines."""
        metrics = self.plan.metrics
        manifests = (Outline(f"{metrics.manifests_pruned:,} pruned"), Outline(f"{self._opened:,} read"))
        listed = format_bytes(metrics.bytes_listed)
        parts = (
            Outline(f"where {self.filter}"),
            Outline(f"columns {', '.join(self.columns)}"),
            Outline(f"{metrics.manifests:,} manifests", manifests),
            _level(f"{metrics.files:,} files", _files(metrics)),
            _level(f"{metrics.rows:,} rows", _rows(metrics)),
            _level(f"{listed} in the manifests read", _bytes(metrics)),
            Outline(f"deletes: {self._deletes_text}"),
            Outline("rows are filtered by", tuple(Outline(text) for text in self._residual_texts())),
        )
        return Outline(self._title, parts)

    def __str__(self) -> str:
        metrics = self.plan.metrics
        whole = self.plan.whole_files.num_rows
        listed = format_bytes(metrics.bytes_listed)
        lines = [
            self._title,
            f"  where      {self.filter}",
            f"  columns    {', '.join(self.columns)}",
            f"  manifests  {metrics.manifests:,} in all, {metrics.manifests_pruned:,} pruned, {self._opened:,} read",
            f"  files      {metrics.files:,} in all, pruned: {_pruned_text(_files(metrics))}",
            f"             {metrics.files_read:,} to read, {whole:,} of them match whole",
            f"  rows       {metrics.rows:,} in all, pruned: {_pruned_text(_rows(metrics))}",
            f"             {metrics.rows_read:,} in the files to read",
            f"  bytes      {listed} in the manifests read, pruned: {_pruned_text(_bytes(metrics))}",
            f"             {format_bytes(metrics.bytes_read)} in the files to read",
        ]
        if self.files_with_deletes:
            lines.append(f"  deletes    {self._deletes_text}")
        lines.append(f"  counted by {self.engine}")
        if whole < metrics.files_read:
            first, *others = self._residual_texts()
            lines += [f"  filter by  {first}", *(f"             {text}" for text in others)]
        return "\n".join(lines)

    @property
    def _title(self) -> str:
        at = "empty table" if self.snapshot_id is None else f"snapshot {self.snapshot_id}"
        return f"scan of {self.table} at {at}"

    @property
    def _opened(self) -> int:
        return self.plan.metrics.manifests - self.plan.metrics.manifests_pruned

    @property
    def _deletes_text(self) -> str:
        return f"{self.delete_files:,} that apply, to {self.files_with_deletes:,} of the files to read"

    def _residual_texts(self) -> list[str]:
        shown = [f"{text} (files: {count:,})" for text, count in self.residuals]
        rest = len(shown) - SHOWN_RESIDUALS
        return shown if rest <= 0 else [*shown[:SHOWN_RESIDUALS], f"… and {rest:,} more"]


_FATES = ("with their manifests", "by partition", "by statistics")


def _files(metrics: ScanMetrics) -> list[str | None]:
    by_pass = (metrics.files_in_pruned_manifests, metrics.files_pruned_by_partition, metrics.files_pruned_by_statistics)
    return [f"{count:,}" for count in (*by_pass, metrics.files_read)]


def _rows(metrics: ScanMetrics) -> list[str | None]:
    by_pass = (metrics.rows_in_pruned_manifests, metrics.rows_pruned_by_partition, metrics.rows_pruned_by_statistics)
    return [f"{count:,}" for count in (*by_pass, metrics.rows_read)]


def _bytes(metrics: ScanMetrics) -> list[str | None]:
    known = (metrics.bytes_pruned_by_partition, metrics.bytes_pruned_by_statistics, metrics.bytes_read)
    return [None, *map(format_bytes, known)]


def _pruned_text(counts: list[str | None]) -> str:
    return ", ".join(f"{count} {fate}" for count, fate in zip(counts[:-1], _FATES, strict=True) if count is not None)


def _level(title: str, counts: list[str | None]) -> Outline:
    """Format one level of the report: what each step pruned, and what is read; None for unknown values."""
    fates = (*(f"pruned {fate}" for fate in _FATES), "to read")
    known = [f"{count} {fate}" for count, fate in zip(counts, fates, strict=True) if count is not None]
    return Outline(title, tuple(Outline(line) for line in known))


def _count_delete_files(plan: ScanPlan) -> int:
    """Count the delete files that apply to planned files, with one look-up for each distinct set of them."""
    files = plan.files.filter(plan.files.delete_keys.is_valid())
    if plan.deletes is None or files.num_rows == 0:
        return 0
    keys = files.delete_keys.combine_chunks()
    columns = [pc.struct_field(keys, name).to_numpy() for name in ("vector", "target", "group")]
    columns.append(files.sequence_number.to_numpy())
    distinct = np.unique(np.column_stack(columns), axis=0)
    found: set[DeleteFile] = set()
    for vector, target, group, number in distinct.tolist():
        found.update(plan.deletes.deletes_of({"vector": vector, "target": target, "group": group}, number))
    return len(found)
