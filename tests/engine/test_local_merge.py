"""Row-level changes on the local engine: what they read, what an error leaves, and which sources they take."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefield import lit
from icefield.engine import local_merge, merge_source
from icefield.errors import IcefieldError, InvalidInput, SchemaMismatch
from icefield.lake import Lake
from icefield.parquet.read.read import TableReader
from icefield.table.merge import MergeBuilder
from icefield.table.table import Table

MODES = ["copy-on-write", "merge-on-read", "auto"]
MOST = 2**63 - 1


def make(lake: Lake, version: int = 3) -> Table:
    """Two files; one number of the second cannot be incremented."""
    table = lake.create_table("t.t", "id long, b long, c string, d double", format_version=version)
    table.append(pa.table({"id": [1, 2, 3], "b": [1, 2, 3], "c": ["x", "y", "z"], "d": [1.0, 2.0, 3.0]}))
    table.append(pa.table({"id": [4, 5, 6], "b": [4, MOST, 6], "c": ["x", "y", "z"], "d": [4.0, 5.0, 6.0]}))
    return table


def merge(table: Table, rows: dict[str, Any], on: Any = ("id",), mode: str = "merge-on-read") -> MergeBuilder:
    return table.merge(pa.table(rows), list(on) if isinstance(on, tuple) else on, mode=mode, engine="local")


def rows_of(table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.scan().to_arrow().read_all().sort_by("id").to_pylist()
    return found


def files_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def columns_read(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The columns that are read from each file for a merge."""
    found: list[list[str]] = []
    read = TableReader.read_candidates

    def noting(reader: TableReader, task: Any, schema: Any, select: Sequence[str], where: Any) -> Any:
        found.append(list(select))
        return read(reader, task, schema, select, where)

    monkeypatch.setattr(TableReader, "read_candidates", noting)
    return found


ALL = {"id": [1, 9], "b": [7, 8], "c": ["n", "m"], "d": [0.5, 0.25]}


def test_a_merge_that_replaces_rows_reads_their_keys_alone(memory_lake: Lake, columns_read: list[list[str]]) -> None:
    merge(make(memory_lake, 2), ALL).when_matched().update_all().when_not_matched().insert_all().execute()
    assert columns_read == [["id", "_pos"]]  # of the one file that can have a key


def test_a_merge_reads_what_its_clauses_use(memory_lake: Lake, columns_read: list[list[str]]) -> None:
    table = make(memory_lake)
    merge(table, ALL).when_not_matched().insert_all().execute()
    merge(table, ALL).when_matched("target.c = 'x'").delete().execute()
    merge(table, ALL).when_matched().update({"b": "source.b", "d": "target.d * 2"}).execute()
    used = [["id"], ["id", "c"], ["id", "c", "d"]]
    assert [sorted(set(some) - {"_pos", "_row_id"}) for some in columns_read][:3] == [sorted(some) for some in used]


@pytest.mark.parametrize("mode", MODES)
def test_an_error_in_a_later_file_leaves_no_file(
    lake: Lake, tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_merge, "PENDING_BYTES", 0)  # so that the first file ends before the error
    table = lake.create_table("t.t", "id long, b long", format_version=3)
    for number in range(5):
        # The file in the middle fails, so that others are done before it in either order.
        table.append(pa.table({"id": [10 * number, 10 * number + 1], "b": [MOST if number == 2 else 0, 1]}))
    before, rows = files_in(tmp_path), rows_of(table)
    changes = {"id": [0, 10, 20, 30, 40], "b": [1] * 5}
    with pytest.raises(InvalidInput, match="out of range for long"):
        merge(table, changes, mode=mode).when_matched().update({"b": "target.b + source.b"}).execute()
    with pytest.raises(InvalidInput, match="out of range for long"):
        table.update({"b": "b + 1"}, "id IN (0, 10, 20, 30, 40)", mode=mode, engine="local")
    assert files_in(tmp_path) == before
    assert rows_of(table) == rows


