"""A lake that was moved or copied is mended by one command, whatever cuts it short."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield
from icefield.cli.main import run
from icefield.codec.manifest.list import decode_manifest_list
from icefield.codec.puffin.puffin import Blob, encode_puffin
from icefield.commit import relocate
from icefield.commit.relocate import _Mover
from icefield.errors import InvalidInput, LocationRefused
from icefield.lake import Lake
from icefield.storage.local import LocalStore
from icefield.storage.memory import MemoryStore
from icefield.table.table import Table
from tests.equality_deletes import delete_keys

MERGE_ON_READ = {"write.delete.mode": "merge-on-read"}


def fill(lake: Lake) -> None:
    for version in (1, 2, 3):
        table = lake.create_table(
            f"a.v{version}",
            "id long, p string",
            partition_by=["p"],
            format_version=version,
            properties=MERGE_ON_READ if version > 1 else None,
        )
        for start in (0, 10):
            ids = list(range(start, start + 10))
            table.append(pa.table({"id": ids, "p": [str(i % 2) for i in ids]}))
        table.delete("id IN (1, 12)")
    lake.table("a.v3").set_properties({"write.data.path": f"{lake.table('a.v3').location}/rows"})
    lake.table("a.v3").append(pa.table({"id": [20], "p": ["0"]}))
    delete_keys(lake.table("a.v2"), {"id": [3]}, {"p": "1"})
    lake.create_view("a.w", "SELECT 1 AS a", schema="a int")


def contents(lake: Lake) -> dict[str, list[list[int]]]:
    """Return the rows of every snapshot of every table."""
    found: dict[str, list[list[int]]] = {}
    for name in lake.tables():
        table = lake.table(name)
        ids = [snapshot.snapshot_id for snapshot in table.metadata.snapshots]
        rows = [table.scan(as_of=i).to_arrow().read_all().column("id").to_pylist() for i in ids]
        found[name] = [sorted(each) for each in rows]
    return found


def _delete_files(table: Table) -> list[str]:
    found: list[str] = table.inspect("delete_files").to_arrow().read_all()["file_path"].to_pylist()
    return found


@pytest.fixture(params=["", "files:"])
def moved(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, list[list[int]]]]:
    """A lake that was moved, and what was in it."""
    with icefield.connect(f"{request.param}{tmp_path}/old place", durable=False) as lake:
        fill(lake)
        before = contents(lake)
    (tmp_path / "old place").rename(tmp_path / "new")
    return f"{request.param}{tmp_path}/new", before


MOVED = r"moved or copied from .*old place .*icefield relocate"


@pytest.mark.parametrize("scheme", ["", "files:"])
def test_reports_checks_and_runs_of_upkeep_say_that_a_lake_was_moved(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with icefield.connect(f"{scheme}{tmp_path}/old place", durable=False) as lake:
        for name in ("a.one", "a.two"):
            lake.create_table(name, "id long").append(pa.table({"id": [1]}))
    (tmp_path / "old place").rename(tmp_path / "new")
    looks, real = list[str](), relocate.plan_relocation

    def look(*given: Any) -> Any:
        looks.append("look")
        return real(*given)

    monkeypatch.setattr(relocate, "plan_relocation", look)
    with icefield.connect(f"{scheme}{tmp_path}/new", durable=False) as lake:
        reports = lake.report().tables
        runs = [table for result in (lake.upkeep(), lake.upkeep(dry_run=True)) for table in result.tables]
        checks = lake.fsck().tables
        assert len(looks) == 4, "one for each call, not for each table"
        for refused in (lake.leases, lambda: lake.drop_table("a.one", purge=True)):
            with pytest.raises(LocationRefused, match=MOVED):
                refused()
        assert lake.tables() == ["a.one", "a.two"]
    assert (len(reports), len(runs), len(checks)) == (2, 4, 2)
    found = [finding.message for table in checks for finding in table.findings]
    for error in [report.error for report in reports] + [table.error for table in runs] + found:
        assert re.search(MOVED, str(error))
    for command in (["report"], ["upkeep", "plan"], ["upkeep", "run", "--yes"], ["fsck"], ["leases"]):
        assert run(["--lake", f"{scheme}{tmp_path}/new", *command]) == 1
        assert "icefield relocate" in "".join(capsys.readouterr())


@pytest.mark.slow
def test_a_moved_lake_says_so_and_is_mended(moved: tuple[str, dict[str, list[list[int]]]], tmp_path: Path) -> None:
    target, before = moved
    with icefield.connect(target, durable=False) as lake:
        with pytest.raises(LocationRefused, match=MOVED):
            lake.table("a.v2")
        files = set(tmp_path.rglob("*"))
        plan = lake.relocate(dry_run=True)
        assert (plan.old, plan.files) == (f"file://{tmp_path}/old place", None)
        assert plan.entries == ["a.v1", "a.v2", "a.v3", "a.w"]
        assert set(tmp_path.rglob("*")) == files
        done: list[str] = []
        lake.relocate(progress=done.append)
        assert done == plan.entries
        assert contents(lake) == before
        assert lake.view("a.w").metadata.location.startswith(lake.warehouse)
        assert lake.relocate().entries == []
        for name in lake.tables():
            assert b"old place" not in lake.store.read(lake.table(name).metadata_location)
        vectors = [at for at in _delete_files(lake.table("a.v3")) if at.endswith(".puffin")]
        assert vectors
        assert not [at for at in vectors if b"old place" in lake.store.read(at)]
        assert lake.table("a.v3").properties["write.data.path"] == f"{lake.table('a.v3').location}/rows"
        for name in lake.tables():
            lake.table(name).append(pa.table({"id": [99], "p": ["0"]}))
            lake.table(name).delete("id = 99")
        assert {name: rows[-1] for name, rows in contents(lake).items()} == {n: r[-1] for n, r in before.items()}


@pytest.mark.slow
def test_a_run_that_dies_is_finished_by_the_next(
    moved: tuple[str, dict[str, list[list[int]]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    target, before = moved
    put, steps, deaths = LocalStore.put_new, 0, 0
    for last in range(0, 100, 4):
        steps = 0

        def dying(store: LocalStore, location: str, data: bytes, last: int = last) -> None:
            nonlocal steps
            steps += 1
            if steps > last:
                raise KeyboardInterrupt
            put(store, location, data)

        with icefield.connect(target, durable=False) as lake, monkeypatch.context() as patch:
            patch.setattr(LocalStore, "put_new", dying)
            try:
                lake.relocate()
            except KeyboardInterrupt:
                deaths += 1
            else:
                break
    assert deaths > 3
    with icefield.connect(target, durable=False) as lake:
        lake.relocate()
        assert contents(lake) == before


def test_a_copy_does_not_touch_the_first(tmp_path: Path) -> None:
    with icefield.connect(tmp_path / "old", durable=False) as lake:
        fill(lake)
        before = contents(lake)
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "old").rglob("*.avro")}
    with icefield.connect(tmp_path / "new", durable=False) as copy:
        copy.relocate()
        copy.table("a.v2").delete("id >= 0")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "old").rglob("*.avro")} == files
    with icefield.connect(tmp_path / "old", durable=False) as lake:
        assert contents(lake) == before


def test_files_outside_the_lake_stay_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "others").mkdir()
    pq.write_table(pa.table({"id": [7]}), tmp_path / "others" / "f.parquet")
    with icefield.connect(tmp_path / "old", roots=[tmp_path / "others"], durable=False) as lake:
        lake.create_table("a.t", "id long").add_files([tmp_path / "others" / "f.parquet"])
        before = contents(lake)
    (tmp_path / "old").rename(tmp_path / "new")
    with icefield.connect(tmp_path / "new", roots=[tmp_path / "others"], durable=False) as lake:
        lake.relocate()
        assert contents(lake) == before == {"a.t": [[7]]}


def test_a_snapshot_that_lists_its_manifests_itself(tmp_path: Path) -> None:
    """Version 1 allows a snapshot without a manifest list. (spec: Snapshots)"""
    with icefield.connect(tmp_path / "old", durable=False) as lake:
        table = lake.create_table("a.t", "id long", format_version=1)
        table.append(pa.table({"id": [1, 2]}))
        document = json.loads(lake.store.read(table.metadata_location))
        (snapshot,) = document["snapshots"]
        listed = decode_manifest_list(lake.store.read(snapshot.pop("manifest-list")), "list")
        snapshot["manifests"] = listed["manifest_path"].to_pylist()
        location = f"{table.location}/metadata/00009-listed.metadata.json"
        lake.store.put_new(location, json.dumps(document).encode())
        lake.drop_table("a.t")
        lake.register_table("a.t", location)
        before = contents(lake)
    (tmp_path / "old").rename(tmp_path / "new")
    with icefield.connect(tmp_path / "new", durable=False) as lake:
        lake.relocate()
        assert contents(lake) == before == {"a.t": [[1, 2]]}


def test_tables_from_several_places_are_relocated_place_by_place(tmp_path: Path) -> None:
    catalog = f"sqlite:///{tmp_path}/c.db"
    for number, place in enumerate(("one", "two")):
        with icefield.connect(catalog, warehouse=tmp_path / place, durable=False) as lake:
            lake.create_table(f"a.t{number}", "id long").append(pa.table({"id": [number]}))
        shutil.copytree(tmp_path / place, tmp_path / "new", dirs_exist_ok=True)
        shutil.rmtree(tmp_path / place)
    with icefield.connect(catalog, warehouse=tmp_path / "new", durable=False) as lake:
        with pytest.raises(InvalidInput, match=r"several former locations: .*/one, .*/two"):
            lake.relocate()
        with pytest.raises(InvalidInput, match="former location of the lake cannot be determined"):
            lake.relocate(f"{tmp_path}/three")
        for number, place in enumerate(("one", "two")):
            assert lake.relocate(f"{tmp_path}/{place}").entries == [f"a.t{number}"]
        assert contents(lake) == {"a.t0": [[0]], "a.t1": [[1]]}


def test_the_place_that_is_named_counts_where_a_file_is_found_twice(tmp_path: Path) -> None:
    with icefield.connect(tmp_path / "a", durable=False) as lake:
        lake.create_table("a.t", "id long").append(pa.table({"id": [1]}))
    (tmp_path / "a").rename(tmp_path / "new")
    shutil.copytree(tmp_path / "new" / "a", tmp_path / "new" / "a" / "a")
    with icefield.connect(tmp_path / "new", durable=False) as lake:
        assert lake.relocate(dry_run=True).old == f"file://{tmp_path}"
        assert lake.relocate(f"{tmp_path}/a", dry_run=True).old == f"file://{tmp_path}/a"


def test_a_puffin_file_whose_blobs_would_move_is_refused() -> None:
    """Manifests say where a deletion vector begins, so that each must stay at its offset."""
    data, footer = encode_puffin([Blob("deletion-vector-v1", b"vector")])
    (blob,) = footer.blobs
    gap = data[: blob.offset] + b"gaps" + data[blob.offset :].replace(b'"offset":4', b'"offset":8')
    store = MemoryStore()
    for name, content in (("plain", data), ("gap", gap)):
        store.put_new(f"memory://lake/{name}.puffin", content)
    mover = _Mover(store, "memory://old", "memory://lake")
    assert mover._vectors("memory://lake/plain.puffin") == data
    with pytest.raises(InvalidInput, match="its blobs cannot keep their offsets"):
        mover._vectors("memory://lake/gap.puffin")


def test_what_is_not_there_is_not_relocated(tmp_path: Path) -> None:
    with icefield.connect(f"sqlite:///{tmp_path}/c.db", warehouse=tmp_path / "old") as lake:
        lake.create_table("a.t", "id long")
    with icefield.connect(f"sqlite:///{tmp_path}/c.db", warehouse=tmp_path / "empty") as lake:
        with pytest.raises(InvalidInput, match="former location of the lake cannot be determined"):
            lake.relocate()
        with pytest.raises(LocationRefused, match="is outside"):
            lake.table("a.t")


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with icefield.connect(tmp_path / "old") as lake:
        lake.create_table("a.t", "id long").append(pa.table({"id": [1]}))
    (tmp_path / "old").rename(tmp_path / "new")
    at = ["--lake", f"{tmp_path}/new"]
    assert run([*at, "count", "a.t"]) == 1
    assert "icefield relocate" in capsys.readouterr().err
    assert run([*at, "relocate", "--dry-run"]) == 0
    assert "would relocate 1 table or view" in capsys.readouterr().out
    assert run([*at, "--json", "relocate", "--yes"]) == 0
    assert json.loads(capsys.readouterr().out)["relocated"] is True
    assert run([*at, "count", "a.t"]) == 0
    assert run([*at, "relocate"]) == 0
    assert "nothing to do" in capsys.readouterr().out
