"""Whatever callers give to the handles works, or is one clear error of ours; never one of Python's from deep inside."""

import datetime
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import icefield
from icefield.arguments import check_arguments
from icefield.dml.evolution import TableEvolution
from icefield.errors import IcefieldError, InvalidInput, NoSuchSnapshot
from icefield.lake import Lake
from icefield.table.scan import TableScan
from icefield.table.table import Table

ODD: tuple[Any, ...] = (
    5,
    1.5,
    "text",
    b"x",
    [],
    {},
    object(),
    datetime.date(2026, 1, 1),
    [5],
    {"a": 5},
    True,
    None,
    "",
    "\0",
    10**30,
)
# What a verb needs beside the one argument that is odd.
GOOD: dict[str, Any] = {
    "name": "a.t",
    "schema": "id long",
    "rows": pa.table({"id": pa.array([1], pa.int64())}),
    "where": "id = 1",
    "snapshot_id": 1,
    "branch": "main",
    "updates": {},
    "files": [],
    "snapshot_ids": [],
    "after": None,
    "location": "x",
    "source": pa.table({"id": pa.array([1], pa.int64())}),
    "on": ["id"],
    "values": {"c": "'x'"},
    "new_name": "a.new",
    "metadata_location": "x",
    "column": "id",
    "file": None,
    "text": "SHOW NAMESPACES",
    "before": 1,
    "kind": "string",
    "names": [],
    "doc": None,
    "order_by": [],
    "default": None,
}
BESIDE: dict[str, dict[str, Any]] = {"sql": {"engine": "local"}, "sql_script": {"engine": "local"}}
STARTS_SPARK = {"attach", "detach", "read", "to_spark", "create_view"}
CHOOSES_SPARK = {("sql", "engine"), ("sql_script", "engine")}


def handle(kind: type) -> Any:
    lake = icefield.connect("memory:")
    table = lake.create_table("a.t", "id long, c string")
    table.append(pa.table({"id": pa.array([1, 2], pa.int64())}))
    evolution = TableEvolution(table.metadata)
    handles: dict[type, Any] = {Lake: lake, Table: table, TableScan: table.scan(), TableEvolution: evolution}
    return handles[kind]


def arguments() -> Iterator[Any]:
    for kind in (Lake, Table, TableScan, TableEvolution):
        for name, method in inspect.getmembers(kind, inspect.isfunction):
            if not name.startswith("_") and name not in STARTS_SPARK:
                for parameter in inspect.signature(method).parameters.values():
                    if parameter.name == "self" or (name, parameter.name) in CHOOSES_SPARK:
                        continue
                    if parameter.kind is not parameter.VAR_KEYWORD:
                        yield pytest.param(kind, name, parameter.name, id=f"{kind.__name__}.{name}-{parameter.name}")


@pytest.mark.parametrize(("kind", "name", "parameter"), list(arguments()))
def test_an_odd_argument_works_or_is_one_error_of_ours(kind: type, name: str, parameter: str) -> None:
    signature = inspect.signature(getattr(kind, name))
    needed = {p.name: GOOD.get(p.name) for p in signature.parameters.values() if p.default is p.empty}
    needed = {key: value for key, value in needed.items() if key in GOOD} | BESIDE.get(name, {})
    made, raw = handle(kind), []
    for odd in ODD:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                answer = getattr(made, name)(**(needed | {parameter: odd}))
                if isinstance(answer, pa.RecordBatchReader):
                    answer.read_all()
            except IcefieldError:
                continue
            except Exception as error:
                raw.append((odd, error))
    assert raw == []


@pytest.mark.every_case
@pytest.mark.parametrize(
    "step",
    [
        lambda change: change.add_column("x", 5),
        lambda change: change.add_column("x", "long", doc=5),
        lambda change: change.set_doc("c", 5),
        lambda change: change.add_partition_field("id", name=3),
        lambda change: change.set_identifier_fields("id"),
    ],
)
def test_a_step_with_a_wrong_argument_is_not_committed(step: Callable[[Any], None]) -> None:
    table = handle(Table)
    before = table.metadata_location
    with pytest.raises(InvalidInput, match="takes a"), table.evolve() as change:
        step(change)
    table.refresh()
    assert table.metadata_location == before


