"""icefield doctor: what it checks, what it says, and that it leaves nothing behind."""

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Icefield
from tests.test_core_install import run_core

from icefield.ambient import SystemAmbient
from icefield.cli.doctor import lakes, machine
from icefield.storage.local import LocalStore

HERE = Path(sys.executable)


def by_name(checks: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {check["check"]: check for check in checks}


def test_a_healthy_lake_is_ok_and_nothing_is_left(icefield: Icefield, tmp_path: Path) -> None:
    icefield("create", "s.t", "id long")
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    found = icefield("doctor", "--json")
    assert found.code == 0, found.out
    checks = by_name(found.json["checks"])
    assert {check["status"] for check in checks.values()} <= {"ok", "warning"}
    expected = {"python", "avro kernel", "packages", "optional packages", "spark", "java", "workers' python", "catalog"}
    assert expected | {"store: read", "store: create, list, delete", "clock"} == set(checks)
    assert "1 table" in checks["catalog"]["found"]
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


def test_each_line_has_its_status_and_the_exit_code_counts_failures(icefield: Icefield) -> None:
    shown = icefield("doctor", "--lake", "missing")
    assert shown.code == 1
    assert "failed  catalog: no lake at missing" in shown.out
    assert "Name one with --lake" in shown.out
    assert shown.out.startswith("ok      python: ")
    assert icefield("doctor").code == 0  # no lake was named: a warning
    assert "warning catalog: no lake was named" in icefield("doctor").out


def test_a_store_that_replaces_files_is_found(icefield: Icefield, monkeypatch: pytest.MonkeyPatch) -> None:
    icefield("create", "s.t", "id long")

    def replacing(self: LocalStore, location: str, data: bytes) -> None:
        path = Path(location.removeprefix("file://"))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)

    monkeypatch.setattr(LocalStore, "put_new", replacing)
    found = icefield("doctor", "--json")
    check = by_name(found.json["checks"])["store: create, list, delete"]
    assert (found.code, check["status"]) == (1, "failed")
    assert "could be lost" in check["found"]
    assert not Path("lake/.icefield-doctor").exists() or not any(Path("lake/.icefield-doctor").iterdir())


def test_a_configuration_that_cannot_be_read_is_a_failed_check(icefield: Icefield, tmp_path: Path) -> None:
    (tmp_path / "icefield.toml").write_text('default = "x')
    ran = icefield("doctor", "--json")
    checks = {check["check"]: check for check in ran.json["checks"]}
    assert (ran.code, checks["python"]["status"], checks["configuration"]["status"]) == (1, "ok", "failed")
    assert "icefield.toml is not valid TOML" in checks["configuration"]["found"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_lake_that_cannot_be_written_fails_but_not_read_only(icefield: Icefield, tmp_path: Path) -> None:
    icefield("create", "s.t", "id long")
    (tmp_path / "lake").chmod(0o500)
    try:
        assert icefield("doctor").code == 1
        assert icefield("doctor", "--read-only").code == 0
    finally:
        (tmp_path / "lake").chmod(0o700)


def test_read_only_creates_no_file(icefield: Icefield, monkeypatch: pytest.MonkeyPatch) -> None:
    icefield("create", "s.t", "id long")
    monkeypatch.setattr(LocalStore, "put_new", lambda *_: pytest.fail("a file was created"))
    assert icefield("doctor", "--read-only").code == 0


@pytest.mark.parametrize(
    ("ahead_ms", "status", "words"),
    [
        (0, "ok", "within"),
        (60_000, "warning", "s ahead of the store's"),
        (-60_000, "warning", "s behind the store's"),
        (3_600_000, "failed", "ahead"),
    ],
)
def test_the_clock_is_compared_with_the_stores(
    icefield: Icefield, monkeypatch: pytest.MonkeyPatch, ahead_ms: int, status: str, words: str
) -> None:
    icefield("create", "s.t", "id long")
    now_ms = SystemAmbient.now_ms
    monkeypatch.setattr(SystemAmbient, "now_ms", lambda self: now_ms(self) + ahead_ms)
    check = by_name(icefield("doctor", "--json").json["checks"])["clock"]
    assert (check["status"], words in check["found"]) == (status, True)


@pytest.mark.parametrize(
    ("round_trip_ms", "skew_ms", "status"), [(5_000, 4_000, "ok"), (100, 4_000, "warning"), (100, None, "warning")]
)
def test_a_slow_store_is_no_skew(round_trip_ms: int, skew_ms: int | None, status: str) -> None:
    assert lakes._clock(lakes.Probed(skew_ms, round_trip_ms)).status == status


@pytest.mark.parametrize(
    ("version", "wanted", "is_met"),
    [
        ("2.3.3", ">=2.2,<3", True),
        ("3.0.0", ">=2.2,<3", False),
        ("2.1", ">=2.2,<3", False),
        ("4.0.0rc1", ">=4.0", True),
        ("21.0.8.2", "==21.0.8.2", True),
        ("21.0.9", "==21.0.8.2", False),
        ("1.2", "", True),
        ("1.2", "~=1.0", True),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, wanted: str, is_met: bool) -> None:
    assert machine.meets(version, wanted) is is_met


def test_packages_of_another_version_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "requires", lambda name: ["pyarrow>=9999", 'duckdb>=9999; extra == "duckdb"'])
    for name, is_optional, package in (("packages", False, "pyarrow"), ("optional packages", True, "duckdb")):
        check = machine._packages(name, is_optional=is_optional)
        assert check.status == "warning"
        assert check.mend == f"Run pip install '{package}>=9999'"


def test_the_python_of_workers_is_looked_at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", str(HERE))
    assert machine._workers().status == "ok"
    other = tmp_path / "python"
    other.write_text(f'#!/bin/sh\nexec {HERE} -c \'print("[[3, 9], \\"0.0.1\\"]")\'\n')
    other.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(other))
    check = machine._workers()
    assert check.status == "failed"
    assert "icefield 0.0.1 on Python 3.9" in check.found
    assert check.mend == f"Set PYSPARK_PYTHON={sys.executable}"
    monkeypatch.setenv("PYSPARK_PYTHON", str(tmp_path / "none"))
    checks = {check.name: check for check in machine.check_machine(start_spark=False)}
    assert "does not start" in checks["workers' python"].found


@pytest.mark.slow
def test_it_works_without_spark(tmp_path: Path) -> None:
    script = "import sys; from icefield.cli.main import run; print('exit', run(['doctor', '--json', *sys.argv[2:]]))"
    printed = run_core(script, tmp_path)
    checks = by_name(json.loads(printed[: printed.rindex("}") + 1])["checks"])
    assert printed.endswith("exit 0\n")
    assert checks["spark"]["status"] == "ok"
    assert "icefield[spark]" in checks["spark"]["mend"]
    assert "java" not in checks


@pytest.mark.spark
def test_a_session_is_really_started(icefield: Icefield) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "icefield", "doctor", "--spark", "--json"], capture_output=True, text=True, check=False
    )
    checks = by_name(json.loads(done.stdout)["checks"])
    assert checks["spark session"]["status"] == "ok", done.stdout
    assert "workers run" in checks["spark session"]["found"]
