"""A table as its user meets it: append, scan, time travel, and errors that change nothing."""

import datetime
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefield import col
from icefield.errors import (
    CorruptFile,
    IcefieldError,
    InvalidFilter,
    InvalidInput,
    LocationRefused,
    MissingFile,
    NoSuchSnapshot,
    NoSuchTable,
    SchemaMismatch,
    Unsupported,
)
from icefield.expr.render.describe import describe
from icefield.lake import Lake
from icefield.parquet.read.read import TableReader
from icefield.storage.location import local_path
from icefield.table.scan import TableScan
from icefield.table.table import Table

UTC = datetime.UTC
SCHEMA = "id long not null, ts timestamptz, name string, price decimal(9, 2)"


def orders(first: int, last: int) -> pa.Table:
    """One order an hour, from the first of January on."""
    start = datetime.datetime(2026, 1, 1, tzinfo=UTC)
    numbers = range(first, last)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "ts": pa.array([start + datetime.timedelta(hours=n) for n in numbers], pa.timestamp("us", "UTC")),
            "name": [f"name {n % 7}" for n in numbers],
        }
    )


@pytest.fixture
def table(lake: Lake) -> Table:
    made = lake.create_table("shop.orders", SCHEMA, partition_by=["day(ts)"])
    made.append(orders(0, 24))
    made.append(orders(24, 72))
    return made


def files_on_disk(table: Table) -> set[Path]:
    return {p for p in Path(local_path(table.location)).rglob("*") if p.is_file()}


def test_rows_come_back_with_the_tables_schema(table: Table) -> None:
    read = table.scan().to_arrow().read_all()
    assert read.num_rows == 72
    assert read.schema.field("price").type == pa.decimal128(9, 2)
    assert read["price"].null_count == 72
    assert sorted(read["id"].to_pylist()) == list(range(72))


def test_select_gives_the_named_columns_in_that_order(table: Table) -> None:
    assert table.scan(select=["name", "id"]).to_arrow().read_all().column_names == ["name", "id"]
    with pytest.raises(InvalidInput, match=r"no column 'nmae'.*Did you mean 'name'"):
        table.scan(select=["nmae"])
    with pytest.raises(InvalidInput, match="takes a list"):
        table.scan(select="name")


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("id < 3", range(3)),
        ("ts >= TIMESTAMP '2026-01-02 00:00:00' AND ts < '2026-01-03'", range(24, 48)),
        ("id IN (1, 30, 71) OR id = 5", (1, 5, 30, 71)),
        ("name = 'name 3' AND id BETWEEN 10 AND 20", (10, 17)),
        ("price IS NULL AND NOT id >= 2", (0, 1)),
        ("price > 1", ()),
        ("3 > id", range(3)),
        ("name LIKE 'name 1%' AND id < 9", (1, 8)),
    ],
)
def test_filters_give_the_rows_that_match(table: Table, where: str, ids: tuple[int, ...]) -> None:
    scan = table.scan(where=where, select=["id"])
    assert sorted(scan.to_arrow().read_all()["id"].to_pylist()) == list(ids)
    assert scan.count() == len(ids)


def test_filters_can_be_built_in_python(table: Table) -> None:
    assert table.scan(where=(col("id") > 69) | col("id").isin([1])).count() == 3


def test_pruning_shows_in_explain(table: Table) -> None:
    explanation = table.scan(where="ts < '2026-01-01T12:00:00' AND id > 5").explain()
    facts = explanation.as_dict()
    assert (facts["manifests"], facts["manifests-pruned"]) == (2, 1)
    assert (facts["files"], facts["files-in-pruned-manifests"], facts["files-read"]) == (3, 2, 1)
    assert "manifests  2 in all, 1 pruned, 1 read" in str(explanation)
    by_partition = table.scan(where="ts >= '2026-01-03'").explain().as_dict()
    assert (by_partition["files-pruned-by-partition"], by_partition["files-read"]) == (1, 1)
    by_statistics = table.scan(where="id = 70").explain().as_dict()
    assert (by_statistics["files-pruned-by-statistics"], by_statistics["files-read"]) == (2, 1)


