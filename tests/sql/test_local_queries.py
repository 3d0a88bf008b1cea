"""Queries without a JVM: rows, pruning, parameters, errors, and what they cannot reach. The cases are run too."""

import datetime
import importlib
import sys
import uuid
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import icefield
from icefield.errors import IcefieldError, InvalidInput, NoSuchTable, Unsupported
from icefield.lake import Lake
from icefield.sql import local
from icefield.sql.filters.arrow_expression import read_expression
from icefield.sql.filters.expression import UNKNOWN
from icefield.sql.filters.filters import filter_of
from icefield.sql.filters.zone import Zone
from icefield.table.scan import TableScan
from icefield.types.arrow import schema_from_arrow

UTC = Zone("UTC", lambda moments: [0] * len(moments))
DAYS = [datetime.date(2026, 1, day) for day in range(1, 11)]


@pytest.fixture
def shop(lake: Lake) -> Lake:
    """A lake with a table of ten days, a file for each."""
    days = lake.create_table("shop.days", "day date, n long, v string", partition_by=["day"])
    days.append(pa.table({"day": DAYS, "n": list(range(10)), "v": [f"v{n}" for n in range(10)]}))
    return lake


def query(lake: Lake, text: str, args: Any = None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = lake.sql(text, args, engine="local").to_pylist()
    return rows


def watched(monkeypatch: pytest.MonkeyPatch) -> list[TableScan]:
    """Return the scans that are read from now on."""
    read, seen = TableScan.to_arrow, list[TableScan]()

    def noted(scan: TableScan) -> pa.RecordBatchReader:
        seen.append(scan)
        return read(scan)

    monkeypatch.setattr(TableScan, "to_arrow", noted)
    return seen


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        ("day = DATE '2026-01-03'", 1),
        ("day >= DATE '2026-01-09' AND v <> 'x'", 2),
        ("n IN (2, 5)", 2),
        ("n BETWEEN 3 AND 5", 3),
        ("n = :n", 1),
        ("v LIKE 'v7%'", 1),
        ("n * n = 16", 10),
    ],
)
def test_filters_leave_out_files(shop: Lake, monkeypatch: pytest.MonkeyPatch, condition: str, files: int) -> None:
    seen = watched(monkeypatch)
    rows = query(shop, f"SELECT v FROM shop.days WHERE {condition}", {"n": 6})
    assert 0 < len(rows) <= files
    assert [scan.files().num_rows for scan in seen] == [files]


