"""Text that is not UTF-8 is refused with the rows, on every way in; where files have it already, tables stay usable."""

import pickle
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icefield.errors import SchemaMismatch
from icefield.lake import Lake
from icefield.parquet.write.plan import plan_write
from icefield.spark.write.task import WriteTask
from icefield.storage.location import local_path
from icefield.table.table import Table

BYTES = [b"good", b"\xff\xfe", b"\xc3\xa9"]


def text(kind: pa.DataType | None = None, values: list[bytes] | None = None) -> pa.Array:
    """Return bytes that claim to be text, as other libraries may hand them over."""
    kind = pa.string() if kind is None else kind
    same = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
    raw = pa.array(values or BYTES, same[kind])
    return pa.Array.from_buffers(kind, len(raw), raw.buffers())


COLUMNS: dict[str, tuple[str, str, Callable[[], pa.Array]]] = {
    "string": ("string", "s", text),
    "large string": ("string", "s", lambda: text(pa.large_string())),
    "string view": ("string", "s", lambda: text(pa.string_view())),
    "long string view": ("string", "s", lambda: text(pa.string_view(), [b"good", b"long enough, but \xff", b"good"])),
    "dictionary": ("string", "s", lambda: pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), text())),
    "uuid": ("uuid", "s", text),
    "struct": ("struct<a: string>", "s.a", lambda: pa.StructArray.from_arrays([text()], ["a"])),
    "list": ("list<string>", "s.element", lambda: pa.ListArray.from_arrays([0, 1, 2, 3], text())),
    "keys": ("map<string, long>", "s.key", lambda: pa.MapArray.from_arrays([0, 1, 2, 3], text(), [1, 2, 3])),
    "values": ("map<long, string>", "s.value", lambda: pa.MapArray.from_arrays([0, 1, 2, 3], [1, 2, 3], text())),
}
VERBS: dict[str, Callable[[Table, pa.Table], object]] = {
    "append": lambda table, rows: table.append(rows),
    "merge": lambda table, rows: table.append(rows.append_column("more", rows["id"]), merge_schema=True),
    "overwrite": lambda table, rows: table.overwrite(rows),
    "overwrite where": lambda table, rows: table.overwrite(rows, where="id >= 0"),
    "upsert": lambda table, rows: table.upsert(rows, on=["id"]),
}


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("verb", VERBS)
def test_text_that_is_not_utf8_is_refused(memory_lake: Lake, column: str, verb: str) -> None:
    kind, path, make = COLUMNS[column]
    rows = pa.table({"id": [1, 2, 3], "s": make()})
    partitions = [] if rows["s"].type.num_fields else ["s"]
    table = memory_lake.create_table("a.t", f"id long, s {kind}", partition_by=partitions)
    before = table.metadata_location, sorted(f.location for f in memory_lake.store.list(memory_lake.warehouse))
    with pytest.raises(SchemaMismatch, match=f"^column '{path}' holds text that is not UTF-8"):
        VERBS[verb](table, rows)
    table.refresh()
    after = table.metadata_location, sorted(f.location for f in memory_lake.store.list(memory_lake.warehouse))
    assert after == before


def test_rows_beside_such_text_are_taken(memory_lake: Lake) -> None:
    """What a slice leaves out, and what is null, does not belong to the rows."""
    table = memory_lake.create_table("a.t", "id long, s string, l list<string>, m map<string, string>")
    lists = pa.ListArray.from_arrays([0, 1, 2, 3], text())
    maps = pa.MapArray.from_arrays([0, 1, 2, 3], text(), text())
    rows = pa.table({"id": [1, 2, 3], "s": text(), "l": lists, "m": maps})
    table.append(rows.slice(2))
    raw = text()
    masked = pa.Array.from_buffers(pa.string(), 3, [pa.py_buffer(b"\x05"), *raw.buffers()[1:]])
    table.append(pa.table({"id": [1, 2, 3], "s": masked}))
    found = table.scan("s IS NOT NULL").to_arrow().read_all()["s"].to_pylist()
    assert sorted(found) == ["good", "é", "é"]


def test_a_table_whose_files_hold_such_text_can_be_changed(lake: Lake) -> None:
    table = lake.create_table("a.t", "id long, s string")
    path = f"{local_path(table.location)}/data/other.parquet"
    table.append(pa.table({"id": [0], "s": ["good"]}))
    pq.write_table(pa.table({"id": [1, 2, 3], "s": text()}), path)
    table.add_files([path])
    table.delete("id = 1")
    table.compact()
    table.overwrite(pa.table({"id": [2], "s": ["mended"]}), where="id = 2")
    assert table.scan().to_arrow().read_all().sort_by("id")["s"].to_pylist() == ["good", "mended", "é"]


@pytest.mark.parametrize("names", [None, (("id", "s"),)])
def test_the_task_that_writes_rows_of_spark_checks_them_too(
    memory_lake: Lake, names: tuple[tuple[str, ...], ...] | None
) -> None:
    table = memory_lake.create_table("a.t", "id long, s string")
    task = WriteTask(plan_write(table.metadata, "w", moves_rows=False), memory_lake.store, names)
    (result,) = task(iter([pa.record_batch({"id": pa.array([1, 2, 3]), "s": text()})]))
    error = pickle.loads(result.column("error")[0].as_py())
    assert isinstance(error, SchemaMismatch)
    assert "column 's' holds text that is not UTF-8" in str(error)