def test_count_that_metadata_can_answer_reads_no_data_file(table: Table) -> None:
    for file in Path(local_path(table.location), "data").rglob("*.parquet"):
        file.unlink()
    assert table.count() == 72
    assert table.scan(where="ts >= '2026-01-02' AND ts < '2026-01-03'").count() == 24
    assert table.scan(where="id >= 0").count() == 72
    with pytest.raises(MissingFile):
        table.scan(where="id < 3").count()


def test_row_groups_that_cannot_match_are_not_read(lake: Lake) -> None:
    table = lake.create_table("s.t", "id long, pad string", properties={"write.parquet.row-group-size-bytes": "4096"})
    batches = [pa.record_batch({"id": range(n, n + 500), "pad": ["x" * 50] * 500}) for n in range(0, 3000, 500)]
    table.append(pa.Table.from_batches(batches))
    (file,) = Path(local_path(table.location), "data").rglob("*.parquet")
    data = bytearray(file.read_bytes())
    # Ruin the pages of the first row group: a reader that opens them fails.
    data[4:2000] = b"\xff" * 1996
    file.write_bytes(bytes(data))
    assert table.scan(where="id >= 2600").count() == 400
    with pytest.raises(CorruptFile, match=file.name):
        table.scan(where="id >= 100").count()


def test_a_scan_keeps_its_snapshot_while_writers_move_on(table: Table) -> None:
    scan = table.scan()
    reader = scan.to_arrow()
    table.append(orders(72, 96))
    table.overwrite(orders(0, 1))
    assert reader.read_all().num_rows == 72
    assert scan.count() == 72
    assert table.count() == 1


def test_a_handle_sees_what_others_committed(lake: Lake, table: Table) -> None:
    other = lake.table("shop.orders")
    other.append(orders(72, 80))
    assert table.count() == 80


def test_time_travel_by_id_time_and_ref(table: Table) -> None:
    first, second = table.snapshots()
    assert table.scan(as_of=first.snapshot_id).count() == 24
    assert table.scan(as_of="main").count() == 72
    between = datetime.datetime.fromtimestamp(second.timestamp_ms / 1000, UTC)
    assert table.scan(as_of=between).count() == 72
    just_before = between - datetime.timedelta(milliseconds=1)
    if first.timestamp_ms < second.timestamp_ms:
        assert table.scan(as_of=just_before).count() == 24
        assert table.scan(as_of=just_before.replace(tzinfo=None).isoformat()).count() == 24


@pytest.mark.parametrize("as_of", [1, "nope", datetime.datetime(1999, 1, 1, tzinfo=UTC), "1999-01-01"])
def test_time_travel_to_nowhere_says_so(table: Table, as_of: int | str | datetime.datetime) -> None:
    with pytest.raises(NoSuchSnapshot, match="the table"):
        table.scan(as_of=as_of)


def test_append_takes_every_form_of_arrow(lake: Lake) -> None:
    table = lake.create_table("s.t", "id long")
    data = pa.table({"id": [1, 2]})
    table.append(data)
    table.append(data.to_batches()[0])
    table.append(data.to_reader())
    table.append(pa.RecordBatchReader.from_batches(data.schema, iter(data.to_batches())))
    assert table.count() == 8


def test_appending_nothing_makes_no_snapshot(table: Table) -> None:
    before = files_on_disk(table)
    assert table.append(orders(0, 0)) is None
    assert len(table.snapshots()) == 2
    assert files_on_disk(table) == before


def bad_rows() -> list[tuple[object, str]]:
    good = orders(0, 1)
    return [
        (good.drop_columns(["id"]), "required column 'id' is missing"),
        (good.append_column("extra", pa.array([1])), "column 'extra' is not in the table"),
        (good.set_column(2, "name", pa.array([7])), "column 'name' is long, but the table has string"),
        (good.set_column(0, "id", pa.array([None], pa.int64())), "required column 'id' holds 1 null"),
        (good.set_column(1, "ts", pa.array([1], pa.timestamp("us"))), "column 'ts' is timestamp, but"),
        ([{"name": "x"}], "required column 'id' is missing"),
        ([{"id": "x"}], "column 'id' of the dicts does not have values of type int64"),
        ([{"id": 1}, 7], "cannot write rows from list"),
        ("rows.csv", "cannot write rows from str.*Give the pathlib.Path of a Parquet or Arrow file"),
    ]


