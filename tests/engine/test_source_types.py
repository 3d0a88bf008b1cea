"""Arrow data of any type as the source of a change: both engines store the same values, or refuse the same ones.

Arrow has several types for one column: times and timestamps in four units, text with large offsets, small integers. A
value is never changed to fit: a nanosecond that a column cannot hold is an error.
"""

import uuid
from decimal import Decimal

import pyarrow as pa
import pytest
from tests.effort import DEEP, sample

from icefield.engine.choose import EngineName
from icefield.errors import SchemaMismatch
from icefield.lake import Lake
from icefield.table.table import Table

IDS = [uuid.UUID(int=1).bytes, uuid.UUID(int=2**127).bytes, None]
NANOS = [1001, 2000, -1]
# The type of the column, and the values of the source.
FITTING = [
    ("timestamp_ns", pa.array(NANOS, pa.timestamp("ns"))),
    ("timestamptz_ns", pa.array(NANOS, pa.timestamp("ns", "UTC"))),
    ("timestamp_ns", pa.array(NANOS, pa.timestamp("us"))),
    ("timestamp", pa.array([1000, 2000, -1000], pa.timestamp("ns"))),
    ("timestamp", pa.array([1, 2, -1], pa.timestamp("ms"))),
    ("timestamptz", pa.array([1, 2, -1], pa.timestamp("s", "America/New_York"))),
    ("time", pa.array([1, 2, 3], pa.time32("ms"))),
    ("time", pa.array([1, 2, 3], pa.time32("s"))),
    ("time", pa.array([1000, 2000, None], pa.time64("ns"))),
    ("date", pa.array([86_400_000, 0, None], pa.date64())),
    ("long", pa.array([1, 2**32 - 1, None], pa.uint32())),
    ("int", pa.array([-1, 127, None], pa.int8())),
    ("double", pa.array([1.5, float("nan"), None], pa.float32())),
    ("string", pa.array(["a", "é", None], pa.large_string())),
    ("string", pa.array(["a", "é", None]).dictionary_encode()),
    ("fixed(2)", pa.array([b"ab", b"cd", None], pa.binary(2))),
    ("binary", pa.array([b"ab", b"", None], pa.large_binary())),
    ("uuid", pa.array(IDS, pa.binary(16))),
    ("decimal(20, 2)", pa.array([Decimal("1.10"), Decimal("-2.20"), None], pa.decimal256(20, 2))),
    ("list<timestamp_ns>", pa.array([[1001, None], [], None], pa.list_(pa.timestamp("ns")))),
    ("list<time>", pa.array([[1, None], [], None], pa.large_list(pa.time32("ms")))),
    ("struct<t: timestamp_ns, u: time>", pa.array([{"t": 1001, "u": 1}, None, {"t": None, "u": None}],
        pa.struct([("t", pa.timestamp("ns")), ("u", pa.time32("ms"))]))),
    ("map<string, time>", pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.time32("s")))),
]  # fmt: skip
REFUSED = [
    ("timestamp", pa.array(NANOS, pa.timestamp("ns"))),
    ("timestamptz", pa.array(NANOS, pa.timestamp("ns", "UTC"))),
    ("time", pa.array([1, 2, 3], pa.time64("ns"))),
    ("list<timestamp>", pa.array([[1001], [], None], pa.list_(pa.timestamp("ns")))),
]
# As a key: not a float, and not nested.
KEYS = [case for case in FITTING if not any(word in case[0] for word in ("double", "<"))]


def _values(table: Table) -> dict[str, list[str]]:
    rows = table.scan().to_arrow().read_all().sort_by("id")
    return {name: [repr(scalar) for scalar in rows[name]] for name in rows.column_names}


def test_values_are_stored_as_an_append_stores_them(lake: Lake, engine: EngineName) -> None:
    columns = {f"v{at}": values for at, (_, values) in enumerate(FITTING)}
    schema = ", ".join(["id long", *(f"v{at} {kind}" for at, (kind, _) in enumerate(FITTING))])
    source = pa.table({"id": [1, 2, 3], **columns})
    appended = lake.create_table("t.appended", schema, format_version=3)
    appended.append(source)
    table = lake.create_table("t.t", schema, format_version=3)
    table.append(pa.table({"id": [1, 2]}))
    assert table.upsert(source, on=["id"], engine=engine).rows_updated == 2
    assert _values(table) == _values(appended)
    table.delete("id > 1")
    merge = table.merge(source, on=["id"], engine=engine).when_matched().delete()
    merge.when_not_matched("source.id > 0").insert_all().execute()
    assert _values(table) == {name: found[1:] for name, found in _values(appended).items()}


# Values that expressions do not have: nanoseconds, and uuids of other types.
EXACT = [case for case in FITTING if "_ns" in case[0] or case[0] == "uuid"]
WAYS = ("source.{0}", "`source`.`{0}`", " SOURCE.{0} ", "{0}")


def _two_tables(lake: Lake, cases: list[tuple[str, pa.Array]]) -> tuple[Table, Table, pa.Table]:
    """Return a table with two rows, one to which the source was appended, and the source; v and w are equal."""
    schema = ", ".join(["id long", *(f"v{at} {kind}, w{at} {kind}" for at, (kind, _) in enumerate(cases))])
    values = {f"v{at}": given for at, (_, given) in enumerate(cases)}
    appended = lake.create_table("t.appended", schema, format_version=3)
    appended.append(pa.table({"id": [1, 2, 3], **values, **{f"w{name[1:]}": v for name, v in values.items()}}))
    table = lake.create_table("t.t", schema, format_version=3)
    table.append(pa.table({"id": [1, 2]}))
    return table, appended, pa.table({"id": [1, 2, 3], **{f"s{name}": given for name, given in values.items()}})


