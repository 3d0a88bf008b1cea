"""Small files are read by Arrow's Parquet reader, larger ones by its datasets: the rows are the same."""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.fsck.damage import parquet_of_size
from tests.golden.expected import Expected
from tests.golden.reading import cases, scan

import icefield
from icefield.errors import CorruptFile
from icefield.parquet.read import open_file
from icefield.parquet.read.small_file import SMALL_BYTES, find_leaves, open_small_file
from icefield.table.table import Table

NESTED = pa.schema(
    [
        pa.field("a.b", pa.int64()),
        pa.field("s", pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))])),
        pa.field("m", pa.map_(pa.string(), pa.struct([("v", pa.float64())]))),
        pa.field("a", pa.struct([("b", pa.string())])),
        pa.field("t", pa.timestamp("us")),
    ]
)
ROWS = [
    {"a.b": n, "s": {"x": n, "y": [str(n)] * (n % 3)}, "m": [("k", {"v": n / 2})], "a": {"b": f"b{n}"}, "t": None}
    for n in range(7)
]


@pytest.mark.every_case
@pytest.mark.parametrize("expected", cases())
def test_golden_tables_read_the_same_both_ways(expected: Expected, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the format is not ours: then both refuse it with the same error."""
    small = outcome(expected)
    monkeypatch.setattr(open_file, "open_small_file", lambda source: None)
    assert outcome(expected) == small


def outcome(expected: Expected) -> object:
    try:
        return str(scan(expected).to_arrow().read_all().to_pylist())  # in which NaN equals NaN
    except icefield.IcefieldError as error:
        return str(error)


def parquet(rows: pa.Table, **options: object) -> pa.BufferReader:
    sink = io.BytesIO()
    pq.write_table(rows, sink, **options)
    return pa.BufferReader(sink.getvalue())


def test_leaves_are_counted_through_nested_columns() -> None:
    table = pa.Table.from_pylist(ROWS, schema=NESTED)
    opened = open_small_file(parquet(table))
    assert opened is not None
    count = opened.metadata.num_columns
    fields = list(opened.schema_arrow)
    for names in (["a.b"], ["s"], ["m"], ["a"], ["a.b", "a"], ["t", "s"], NESTED.names):
        leaves = find_leaves(fields, names, count)
        found = opened.reader.read_row_group(0, column_indices=leaves)
        assert sorted(found.column_names) == sorted(names)
        assert found.select(names).to_pylist() == table.select(names).to_pylist()
    assert find_leaves(fields, NESTED.names, count + 1) == [], "a file that Arrow describes otherwise"


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (pa.table({"a": range(10)}), {"row_group_size": 5}),
        (
            pa.table({"a": ["x" * 100 + str(n) for n in range(20_000)]}),
            {"compression": "none", "use_dictionary": False},
        ),
    ],
    ids=["two row groups", "large"],
)
def test_other_files_are_left_to_datasets(rows: pa.Table, options: dict[str, object]) -> None:
    assert open_small_file(parquet(rows, **options)) is None
    assert SMALL_BYTES < 20_000 * 100


def test_a_file_that_inflates_to_much_is_not_small() -> None:
    rows = pa.table({"a": pa.repeat("x" * 1000, 40_000)})
    source = parquet(rows, use_dictionary=False, compression="zstd")
    assert source.size() < SMALL_BYTES
    assert open_small_file(source) is None


@pytest.fixture
def table(tmp_path: Path) -> Table:
    lake = icefield.connect(tmp_path / "lake", durable=False)
    schema = NESTED.remove(NESTED.get_field_index("a"))  # a table cannot have two columns that are called a.b
    made = lake.create_table("a.t", schema)
    for part in (ROWS[:3], ROWS[3:]):
        made.append(pa.Table.from_pylist(part, schema=schema))
    return made


def file_of(table: Table) -> Path:
    return Path(table.scan().files()["file_path"][0].as_py().removeprefix("file://"))


@pytest.mark.parametrize("select", [["a.b"], ["s.y"], ["m", "t"], ["_pos", "a.b"], ["_file"], None])
def test_columns_of_small_files_are_selected(
    table: Table, select: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = table.scan("s.x > 1", select).to_arrow().read_all()
    monkeypatch.setattr(open_file, "open_small_file", lambda source: None)
    assert table.scan("s.x > 1", select).to_arrow().read_all() == small
    assert small.num_rows == 5


def test_a_small_file_without_a_footer_is_corrupt(table: Table) -> None:
    path = file_of(table)
    path.write_bytes(path.read_bytes()[:-4] + b"PAR0")
    with pytest.raises(CorruptFile, match=path.name):
        table.scan().to_arrow().read_all()


def test_a_small_file_with_other_rows_is_corrupt(table: Table) -> None:
    path = file_of(table)
    path.write_bytes(parquet_of_size(path.stat().st_size))
    with pytest.raises(CorruptFile, match="7 rows, but metadata says"):
        table.scan(select=["a.b"]).to_arrow().read_all()
