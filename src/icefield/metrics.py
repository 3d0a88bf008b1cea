"""Reports of scans and commits, under the names of Iceberg's metrics API, and those who get them.

    lake.on_report(lambda report: print(report.table, report.metrics))

A report is made only if somebody gets it. One who fails is logged and does not disturb the scan or the commit.
(rest-catalog-open-api.yaml: ScanReport, CommitReport)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from icefield.ambient import SystemAmbient
from icefield.arguments import whole_number
from icefield.deferred import deferred_imports

with deferred_imports(__name__):
    import logging

    from icefield.model.snapshot import Snapshot

DURATIONS = ("total-planning-duration", "total-duration")  # in nanoseconds
BYTES = ("-size-bytes", "-size-in-bytes")
# Metrics of a commit, by the key of the summary that has the number.
COMMIT_METRICS = {
    **{f"{word}-data-files": f"{word}-data-files" for word in ("added", "total")},
    "deleted-data-files": "removed-data-files",
    **{f"{word}-delete-files": f"{word}-delete-files" for word in ("added", "removed", "total")},
    **{f"{word}-equality-delete-files": f"{word}-equality-delete-files" for word in ("added", "removed")},
    **{f"{word}-position-delete-files": f"{word}-positional-delete-files" for word in ("added", "removed")},
    **{f"{word}-dvs": f"{word}-dvs" for word in ("added", "removed")},
    **{f"{word}-records": f"{word}-records" for word in ("added", "total")},
    "deleted-records": "removed-records",
    **{f"{word}-files-size": f"{word}-files-size-bytes" for word in ("added", "removed", "total")},
    **{f"{word}-position-deletes": f"{word}-positional-deletes" for word in ("added", "removed", "total")},
    **{f"{word}-equality-deletes": f"{word}-equality-deletes" for word in ("added", "removed", "total")},
}


@dataclass(frozen=True)
class ScanReport:
    """What planning a scan took and found.

    Attributes:
        table: The name of the table.
        snapshot_id: The snapshot that is read; None for an empty table.
        schema_id: Its schema.
        where: The filter, as text.
        columns: The selected columns, by field id.
        metrics: Numbers by Iceberg's names; durations in nanoseconds.
    """

    table: str
    snapshot_id: int | None
    schema_id: int
    where: str
    columns: Mapping[int, str]
    metrics: Mapping[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """Return the report in the form of Iceberg's REST protocol, but for the filter, which is text."""
        return {
            "report-type": "scan-report",
            "table-name": self.table,
            "snapshot-id": -1 if self.snapshot_id is None else self.snapshot_id,
            "filter": self.where,
            "schema-id": self.schema_id,
            "projected-field-ids": list(self.columns),
            "projected-field-names": list(self.columns.values()),
            "metrics": _encode(self.metrics),
        }


@dataclass(frozen=True)
class CommitReport:
    """What a commit changed, and what it took.

    Attributes:
        table: The name of the table.
        snapshot_id: The new snapshot.
        sequence_number: Its sequence number.
        operation: `append`, `overwrite`, `delete` or `replace`.
        metrics: Numbers by Iceberg's names; durations in nanoseconds.
    """

    table: str
    snapshot_id: int
    sequence_number: int
    operation: str
    metrics: Mapping[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """Return the report in the form of Iceberg's REST protocol."""
        return {
            "report-type": "commit-report",
            "table-name": self.table,
            "snapshot-id": self.snapshot_id,
            "sequence-number": self.sequence_number,
            "operation": self.operation,
            "metrics": _encode(self.metrics),
        }


Report = ScanReport | CommitReport
Listener = Callable[[Report], object]


class Listeners:
    """Those who get the reports of a lake, in the order in which they asked."""

    def __init__(self) -> None:
        self._calls: tuple[Listener, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._calls)

    def add(self, call: Listener) -> None:
        """Send every later report to a function."""
        self._calls = (*self._calls, call)

    def remove(self, call: Listener) -> None:
        """Send no more reports to a function."""
        self._calls = tuple(known for known in self._calls if known is not call)

    def send(self, report: Report) -> None:
        """Send a report to everybody."""
        for call in self._calls:
            try:
                call(report)
            except Exception:
                logging.getLogger("icefield.metrics").exception("a report of %s could not be delivered", report.table)


def report_of_commit(table: str, snapshot: Snapshot, more: Mapping[str, int] | None = None) -> CommitReport:
    """Return the report of a snapshot, by its summary. more: metrics that only the committer knows."""
    read = {name: whole_number(snapshot.summary.get(key)) for key, name in COMMIT_METRICS.items()}
    counted = {name: count for name, count in read.items() if count is not None}
    return CommitReport(
        table, snapshot.snapshot_id, snapshot.sequence_number, snapshot.operation or "", {**(more or {}), **counted}
    )


def stopwatch() -> Callable[[], int]:
    """Return a function that returns the nanoseconds since now."""
    clock = SystemAmbient.monotonic
    started = clock()
    return lambda: int((clock() - started) * 1e9)


def _encode(metrics: Mapping[str, int]) -> dict[str, object]:
    encoded: dict[str, object] = {}
    for name, value in metrics.items():
        if name in DURATIONS:
            encoded[name] = {"count": 1, "time-unit": "nanoseconds", "total-duration": value}
        else:
            encoded[name] = {"unit": "bytes" if name.endswith(BYTES) else "count", "value": value}
    return encoded