@pytest.mark.parametrize("case", range(len(bad_rows())))
def test_rows_that_do_not_fit_change_nothing(table: Table, case: int) -> None:
    rows, fault = bad_rows()[case]
    before, pointer = files_on_disk(table), table.metadata_location
    with pytest.raises((SchemaMismatch, InvalidInput), match=fault) as caught:
        table.append(rows)
    assert "\n" not in str(caught.value)
    assert files_on_disk(table) == before
    assert table.metadata_location == pointer


def test_a_null_found_late_removes_the_files_written_before_it(lake: Lake) -> None:
    table = lake.create_table("s.t", "id long not null", properties={"write.target-file-size-bytes": "1"})
    good, bad = pa.record_batch({"id": [1]}), pa.record_batch({"id": pa.array([None], pa.int64())})
    before = files_on_disk(table)
    with pytest.raises(SchemaMismatch):
        table.append(pa.RecordBatchReader.from_batches(good.schema, iter([good, good, bad])))
    assert files_on_disk(table) == before


@pytest.mark.parametrize(
    ("where", "fault"),
    [
        ("idd = 1", "no column 'idd'"),
        ("id = 'x'", "id"),
        ("id =", "filter"),
        ("name", "name"),
        ("id = 1; DROP TABLE x", "filter"),
        ("id + 1 = 2", "id"),
        (7, "a filter must be a string"),
    ],
)
def test_a_bad_filter_is_one_clear_error(table: Table, where: str, fault: str) -> None:
    with pytest.raises(InvalidFilter, match=fault) as caught:
        table.scan(where=where)
    assert "\n" not in str(caught.value)


def test_dropped_table_cannot_be_used(lake: Lake, table: Table) -> None:
    lake.drop_table("shop.orders")
    for verb in (table.count, lambda: table.append(orders(0, 1)), table.scan, table.snapshots):
        with pytest.raises(NoSuchTable):
            verb()


