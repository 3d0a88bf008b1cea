"""icefield ingest: one commit or none."""

import gzip
from datetime import UTC, date, datetime, time
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.conftest import Icefield

import icefield as package
from icefield.cli.files.rows_of_files import RowFiles
from icefield.cli.writing.ingest import _digest


def files_below(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("catalog.db")}


def write_all_formats(folder: Path) -> list[str]:
    pq.write_table(pa.table({"name": ["p"], "id": pa.array([10], pa.int32())}), folder / "a.parquet")
    (folder / "b.csv").write_text('name,id\n,20\n"",21\n')
    (folder / "c.json").write_text('{"id": 30, "name": "j"}\n')
    (folder / "d.csv.gz").write_bytes(gzip.compress(b"id,ts\n40,2026-02-01T00:00:00Z\n"))
    return ["a.parquet", "b.csv", "c.json", "d.csv.gz"]


def test_files_of_every_format_land_in_one_commit(orders: Icefield, tmp_path: Path) -> None:
    done = orders("ingest", "shop.orders", *write_all_formats(tmp_path), "--json")
    snapshots = orders("snapshots", "shop.orders", "--json").json
    assert len(snapshots) == 2
    assert done.json == {
        "table": "shop.orders",
        "created": False,
        "snapshot-id": snapshots[1]["snapshot-id"],
        "rows": 5,
        "data-files": 2,
    }
    rows = orders("query", "shop.orders", "--where", "id >= 10", "--select", "id,name", "--json").json
    names = {row["id"]: row["name"] for row in rows}
    assert names == {10: "p", 20: None, 21: "", 30: "j", 40: None}


def test_progress_goes_to_stderr_and_the_result_to_stdout(orders: Icefield, tmp_path: Path) -> None:
    ran = orders("ingest", "shop.orders", *write_all_formats(tmp_path))
    assert ran.out.startswith("appended 5 rows to shop.orders in 2 data files as snapshot ")
    assert ran.err.splitlines() == [
        "b.csv, d.csv.gz: cells are separated by commas",
        "reading 4 files into shop.orders …",
        "  a.parquet (1 row)",
        "  b.csv (2 rows)",
        "  c.json (1 row)",
        "  d.csv.gz (1 row)",
    ]


