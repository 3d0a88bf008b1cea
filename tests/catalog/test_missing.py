"""A catalog that was lost is not made again in silence beside its tables."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

import icefield
from icefield.catalog.missing import MOST_DIRECTORIES, refuse_tables
from icefield.cli.main import run
from icefield.errors import CatalogError, InvalidInput
from icefield.storage.location import local_path

TARGETS = {"directory": "{0}/lake", "files": "files:{0}/lake", "sqlite": "sqlite:///{0}/cat.db"}
CATALOGS = {"directory": "lake/catalog.db", "files": "lake/catalog.names", "sqlite": "cat.db"}


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("how", ["removed", "emptied"])
def test_a_lost_catalog_is_told(tmp_path: Path, kind: str, how: str) -> None:
    target = TARGETS[kind].format(tmp_path)
    warehouse = tmp_path / "lake" if kind == "sqlite" else None
    with icefield.connect(target, warehouse=warehouse) as lake:
        lake.create_table("a.b.t", "id long").append(pa.table({"id": [1]}))
        location = lake.table("a.b.t").metadata_location
    catalog = tmp_path / CATALOGS[kind]
    if how == "emptied" and catalog.is_file():
        catalog.write_bytes(b"")
    elif how == "emptied":
        for record in [path for path in catalog.rglob("*") if path.is_file()]:
            record.unlink()
    else:
        catalog.rename(tmp_path / "kept")
    before = set(tmp_path.rglob("*"))
    with pytest.raises(InvalidInput, match=r"holds tables, such as .*metadata.*create=True"):
        icefield.connect(target, warehouse=warehouse)
    assert set(tmp_path.rglob("*")) == before
    with icefield.connect(target, warehouse=warehouse, create=True) as lake:
        assert lake.tables() == []
        assert lake.register_table("a.t", location).count() == 1
    with icefield.connect(target, warehouse=warehouse) as lake:
        assert lake.tables() == ["a.t"]


@pytest.mark.parametrize("kind", ["directory", "sqlite"])
@pytest.mark.parametrize("statement", ["CREATE TABLE notes (id)", "CREATE TABLE iceberg_namespace_properties (id)"])
def test_a_file_of_another_application_is_no_catalog(tmp_path: Path, kind: str, statement: str) -> None:
    target, warehouse = TARGETS[kind].format(tmp_path), tmp_path / "lake" if kind == "sqlite" else None
    with icefield.connect(target, warehouse=warehouse) as lake:
        location = lake.create_table("a.t", "id long").metadata_location
    catalog = tmp_path / CATALOGS[kind]
    catalog.unlink()
    with closing(sqlite3.connect(catalog)) as other:
        other.execute(statement)
    before = catalog.read_bytes()
    with icefield.connect(target, warehouse=warehouse) as lake:
        for verb in (lake.tables, lambda: lake.table("a.t"), lambda: lake.create_table("a.u", "id long")):
            with pytest.raises(InvalidInput, match=r"missing tables: iceberg_tables, but .* holds tables.*create=True"):
                verb()
    assert catalog.read_bytes() == before
    if "notes" in statement:
        with icefield.connect(target, warehouse=warehouse, create=True) as lake:
            assert lake.register_table("a.t", location).name == "a.t"
        with icefield.connect(target, warehouse=warehouse) as lake:
            assert lake.tables() == ["a.t"]


def test_a_database_of_another_application_can_be_shared(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "cat.db")) as other:
        other.execute("CREATE TABLE notes (id)")
    for names in (["a.t0"], ["a.t0", "a.t1"]):
        with icefield.connect(TARGETS["sqlite"].format(tmp_path), warehouse=tmp_path / "lake") as lake:
            lake.create_table(names[-1], "id long")
            assert lake.tables() == names


def test_a_catalog_that_others_make_just_now_is_not_lost(tmp_path: Path) -> None:
    with icefield.connect(tmp_path) as lake:
        lake.create_table("a.t", "id long")
    answers = iter([False, True])
    refuse_tables(tmp_path, "there was no catalog", lambda: next(answers))
    with pytest.raises(InvalidInput, match="there was no catalog"):
        refuse_tables(tmp_path, "there was no catalog", lambda: False)


@pytest.mark.parametrize("size", [1, 100, 511, 1000, 4095, 4096, 8192])
def test_a_catalog_that_was_cut_is_damaged(tmp_path: Path, size: int) -> None:
    with icefield.connect(tmp_path, durable=False) as lake:
        lake.create_namespace("a")
    catalog = tmp_path / "catalog.db"
    catalog.write_bytes(catalog.read_bytes()[:size])
    with (
        icefield.connect(tmp_path) as lake,
        pytest.raises(CatalogError, match=r"(is corrupt|is not a SQLite database)"),
    ):
        lake.tables()
    assert catalog.stat().st_size == size


def test_the_command_line_tells_it_and_mends_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = f"{tmp_path}/lake"
    with icefield.connect(lake) as made:
        location = made.create_table("a.t", "id long").metadata_location
    (tmp_path / "lake" / "catalog.db").unlink()
    for command in (["tables"], ["create", "a.u", "id long"]):
        assert run(["--lake", lake, *command]) == 1
        assert "holds tables" in capsys.readouterr().err
    assert run(["--lake", lake, "--create-catalog", "register", "a.t", local_path(location)]) == 0
    assert run(["--lake", lake, "count", "a.t"]) == 0
    assert "registered a.t" in capsys.readouterr().out


def test_other_files_are_no_tables(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "notes.json").write_text("{}")
    for number in range(50):
        (tmp_path / f"d{number}" / "metadata").mkdir(parents=True)
    with icefield.connect(tmp_path) as lake:
        assert lake.tables() == []
    assert MOST_DIRECTORIES > 50
