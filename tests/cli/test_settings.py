"""The lake that a command line names: by --lake, the environment or a file."""

from pathlib import Path

import pytest
from tests.cli.conftest import Icefield
from tests.s3_server import s3_server

CREATE = ("create", "shop.orders", "id long")


def test_the_lake_is_a_directory_called_lake_unless_another_is_named(
    icefield: Icefield, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert icefield(*CREATE).code == 0
    assert (tmp_path / "lake" / "catalog.db").is_file()
    (tmp_path / "icefield.toml").write_text(
        "default = 'dev'\n[lakes.dev]\ntarget = 'dev-lake'\n[lakes.ci]\ntarget = 'ci'"
    )
    assert icefield(*CREATE).code == 0
    assert (tmp_path / "dev-lake" / "catalog.db").is_file()
    assert icefield("--lake", "ci", *CREATE).code == 0
    assert (tmp_path / "ci" / "catalog.db").is_file()
    monkeypatch.setenv("ICEFIELD_LAKE", "files:nodb")
    assert icefield(*CREATE).code == 0
    assert (tmp_path / "nodb" / "catalog.names").is_dir()
    assert icefield("tables", "--lake", "dev", "--json").json["tables"]


def test_a_database_apart_from_its_warehouse(icefield: Icefield, monkeypatch: pytest.MonkeyPatch) -> None:
    where = ("--lake", "sqlite:///c.db", "--warehouse", "tables")
    assert icefield(*where, "tables").code == 1  # it is not there yet
    assert icefield(*CREATE, *where).code == 0
    assert icefield(*where, "tables").code == 0
    monkeypatch.setenv("ICEFIELD_LAKE", "sqlite:///c.db")
    monkeypatch.setenv("ICEFIELD_WAREHOUSE", "tables")
    assert icefield("tables").code == 0
    refused = icefield("--lake", "sqlite:///c.db", "tables")
    assert refused.code == 1
    assert "catalog needs a warehouse" in refused.err


@pytest.mark.slow
def test_properties_of_the_lake_are_given_one_by_one(icefield: Icefield) -> None:
    server = s3_server()
    root = server.new_root()
    options = [part for key, value in server.properties.items() for part in ("--lake-property", f"{key}={value}")]
    assert icefield("--lake", root, *options, *CREATE, "--property", "write.format.default=parquet").code == 0
    assert "shop.orders" in icefield("tables", "--lake", root, *options).out
    refused = icefield("--lake", root, "--lake-property", "s3.endpoint", "tables")
    assert refused.code == 1
    assert "--lake-property key=value" in refused.err


def test_a_wrong_name_is_one_sentence_and_a_hint(icefield: Icefield, tmp_path: Path) -> None:
    (tmp_path / "icefield.toml").write_text("[lakes.dev]\ntarget = 'postgresql://me:hunter2@db/x'")
    refused = icefield("--lake", "dve", "tables")
    assert refused.code == 1
    assert "no lake is called 'dve'" in refused.err
    assert "Did you mean 'dev'?" in refused.err
    assert "hunter2" not in icefield("--lake", "dev", "tables").err
