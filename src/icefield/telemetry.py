"""Reports as metrics of OpenTelemetry: `lake.on_report(icefield.telemetry.recorder())`.

    icefield.scan.duration        histogram, s      planning of a scan
    icefield.scan.files           counter           data files, by result: read or skipped
    icefield.scan.bytes           counter, By       bytes of the files to read
    icefield.commit.duration      histogram, s      from the first attempt to the last
    icefield.commit.attempts      counter           more than one is a conflict with another writer
    icefield.commit.records       counter           rows, by change: added or removed
    icefield.commit.files         counter           data files, by change: added or removed

The attributes are the table and, of a commit, its operation. Raises Unsupported without the extra `opentelemetry`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from icefield.errors import Unsupported
from icefield.metrics import CommitReport, Listener, Report, ScanReport

API = "opentelemetry.metrics"


def recorder(meter: Any | None = None) -> Listener:
    """Return a function that records reports.

    Args:
        meter: A meter of OpenTelemetry. By default the one of the global provider, named `icefield`.
    """
    try:
        api = import_module(API)
    except ImportError as error:
        raise Unsupported(
            f"metrics of OpenTelemetry need its API: {error}", hint="Run pip install 'icefield[opentelemetry]'"
        ) from error
    return _Recorder(api.get_meter("icefield") if meter is None else meter).record


class _Recorder:
    def __init__(self, meter: Any) -> None:
        self._scans = meter.create_histogram("icefield.scan.duration", "s", "Planning of a scan")
        self._scan_files = meter.create_counter("icefield.scan.files", "{file}", "Data files of planned scans")
        self._scan_bytes = meter.create_counter("icefield.scan.bytes", "By", "Bytes of the files that scans read")
        self._commits = meter.create_histogram("icefield.commit.duration", "s", "Commits, with their retries")
        self._attempts = meter.create_counter("icefield.commit.attempts", "{attempt}", "Attempts of commits")
        self._records = meter.create_counter("icefield.commit.records", "{row}", "Rows that commits changed")
        self._files = meter.create_counter("icefield.commit.files", "{file}", "Data files that commits changed")

    def record(self, report: Report) -> None:
        """Record a report."""
        match report:
            case ScanReport():
                self._record_scan(report)
            case CommitReport():
                self._record_commit(report)

    def _record_scan(self, report: ScanReport) -> None:
        table = {"icefield.table": report.table}
        self._scans.record(report.metrics["total-planning-duration"] / 1e9, table)
        for result, name in (("read", "result-data-files"), ("skipped", "skipped-data-files")):
            self._scan_files.add(report.metrics.get(name, 0), {**table, "icefield.result": result})
        self._scan_bytes.add(report.metrics.get("total-file-size-in-bytes", 0), table)

    def _record_commit(self, report: CommitReport) -> None:
        labels = {"icefield.table": report.table, "icefield.operation": report.operation}
        self._commits.record(report.metrics["total-duration"] / 1e9, labels)
        self._attempts.add(report.metrics["attempts"], labels)
        for change in ("added", "removed"):
            changed = {**labels, "icefield.change": change}
            self._records.add(report.metrics.get(f"{change}-records", 0), changed)
            self._files.add(report.metrics.get(f"{change}-data-files", 0), changed)
