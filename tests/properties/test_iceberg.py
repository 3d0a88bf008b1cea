"""Every table property that Iceberg documents is honoured, or refused or warned about when it is set."""

import ast
import json
import random
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield
from icefield.errors import IcefieldWarning, InvalidInput, LocationRefused, Unsupported
from icefield.lake import Lake
from icefield.parquet.write.file_layout import FileLayout
from icefield.properties.check import NAMESPACES, check_new_properties
from icefield.properties.iceberg import NO_EFFECT, NO_EFFECT_OF_COLUMNS, REFUSED, RESERVED, USED_ELSEWHERE
from icefield.properties.table import COLUMN_PROPERTIES, FORMAT_VERSION_KEY, OPTIONAL_PROPERTIES, TABLE_PROPERTIES
from icefield.storage.location import local_path
from icefield.table.table import Table

pytestmark = pytest.mark.every_case

HERE = Path(__file__).parent
LISTED = [line for line in (HERE / "iceberg_properties.txt").read_text().splitlines() if not line.startswith("#")]
READ = {p.key for p in chain(TABLE_PROPERTIES, OPTIONAL_PROPERTIES)} | {p.prefix for p in COLUMN_PROPERTIES}
WARNED = {*NO_EFFECT, *NO_EFFECT_OF_COLUMNS}
FORBIDDEN = {*REFUSED, *RESERVED, FORMAT_VERSION_KEY}
ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "part": ["a", "b"]})


def test_every_property_of_iceberg_is_in_exactly_one_class() -> None:
    classes = [READ, WARNED, FORBIDDEN, USED_ELSEWHERE]
    assert {key: sum(key in known for known in classes) for key in LISTED} == dict.fromkeys(LISTED, 1)


@pytest.mark.parametrize("key", sorted(WARNED))
def test_one_that_has_no_effect_is_stored_with_a_warning_that_says_why(key: str, memory_lake: Lake) -> None:
    full = key + "id" if key.endswith(".") else key
    table = memory_lake.create_table("a.t", "id long")
    with pytest.warns(IcefieldWarning, match=f"{full} is stored, but has no effect in icefield: .+") as caught:
        table.set_properties({full: "1"})
    assert table.properties == {full: "1"}
    assert [Path(warning.filename).name for warning in caught] == [Path(__file__).name], "it points at the caller"


@pytest.mark.parametrize("key", sorted(FORBIDDEN))
def test_one_that_cannot_be_honoured_is_refused_and_nothing_changes(key: str, memory_lake: Lake) -> None:
    says = rf"{key} (cannot be set: .+|is not a table property)"
    with pytest.raises(InvalidInput, match=says):
        memory_lake.create_table("a.t", "id long", properties={key: "1"})
    assert memory_lake.tables() == []
    table = memory_lake.create_table("a.t", "id long")
    before = table.metadata_location
    with pytest.raises(InvalidInput, match=says):
        table.set_properties({"owner": "ada", key: "1"})
    with pytest.raises(InvalidInput, match=says):
        table.replace("id long", properties={key: "1"})
    assert (table.metadata_location, table.properties) == (before, {})


def test_every_property_that_counts_as_read_is_read_somewhere() -> None:
    source = HERE.parents[1] / "src" / "icefield"
    declared = source / "properties" / "table.py"
    tree = ast.parse(declared.read_text())
    names = [name for node in tree.body if (name := _property_name(node))]
    assert len(names) > 40
    others = "\n".join(f.read_text() for f in source.rglob("*.py") if f != declared)
    # What a delete file is written as has one answer, so that only its setting is checked.
    assert [name for name in names if name not in others] == ["DELETE_FILE_FORMAT"]


def _property_name(node: ast.stmt) -> str | None:
    """Return the name that a property is assigned to."""
    if not isinstance(node, ast.Assign | ast.AnnAssign) or not isinstance(node.value, ast.Call):
        return None
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    is_property = ast.unparse(node.value.func) in ("Property", "ColumnProperty")
    return ast.unparse(target) if is_property else None


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("write.parqet.compression-codec", "write.parquet.compression-codec"),
        ("write.target-file-size", "write.target-file-size-bytes"),
        ("commit.retry.num-retry", "commit.retry.num-retries"),
        ("history.expire.max-snapshot-age", "history.expire.max-snapshot-age-ms"),
        ("write.Data.Path", "write.data.path"),
        ("write.metadata.metric.column.id", "write.metadata.metrics.column.id"),
        ("gc.enable", "gc.enabled"),
        ("read.split.size", "read.split.target-size"),
        ("write.parqet.x", "write.parquet.x"),
        ("write.delete.paruqet.zebra", "write.delete.parquet.zebra"),
        ("write.metdata.zebra.column.id", "write.metadata.metrics.column.id"),
        ("commit.rety.zebra", "commit.retry.zebra"),
        ("history.expires.x", "history.expire.x"),
        ("wirte.parquet.compression-codec", "write.parquet.compression-codec"),
        ("writes.data.path", "write.data.path"),
        ("comit.retry.num-retrys", "commit.retry.num-retries"),
        ("Write.parquet.compression-codec", "write.parquet.compression-codec"),
        (" write.data.path", "write.data.path"),
        ("encryptoin.key-id", "encryption.key-id"),
        ("wirte.metadata.metrics.column.id", "write.metadata.metrics.column.id"),
    ],
)
def test_a_misspelt_key_is_refused_with_the_one_that_was_meant(key: str, near: str) -> None:
    with pytest.raises(InvalidInput, match=f"unknown table property '{key}'") as caught:
        check_new_properties({key: "1"})
    assert caught.value.hint == f"Did you mean {near}?"