@pytest.mark.parametrize("mode", MODES)
def test_a_null_for_a_required_column_names_it(lake: Lake, tmp_path: Path, mode: str) -> None:
    table = lake.create_table("t.t", "id long, b long not null", format_version=2)
    table.append(pa.table({"id": [1, 2], "b": [1, 2]}))
    before = files_in(tmp_path)
    given = pa.table({"id": [1, 3], "b": pa.array([None, 3], pa.int64())})
    changes: tuple[Callable[[], object], ...] = (
        lambda: table.merge(given, ["id"], mode=mode, engine="local").when_matched().update_all().execute(),
        lambda: table.upsert(given, ["id"], mode=mode, engine="local"),
        lambda: table.update({"b": "nullif(b, 2)"}, mode=mode, engine="local"),
        lambda: table.upsert(pa.table({"id": [1, 3]}), ["id"], mode=mode, engine="local"),
    )
    for change in changes:
        with pytest.raises(IcefieldError, match=r"'b'"):
            change()
    assert files_in(tmp_path) == before


@pytest.mark.parametrize("mode", MODES)
def test_a_dry_run_writes_nothing_and_counts_the_same(lake: Lake, tmp_path: Path, mode: str) -> None:
    table = make(lake)
    before = files_in(tmp_path)
    building = merge(table, ALL, mode=mode).when_matched().update_all().when_not_matched().insert_all()
    planned = building.execute(dry_run=True)
    assert files_in(tmp_path) == before
    done = building.execute()
    names = ["rows_matched", "rows_updated", "rows_inserted", "rows_copied", "files_rewritten", "files_dropped"]
    assert [getattr(planned, name) for name in names] == [getattr(done, name) for name in names]
    assert planned.snapshot is None
    assert done.snapshot is not None


def test_two_matches_of_one_row_name_its_key_and_show_both_rows(memory_lake: Lake) -> None:
    table = make(memory_lake)
    twice = {"id": [2, 2, 1], "b": [70, 71, 1], "c": ["n", "m", "k"], "d": [0.5, 0.25, 0.0]}
    with pytest.raises(InvalidInput, match=r"\{'id': 2\}.*'b': 70.*and.*'b': 71"):
        merge(table, twice).when_matched("source.b > 1000").update_all().execute()
    # Only one source row is left for each row, or all of them say the same.
    merge(table, twice, "target.id = source.id AND source.b <> 70").when_matched().update_all().execute()
    assert rows_of(table)[1]["b"] == 71
    assert merge(table, twice).when_matched().delete().execute().rows_deleted == 2
    assert merge(table, {"id": [8, 8]}).when_not_matched().insert({"id": "source.id"}).execute().rows_inserted == 2


def test_a_condition_without_keys_needs_spark(memory_lake: Lake) -> None:
    table = make(memory_lake)
    with pytest.raises(IcefieldError, match="only Spark can evaluate a condition that compares no column"):
        merge(table, ALL, "target.id < source.id").when_matched().delete().execute()


def test_sources_in_the_forms_of_other_libraries(memory_lake: Lake) -> None:
    table = make(memory_lake)
    words = pa.array(["n", "m", "n"]).dictionary_encode()
    given = pa.table({"id": pa.array([1, 2, 9], pa.int8()), "c": words, "b": pa.array([7, 8, 9], pa.uint16())})
    result = table.upsert(given, ["id"], engine="local")
    assert (result.rows_updated, result.rows_inserted) == (2, 1)
    views = pa.table({"id": [1], "c": pa.array(["view"], pa.string_view())})
    table.upsert(views, ["id"], engine="local")
    table.upsert(pa.RecordBatchReader.from_batches(given.schema, given.slice(1).to_batches()), ["id"], engine="local")
    assert [(row["id"], row["b"], row["c"]) for row in rows_of(table)][:2] == [(1, 7, "view"), (2, 8, "m")]


def test_text_that_is_not_utf8_is_refused(memory_lake: Lake) -> None:
    table = make(memory_lake)
    broken = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    with pytest.raises(SchemaMismatch, match="'c' holds text that is not UTF-8"):
        merge(table, {"id": [1], "c": broken}).when_matched().update({"c": "source.c"}).execute()


