"""Rows in the forms of other libraries, limits that stop reading, and what handles show."""

import datetime
import decimal
import math
import sys
import uuid
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import icefield
from icefield import InvalidInput, SchemaMismatch, Unsupported
from icefield.parquet.read import read_ahead
from icefield.table import scan as scan_module

ROWS = {"id": [1, 2, 3], "name": ["a", None, "c"]}


@pytest.fixture
def table() -> icefield.Table:
    made = icefield.connect("memory:").create_table("a.t", "id long, name string")
    for number, name in zip(*ROWS.values(), strict=True):
        made.append([{"id": number, "name": name}])
    return made


def by_id(rows: Any) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["id"])


EXPECTED = [{"id": n, "name": name} for n, name in zip(*ROWS.values(), strict=True)]


def test_every_form_has_the_same_rows(table: icefield.Table) -> None:
    for source in (table, table.scan(), table.scan_appends(None), table.scan().limit(5)):
        assert by_id(source) == EXPECTED
        assert len(source) == source.count() == 3
        assert by_id(pa.table(source).to_pylist()) == EXPECTED
        assert by_id(pl.DataFrame(source).to_dicts()) == EXPECTED
        assert by_id(source.to_polars().to_dicts()) == EXPECTED
        assert sorted(source.to_pandas()["id"]) == [1, 2, 3]
        assert sorted(duckdb.sql("SELECT id FROM source").fetchall()) == [(1,), (2,), (3,)]
        relation = source.to_duckdb()
        assert relation.filter("id > 1").aggregate("count(*)").fetchall() == [(2,)]
        assert relation.aggregate("count(*)").fetchall() == [(3,)]  # it can be run again
        assert source.head(2).num_rows == 2
    structs: Any = pl.from_arrow(table.scan())  # Polars reads a stream of another library as structs
    assert structs.struct.unnest().shape == (3, 2)


def test_a_read_is_true_whether_or_not_it_has_rows(table: icefield.Table) -> None:
    for read in (table.scan("id > 9"), table.scan().limit(0), table.scan_appends(table.snapshots()[-1].snapshot_id)):
        assert len(read) == 0
        assert read


def test_shortcuts_of_a_table_take_what_a_scan_takes(table: icefield.Table) -> None:
    first = table.snapshots()[0].snapshot_id
    assert table.to_pandas("id > 1", ["id"]).columns.tolist() == ["id"]
    assert table.to_polars(as_of=first).shape == (1, 2)
    assert table.to_arrow("id = 2").read_all().to_pylist() == [EXPECTED[1]]
    connection = duckdb.connect()
    assert table.to_duckdb("id = 2", connection=connection).fetchall() == [(2, None)]
    assert (table.count(), table.count("id > 1")) == (3, 2)
    snapshot = table.current_snapshot
    assert snapshot is not None
    assert snapshot.snapshot_id == table.snapshots()[-1].snapshot_id
    assert bool(icefield.connect("memory:").create_table("a.empty", "id long"))
    assert icefield.connect("memory:").create_table("a.empty", "id long").current_snapshot is None


def test_current_snapshot_is_that_of_the_branch(table: icefield.Table) -> None:
    table.create_branch("work")
    made = table.at("work").append([{"id": 4}])
    assert made is not None
    assert table.at("work").current_snapshot == made
    assert table.current_snapshot != made


def test_metadata_tables_have_the_same_forms(table: icefield.Table) -> None:
    assert table.inspect("snapshots").to_polars().shape[0] == 3
    assert len(list(table.inspect("files"))) == 3


