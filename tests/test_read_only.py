"""A lake that cannot be written can be read, and says so to whoever tries to change it."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield
from tests import read_only_reader

NOBODY = 65534
CHANGES = len(read_only_reader.CHANGES)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory that every user of the machine can reach."""
    made = Path(tempfile.mkdtemp(prefix="icefield-read-only-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


AT_ONCE = {"icefield.gc.grace-ms": "0", "icefield.gc.foreign-readers": "false", "icefield.gc.orphan-age-ms": "0"}


def fill(target: str) -> None:
    with icefield.connect(target, durable=False) as lake:
        table = lake.create_table("a.t", "id long", properties=AT_ONCE)  # which reads and changes take leases for
        table.append(pa.table({"id": [1]}))
        table.append(pa.table({"id": [2]}))


def read(target: str, *uid: str) -> dict[str, Any]:
    command = [sys.executable, "-P", str(read_only_reader.__file__), target, *uid]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1], check=False)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"tables": ["a.t"], "views"')]
    found: dict[str, Any] = json.loads(lines[0])
    return found


def check(found: dict[str, Any]) -> None:
    assert found["rows"] == [1, 2]
    assert (found["filtered"], found["snapshots"], found["files"]) == (1, 2, 2)
    assert [str(each) for each in found["planned"]] == ["1 expired", "0 orphans", "0 swept", "1 forgotten", "None"]
    assert len(found["refused"]) == CHANGES
    for refusal in found["refused"]:
        assert "read-only" in refusal.lower(), refusal


@contextmanager
def mounted_read_only(source: Path, place: Path) -> Iterator[None]:
    place.mkdir()
    commands = (["mount", "--bind", str(source), str(place)], ["mount", "-o", "remount,ro,bind", str(place)])
    for command in commands:
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("mounting needs privileges")
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize(("scheme", "log"), [("", "none"), ("", "live"), ("", "crashed"), ("files:", "none")])
def test_another_user_reads(folder: Path, scheme: str, log: str) -> None:
    fill(f"{scheme}{folder}/lake")
    with kept_log(folder / "lake" / "catalog.db", log):
        before = files(folder)
        check(read(f"{scheme}{folder}/lake", str(NOBODY)))
        assert files(folder) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_may_write_the_file_but_not_its_directory(folder: Path) -> None:
    """SQLite would have to make its log there even to read."""
    fill(f"{folder}/lake")
    (folder / "lake" / "catalog.db").chmod(0o666)
    before = files(folder)
    check(read(f"{folder}/lake", str(NOBODY)))
    assert files(folder) == before


@pytest.mark.parametrize("log", ["none", "crashed"])
def test_a_read_only_mount_is_read(folder: Path, log: str) -> None:
    fill(f"{folder}/mounted")
    # Tables know where they are, so the lake is mounted where it was made.
    (folder / "mounted").rename(folder / "real")
    with kept_log(folder / "real" / "catalog.db", log), mounted_read_only(folder / "real", folder / "mounted"):
        check(read(f"{folder}/mounted"))


@contextmanager
def kept_log(path: Path, kind: str) -> Iterator[None]:
    """Leave the last commit in the write-ahead log: with a connection that is open, or as a crash leaves it."""
    if kind == "none":
        yield
        return
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("UPDATE iceberg_tables SET table_name = 'u'")
        connection.execute("UPDATE iceberg_tables SET table_name = 't'")
        connection.execute("DELETE FROM iceberg_namespace_properties WHERE property_key = 'none'")
        if kind == "live":
            yield
            return
        for name in (path.name, f"{path.name}-wal"):
            shutil.copy(path.with_name(name), path.with_name(f"{name}.kept"))
    for name in (path.name, f"{path.name}-wal"):
        path.with_name(f"{name}.kept").rename(path.with_name(name))
    path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
    yield


def files(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))