def test_every_known_key_with_one_slip_is_refused() -> None:
    rng = random.Random(7)
    for key in sorted({*READ, *WARNED, *REFUSED}):
        if not key.startswith(NAMESPACES):
            continue
        for _ in range(3):
            at = rng.randrange(len(key) - 2)
            slips = (
                key[:at] + key[at + 1 :],
                key[:at] + key[at] + key[at:],
                key[:at] + key[at + 1] + key[at] + key[at + 2 :],
            )
            slip = rng.choice(slips) + ("id" if key.endswith(".") else "")
            if slip.startswith(tuple(READ | WARNED)) and (slip in READ | WARNED or key.endswith(".")):
                continue
            with pytest.raises(InvalidInput, match="Did you mean"):
                check_new_properties({slip: "1"})


@pytest.mark.parametrize(
    "key",
    ["owner", "comments", "writer", "reader.name", "team.write.mode", "history", "commits.url", "gcp.project", "a.b.c"],
)
def test_keys_of_users_are_not_taken_for_misspellings(key: str) -> None:
    check_new_properties({key: "1"})


def test_a_key_that_nobody_knows_is_warned_about_and_one_outside_of_icebergs_namespaces_is_the_users_own() -> None:
    with pytest.warns(IcefieldWarning, match="neither icefield nor Iceberg knows it"):
        check_new_properties({"write.zebra": "1"})
    check_new_properties({"owner": "ada", "comment": "all orders", "my.write.path": "x"})


def test_a_value_that_another_engine_set_keeps_nobody_from_setting_others(memory_lake: Lake) -> None:
    table = as_set_by_another_engine(memory_lake, {"write.format.default": "orc", "write.parquet.page-version": "v9"})
    table.set_properties({"owner": "ada"}, removals=["write.parquet.page-version"])
    assert table.properties == {"write.format.default": "orc", "owner": "ada"}
    with pytest.warns(IcefieldWarning, match="write.format.default is orc|in orc"):
        table.append(ROWS.select(["id"]))
    with pytest.raises(InvalidInput, match="write.format.default cannot be 'avro'"):
        table.set_properties({"write.format.default": "avro"})


def as_set_by_another_engine(lake: Lake, properties: dict[str, str]) -> Table:
    made = lake.create_table("a.t", "id long")
    document = json.loads(lake.store.read(made.metadata_location)) | {"properties": properties}
    location = made.metadata_location.replace(".metadata.json", "-other.metadata.json")
    lake.store.put_new(location, json.dumps(document).encode())
    lake.drop_table("a.t")
    return lake.register_table("a.t", location)


def test_an_encrypted_table_gets_no_plain_files(memory_lake: Lake) -> None:
    table = as_set_by_another_engine(memory_lake, {"encryption.key-id": "k1"})
    with pytest.raises(Unsupported, match="the table is encrypted"):
        table.append(ROWS.select(["id"]))
    assert not table.snapshots()


# Where files go.


def partitioned(lake: Lake, **properties: str) -> Table:
    return lake.create_table("a.t", "id long, part string", partition_by=["part"], properties=properties)


def data_paths(table: Table) -> list[str]:
    return sorted(table.inspect("files").to_arrow().read_all()["file_path"].to_pylist())


def test_data_and_delete_files_go_to_the_data_path(lake: Lake, tmp_path: Path) -> None:
    elsewhere = f"file://{tmp_path}/lake/elsewhere"
    mode = {"write.delete.mode": "merge-on-read"}
    table = partitioned(lake, **{"write.data.path": elsewhere + "/"}, **mode)
    table.append(ROWS)
    table.append(ROWS)
    table.delete("id = 1")
    table.compact()
    assert all(path.startswith(f"{elsewhere}/") for path in data_paths(table))
    assert not (Path(local_path(table.location)) / "data").exists()
    assert table.count() == 2