@pytest.mark.parametrize("version", [2, 3])
def test_names_that_look_like_paths_and_metadata_columns(memory_lake: Lake, version: int) -> None:
    names = ["id", "a.b", "a", "_pos", "_row_id", "Two Words", "target", "source", "é`"]
    schema = pa.schema([pa.field(name, pa.int64()) for name in names])
    table = memory_lake.create_table("t.odd", schema, format_version=version)
    table.append(pa.table([[1, 2, 3]] * len(names), schema=schema))
    given = pa.table([[2, 9]] + [[20, 90]] * (len(names) - 1), schema=schema)
    merge(
        table, dict(zip(names, given.columns, strict=True))
    ).when_matched().update_all().when_not_matched().insert_all().execute()
    table.update({"`a.b`": "`a.b` + `_pos`", "_row_id": lit(5)}, "`Two Words` = 20", engine="local")
    expected = [[1] * 9, [2, 40, 20, 20, 5, 20, 20, 20, 20], [3] * 9, [9] + [90] * 8]
    assert [list(row.values()) for row in rows_of(table)] == expected


def test_rows_move_to_the_partition_of_their_new_values(memory_lake: Lake) -> None:
    table = memory_lake.create_table("t.p", "id long, p string", partition_by=["p"], format_version=3)
    table.append(pa.table({"id": [1, 2, 3], "p": ["a", "a", "b"]}))
    merge(table, {"id": [1, 3], "p": ["b", None]}).when_matched().update_all().execute()
    assert [row["p"] for row in rows_of(table)] == ["b", "a", None]
    assert table.scan("p = 'b'").count() == 1


def test_uuids_inside_other_types(memory_lake: Lake) -> None:
    """Arrow fails to build, and to filter, some arrays of them."""
    schema = "id uuid, s struct<u uuid, x long>, l list<uuid>, m map<string, uuid>"
    table, source = (memory_lake.create_table(f"t.{name}", schema) for name in ("target", "source"))

    def run() -> tuple[int, int, int]:
        merging = (
            table.merge(source, ["id"], engine="local").when_matched("source.s.x = 1").update({"s.x": "target.s.x"})
        )
        merging = merging.when_matched().update_all().when_not_matched().insert_all()
        done = merging.when_not_matched_by_source("target.s.x > 5").delete().execute()
        return done.rows_updated, done.rows_inserted, done.rows_deleted

    assert run() == (0, 0, 0)
    plain = pa.binary(16)
    columns = [
        ("id", plain),
        ("s", pa.struct([("u", plain), ("x", pa.int64())])),
        ("l", pa.list_(plain)),
        ("m", pa.map_(pa.string(), plain)),
    ]
    values = [{"id": bytes([n] * 16), "s": {"u": bytes(16), "x": n}, "l": [], "m": []} for n in (1, 2, 9)]
    source.append(pa.Table.from_pylist([*values, {"id": None}], pa.schema(columns)))
    assert run() == (0, 4, 0)
    assert run() == (3, 1, 0)
    source.delete("TRUE")
    assert run() == (0, 0, 1)


def test_long_strings_of_a_source_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_source, "MAX_OFFSET", 10)
    column = pa.chunked_array([["some text"], ["more text"]])
    assert merge_source.whole_column(column).to_pylist() == column.to_pylist()
    assert merge_source.whole_column(column).type == pa.large_string()
    assert merge_source.whole_column(column.slice(0, 1)).type == pa.string()


@pytest.mark.parametrize("uses", ["value", "condition", "on"])
def test_a_time_that_would_lose_its_nanoseconds_names_the_column(memory_lake: Lake, uses: str) -> None:
    table = memory_lake.create_table("t.t", "id long, at timestamp")
    table.append(pa.table({"id": [1], "at": pa.array([0], pa.timestamp("us"))}))

    def run(nanoseconds: int) -> int:
        given = {"id": [1], "at": pa.array([nanoseconds], pa.timestamp("ns"))}
        on = "target.id = source.id AND source.at >= target.at" if uses == "on" else ("id",)
        clause = merge(table, given, on).when_matched("source.at >= target.at" if uses == "condition" else None)
        return (clause.update({"at": "source.at"}) if uses == "value" else clause.delete()).execute().rows_matched

    with pytest.raises(SchemaMismatch, match="column 'at' holds a value that is not a valid timestamp"):
        run(1)
    assert run(1000) == 1