def test_a_limit_stops_reading(table: icefield.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []

    def noting(*given: Any) -> Any:
        for reader, task in read_ahead.read_ahead(*given):
            opened.append(task.location)
            yield reader, task

    monkeypatch.setattr(scan_module, "read_ahead", noting)
    assert table.head(1).num_rows == 1
    assert len(opened) == 1
    assert table.scan().limit(0).to_arrow().read_all().num_rows == 0
    assert len(opened) == 1
    next(iter(table.scan()))
    assert len(opened) == 2
    assert (table.scan().limit(2).count(), table.limit(9).count()) == (2, 3)


@pytest.mark.parametrize("count", [-1, 1.5, "2", True, None])
def test_a_wrong_limit_is_refused(table: icefield.Table, count: Any) -> None:
    with pytest.raises(InvalidInput, match="whole number"):
        table.scan().limit(count)


def test_a_frame_of_daft_has_the_same_rows(table: icefield.Table) -> None:
    pytest.importorskip("daft", reason="make versions has it")
    assert by_id(table.scan().to_daft().to_pylist()) == EXPECTED


@pytest.mark.filterwarnings("ignore")  # of Ray's own packages
def test_a_dataset_of_ray_has_the_same_rows(table: icefield.Table) -> None:
    ray = pytest.importorskip("ray", reason="make versions has it")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        assert by_id(table.scan().to_ray().take_all()) == EXPECTED
    finally:
        ray.shutdown()


@pytest.mark.parametrize("package", ["daft", "ray.data"])
def test_a_missing_package_of_a_scan_is_named(
    table: icefield.Table, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    verb = f"to_{package.partition('.')[0]}"
    with pytest.raises(Unsupported, match=f"{verb} needs the package {package}, which is not installed"):
        getattr(table.scan(), verb)()


@pytest.mark.parametrize("package", ["pandas", "polars", "duckdb"])
def test_a_missing_package_is_named(table: icefield.Table, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(Unsupported, match=f"to_{package} needs the package {package}") as raised:
        getattr(table, f"to_{package}")()
    assert "pip install" in str(raised.value.hint)


def test_rows_of_every_form_are_appended(table: icefield.Table) -> None:
    arrow = pa.table({"id": [10], "name": ["x"]})
    forms: list[Any] = [
        arrow,
        arrow.to_reader(),
        ds.dataset(arrow),
        ds.dataset(arrow).scanner(),
        arrow.to_pandas(),
        pl.from_arrow(arrow),
        pl.from_arrow(arrow).lazy(),  # type: ignore[union-attr]
        duckdb.from_arrow(arrow),
        [{"id": 10, "name": "x"}],
        ({"id": 10}, {"name": "x", "id": 10}),
        table.scan("id = 1"),
        table,
    ]
    assert table.append([]) is None
    for rows in forms:
        before = table.count()
        assert table.append(rows) is not None, type(rows)
        assert table.count() > before


def test_dicts_are_read_as_the_types_of_the_table() -> None:
    lake = icefield.connect("memory:")
    made = lake.create_table("a.t", "i int, d decimal(9, 2), u uuid, f float, day date, l list<int>, s struct<x: int>")
    row = {
        "i": 1,
        "d": decimal.Decimal("1.5"),
        "u": uuid.UUID(int=7),
        "f": 1.5,
        "day": datetime.date(2026, 1, 5),
        "l": [1, 2],
        "s": {"x": 3},
    }
    made.append([row, {"i": 2}])
    made.overwrite([row], where="i = 1")
    made.upsert([{"i": 2, "f": 2.5}], on=["i"])
    assert list(made.scan("i = 1")) == [{**row, "d": decimal.Decimal("1.50")}]
    assert made.scan("i = 2", ["f"]).head().to_pylist() == [{"f": 2.5}]
    assert lake.create_table_as("a.c", [{"id": 1}]).count() == 1


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])
@pytest.mark.every_case
def test_files_are_appended_by_their_path(table: icefield.Table, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows{suffix}"
    rows = pa.table({"id": pa.array([9], pa.int64()), "name": ["z"]})
    if suffix == ".parquet":
        pq.write_table(rows, path)
    else:
        with pa.ipc.new_file(path, rows.schema) as writer:
            writer.write(rows)
    table.append(path)
    assert list(table.scan("id = 9")) == [{"id": 9, "name": "z"}]
    assert table.upsert(path, on=["id"]).rows_inserted == 0
    path.write_bytes(b"damaged")
    with pytest.raises(InvalidInput, match="cannot read .*rows"):
        table.append(path)
    with pytest.raises(InvalidInput, match="cannot read .*nowhere"):
        table.append(tmp_path / "nowhere.parquet")
    with pytest.raises(InvalidInput, match="cannot write rows from PosixPath") as raised:
        table.append(tmp_path / "rows.csv")
    assert "icefield ingest" in str(raised.value.hint)
    assert table.count() == 4


WRONG: list[Any] = [[{"id": "x"}], [{"id": 2**70}], [{"id": 1, "name": {}}], [{"other": 1}], [1], "x"]


@pytest.mark.parametrize("rows", WRONG)
def test_wrong_rows_are_refused_and_nothing_changes(table: icefield.Table, rows: Any) -> None:
    with pytest.raises((InvalidInput, SchemaMismatch)):
        table.append(rows)
    assert table.count() == 3


HOSTILE = "<script>alert(1)</script>"


def test_handles_show_themselves_and_escape_html() -> None:
    lake = icefield.connect("memory:")
    made = lake.create_table("a.t", pa.schema([(HOSTILE, pa.int64())]), properties={"owner": HOSTILE})
    snapshot = made.append(pa.table({HOSTILE: [1]}), idempotency_key=None)
    scan = made.scan(f"`{HOSTILE}` = 1")
    result = made.delete(f"`{HOSTILE}` = 1", dry_run=True)
    handles: list[Any] = [lake, made, scan, made.scan_appends(None), made.inspect("files")]
    for shown in [*handles, snapshot, scan.explain(), result]:
        text = shown._repr_html_()
        assert "<script" not in text, shown
        assert repr(shown)
    assert repr(made.scan()) == f"TableScan('a.t', snapshot_id={made.scan().snapshot_id})"
    assert repr(result) == str(result)
    assert "&lt;script&gt;" in made._repr_html_()


def test_a_pandas_frame_with_an_index_is_appended_without_it(table: icefield.Table) -> None:
    frame = pd.DataFrame({"id": [1, 2], "name": ["x", "y"]})
    table.append(frame[frame["id"] > 1])
    assert table.count("name = 'y'") == 1


ZONE = datetime.timezone(datetime.timedelta(hours=5))
CHANGED = {  # the type of a column, and a value that Arrow would change without a word
    "a fraction": ("long", 1.5),
    "a decimal fraction": ("int", decimal.Decimal("1.5")),
    "a large float": ("float", 1e300),
    "a time of day": ("date", datetime.datetime(2026, 1, 5, 9)),
    "a zone": ("timestamp", datetime.datetime(2026, 1, 5, tzinfo=ZONE)),
    "a zone of a time": ("time", datetime.time(9, tzinfo=ZONE)),
    "nanoseconds": ("timestamp", pd.Timestamp("2026-01-05T00:00:00.000000001")),
    "in a list": ("list<long>", [1, 1.5]),
    "in a map": ("map<string, long>", {"a": 1.5}),
    "a key of a map": ("map<int, long>", {1.5: 1}),
    "in a struct": ("struct<a: long>", {"a": 1.5}),
    "a field that there is not": ("struct<a: long>", {"a": 1, "b": 2}),
    "in a list of structs": ("list<struct<a: date>>", [{"a": datetime.datetime(2026, 1, 5, 9)}]),
}


@pytest.mark.every_case
@pytest.mark.parametrize("case", CHANGED)
def test_values_of_dicts_that_would_be_changed_are_refused(case: str) -> None:
    kind, value = CHANGED[case]
    table = icefield.connect("memory:").create_table("t.t", f"id long, v {kind}")
    with pytest.raises(InvalidInput, match="column 'v' of the dicts"):
        table.append([{"id": 1, "v": None}, {"id": 2, "v": value}])
    assert table.count() == 0


def test_values_of_dicts_are_converted_where_nothing_is_lost() -> None:
    table = icefield.connect("memory:").create_table(
        "t.t", "n long, f float, d date, ts timestamptz, m map<string, long>, s struct<a: long>"
    )
    at = datetime.datetime(2026, 1, 5, tzinfo=ZONE)
    given = {"n": 3.0, "f": math.inf, "d": datetime.datetime(2026, 1, 5), "ts": at, "m": [("a", 1)], "s": {}}
    table.append([given])
    expected = {"n": 3, "f": math.inf, "d": datetime.date(2026, 1, 5), "ts": at, "m": [("a", 1)], "s": {"a": None}}
    assert table.head().to_pylist() == [expected]
