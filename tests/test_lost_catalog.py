"""A catalog that was lost is not made again in silence beside its tables."""

from pathlib import Path

import pyarrow as pa
import pytest

import icefield
from icefield.catalog.lost_catalog import MOST_DIRECTORIES
from icefield.cli.main import run
from icefield.errors import InvalidInput
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