def test_only_the_columns_of_the_query_are_read(shop: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = watched(monkeypatch)
    query(shop, "SELECT v FROM shop.days WHERE n = 1")
    assert [sorted(scan.schema.column_names) for scan in seen] == [["n", "v"]]


def test_a_table_that_is_read_twice_has_all_rows_both_times(shop: Lake) -> None:
    counts = "(SELECT count(*) FROM x WHERE n < 3) AS a, (SELECT sum(n) FROM x) AS b"
    assert query(shop, f"WITH x AS (SELECT * FROM shop.days) SELECT {counts}") == [{"a": 3, "b": 45}]
    assert query(shop, "SELECT count(*) AS n FROM shop.days a JOIN shop.days b ON a.n = b.n + 1") == [{"n": 9}]


def test_all_tables_are_of_one_moment(shop: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.create_table("shop.other", "n long").append(pa.table({"n": [1]}))
    read = TableScan.to_arrow

    def appending(scan: TableScan) -> pa.RecordBatchReader:
        for name in ("shop.days", "shop.other"):
            shop.table(name).append(pa.table({"n": [1]}))
        return read(scan)

    monkeypatch.setattr(TableScan, "to_arrow", appending)
    assert query(shop, "SELECT count(*) AS n FROM shop.days d JOIN shop.other o ON d.n = o.n") == [{"n": 1}]


def test_views_are_expanded_with_their_namespace_and_columns(shop: Lake) -> None:
    shop.create_view("shop.v", "SELECT n, v FROM days WHERE n > 7", schema="num long, name string")
    shop.create_view("depot.w", "SELECT num + 1 AS m FROM shop.v", schema="m long")
    assert query(shop, "SELECT m FROM depot.w ORDER BY m") == [{"m": 9}, {"m": 10}]
    assert query(shop, "SELECT name FROM shop.v WHERE num = 8") == [{"name": "v8"}]


def test_types_come_through(lake: Lake) -> None:
    kinds = (
        "a boolean, b int, c long, d float, e double, f decimal(9, 2), g date, h time, i timestamp, j timestamptz, "
        "k string, l uuid, m fixed[3], n binary, o struct<x: int, y: list<string>>, p list<long>, q map<string, int>"
    )
    table = lake.create_table("shop.t", kinds)
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 678)
    row = {
        "a": True,
        "b": 1,
        "c": 2**40,
        "d": 0.5,
        "e": 0.25,
        "f": Decimal("-7.25"),
        "g": datetime.date(1969, 12, 31),
        "h": datetime.time(1, 2, 3),
        "i": moment,
        "j": moment.replace(tzinfo=datetime.UTC),
        "k": "it's",
        "l": uuid.UUID(int=7),
        "m": b"abc",
        "n": b"\x00\xff",
        "o": {"x": 1, "y": ["p", None]},
        "p": [1, None],
        "q": [("k", 1)],
    }
    columns = table.scan().to_arrow().schema
    table.append(pa.Table.from_pylist([row, dict.fromkeys(row)], schema=columns))
    expected = table.scan().to_arrow().read_all().to_pylist()
    expected[0]["l"] = str(row["l"])  # as in Spark
    found = query(lake, "SELECT * FROM shop.t ORDER BY b NULLS LAST")
    assert found == sorted(expected, key=lambda each: each["b"] is None)


@pytest.mark.parametrize(
    ("text", "kind", "message", "position"),
    [
        ("SELECT nothing FROM shop.days", InvalidInput, 'Referenced column "nothing" not found', (1, 7)),
        ("SELECT *\nFROM shop.day", NoSuchTable, "no table or view shop.day", (2, 5)),
        ("SELECT no_such(n) FROM shop.days", InvalidInput, "no_such does not exist", (1, 7)),
        ("SELECT n FROM shop.days WHERE n = 'x'", InvalidInput, "Could not convert string 'x'", (1, 0)),
        ("SELECT n FROM shop.days WHERE", InvalidInput, "cannot parse the query", (1, 24)),
        ("SELECT * FROM read_csv('/etc/passwd')", InvalidInput, "Cannot access file", (1, 0)),
        ("SELECT * FROM parquet.`/etc/passwd`", NoSuchTable, "no table or view", (1, 14)),
        ("SELECT :x", InvalidInput, "there is no value for the parameter :x", (1, 7)),
        ("SELECT * FROM {frame}", InvalidInput, "no DataFrame 'frame' was given", (1, 14)),
    ],
)
@pytest.mark.every_case
def test_errors_point_at_the_text(
    shop: Lake, text: str, kind: type[IcefieldError], message: str, position: tuple[int, int]
) -> None:
    with pytest.raises(kind) as caught:
        query(shop, text)
    assert message in caught.value.message
    assert caught.value.position == position
    assert "icefield_" not in str(caught.value)


def test_the_error_of_a_scan_is_raised_as_it_is(shop: Lake) -> None:
    (first, *_) = shop.table("shop.days").scan("n = 3").files()["file_path"].to_pylist()
    Path(first.removeprefix("file://")).unlink()
    with pytest.raises(icefield.MissingFile):
        query(shop, "SELECT sum(n) FROM shop.days")
    assert query(shop, "SELECT sum(n) AS n FROM shop.days WHERE n < 3") == [{"n": 3}]


def test_sums_of_integers_are_integers_where_they_fit(lake: Lake) -> None:
    lake.create_table("shop.t", "n long").append(pa.table({"n": [2**62, 2**62 - 1]}))
    assert lake.sql("SELECT sum(n) AS s FROM shop.t", engine="local").schema.field("s").type == pa.int64()
    lake.table("shop.t").append(pa.table({"n": [2**62]}))
    assert query(lake, "SELECT sum(n) AS s FROM shop.t") == [{"s": Decimal(2**62 * 3 - 1)}]


def test_explain_shows_the_plan_without_names_of_ours(shop: Lake) -> None:
    (row,) = query(shop, "EXPLAIN SELECT v FROM shop.days WHERE n > 3")
    assert "n>3" in row["plan"]
    assert "icefield_" not in row["plan"]


def test_a_column_without_a_name_is_called_as_it_was_written(shop: Lake) -> None:
    lake, text = shop, "SELECT (SELECT max(n) FROM {}), n IN (SELECT n FROM {} AS d) FROM {} LIMIT 1"
    lake.sql("CREATE TEMPORARY VIEW days AS SELECT * FROM shop.days", engine="local")
    for name in ("shop.days", "days", "shop.days.branch_main"):
        (first, second), again = (list(query(lake, text.format(name, name, name))[0]) for _ in range(2))
        assert f"FROM {name}" in first
        assert f"FROM {name} AS d" in second
        assert "icefield_" not in first + second
        assert [first, second] == again
    lake.sql("CREATE TABLE shop.made AS SELECT (SELECT max(n) FROM shop.days), 1 AS one", engine="local")
    assert "icefield_" not in str(lake.table("shop.made").schema.column_names)


def test_a_missing_duckdb_is_named_with_the_way_to_install_it(shop: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(Unsupported, match=r"pip install 'icefield\[duckdb\]'"):
        query(shop, "SELECT 1")
    assert importlib.import_module("icefield.sql.local") is local


COLUMNS = pa.schema(
    [
        ("i", pa.int64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us", tz="UTC")),
        ("m", pa.decimal128(9, 2)),
        ("b", pa.bool_()),
    ]
)
VALUES: dict[str, Sequence[Any]] = {
    "i": [-(2**63), -1, 0, 1, 5, 2**63 - 1],
    "s": ["", "a", "b", "it's", "é"],
    "d": [datetime.date(1969, 12, 31), datetime.date(2026, 1, 1), datetime.date(9999, 12, 31)],
    "t": [datetime.datetime(1969, 12, 31, 23, tzinfo=datetime.UTC), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)],
    "m": [Decimal("-1.50"), Decimal("0.00"), Decimal("99.99")],
    "b": [True, False],
}
ROWS = pa.Table.from_pylist(
    [{name: ([*values, None])[n % (len(values) + 1)] for name, values in VALUES.items()} for n in range(60)], COLUMNS
)


@st.composite
def arrow_filters(draw: st.DrawFn, depth: int = 3) -> pc.Expression:
    """Filters as engines push them down."""
    if depth and draw(st.booleans()):
        left, right = draw(arrow_filters(depth - 1)), draw(arrow_filters(depth - 1))
        return draw(st.sampled_from([left & right, left | right, ~left]))
    name = draw(st.sampled_from(COLUMNS.names))
    column, kind = pc.field(name), COLUMNS.field(name).type
    value = pa.scalar(draw(st.sampled_from(VALUES[name])), kind)
    several = pa.array(draw(st.lists(st.sampled_from(VALUES[name]), min_size=1, max_size=3)), kind)
    tests = [column == value, column != value, column.is_null(), column.is_valid(), column.isin(several)]
    if name != "b":
        tests += [column < value, column <= value, column > value, column >= value]
    return draw(st.sampled_from(tests))


@given(arrow_filters())
def test_a_filter_of_arrow_keeps_all_rows_that_it_matches(filter_: pc.Expression) -> None:
    schema = schema_from_arrow(COLUMNS)
    where = filter_of(read_expression(filter_, COLUMNS, schema), schema, UTC)
    with icefield.connect("memory:") as lake:
        table = lake.create_table("a.t", schema)
        table.append(ROWS)
        kept = table.scan(where).to_arrow().read_all()
    expected = ROWS.filter(filter_)
    assert sorted(map(str, kept.filter(filter_).to_pylist())) == sorted(map(str, expected.to_pylist()))
    assert kept.num_rows >= expected.num_rows


def test_most_filters_of_arrow_are_understood() -> None:
    schema = schema_from_arrow(COLUMNS)
    for filter_ in (pc.field("i") == 5, pc.field("i").isin([1, 5]), (pc.field("s") > "a") & pc.field("b").is_valid()):
        assert read_expression(filter_, COLUMNS, schema) != UNKNOWN
    assert read_expression(pc.add(pc.field("i"), 1) == 5, COLUMNS, schema) is not None


NAN = float("nan")
FLOATS = [(1, NAN), (2, -0.0), (3, 0.0), (4, 1.5), (5, float("inf")), (6, float("-inf")), (7, None)]


@pytest.mark.parametrize("kind", ["double", "float"])
@pytest.mark.parametrize("column", ["f", "s.f", "s.in.f"])
@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("> 1", [1, 4, 5]),
        (">= 1.5", [1, 4, 5]),
        ("< 1", [2, 3, 6]),
        ("= 0", [2, 3]),
        ("IN (0, 1.5)", [2, 3, 4]),
        ("!= 1.5", [1, 2, 3, 5, 6]),
        ("NOT IN (0, 1.5)", [1, 5, 6]),
        ("BETWEEN 0 AND 2", [2, 3, 4]),
        ("= CAST('NaN' AS DOUBLE)", [1]),
        ("> CAST('Infinity' AS DOUBLE)", [1]),
        ("IS NULL", [7]),
        ("IS NOT NULL AND n < 3", [1, 2]),
    ],
)
def test_floats_are_compared_as_duckdb_compares_them(
    lake: Lake, kind: str, column: str, condition: str, wanted: list[int]
) -> None:
    schema = f"n int, f {kind}, s struct<f: {kind}, in: struct<f: {kind}>>"
    rows = [{"n": n, "f": f, "s": {"f": f, "in": {"f": f}}} for n, f in FLOATS]
    lake.create_table("a.floats", schema).append(rows)
    found = query(lake, f"SELECT n, {column} AS x FROM a.floats WHERE {column} {condition} ORDER BY n")
    assert [row["n"] for row in found] == wanted
    assert [repr(row["x"]) for row in found] == [repr(dict(FLOATS)[n]) for n in wanted]


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        (r"v LIKE 'a\\_b'", ["a_b"]),
        (r"v LIKE r'a\_b'", ["a_b"]),
        (r"v NOT LIKE 'a\\_b'", ["a%", "axb"]),
        (r"v ILIKE 'A\\%'", ["a%"]),
        (r"v LIKE concat('a', '\\%')", ["a%"]),
        ("v LIKE 'a_b'", ["a_b", "axb"]),
        ("v LIKE 'a!_b' ESCAPE '!'", ["a_b"]),
        ("v LIKE ANY ('a_b', 'q')", ["a_b", "axb"]),
    ],
)
def test_like_has_the_escape_character_of_spark(lake: Lake, condition: str, wanted: list[str]) -> None:
    lake.create_table("a.strings", "v string").append([{"v": v} for v in ("a_b", "axb", "a%")])
    assert sorted(row["v"] for row in query(lake, f"SELECT v FROM a.strings WHERE {condition}")) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "SELECT n, t FROM shop.days LATERAL VIEW OUTER explode(array()) x AS t",
        "SELECT n, explode_outer(array()) FROM shop.days",
        "SELECT n, posexplode_outer(array()) FROM shop.days",
        r"SELECT n FROM shop.days WHERE v LIKE ANY ('a\\_b', 'q')",
        "TABLE shop.days |> UNION ALL VALUES (1, 2, 3)",
    ],
)
def test_what_has_no_translation_is_refused(shop: Lake, text: str) -> None:
    with pytest.raises(Unsupported, match="Run it on Spark") as caught:
        query(shop, text)
    assert caught.value.position == (1, 0)


def test_a_version_is_a_snapshot_id_and_then_a_branch_or_tag(lake: Lake) -> None:
    table = lake.create_table("a.t", "n int")
    table.append([{"n": 1}])
    first = table.metadata.current_snapshot_id
    table.create_tag("2026")
    table.append([{"n": 2}])
    table.create_tag(str(first))
    for version in ("2026", "'2026'", f"{first}", f"'{first}'"):
        assert query(lake, f"SELECT * FROM a.t VERSION AS OF {version}") == [{"n": 1}]
        value = version.strip("'") if "'" in version else int(version)
        assert query(lake, "SELECT * FROM a.t VERSION AS OF :v", {"v": value}) == [{"n": 1}]
    with pytest.raises(IcefieldError, match="no snapshot 2027"):
        query(lake, "SELECT * FROM a.t VERSION AS OF 2027")