def _copies(source: pa.Table) -> dict[str, str]:
    names = [name for name in source.column_names if name != "id"]
    pairs = [(name, side) for name in names for side in "vw"]
    return {name.replace("sv", side): WAYS[at % len(WAYS)].format(name) for at, (name, side) in enumerate(pairs)}


def test_columns_that_are_named_keep_every_digit(lake: Lake, engine: EngineName) -> None:
    table, appended, source = _two_tables(lake, EXACT)
    copies = _copies(source)
    merge = table.merge(source, on=["id"], engine=engine).when_matched().update(copies)
    merge.when_not_matched().insert({"id": "source.id", **copies}).execute()
    assert _values(table) == _values(appended)


@pytest.mark.parametrize("with_insert", [True, False])
def test_columns_are_copied_although_an_expression_names_them(
    lake: Lake, engine: EngineName, *, with_insert: bool
) -> None:
    cases = [case for case in EXACT if case[0] == "uuid" or case[1].type == pa.timestamp("us")]
    table, appended, source = _two_tables(lake, cases)
    copies = _copies(source)
    condition = " AND ".join(f"(source.{name} IS NULL OR source.id > 0)" for name in source.column_names)
    merge = table.merge(source, on=["id"], engine=engine).when_matched(condition).update(copies)
    if with_insert:
        merge = merge.when_not_matched(condition).insert({"id": "source.id", **copies})
    merge.execute()
    found = _values(appended)
    assert _values(table) == (found if with_insert else {name: values[:2] for name, values in found.items()})


def test_keys_are_found_although_an_expression_names_them(lake: Lake, engine: EngineName) -> None:
    values = pa.array([1000, 2000, -1000], pa.timestamp("ns"))
    table = lake.create_table("t.t", "k timestamp_ns, u uuid, n long", format_version=3)
    table.append(pa.table({"k": values, "u": pa.array(IDS, pa.binary(16)), "n": [1, 2, 3]}))
    source = pa.table({"k": values, "u": pa.array(IDS, pa.binary(16)), "n": [10, 20, 30]})
    merge = table.merge(source, on=["k", "u"], engine=engine)
    done = merge.when_matched("source.k IS NOT NULL AND source.u IS NOT NULL").update({"n": "source.n"}).execute()
    assert done.rows_updated == 2
    assert sorted(table.scan().to_arrow().read_all()["n"].to_pylist()) == [3, 10, 20]


@pytest.mark.parametrize("value", ["coalesce(source.sv0, source.sv0)", "CASE WHEN source.id > 0 THEN source.sv0 END"])
def test_other_expressions_refuse_nanoseconds(lake: Lake, engine: EngineName, value: str) -> None:
    table, _, source = _two_tables(lake, EXACT[:1])
    with pytest.raises(SchemaMismatch, match="'sv0'"):
        table.merge(source, on=["id"], engine=engine).when_matched().update({"v0": value}).execute()
    assert table.scan("v0 IS NOT NULL").count() == 0


@pytest.mark.parametrize("case", KEYS if DEEP else sample(KEYS, 12, str), ids=lambda case: f"{case[0]}-{case[1].type}")
def test_keys_are_found(lake: Lake, engine: EngineName, case: tuple[str, pa.Array]) -> None:
    kind, values = case
    table = lake.create_table("t.t", f"k {kind}, n long", format_version=3)
    table.append(pa.table({"k": values, "n": [1, 2, 3]}))
    merge = table.merge(pa.table({"k": values, "n": [10, 20, 30]}), on=["k"], engine=engine)
    done = merge.when_matched().update({"n": "target.n + source.n"}).when_not_matched().insert_all().execute()
    assert (done.rows_updated, done.rows_inserted) == (3 - values.null_count, values.null_count)
    expected = [11, 22, *([3, 30] if values.null_count else [33])]
    assert sorted(table.scan().to_arrow().read_all()["n"].to_pylist()) == sorted(expected)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case[0]}-{case[1].type}")
def test_a_value_that_a_column_cannot_hold_is_refused(
    lake: Lake, engine: EngineName, case: tuple[str, pa.Array]
) -> None:
    kind, values = case
    table = lake.create_table("t.t", f"id long, v {kind}", format_version=3)
    table.append(pa.table({"id": [1]}))
    source = pa.table({"id": [1, 2, 3], "v": values})
    with pytest.raises(SchemaMismatch, match="'v"):
        table.upsert(source, on=["id"], engine=engine)
    assert table.count() == 1


def test_structs_in_lists_and_maps_may_lack_fields(lake: Lake, engine: EngineName) -> None:
    table = lake.create_table(
        "t.t", "id long, l list<struct<a: long, b: long>>, m map<string, struct<c: long, d: long>>"
    )
    table.append(pa.table({"id": [1]}))
    source = pa.table(
        {
            "id": [1, 2],
            "l": pa.array([[{"a": 5}, None], []], pa.list_(pa.struct([("a", pa.int64())]))),
            "m": pa.array([[("k", {"d": 6})], None], pa.map_(pa.string(), pa.struct([("d", pa.int64())]))),
        }
    )
    table.upsert(source, on=["id"], engine=engine)
    assert table.scan().to_arrow().read_all().sort_by("id").to_pylist() == [
        {"id": 1, "l": [{"a": 5, "b": None}, None], "m": [("k", {"c": None, "d": 6})]},
        {"id": 2, "l": [], "m": None},
    ]
