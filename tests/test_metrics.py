"""Reports of scans and commits: who gets them, what they say, and that nobody is disturbed by them."""

import json
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import icefield
from icefield import CommitReport, ScanReport
from icefield.errors import InvalidInput
from icefield.metrics import COMMIT_METRICS
from icefield.telemetry import recorder
from tests.test_core_install import run_core

ROWS = pa.table({"id": [1, 2, 3], "day": ["a", "a", "b"]})


def open_reporting(folder: Path) -> tuple[icefield.Lake, list[Any]]:
    reports: list[Any] = []
    return icefield.connect(folder / "lake", metrics=reports.append), reports


def test_a_commit_reports_what_it_changed(tmp_path: Path) -> None:
    lake, reports = open_reporting(tmp_path)
    table = lake.create_table("s.t", "id long, day string", partition_by=["day"])
    snapshot = table.append(ROWS)
    assert snapshot is not None
    table.delete("day = 'b'")
    appended, deleted = (report for report in reports if isinstance(report, CommitReport))
    assert (appended.table, appended.snapshot_id, appended.operation) == ("s.t", snapshot.snapshot_id, "append")
    expected = {"added-data-files": 2, "total-data-files": 2, "added-records": 3, "total-records": 3, "attempts": 1}
    assert {name: appended.metrics[name] for name in expected} == expected
    assert appended.metrics["total-duration"] > 0
    assert deleted.operation == "delete"
    assert {name: deleted.metrics[name] for name in ("removed-data-files", "removed-records", "total-records")} == {
        "removed-data-files": 1,
        "removed-records": 1,
        "total-records": 2,
    }
    encoded = json.loads(json.dumps(appended.as_dict()))
    assert encoded["metrics"]["added-records"] == {"unit": "count", "value": 3}
    assert encoded["metrics"]["added-files-size-bytes"]["unit"] == "bytes"
    assert encoded["metrics"]["total-duration"]["time-unit"] == "nanoseconds"


def test_a_scan_reports_what_was_pruned_once(tmp_path: Path) -> None:
    lake, reports = open_reporting(tmp_path)
    table = lake.create_table("s.t", "id long, day string", partition_by=["day"])
    table.append(ROWS)
    reports.clear()
    scan = table.scan(where="day = 'b'", select=["id"])
    assert reports == []  # nothing is planned yet
    assert (scan.count(), scan.to_arrow().read_all().num_rows) == (1, 1)
    (report,) = reports
    assert isinstance(report, ScanReport)
    assert (report.table, report.snapshot_id, report.columns) == ("s.t", scan.snapshot_id, {1: "id"})
    assert "day = 'b'" in report.where
    names = ("result-data-files", "skipped-data-files", "scanned-data-manifests")
    assert [report.metrics[name] for name in names] == [1, 1, 1]
    assert json.loads(json.dumps(report.as_dict()))["projected-field-names"] == ["id"]


def test_the_summary_of_a_snapshot_has_the_names_that_are_read(tmp_path: Path) -> None:
    lake, _ = open_reporting(tmp_path)
    table = lake.create_table(
        "s.t", "id long, day string", format_version=3, properties={"write.delete.mode": "merge-on-read"}
    )
    table.append(ROWS)
    table.delete("id = 1")
    keys = {key for snapshot in table.metadata.snapshots for key in snapshot.summary}
    assert {"added-dvs", "added-files-size", "total-position-deletes", "added-position-deletes"} <= keys
    assert {
        key for key in keys if key.startswith(("added-", "deleted-", "removed-", "total-"))
    } <= COMMIT_METRICS.keys()


def test_a_listener_that_fails_is_logged_and_the_commit_stands(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lake, reports = open_reporting(tmp_path)

    @lake.on_report
    def fail(report: object) -> None:
        raise RuntimeError("no room")

    later: list[object] = []
    lake.on_report(later.append)
    table = lake.create_table("s.t", "id long, day string")
    with caplog.at_level(logging.ERROR, "icefield"):
        table.append(ROWS)
    assert table.count() == 3
    assert caplog.records[0].name == "icefield.metrics"
    assert "no room" in caplog.text
    assert later == reports != []
    with pytest.raises(InvalidInput, match="listener takes"):
        lake.on_report(3)  # type: ignore[arg-type]


def test_all_tables_of_a_transaction_report_and_a_failed_commit_does_not(tmp_path: Path) -> None:
    lake, reports = open_reporting(tmp_path)
    for name in ("s.a", "s.b"):
        lake.create_table(name, "id long, day string")
    with lake.transaction() as change:
        change.table("s.a").append(ROWS)
        change.table("s.b").append(ROWS)
    assert sorted(report.table for report in reports if isinstance(report, CommitReport)) == ["s.a", "s.b"]
    reports.clear()
    with pytest.raises(icefield.IcefieldError):
        lake.table("s.a").append(pa.table({"other": [1]}))
    assert [report for report in reports if isinstance(report, CommitReport)] == []


def test_rooms_log_under_their_names(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lake = icefield.connect(tmp_path / "lake")
    table = lake.create_table("s.t", "id long, day string")
    with caplog.at_level(logging.DEBUG, "icefield"):
        snapshot = table.append(ROWS)
        table.scan().to_arrow().read_all()
    assert snapshot is not None
    said = {record.name: record.getMessage() for record in caplog.records}
    assert said["icefield.commit"].startswith(f"committed snapshot {snapshot.snapshot_id} (append) to s.t, attempt 1")
    assert said["icefield.plan"].startswith(f"planned s.t at {snapshot.snapshot_id}: 1 of 1 files")
    caplog.clear()
    with caplog.at_level(logging.WARNING, "icefield"):
        table.append(ROWS)
    assert caplog.records == []


def test_reports_are_metrics_of_opentelemetry(tmp_path: Path) -> None:
    reader = InMemoryMetricReader()
    lake = icefield.connect(tmp_path / "lake", metrics=recorder(MeterProvider([reader]).get_meter("test")))
    table = lake.create_table("s.t", "id long, day string", partition_by=["day"])
    table.append(ROWS)
    table.append(ROWS)
    table.scan(where="day = 'a'").count()
    points = points_of(reader)
    labels = (("icefield.change", "added"), ("icefield.operation", "append"), ("icefield.table", "s.t"))
    assert points["icefield.commit.records", labels].value == 6
    assert points["icefield.commit.attempts", labels[1:]].value == 2
    assert points["icefield.commit.duration", labels[1:]].count == 2
    assert points["icefield.scan.files", (("icefield.result", "skipped"), labels[-1])].value == 2
    assert points["icefield.scan.duration", (labels[-1],)].count == 1


def points_of(reader: InMemoryMetricReader) -> dict[tuple[str, tuple[tuple[str, Any], ...]], Any]:
    data: Any = reader.get_metrics_data()
    return {
        (metric.name, tuple(sorted(point.attributes.items()))): point
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    }


@pytest.mark.slow
def test_without_opentelemetry_the_extra_is_named(tmp_path: Path) -> None:
    script = """
from icefield.errors import Unsupported
from icefield.telemetry import recorder
try:
    recorder()
except Unsupported as error:
    print(error.hint)
"""
    assert run_core(script, tmp_path) == "Run pip install 'icefield[opentelemetry]'\n"
