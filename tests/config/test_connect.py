"""Connecting: every kind of target opens a lake that works, and what cannot be opened is refused in one sentence."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from tests.rest_server import running_server
from tests.s3_server import s3_server

import icefield
from icefield.config.configuration import LakeSettings
from icefield.config.connect import is_there, open_lake
from icefield.errors import InvalidInput, LocationRefused, Unsupported
from icefield.lake import Lake
from icefield.storage.local import LocalStore

pytestmark = pytest.mark.every_case

WITHOUT = """
import sys
sys.modules[{package!r}] = None
import icefield
try:
    icefield.connect({target!r}, warehouse={warehouse!r})
except icefield.IcefieldError as error:
    print(type(error).__name__, error, error.hint)
"""


@pytest.fixture(autouse=True)
def nobodys_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-configuration"))
    for name in [name for name in os.environ if name.startswith("ICEFIELD_")]:
        monkeypatch.delenv(name)


def works(lake: Lake) -> list[str]:
    """Write and read a table, and return the files of the lake."""
    with lake:
        lake.create_table("a.t", "id long").append(pa.table({"id": [1, 2]}))
        assert sorted(lake.table("a.t").scan().to_arrow().read_all()["id"].to_pylist()) == [1, 2]
        assert lake.tables() == ["a.t"]
        return [file.location.removeprefix(lake.warehouse) for file in lake.store.list(lake.warehouse)]


@pytest.mark.slow
def test_icefield_connect_is_the_function_whatever_was_imported_before() -> None:
    code = "import icefield.config.connect, icefield; assert callable(icefield.connect)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_directory_has_its_database_inside(tmp_path: Path) -> None:
    targets: list[str | Path] = [
        "lake",
        "lake2/",
        f"file://{tmp_path}/lake3",
        tmp_path / "lake4",
        f"file:{tmp_path}/lake5",
    ]
    for target in targets:
        assert "/catalog.db" in works(icefield.connect(target, durable=False)), target


def test_a_directory_can_do_without_a_database() -> None:
    found = works(icefield.connect("files:lake", durable=False))
    assert any(name.startswith("/catalog.names/") for name in found)
    assert not any("catalog.db" in name for name in found)
    with icefield.connect("files:lake") as again:
        assert again.tables() == ["a.t"]


def test_a_sqlite_file_may_stand_apart_from_the_tables(tmp_path: Path) -> None:
    works(icefield.connect("sqlite:///catalog.db", warehouse="tables", durable=False))
    assert Path("catalog.db").is_file()
    with icefield.connect(f"sqlite:///{tmp_path}/here/catalog.db", warehouse="tables") as same:
        assert same.tables() == ["a.t"]
    with icefield.connect("sqlite:///catalog.db", warehouse="tables", catalog="other") as other:
        assert other.tables() == []


def test_memory_is_a_lake_too() -> None:
    works(icefield.connect("memory:"))


@pytest.mark.slow
def test_a_bucket_is_a_lake_by_itself_and_a_warehouse_for_a_database() -> None:
    server = s3_server()
    root = server.new_root()
    found = works(icefield.connect(f"{root}/", properties=server.properties))
    assert any(name.startswith("/catalog.names/") for name in found)
    with icefield.connect(root, properties=server.properties) as again:
        assert again.tables() == ["a.t"]
    other = server.new_root()
    properties = server.properties
    found = works(icefield.connect("sqlite:///catalog.db", warehouse=other, properties=properties, durable=False))
    assert found
    assert not any("catalog" in name for name in found)


def test_a_rest_catalog_says_where_tables_are(tmp_path: Path) -> None:
    warehouse = f"file://{tmp_path}/warehouse"
    with running_server(LocalStore(durable=False), warehouse) as server:
        with icefield.connect(server.url, warehouse=warehouse, durable=False) as lake:
            lake.create_table("a.t", "id long").append(pa.table({"id": [1, 2]}))
            assert lake.table("a.t").scan().count() == 2
        with icefield.connect(server.url) as guarded, pytest.raises(LocationRefused, match="to the roots"):
            guarded.table("a.t").scan().to_arrow().read_all()
        with icefield.connect(server.url, roots=[tmp_path / "warehouse"]) as allowed:
            assert allowed.table("a.t").scan().to_arrow().read_all().num_rows == 2


def test_a_lake_of_the_file_is_opened_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("icefield.toml").write_text("default = 'dev'\n[lakes.dev]\ntarget = 'data'\ndurable = false")
    works(icefield.connect("dev"))
    for lake in (icefield.connect(), icefield.connect("data")):
        with lake:
            assert lake.tables() == ["a.t"]
    monkeypatch.setenv("ICEFIELD_LAKE", "memory:")
    with icefield.connect() as lake:
        assert lake.tables() == []
    with icefield.connect(Path("dev")) as directory:  # a path is not a name
        assert directory.tables() == []


def test_is_there_looks_at_local_lakes_only() -> None:
    for target, warehouse in (("lake", None), ("files:other", None), ("sqlite:///c.db", "tables")):
        settings = LakeSettings(target, warehouse, durable=False)
        assert not is_there(settings)
        works(open_lake(settings))
        assert is_there(settings)
    assert is_there(LakeSettings("postgresql://db/x"))


@pytest.mark.parametrize(
    ("target", "warehouse", "properties", "message"),
    [
        ("s3://me:hunter2@bucket/lake", None, {}, "must not contain a user"),
        ("S3A://me:hunter2@bucket", None, {}, "must not contain a user"),
        ("gs://me:hunter2@bucket/lake", None, {}, "must not contain a user"),
        ("sqlite://me:hunter2@host/catalog.db", "w", {}, "must not contain a user"),
        ("sqlite:///catalog.db", "s3://me:hunter2@bucket/lake", {}, "must not contain a user"),
        ("mysql://me:hunter2@host/db", None, {}, "mysql is not supported. A directory needs no scheme. There are:"),
        ("postgressql://me:hunter2@host/db", "w", {}, "Did you mean 'postgresql'?"),
        ("postgresql://me:hunter2@host/db", None, {}, "a postgresql:// catalog needs a warehouse"),
        ("sqlite:///c.db", None, {}, "a sqlite:// catalog needs a warehouse"),
        ("sqlite://c.db", "w", {}, "three slashes"),
        ("postgresql://me:hunt er2@[host/db", "w", {}, "URL is malformed"),
        ("postgresql://host/db", "ftp://host/x", {}, "a warehouse cannot be at ftp://"),
        ("lake", "other", {}, "warehouse= cannot be used with this type of lake (directory)"),
        ("memory:", "other", {}, "warehouse= cannot be used with this type of lake (memory)"),
        ("s3://bucket/lake", "other", {}, "warehouse= cannot be used with this type of lake (s3)"),
        ("lake", None, {"s3.region": "x"}, "properties= cannot be used with this type of lake (directory)"),
        ("sqlite:///c.db", "w", {"s3.region": "x"}, "properties= cannot be used with this type of lake (sqlite)"),
        ("s3://bucket/lake", None, {"s4.secret": "hunter2"}, "unknown object store property 's4.secret'"),
        ("s3://bucket/lake", None, {"s3.acces-key-id": "hunter2"}, "'acces_key_id' is not valid"),
        ("s3://bucket/lake", None, {"s3.endpoint": "host:9000"}, "s3.endpoint is not a valid URL"),
        (
            "https://host/x",
            None,
            {"tokne": "hunter2"},
            "unknown REST catalog property 'tokne'. Did you mean 'token'?",
        ),
        ("https://host/x", None, {"token": "hunter2", "credential": "hunter3"}, "a token or a credential, not both"),
        ("s3:///lake", None, {}, "names no bucket or host"),
        ("file://lake", None, {}, "names the host 'lake'"),
        ("a-file", None, {}, "it is a file"),
        ("a-file/below", None, {}, "cannot create the directory"),
    ],
)
def test_what_cannot_be_opened_is_refused_without_its_secrets(
    target: str, warehouse: str | None, properties: dict[str, str], message: str
) -> None:
    Path("a-file").write_text("x")
    with pytest.raises((InvalidInput, Unsupported)) as refused:
        icefield.connect(target, warehouse=warehouse, properties=properties)
    text = f"{refused.value}"
    assert message in text
    assert "hunt" not in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "target", "warehouse", "extra"),
    [
        ("psycopg", "postgresql://host/db", "w", "icefield[postgres]"),
        ("kazoo", "zookeeper://host/lake", "w", "icefield[zookeeper]"),
        ("obstore", "s3://bucket/lake", None, "icefield[object-store]"),
    ],
)
def test_a_missing_extra_is_named(package: str, target: str, warehouse: str | None, extra: str) -> None:
    code = WITHOUT.format(package=package, target=target, warehouse=warehouse)
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.startswith("Unsupported ")
    assert extra in done.stdout


def test_a_target_with_a_nul_is_refused() -> None:
    with pytest.raises(InvalidInput, match="NUL"):
        icefield.connect("lake\0")
