"""The search finds a value wherever it is: planted in every kind of file, compressed, nested, encoded in a name."""

import gzip
import io
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
from tests.forget.test_forget import ADA, forget, make
from tests.upkeep.fixtures import AT_ONCE, make_yard

from icefield.codec.avro.container import CODEC_KEY, SCHEMA_KEY, encode_container
from icefield.codec.json.name_mapping import PROPERTY
from icefield.codec.puffin.puffin import Blob, encode_puffin
from icefield.forget.search import parse_terms

MAP = pa.map_(pa.string(), pa.string())
JSON = f'["{ADA}"]'
UNUSED = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int32()), pa.array(["grace", ADA]))


def parquet(column: pa.Array) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"c": column}), sink, compression="zstd", write_statistics=False, store_schema=False)
    return sink.getvalue()


def avro(value: str) -> bytes:
    raw = value.encode() * 3
    header = {SCHEMA_KEY: '"string"', CODEC_KEY: "deflate"}
    return encode_container(header, raw, [len(raw)], "memory://x.avro")


PLANTED: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "a column": ("data/1.parquet", lambda: parquet(pa.array([ADA] * 9)), "column c"),
    "a list": ("data/2.parquet", lambda: parquet(pa.array([[["b"]], [[f"<{ADA}>"]]])), "column c.element.element"),
    "a map": ("data/3.parquet", lambda: parquet(pa.array([[("k", ADA)]], MAP)), "column c.value"),
    "an unused value of a dictionary": ("data/4.parquet", lambda: parquet(UNUSED), "column c"),
    "a manifest": ("metadata/5.avro", lambda: avro(ADA), "decoded"),
    "compressed metadata": ("metadata/x6.gz.metadata.json", lambda: gzip.compress(JSON.encode()), "decoded"),
    "escaped text": ("metadata/x7.metadata.json", lambda: JSON.replace("@", "\\u0040").encode(), "decoded"),
    "a blob": ("metadata/8.puffin", lambda: encode_puffin([Blob("t", ADA.encode(), codec="zstd")])[0], "decoded"),
    "bytes of any file": ("data/9", lambda: b"\0" + ADA.encode(), "raw bytes"),
    "a name": ("data/name=ada.lovelace%40example.org/10", lambda: b"", "name"),
}
CUT_OFF = "metadata/11.avro"


def test_what_is_left_is_found() -> None:
    yard = make_yard()
    table = make(yard)
    assert forget(table).is_finished
    yard.store.put_new(f"{table.location}/{CUT_OFF}", avro(ADA[:16]))
    found = forget(table)
    assert found.search is not None
    assert [(t.location.endswith(CUT_OFF), t.is_certain) for t in found.search.traces] == [(True, False)]
    assert found.is_finished, "the beginning of a value proves nothing"
    for name, content, _ in PLANTED.values():
        yard.store.put_new(f"{table.location}/{name}", content())
    found = forget(table)
    assert found.search is not None
    assert not found.is_finished
    certain = {(t.location, t.place) for t in found.search.traces if t.term == 1 and t.is_certain}
    assert {(f"{table.location}/{name}", place) for name, _, place in PLANTED.values()} <= certain
    assert ADA not in str(found.as_dict())


def test_a_damaged_file_is_not_taken_for_clean() -> None:
    yard = make_yard()
    table = make(yard)
    assert forget(table).is_finished
    yard.store.put_new(f"{table.location}/data/x.parquet", b"PAR1")
    found = forget(table)
    assert found.search is not None
    assert (found.is_finished, found.search.unreadable) == (False, (f"{table.location}/data/x.parquet",))


def test_numbers_and_uuids_are_compared_with_whole_values() -> None:
    (number, key) = parse_terms(["4711", "00000000-0000-0000-0000-00000000abcd"])
    assert number.text == "4711"
    assert bytes(14) + b"\xab\xcd" in key.forms


def test_rows_of_files_without_field_ids_are_found() -> None:
    """A name that writers without a table format give protects a file: nothing refers to it, and it stays."""
    yard = make_yard()
    table = yard.lake.create_table("t.t", "id long, name string", properties=AT_ONCE)
    location = f"{table.location}/data/part-00000-1.parquet"
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2], "name": [ADA, "grace"]}), sink)
    yard.store.put_new(location, sink.getvalue())
    table.add_files([location])
    assert table.forget("id = 1").outside == (location,)
    table.set_properties({}, removals=[PROPERTY])
    for where, traces in (("id = 1", [location]), ("id = 3", [])):
        done = table.forget(where)
        assert done.search is not None
        assert [trace.location for trace in done.search.traces] == traces
        assert done.is_finished is not bool(traces)