def damage(path: Path, how: str) -> None:
    data = path.read_bytes()
    path.unlink()
    match how:
        case "missing":
            return
        case "empty":
            path.write_bytes(b"")
        case "cut":
            path.write_bytes(data[: len(data) // 2])
        case "garbage":
            path.write_bytes(b"\x00garbage" * 50)


@pytest.mark.parametrize("how", ["missing", "empty", "cut", "garbage"])
@pytest.mark.parametrize("kind", ["metadata", "list", "manifest", "data"])
def test_a_damaged_file_is_named_and_nothing_is_changed(lake: Lake, table: Table, kind: str, how: str) -> None:
    plan = table.scan()._plan
    snapshot = table.metadata.current_snapshot
    assert snapshot is not None
    victims = {
        "metadata": table.metadata_location,
        "list": snapshot.manifest_list,
        "manifest": plan.files["manifest_path"][0].as_py(),
        "data": plan.files["file_path"][0].as_py(),
    }
    victim = Path(local_path(victims[kind]))
    damage(victim, how)
    before = files_on_disk(table)
    with pytest.raises((CorruptFile, MissingFile)) as caught:
        lake.table("shop.orders").scan().to_arrow().read_all()
    assert victim.name in str(caught.value)
    if kind != "data":
        with pytest.raises(IcefieldError):
            lake.table("shop.orders").overwrite(orders(0, 1))
    assert files_on_disk(table) == before


def test_metadata_that_points_outside_the_lake_is_refused(lake: Lake, table: Table, tmp_path: Path) -> None:
    outside = tmp_path / "outside.parquet"
    inside = next(Path(local_path(table.location), "data").rglob("*.parquet"))
    outside.write_bytes(inside.read_bytes())
    inside.unlink()
    inside.symlink_to(outside)
    with pytest.raises(LocationRefused):
        table.scan().to_arrow().read_all()


def test_other_format_versions_are_refused_with_their_number(lake: Lake, table: Table) -> None:
    path = Path(local_path(table.metadata_location))
    text = path.read_text()
    path.unlink()
    path.write_text(text.replace('"format-version":2', '"format-version":4'))
    with pytest.raises(Unsupported, match="format version 4"):
        lake.table("shop.orders")


def test_nested_columns_are_written_selected_and_filtered(lake: Lake) -> None:
    nested = "a struct<x long, y struct<z string>>, l list<struct<q int>>, m map<string, long>"
    table = lake.create_table("s.t", f"id long, {nested}")
    rows = [
        {"id": 1, "a": {"x": 10, "y": {"z": "one"}}, "l": [{"q": 1}, None], "m": {"k": 1}},
        {"id": 2, "a": {"x": 20, "y": None}, "l": [], "m": {}},
        {"id": 3, "a": None, "l": None, "m": None},
    ]
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("a", pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.string())]))])),
            ("l", pa.list_(pa.struct([("q", pa.int32())]))),
            ("m", pa.map_(pa.string(), pa.int64())),
        ]
    )
    table.append(pa.Table.from_pylist(rows, schema=schema))
    read = table.scan().to_arrow().read_all().to_pylist(maps_as_pydicts="strict")
    assert read == rows
    assert table.scan(where="a.x = 20").count() == 1
    assert table.scan(where="a.y.z = 'one'", select=["a.x"]).to_arrow().read_all().to_pylist() == [{"a": {"x": 10}}]
    assert table.scan(where="a.y.z IS NULL").count() == 2


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_what_partitions_prove_is_not_asked_of_rows_again(
    lake: Lake, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lake.create_table("a.p", "p long, id long", partition_by=["p"], properties={"write.delete.mode": mode})
    made.append(pa.table({"p": [1, 1, 2], "id": [1, 2, 2]}))
    asked = []
    read = TableReader.read

    def noting(self: TableReader, *arguments: Any) -> Any:
        asked.append(describe(arguments[-1]))
        return read(self, *arguments)

    monkeypatch.setattr(TableReader, "read", noting)
    made.delete("p = 1 AND id = 2")
    assert asked == ["id = 2"]
    monkeypatch.undo()
    assert made.scan().to_arrow().read_all().sort_by("p").to_pylist() == [{"p": 1, "id": 1}, {"p": 2, "id": 2}]


@pytest.mark.parametrize(
    ("where", "files"),
    [
        ("id BETWEEN 2 AND 3", 2),
        ("id NOT BETWEEN 2 AND 3", 2),
        ("name LIKE 'n2%'", 1),
        ("name LIKE 'n_'", 4),
        ("id = CAST('3' AS BIGINT)", 1),
        ("id > CAST(2.9 AS INT)", 2),
        ("ratio IS NaN", 1),
        ("ratio IS NOT NaN", 3),
        ("NOT ratio IS NaN AND id >= 2", 2),
    ],
)
def test_every_form_of_a_filter_prunes(lake: Lake, where: str, files: int) -> None:
    made = lake.create_table("a.f", "id long, name string, ratio double")
    for n in range(1, 5):
        ratio = [math.nan] if n == 2 else [0.5]
        made.append(pa.table({"id": [n], "name": [f"n{n}"], "ratio": ratio}))
    assert made.scan(where).files().num_rows == files


@pytest.mark.parametrize("kind", ["unknown", "geometry"])
def test_a_column_that_manifests_have_no_type_for_is_no_partition_source(memory_lake: Lake, kind: str) -> None:
    with pytest.raises(InvalidInput, match=f"void.*{kind}"):
        memory_lake.create_table("s.v", f"id long, a {kind}", partition_by=["void(a)"], format_version=3)


def test_changes_of_a_snapshot_are_the_rows_of_the_files_that_it_touched(lake: Lake) -> None:
    table = lake.create_table("t.changed", "id long", properties={"write.delete.mode": "merge-on-read"})
    table.append(pa.table({"id": [1, 2, 3]}))
    first = table.snapshots()[-1].snapshot_id
    table.append(pa.table({"id": [4]}))
    table.delete("id = 2")
    table.compact(options={"rewrite-all": "true"})
    table.overwrite(pa.table({"id": [9]}))

    def ids(scan: TableScan | None) -> list[int] | None:
        return None if scan is None else sorted(scan.to_arrow().read_all()["id"].to_pylist())

    found = [(ids(change.before), ids(change.after)) for change in table.scan_changes(None)]
    assert found == [(None, [1, 2, 3]), (None, [4]), ([1, 2, 3], [1, 3]), ([1, 3, 4], [9])]
    assert [change.snapshot.operation for change in table.scan_changes(first)] == ["append", "delete", "overwrite"]
    table.expire_snapshots(snapshot_ids=[first])
    assert len(table.scan_changes(first)) == 3