@check_arguments
class Handle:
    def take(
        self,
        text: str = "",
        number: int = 0,
        flag: bool = False,
        when: datetime.datetime | str | None = None,
        strings: Sequence[str] = (),
        numbers: Iterable[int] = (),
        settings: Mapping[str, str] | None = None,
        anything: object = None,
        column: str | Any = None,
        make: Callable[[], int] | None = None,
        **more: int,
    ) -> dict[str, Any]:
        return {key: value for key, value in locals().items() if key != "self"}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"text": 5}, "take: text takes a string, not 5"),
        ({"number": True}, "number takes a whole number, not True"),
        ({"number": 1.0}, "number takes a whole number"),
        ({"flag": "yes"}, "flag takes True or False, not 'yes'"),
        ({"when": 5}, "when takes a datetime or a string"),
        ({"strings": "ab"}, "strings takes a list of strings, not 'ab'"),
        ({"strings": ["a", 5]}, "strings takes a list of strings"),
        ({"numbers": {"a": 1}}, "numbers takes a list of whole numbers"),
        ({"settings": [("a", "b")]}, "settings takes a mapping of strings to strings"),
        ({"settings": {"a": 1}}, "settings takes a mapping of strings to strings"),
    ],
)
def test_a_value_of_a_wrong_type_is_refused_in_words(given: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        Handle().take(**given)


def test_what_fits_is_handed_on_as_it_is() -> None:
    once = iter([1, 2])
    given = {
        "number": np.int64(3),
        "when": "2026-01-01",
        "strings": ("a",),
        "numbers": once,
        "settings": {"a": "b"},
        "anything": object(),
        "column": 5,
        "more": {"extra": 1},
    }
    taken = Handle().take(**{**given, "extra": 1, "more": 2})  # type: ignore[arg-type]
    assert taken["numbers"] is once
    assert list(once) == [1, 2], "what can be read once is left to the method"
    assert taken["more"] == {"extra": 1, "more": 2}
    with pytest.raises(InvalidInput, match="strings takes") as caught:
        Handle().take(strings="id")
    assert caught.value.hint == "Write strings=['id']"


# Frames of other libraries.


class Frame:
    """Speaks Arrow's stream protocol, as the frames of Polars and DuckDB do."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)


def categorical(values: list[str | None], kind: pa.DataType) -> pa.Array:
    encoded = pa.array(values, pa.string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(pa.uint32()), encoded.dictionary.cast(kind))


@pytest.mark.parametrize("kind", [pa.string_view(), pa.large_string(), pa.string()], ids=str)
def test_a_categorical_frame_is_appended_and_creates_a_table(kind: pa.DataType, memory_lake: Lake) -> None:
    """Polars hands out categoricals as dictionaries of string views."""
    column = categorical(["x", None, "x"], kind)
    nested = pa.ListArray.from_arrays([0, 1, 2, 3], column)
    frame = Frame(pa.table({"c": column, "l": nested}))
    table = memory_lake.create_table("a.t", frame)
    assert [str(f.type) for f in table.schema.fields] == ["string", "list<string>"]
    table.append(frame)
    rows = table.scan().to_arrow().read_all().to_pylist()
    assert rows == [{"c": "x", "l": ["x"]}, {"c": None, "l": [None]}, {"c": "x", "l": ["x"]}]


PANDAS = pd.DataFrame({"id": [1, 2, 3], "c": ["x", "y", None]})


@pytest.mark.parametrize("frame", [PANDAS[PANDAS["id"] > 1], pa.Table.from_pandas(PANDAS[PANDAS["id"] > 1])])
def test_the_row_labels_of_a_filtered_pandas_frame_are_not_data(frame: object, memory_lake: Lake) -> None:
    table = memory_lake.create_table("a.t", frame)
    assert [f.name for f in table.schema.fields] == ["id", "c"]
    table.append(frame)
    table.append(frame, merge_schema=True)
    table.upsert(frame, on=["id"])
    assert [f.name for f in table.schema.fields] == ["id", "c"]
    assert table.count() == 4


def test_an_index_that_has_a_name_is_a_column(memory_lake: Lake) -> None:
    table = memory_lake.create_table("a.t", "id long, c string")
    table.append(PANDAS.set_index("id"))
    assert table.scan(where="id = 2").to_arrow().read_all().to_pylist() == [{"id": 2, "c": "y"}]


def test_a_column_that_only_looks_like_row_labels_is_data(memory_lake: Lake) -> None:
    rows = pa.table({"__index_level_0__": pa.array([7], pa.int64())})
    for text in ("", "not json", "[]", '{"index_columns": [{"kind": "range"}]}'):
        metadata = {"pandas": text} if text else None
        table = memory_lake.create_table("a.t", rows.replace_schema_metadata(metadata), replace=True)
        table.append(rows.replace_schema_metadata(metadata))
        assert table.scan().to_arrow().read_all().to_pylist() == [{"__index_level_0__": 7}]


# Frames that Arrow cannot take, and rows that no file can hold.

NO_ARROW: dict[str, object] = {
    "values of several types": pd.DataFrame({"id": [1, "x"]}),
    "one name twice": pd.DataFrame([[1, 2]], columns=["id", "id"]),
    "sparse": pd.DataFrame({"id": pd.arrays.SparseArray([0, 0, 1])}),
    "complex": pd.DataFrame({"id": [1 + 2j]}),
    "no text": pd.DataFrame({"id": ["\ud800"]}),
    "a column without a table": pa.chunked_array([[1, 2]]),
}


@pytest.mark.parametrize("name", NO_ARROW)
def test_a_frame_that_arrow_cannot_take_is_one_error_and_changes_nothing(name: str, lake: Lake) -> None:
    table = lake.create_table("a.t", "id long")
    before = table.metadata_location
    works: list[Callable[[], object]] = [
        lambda: lake.create_table("a.other", NO_ARROW[name]),
        lambda: table.append(NO_ARROW[name]),
        lambda: table.append(NO_ARROW[name], merge_schema=True),
        lambda: table.overwrite(NO_ARROW[name]),
        lambda: table.upsert(NO_ARROW[name], on=["id"]),
    ]
    for work in works:
        with pytest.raises(IcefieldError) as caught:
            work()
        assert caught.value.hint
    assert (table.metadata_location, table.count(), lake.tables()) == (before, 0, ["a.t"])


@pytest.mark.parametrize(
    ("rows", "hint"),
    [
        ([1], "from_pylist"),
        ({"id": [1]}, "pyarrow.table"),
        (iter([pa.record_batch({"id": [1]})]), "from_batches"),
    ],
)
def test_what_holds_rows_but_is_no_arrow_data_gets_the_call_that_converts_it(
    rows: object, hint: str, memory_lake: Lake
) -> None:
    with pytest.raises(InvalidInput) as caught:
        memory_lake.create_table("a.t", "id long").append(rows)
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        (pa.uint64(), "decimal"),
        (pa.duration("s"), "int64"),
        (pa.run_end_encoded(pa.int32(), pa.string()), "run_end_decode"),
        (pa.json_(), "storage type string"),
        (pa.month_day_nano_interval(), "another type"),
    ],
)
def test_the_hint_for_a_type_that_tables_lack_is_about_that_type(
    kind: pa.DataType, hint: str, memory_lake: Lake
) -> None:
    with pytest.raises(IcefieldError) as caught:
        memory_lake.create_table("a.t", pa.schema([("c", kind)]))
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize("kind", [pa.null(), pa.struct([]), pa.struct([("a", pa.null())])])
def test_rows_without_a_column_that_files_hold_are_refused_not_lost(kind: pa.DataType, memory_lake: Lake) -> None:
    rows = pa.table({"c": pa.nulls(2, kind)})
    table = memory_lake.create_table("a.t", rows.schema, format_version=3)
    for write in (table.append, table.overwrite):
        with pytest.raises(IcefieldError, match="data files cannot store any of its columns"):
            write(rows)
    table.append(rows.append_column("n", pa.array([1, 2])), merge_schema=True)
    table.append(rows)
    assert table.count() == table.scan().to_arrow().read_all().num_rows == 4


# Versions and times as text.


def test_a_snapshot_id_may_be_a_text_and_a_ref_of_that_name_goes_first(memory_lake: Lake) -> None:
    table = memory_lake.create_table("a.t", "id long")
    first = table.append(GOOD["rows"])
    second = table.append(GOOD["rows"])
    assert first is not None
    assert second is not None
    text = str(first.snapshot_id)
    assert table.scan(as_of=text).snapshot_id == first.snapshot_id
    table.create_tag(text, at=second.snapshot_id)
    assert table.scan(as_of=text).snapshot_id == second.snapshot_id
    with pytest.raises(NoSuchSnapshot, match="the table has no snapshot 123456789012"):
        table.scan(as_of="123456789012")


def test_a_time_may_be_a_text(memory_lake: Lake) -> None:
    table = memory_lake.create_table("a.t", "id long")
    table.append(GOOD["rows"])
    table.append(GOOD["rows"])
    assert table.expire_snapshots("1970-01-01T00:00:00Z").snapshot_ids == ()
    with pytest.raises(InvalidInput, match="older_than must be a time, not 'last week'"):
        table.expire_snapshots("last week")
    with pytest.raises(InvalidInput, match="as_of takes a whole number or a string or a datetime"):
        table.scan(as_of=datetime.date(2026, 1, 1))  # type: ignore[arg-type]
    assert len(table.expire_snapshots("2999-01-01").snapshot_ids) == 1


LONE = "x\udcff"
NOT_TEXT: dict[str, Callable[[Lake], object]] = {
    "property": lambda lake: lake.table("a.t").set_properties({LONE: "v"}),
    "value": lambda lake: lake.table("a.t").set_properties({"k": LONE}),
    "column": lambda lake: lake.create_table("a.c", f"`{LONE}` long"),
    "namespace": lambda lake: lake.create_namespace("n", {"k": LONE}),
    "view": lambda lake: lake.create_view("a.v", f"SELECT '{LONE}'"),
    "files": lambda lake: lake.table("a.t").add_files([LONE]),
    "evolved column": lambda lake: _evolve(lake, lambda change: change.add_column(LONE, "long")),
    "doc": lambda lake: _evolve(lake, lambda change: change.set_doc("id", LONE)),
}


def _evolve(lake: Lake, make: Callable[[TableEvolution], None]) -> None:
    with lake.table("a.t").evolve() as change:
        make(change)


@pytest.mark.parametrize("case", NOT_TEXT)
def test_text_without_utf8_is_refused_and_changes_nothing(case: str, tmp_path: Path) -> None:
    with icefield.connect(tmp_path / "lake", durable=False) as lake:
        table = lake.create_table("a.t", "id long")
        before = set(tmp_path.rglob("*.json"))
        with pytest.raises(InvalidInput, match="lone surrogate"):
            NOT_TEXT[case](lake)
        assert set(tmp_path.rglob("*.json")) == before
        assert table.refresh() == table.metadata


@pytest.mark.parametrize(
    ("target", "more"),
    [
        ("y" * 5000, {}),
        ("files:" + "y" * 5000, {}),
        ("sqlite:///" + "y" * 5000, {"warehouse": "w"}),
        ("sqlite:///c.db", {"warehouse": "w" * 5000}),
        ("lake", {"roots": ["r\0"]}),
    ],
    ids=["directory", "files", "sqlite", "warehouse", "root"],
)
def test_a_path_that_no_file_system_takes_is_one_short_error(
    target: str, more: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput) as raised:
        icefield.connect(target, **more)
    assert len(str(raised.value)) < 400