def test_create_makes_the_table_from_the_first_file(icefield: Icefield, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,day,amount\n1,2026-01-01,2.5\n2,2026-01-02,3\n")
    ran = icefield("ingest", "new.t", "a.csv", "--create", "--yes", "--partition-by", "month(day)", "--json")
    assert (ran.json["created"], ran.json["rows"], ran.json["data-files"]) == (True, 2, 1)
    columns = [(c["name"], c["type"]) for c in icefield("describe", "new.t", "--json").json["columns"]]
    assert columns == [("id", "long"), ("day", "date"), ("amount", "double")]


def test_a_create_that_cannot_be_filled_leaves_no_table_and_no_file(orders: Icefield, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    (tmp_path / "b.csv").write_text("id\nx\n")
    before = files_below(tmp_path)
    ran = orders("ingest", "shop.new", "a.csv", "b.csv", "--create", "--yes")
    assert ran.code == 1
    assert orders("tables").out == "shop.orders\n"
    assert files_below(tmp_path) == before


@pytest.mark.parametrize(
    ("second", "expected"),
    [("18446744073709551615", "decimal(38, 0)"), ("2.5", "double"), ("00501", None)],
)
def test_the_types_of_several_files_lose_nothing_together(
    icefield: Icefield, tmp_path: Path, second: str, expected: str | None
) -> None:
    (tmp_path / "a.csv").write_text("x\n90210\n")
    (tmp_path / "b.csv").write_text(f"x\n{second}\n")
    ran = icefield("ingest", "new.t", "a.csv", "b.csv", "--create", "--yes")
    if expected is None:
        assert (ran.code, "the files have different types" in ran.err) == (1, True)
        return
    assert icefield("describe", "new.t", "--json").json["columns"][0]["type"] == expected
    found = {row["x"] for row in icefield("query", "new.t", "--json").json}
    assert {float(each) for each in found} == {90210.0, float(second)}


def test_a_table_that_is_missing_can_be_created(orders: Icefield, tmp_path: Path) -> None:
    ran = orders("ingest", "shop.none", "rows.jsonl")
    assert (ran.code, "no table shop.none" in ran.err, "give --create" in ran.err) == (1, True, True)


def test_an_existing_table_is_appended_to(orders: Icefield) -> None:
    ran = orders("ingest", "shop.orders", "rows.jsonl", "--create", "--json")
    assert (ran.code, ran.json["created"], ran.json["rows"]) == (0, False, 4)


def test_a_new_table_has_the_format_version_and_location_that_are_given(icefield: Icefield, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    location = (tmp_path / "lake" / "elsewhere").as_uri()
    icefield("ingest", "new.t", "a.csv", "--create", "--yes", "--format-version", "3", "--location", location)
    described = icefield("describe", "new.t", "--json").json
    assert (described["format-version"], described["location"]) == (3, location)


def test_layout_without_create_is_refused(orders: Icefield) -> None:
    ran = orders("ingest", "shop.orders", "rows.jsonl", "--partition-by", "id")
    assert (ran.code, ran.err.splitlines()[-1]) == (1, "hint: Add --create")


def test_a_file_without_rows_makes_no_snapshot(orders: Icefield, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([], pa.int64())}), tmp_path / "none.parquet")
    assert orders("ingest", "shop.orders", "none.parquet").out == "no rows to append to shop.orders\n"
    assert len(orders("snapshots", "shop.orders", "--json").json) == 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing.csv", None, "no such file: missing.csv"),
        ("rows.txt", "id\n1\n", "cannot determine the format of rows.txt from its name"),
        ("a.csv", "", "cannot read a.csv: "),
        ("a.csv", "id\nseven\n", "cannot read a.csv: "),
        ("a.csv", "id,name\n1\n", "cannot read a.csv: "),
        ("a.csv", "name\nx\n", "a.csv: the rows do not match the table schema: required column 'id' is missing"),
        (
            "a.csv",
            "id,extra\n1,2\n",
            "a.csv: the rows do not match the table schema: column 'extra' is not in the table",
        ),
        ("a.csv", "id,name\n,x\n", "a.csv: required column 'id' holds 1 null"),
        ("a.json", '{"id": 1', "cannot read a.json: "),
        ("a.json", '{"id": 1, "extra": 2}\n', "cannot read a.json: "),
        ("a.json", '{"name": "x"}\n', "a.json: required column 'id' holds 1 null"),
        ("a.parquet", "no parquet", "cannot read a.parquet: "),
        ("a.csv.gz", "not compressed", "cannot read a.csv.gz: "),
    ],
)
def test_a_bad_file_is_named_and_nothing_changes(
    orders: Icefield, tmp_path: Path, name: str, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    before = files_below(tmp_path)
    ran = orders("ingest", "shop.orders", "rows.jsonl", name)
    assert (ran.code, ran.out) == (1, "")
    (error,) = [line for line in ran.err.splitlines() if line.startswith("error: ")]
    assert message in error
    assert files_below(tmp_path) == before
    assert orders("count", "shop.orders").out == "4\n"


def test_a_directory_without_files_of_rows_is_refused(orders: Icefield, tmp_path: Path) -> None:
    (tmp_path / "more.csv").mkdir()
    assert "there is no file of rows in more.csv" in orders("ingest", "shop.orders", "more.csv").err


def test_large_files_are_read_in_pieces(orders: Icefield, tmp_path: Path) -> None:
    with (tmp_path / "many.csv").open("w") as sink:
        sink.write("id,name\n")
        sink.writelines(f"{n},name {n}\n" for n in range(200_000))
    assert orders("ingest", "shop.orders", "many.csv", "--json").json["rows"] == 200_000
    with package.connect(tmp_path / "lake") as lake:
        assert lake.table("shop.orders").scan(where="id = 199999 AND name = 'name 199999'").count() == 1


@pytest.mark.every_case
@pytest.mark.parametrize(
    "command",
    [
        ("ingest", "t.t", "c.csv"),
        ("append", "t.t", "c.csv"),
        ("overwrite", "t.t", "c.csv", "--yes"),
        ("upsert", "t.t", "c.csv", "--on", "id"),
        ("merge", "t.t", "c.csv", "--on", "id", "--insert-all", "--yes"),
    ],
    ids=lambda command: command[0],
)
def test_every_command_that_reads_files_takes_decimal_commas(
    icefield: Icefield, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "c.csv").write_text("id;amt\n1;12,5\n2;3,0\n")
    (tmp_path / "c.json").write_text('{"id": 1}\n')
    icefield("create", "t.t", "id long, amt double")
    refused = icefield(*command)
    assert (refused.code, "row 1, column amt" in refused.err, "--decimal ," in refused.err) == (1, True, True)
    assert icefield("count", "t.t").out == "0\n"
    done = icefield(*command, "--decimal", ",")
    assert done.code == 0, done.err
    assert [row["amt"] for row in icefield("query", "t.t", "--json").json] == [12.5, 3.0]
    other = icefield(*[each.replace("csv", "json") for each in command], "--decimal", ",")
    assert (other.code, "--decimal is for CSV files, and there is none" in other.err) == (1, True)


def test_columns_that_are_text_for_their_decimal_commas_are_reported(icefield: Icefield, tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("id;amt;name\n1;12,5;a,1\n2;3,0;b\n")
    line = "c.csv: numbers with decimal commas are text in amt; --decimal , reads them"
    assert line in icefield("ingest", "t.t", "c.csv", "--create", "--dry-run").err.splitlines()
    given = icefield("ingest", "t.t", "c.csv", "--create", "--dry-run", "--decimal", ",").err
    assert "decimal commas" not in given
    assert "  amt  double" in given.splitlines()


def test_a_branch_is_ingested_into(orders: Icefield, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("id\n9\n")
    assert orders("branch", "shop.orders", "audit").code == 0
    to_branch = ("ingest", "shop.orders", "more.csv", "--branch", "audit")
    assert orders(*to_branch).out.startswith("appended 1 row")
    assert orders(*to_branch, "--once").out.startswith("appended 1 row")
    assert orders(*to_branch, "--once").out.startswith("skipped 1 file")
    assert orders("count", "shop.orders", "--as-of", "audit").out == "6\n"
    assert orders("count", "shop.orders").out == "4\n"
    elsewhere = orders("ingest", "shop.orders", "more.csv", "--once")  # it would be there twice after a publish
    assert (elsewhere.code, "publish the branch that has it" in elsewhere.err) == (1, True)
    refused = orders("ingest", "shop.orders", "more.csv", "--branch", "adit")
    assert (refused.code, "adit" in refused.err) == (1, True)
    new = orders("ingest", "shop.new", "more.csv", "--create", "--yes", "--branch", "audit")
    assert (new.code, "a new table has no branch audit" in new.err) == (1, True)
    assert "shop.new" not in orders("tables").out


KINDS: dict[str, list[Any]] = {
    "boolean": [True, False],
    "long": [2**63 - 1, -(2**63)],
    "double": [0.1, 1e300, 5e-324],
    "decimal(38, 10)": [Decimal("1234567890123456789012345678.0123456789"), Decimal("-0.1")],
    "date": [date(1, 1, 1), date(9999, 12, 31)],
    "time": [time(23, 59, 59, 999999)],
    "timestamp": [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)],
    "timestamptz": [datetime(1883, 1, 1, tzinfo=UTC)],
    "string": ["", "a,b", "x\ny", "x\r\ny", 'q"q', "NULL", " s ", "é", "007", "-", "a\0b"],
    "uuid": [UUID(int=5)],
    "list<date>": [[date(2026, 1, 5), None], []],
    "map<string, timestamptz>": [[("a", datetime(2026, 1, 5, tzinfo=UTC))], []],
    "struct<a: int, l: list<decimal(20, 5)>>": [{"a": None, "l": [Decimal("1.50000")]}],
}


@pytest.mark.every_case
@pytest.mark.parametrize("kind", KINDS)
def test_what_query_writes_is_what_ingest_reads(icefield: Icefield, tmp_path: Path, kind: str) -> None:
    rows = [{"n": number, "x": value} for number, value in enumerate([*KINDS[kind], None])]
    lake = package.connect(tmp_path / "lake")
    lake.create_table("a.t", f"n int, x {kind}").append(rows)
    for form, name in (("csv", "t.csv"), ("json", "t.jsonl")):
        if form == "csv" and "<" in kind:
            continue  # CSV has no nested values
        written = icefield("query", "a.t", "--format", form, "--limit", "0").out
        (tmp_path / name).write_text(written, encoding="utf-8", newline="")
        copy = lake.create_table(f"a.{form}", f"n int, x {kind}")
        assert icefield("ingest", copy.name, name).code == 0
        assert sorted(copy.to_arrow().read_all().to_pylist(), key=itemgetter("n")) == rows


def test_a_file_that_another_run_ingests_at_the_same_time_is_not_counted(
    orders: Icefield, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitting, calls = RowFiles.fitting, []

    def fitting_late(rows: RowFiles, *rest: Any) -> pa.RecordBatchReader:
        calls.append(rows)
        if len(calls) == 2:  # the first one checks the columns
            with package.connect(tmp_path / "lake") as lake:
                key = f"ingest:{_digest(rows.paths[0])}"
                lake.table("shop.orders").append([{"id": 1}], idempotency_key=key)
        return fitting(rows, *rest)

    monkeypatch.setattr(RowFiles, "fitting", fitting_late)
    done = orders("ingest", "shop.orders", "rows.jsonl", "--once", "--json").json
    assert (done["rows"], done["files"][0]["skipped"]) == (0, True)
    assert orders("count", "shop.orders", "--json").json["count"] == 5