def test_a_path_outside_of_the_lake_is_refused_when_it_is_set(lake: Lake, tmp_path: Path) -> None:
    table = partitioned(lake)
    before = table.metadata_location
    for key in ("write.data.path", "write.metadata.path"):
        for path in (f"file://{tmp_path}/outside", f"file://{tmp_path}/lake/../outside", "relative/path"):
            with pytest.raises((LocationRefused, InvalidInput)):
                table.set_properties({key: path})
            with pytest.raises((LocationRefused, InvalidInput)):
                lake.create_table("a.u", "id long", properties={key: path})
            with pytest.raises((LocationRefused, InvalidInput)):
                table.replace("id long", properties={key: path})
    assert (table.refresh(), table.metadata_location, lake.tables()) == (table.metadata, before, ["a.t"])


def test_object_storage_spreads_files_over_hashed_directories(lake: Lake) -> None:
    table = partitioned(lake, **{"write.object-storage.enabled": "true"})
    table.append(ROWS)
    for path in data_paths(table):
        hashed, partition, name = path.removeprefix(f"{table.location}/data/").rsplit("/", 2)
        assert (
            FileLayout("file:///d", hashed=True).location(name, [partition]) == f"file:///d/{hashed}/{partition}/{name}"
        )
        assert pq.read_table(local_path(path)).num_rows == 1
    assert table.count() == 2


@pytest.mark.parametrize(
    ("layout", "path"),
    [
        # As the tests of Iceberg Java's location provider have them: "a" hashes to 0x3C2569B2.
        (FileLayout("s3://b/t/data", hashed=True), "s3://b/t/data/0101/0110/1001/10110010/a"),
        (FileLayout("s3://b/t/data", hashed=True, names_partitions=False), "s3://b/t/data/0101/0110/1001/10110010-a"),
        (FileLayout("s3://b/x", hashed=True, context=("db", "t")), "s3://b/x/0101/0110/1001/10110010/db/t/a"),
        (
            FileLayout("s3://b/x", hashed=True, names_partitions=False, context=("db", "t")),
            "s3://b/x/0101/0110/1001/10110010/db/t/a",
        ),
        (FileLayout("s3://b/x"), "s3://b/x/a"),
    ],
)
def test_hashed_paths_are_those_of_iceberg_java(layout: FileLayout, path: str) -> None:
    assert layout.location("a") == path


# Garbage collection.


def test_without_garbage_collection_nothing_expires(lake: Lake) -> None:
    table = partitioned(lake, **{"gc.enabled": "false"})
    first = table.append(ROWS)
    table.append(ROWS)
    assert first is not None
    for remove in (
        lambda: table.expire_snapshots(keep_last=1),
        lambda: table.expire_snapshots(dry_run=True),
        lambda: table.remove_snapshots([first.snapshot_id]),
    ):
        with pytest.raises(InvalidInput, match="gc.enabled is false"):
            remove()
    assert len(table.snapshots()) == 2


# Statistics.


def test_only_so_many_columns_get_statistics_by_default(lake: Lake) -> None:
    limit = "write.metadata.metrics.max-inferred-column-defaults"
    table = lake.create_table("a.t", "s struct<x: long, y: long>, a long, b long", properties={limit: "3"})
    row = {"s": {"x": 1, "y": 2}, "a": 3, "b": 4}
    table.append(pa.Table.from_pylist([row]))
    table.set_properties({"write.metadata.metrics.column.s.y": "full"})
    table.append(pa.Table.from_pylist([row]))
    table.set_properties({"write.metadata.metrics.default": "full"})
    table.append(pa.Table.from_pylist([row]))
    entries = table.inspect("entries").to_arrow().read_all().sort_by("sequence_number")
    bounds = entries["data_file"].combine_chunks().field("lower_bounds").to_pylist()
    with_bounds = [sorted(table.schema.name_of(field_id) for field_id, _ in of_file) for of_file in bounds]
    assert with_bounds == [["a", "b", "s.x"], ["a", "b", "s.x", "s.y"], ["a", "b", "s.x", "s.y"]]


def test_the_command_line_shows_a_warning_as_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from icefield.cli.main import run  # noqa: PLC0415 - the command line is loaded for this test alone

    with icefield.connect(tmp_path / "lake", durable=False):
        pass
    code = run(["--lake", str(tmp_path / "lake"), "create", "a.t", "id long", "--property", "write.wap.enabled=true"])
    assert code == 0
    assert capsys.readouterr().err.startswith("warning: table property write.wap.enabled is stored, but has no effect")
