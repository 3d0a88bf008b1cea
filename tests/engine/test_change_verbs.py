"""DELETE, UPDATE and MERGE do what Spark and Iceberg Java do for the same SQL, on both engines and in every mode.

The expected rows were seen on Spark with Iceberg Java, except where a test says that ours differ.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from tests.effort import DEEP

from icefield import InvalidFilter, InvalidInput, lit
from icefield.engine.choose import EngineName
from icefield.errors import IcefieldError, SchemaMismatch
from icefield.lake import Lake
from icefield.table.merge import MergeBuilder
from icefield.table.table import Table

Rows = list[tuple[Any, ...]]
DAYS = [date(2026, 1, day) for day in (1, 1, 2, 2, 3, 3)]


@dataclass(frozen=True)
class Case:
    """Where and how rows are changed."""

    engine: EngineName
    mode: str
    version: int


ON_SPARK = (("merge-on-read", 3),)  # test_contract.py has both modes
CASES = [
    pytest.param(
        Case(engine, mode, version), id=f"{engine}-{mode}-v{version}", marks=[pytest.mark.spark] * (engine == "spark")
    )
    for engine in ("local", "spark")
    for mode in ("copy-on-write", "merge-on-read", "auto")
    for version in (1, 2, 3)
    if not (mode == "merge-on-read" and version == 1)
    if DEEP or engine == "local" or (mode, version) in ON_SPARK
]


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    if found.engine == "spark":
        request.getfixturevalue("spark")
    return found


def make_orders(lake: Lake, case: Case) -> Table:
    table = lake.create_table(
        "shop.orders",
        "id long not null, customer string, amount decimal(10, 2), status string, day date",
        partition_by=["day"],
        format_version=case.version,
    )
    amounts = [Decimal(text) if text else None for text in ("10.00", "20.50", "5.25", None, "99.99", "7.00")]
    rows = pa.table(
        {
            "id": pa.array([1, 2, 3, 4, 5, 6], pa.int64()),
            "customer": ["ann", "bob", "ann", "cy", None, "bob"],
            "amount": pa.array(amounts, pa.decimal128(10, 2)),
            "status": ["new", "paid", "paid", "new", "lost", "new"],
            "day": pa.array(DAYS, pa.date32()),
        }
    )
    table.append(rows.slice(0, 5))
    table.append(rows.slice(5))
    return table


def make_stock(lake: Lake, case: Case) -> Table:
    table = lake.create_table("shop.stock", "sku string, qty int, note string", format_version=case.version)
    table.append(stock(("a", 1, "x"), ("b", 2, "y"), ("c", 3, None)))
    return table


def make_events(lake: Lake, case: Case) -> Table:
    table = lake.create_table(
        "shop.events",
        "id int, info struct<kind: string, pos: struct<x: double, y: double>>, tags list<string>",
        format_version=case.version,
    )
    rows = [
        {"id": 1, "info": {"kind": "click", "pos": {"x": 1.5, "y": 2.5}}, "tags": ["a", "b"]},
        {"id": 2, "info": {"kind": "view", "pos": None}, "tags": []},
        {"id": 3, "info": None, "tags": None},
    ]
    pos = pa.struct([("x", pa.float64()), ("y", pa.float64())])
    shape = pa.schema(
        [
            ("id", pa.int32()),
            ("info", pa.struct([("kind", pa.string()), ("pos", pos)])),
            ("tags", pa.list_(pa.string())),
        ]
    )
    table.append(pa.Table.from_pylist(rows, schema=shape))
    return table


def stock(*rows: tuple[str | None, int | None, str | None]) -> pa.Table:
    names = ("sku", "qty", "note")
    kinds = (pa.string(), pa.int32(), pa.string())
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table({name: pa.array(list(c), k) for name, c, k in zip(names, columns, kinds, strict=True)})


def changes() -> pa.Table:
    return stock(("a", 10, "n"), ("b", None, "n"), ("d", 40, "n")).append_column("op", pa.array(["set", "del", "set"]))


def rows_of(table: Table, *columns: str) -> Rows:
    read = table.scan(select=list(columns) or None).to_arrow().read_all().to_pylist()
    return sorted((tuple(row.values()) for row in read), key=repr)


def ids_of(table: Table) -> list[int]:
    return [row[0] for row in rows_of(table, "id")]


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("status = 'new'", [2, 3, 5]),
        ("day >= DATE '2026-01-02' AND day < DATE '2026-01-03'", [1, 2, 5, 6]),
        ("TRUE", []),
        ("customer <> 'ann'", [1, 3, 5]),
        ("amount * 2 > 20", [1, 3, 4, 6]),
        ("customer = status OR concat(customer, '!') = 'bob!'", [1, 3, 4, 5]),
        ("coalesce(amount, 0) < 6", [1, 2, 5, 6]),
        ("id = 1000", [1, 2, 3, 4, 5, 6]),
    ],
)
def test_delete(lake: Lake, case: Case, where: str, left: list[int]) -> None:
    table = make_orders(lake, case)
    before = len(table.snapshots())
    planned = table.delete(where, mode=case.mode, engine=case.engine, dry_run=True)
    assert (planned.rows_deleted, planned.snapshot, len(table.snapshots())) == (6 - len(left), None, before)
    result = table.delete(where, mode=case.mode, engine=case.engine)
    assert ids_of(table) == left
    assert (result.rows_deleted, result.rows_matched) == (6 - len(left), 6 - len(left))
    assert len(table.snapshots()) - before == (len(left) < 6)
    again = table.delete(where, mode=case.mode, engine=case.engine)
    assert (again.rows_deleted, again.snapshot) == (0, None)


def test_update_of_some_rows(lake: Lake, case: Case) -> None:
    table = make_stock(lake, case)
    result = table.update(
        {"qty": "qty + 10", "note": lit("up")}, "sku IN ('a', 'b')", mode=case.mode, engine=case.engine
    )
    assert rows_of(table) == [("a", 11, "up"), ("b", 12, "up"), ("c", 3, None)]
    assert (result.rows_updated, result.rows_deleted, result.rows_inserted) == (2, 0, 0)


def test_update_of_all_rows_from_another_column(lake: Lake, case: Case) -> None:
    table = make_stock(lake, case)
    table.update({"note": "sku"}, mode=case.mode, engine=case.engine)
    assert rows_of(table) == [("a", 1, "a"), ("b", 2, "b"), ("c", 3, "c")]


def test_assignments_see_the_old_values(lake: Lake, case: Case) -> None:
    table = make_stock(lake, case)
    with table.evolve() as change:
        change.add_column("was", "int")
    table.update({"qty": "qty * 2", "was": "qty"}, mode=case.mode, engine=case.engine)
    assert rows_of(table, "sku", "qty", "was") == [("a", 2, 1), ("b", 4, 2), ("c", 6, 3)]


def test_a_row_moves_to_another_partition(lake: Lake, case: Case) -> None:
    table = make_orders(lake, case)
    table.update({"day": "DATE '2026-01-09'"}, "id = 1", mode=case.mode, engine=case.engine)
    assert rows_of(table, "id", "day")[0] == (1, date(2026, 1, 9))
    assert table.scan(where="day = DATE '2026-01-09'").count() == 1
    assert table.count() == 6


def test_update_of_a_field_inside_structs(lake: Lake, case: Case) -> None:
    table = make_events(lake, case)
    table.update({"info.pos.x": "7D"}, "id = 1", mode=case.mode, engine=case.engine)
    assert rows_of(table, "id", "info")[0] == (1, {"kind": "click", "pos": {"x": 7.0, "y": 2.5}})


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ({"qty": "'many'"}, IcefieldError, "qty"),
        ({"nothing": 1}, InvalidInput, "no column 'nothing'"),
        ({"qty": 1, "QTY": 2}, InvalidInput, "assign the same column"),
        ({}, InvalidInput, "no column is assigned"),
    ],
)
def test_update_that_is_refused(
    lake: Lake, case: Case, values: dict[str, Any], error: type[Exception], message: str
) -> None:
    table = make_stock(lake, case)
    with pytest.raises(error, match=message):
        table.update(values, mode=case.mode, engine=case.engine)
    assert rows_of(table) == [("a", 1, "x"), ("b", 2, "y"), ("c", 3, None)]


def test_null_in_a_required_column_is_refused(lake: Lake, case: Case) -> None:
    table = make_orders(lake, case)
    files = sorted(found.location for found in lake.store.list(table.location))
    with pytest.raises((SchemaMismatch, InvalidInput), match="'id'"):
        table.update({"id": None}, "id = 1", mode=case.mode, engine=case.engine)
    assert ids_of(table) == [1, 2, 3, 4, 5, 6]
    assert sorted(found.location for found in lake.store.list(table.location)) == files


Build = Callable[[MergeBuilder], MergeBuilder]
MERGES: dict[str, tuple[pa.Table, object, Build, Rows]] = {
    "update, delete and insert by a column of the source": (
        changes(),
        ["sku"],
        lambda merge: (
            merge.when_matched("source.op = 'del'")
            .delete()
            .when_matched()
            .update({"target.qty": "source.qty"})
            .when_not_matched()
            .insert({"sku": "source.sku", "qty": "source.qty", "note": "source.note"})
        ),
        [("a", 10, "x"), ("c", 3, None), ("d", 40, "n")],
    ),
    "all columns": (
        changes(),
        "target.sku = source.sku",
        lambda merge: merge.when_matched().update_all().when_not_matched().insert_all(),
        [("a", 10, "n"), ("b", None, "n"), ("c", 3, None), ("d", 40, "n")],
    ),
    "all columns, of a source with wider numbers": (
        pa.table({"sku": ["a", "d"], "qty": pa.array([10, 40], pa.int64()), "note": ["n", "n"]}),
        ["sku"],
        lambda merge: merge.when_matched().update_all().when_not_matched().insert_all(),
        [("a", 10, "n"), ("b", 2, "y"), ("c", 3, None), ("d", 40, "n")],
    ),
    "the first clause that applies counts": (
        changes(),
        ["sku"],
        lambda merge: (
            merge.when_matched("target.qty < 2")
            .update({"note": lit("small")})
            .when_matched("target.qty < 5")
            .update({"note": lit("middle")})
            .when_matched()
            .delete()
        ),
        [("a", 1, "small"), ("b", 2, "middle"), ("c", 3, None)],
    ),
    "an insert with a condition": (
        changes(),
        ["sku"],
        lambda merge: merge.when_not_matched("source.qty > 100").insert({"sku": "source.sku", "qty": "source.qty"}),
        [("a", 1, "x"), ("b", 2, "y"), ("c", 3, None)],
    ),
    "not matched by source": (
        changes(),
        ["sku"],
        lambda merge: (
            merge.when_not_matched_by_source("target.qty > 100")
            .delete()
            .when_not_matched_by_source()
            .update({"note": "'gone'"})
        ),
        [("a", 1, "x"), ("b", 2, "y"), ("c", 3, "gone")],
    ),
    "columns of other names, and a condition on the table": (
        pa.table({"k": ["a", "q"], "n": pa.array([5, 6], pa.int32())}),
        "target.sku = source.k AND target.qty = 1",
        lambda merge: (
            merge.when_matched()
            .update({"qty": "source.n"})
            .when_not_matched()
            .insert({"sku": "k", "qty": "n", "note": lit("v")})
        ),
        [("a", 5, "x"), ("b", 2, "y"), ("c", 3, None), ("q", 6, "v")],
    ),
    "null keys match nothing": (
        stock((None, 1, "s"), ("a", 9, "s")),
        ["sku"],
        lambda merge: merge.when_matched().update_all().when_not_matched().insert_all(),
        [("a", 9, "s"), ("b", 2, "y"), ("c", 3, None), (None, 1, "s")],
    ),
    "no source rows": (
        stock(),
        ["sku"],
        lambda merge: merge.when_matched().update_all().when_not_matched().insert_all(),
        [("a", 1, "x"), ("b", 2, "y"), ("c", 3, None)],
    ),
    "no source rows, and what they do not match is deleted": (
        stock(),
        ["sku"],
        lambda merge: merge.when_matched().update_all().when_not_matched_by_source("target.qty > 1").delete(),
        [("a", 1, "x")],
    ),
}


@pytest.mark.parametrize("name", MERGES)
def test_merge(lake: Lake, case: Case, name: str) -> None:
    source, on, build, expected = MERGES[name]
    table = make_stock(lake, case)
    before = rows_of(table)
    merge = build(table.merge(source, on, mode=case.mode, engine=case.engine))
    planned = merge.execute(dry_run=True)
    assert rows_of(table) == before
    result = merge.execute()
    assert rows_of(table) == expected
    counted = ("rows_matched", "rows_updated", "rows_deleted", "rows_inserted")
    assert [getattr(planned, count) for count in counted] == [getattr(result, count) for count in counted]
    assert (result.snapshot is None) == (expected == before)
    assert len(expected) - len(before) == result.rows_inserted - result.rows_deleted


def test_a_number_of_the_source_that_does_not_fit_is_refused(lake: Lake, case: Case) -> None:
    table = make_stock(lake, case)
    source = pa.table({"sku": ["a"], "qty": pa.array([2**40], pa.int64()), "note": ["n"]})
    merge = table.merge(source, ["sku"], mode=case.mode, engine=case.engine)
    with pytest.raises(InvalidInput, match=r"out of range|OVERFLOW|does not fit"):
        merge.when_matched().update_all().execute()
    assert rows_of(table) == [("a", 1, "x"), ("b", 2, "y"), ("c", 3, None)]


@pytest.mark.parametrize("condition", [None, "source.qty > 10"])
def test_two_source_rows_for_one_row(lake: Lake, case: Case, condition: str | None) -> None:
    table = make_stock(lake, case)
    source = pa.concat_tables([changes().select(["sku", "qty", "note"]), stock(("a", 11, "m"))])
    merge = table.merge(source, ["sku"], mode=case.mode, engine=case.engine)
    with pytest.raises(InvalidInput, match="'?sku'?.*a") as caught:
        merge.when_matched(condition).update({"qty": "source.qty"}).execute()
    assert "10" in str(caught.value)
    assert "11" in str(caught.value)
    assert rows_of(table) == [("a", 1, "x"), ("b", 2, "y"), ("c", 3, None)]
    # As in Spark, a row can be deleted twice.
    merge.when_matched().delete().execute()
    assert rows_of(table) == [("c", 3, None)]


def test_a_field_inside_a_struct_is_merged(lake: Lake, case: Case) -> None:
    table = make_events(lake, case)
    source = pa.table({"id": pa.array([1], pa.int32()), "k": ["tap"]})
    merge = table.merge(source, ["id"], mode=case.mode, engine=case.engine)
    merge.when_matched().update({"info.kind": "source.k"}).execute()
    assert rows_of(table, "id", "info")[0] == (1, {"kind": "tap", "pos": {"x": 1.5, "y": 2.5}})


def test_a_merge_twice_keeps_one_delete_for_each_file(lake: Lake, case: Case) -> None:
    table = make_stock(lake, case)
    for qty in (10, 20):
        source = stock(("a", qty, "s"))
        merge = table.merge(source, ["sku"], mode=case.mode, engine=case.engine)
        merge.when_matched().update_all().when_not_matched().insert_all().execute()
    table.delete("sku = 'b'", mode=case.mode, engine=case.engine)
    assert rows_of(table) == [("a", 20, "s"), ("c", 3, None)]
    assert table.count() == 2


def test_schema_evolution_by_the_merge(lake: Lake, case: Case) -> None:
    table = make_stock(lake, case)
    source = stock(("a", 5, "k"), ("z", 6, "k")).append_column("price", pa.array([2.5, 3.5]))
    merge = table.merge(source, ["sku"], merge_schema=True, mode=case.mode, engine=case.engine)
    merge.when_matched().update_all().when_not_matched().insert_all().execute()
    assert rows_of(table) == [("a", 5, "k", 2.5), ("b", 2, "y", None), ("c", 3, None, None), ("z", 6, "k", 3.5)]


def test_a_table_is_the_source(lake: Lake, case: Case) -> None:
    table = make_stock(lake, case)
    other = lake.create_table("shop.changes", "sku string, qty int, note string, op string")
    other.append(changes())
    for source in (other, other.scan(where="op = 'set'"), table):
        merge = table.merge(source, ["sku"], mode=case.mode, engine=case.engine)
        merge.when_matched().update({"qty": "coalesce(source.qty, -1) + 1"}).execute()
    assert rows_of(table) == [("a", 12, "x"), ("b", 1, "y"), ("c", 4, None)]


@pytest.mark.parametrize(
    ("on", "build", "message"),
    [
        (["sku"], lambda merge: merge, "at least one clause"),
        (["nothing"], lambda merge: merge.when_matched().delete(), "no column 'nothing'"),
        (["sku"], lambda merge: merge.when_matched().delete().when_matched("true").delete(), "last clause"),
        (["sku"], lambda merge: merge.when_not_matched().insert({"note": "target.note"}), "target"),
        (["sku"], lambda merge: merge.when_not_matched_by_source("source.qty = 1").delete(), "source"),
        ("target.sku = source.nothing", lambda merge: merge.when_matched().delete(), "nothing"),
        ([], lambda merge: merge.when_matched().delete(), "condition"),
    ],
)
def test_merge_that_is_refused(lake: Lake, case: Case, on: object, build: Build, message: str) -> None:
    table = make_stock(lake, case)
    with pytest.raises(IcefieldError, match=message):
        build(table.merge(changes(), on, mode=case.mode, engine=case.engine)).execute()
    assert rows_of(table) == [("a", 1, "x"), ("b", 2, "y"), ("c", 3, None)]


def test_a_star_where_the_source_lacks_a_column(lake: Lake, case: Case) -> None:
    table = make_stock(lake, case)
    source = pa.table({"sku": ["a"], "qty": pa.array([1], pa.int32())})
    with pytest.raises(InvalidInput, match="no column 'note'"):
        table.merge(source, ["sku"], mode=case.mode, engine=case.engine).when_matched().update_all().execute()


def test_upsert_keeps_what_its_rows_do_not_have(lake: Lake, case: Case) -> None:
    table = make_stock(lake, case)
    source = pa.table({"sku": ["a", "z"], "qty": pa.array([7, 8], pa.int32())})
    result = table.upsert(source, on=["sku"], mode=case.mode, engine=case.engine)
    assert rows_of(table) == [("a", 7, "x"), ("b", 2, "y"), ("c", 3, None), ("z", 8, None)]
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    for source, message in (
        (pa.table({"sku": ["a", "a"]}), "two rows"),
        (pa.table({"sku": pa.array([None], pa.string())}), "no value in the key column"),
        (pa.table({"sku": ["a"], "other": [1]}), "other"),
    ):
        with pytest.raises(IcefieldError, match=message):
            table.upsert(source, on=["sku"], mode=case.mode, engine=case.engine)


@pytest.mark.parametrize("case", [param for param in CASES if str(param.id).endswith("v3")], indirect=True)
def test_row_ids_are_kept(lake: Lake, case: Case) -> None:
    table = make_stock(lake, case)
    before: dict[str, int] = dict(rows_of(table, "sku", "_row_id"))
    table.update({"qty": "qty + 1"}, "sku <> 'c'", mode=case.mode, engine=case.engine)
    table.upsert(stock(("b", 7, "u"), ("d", 8, "u")), on=["sku"], mode=case.mode, engine=case.engine)
    after: dict[str, int] = dict(rows_of(table, "sku", "_row_id"))
    assert {sku: after[sku] for sku in before} == before
    assert after["d"] not in before.values()
    updated: dict[str, int] = dict(rows_of(table, "sku", "_last_updated_sequence_number"))
    assert (updated["c"], updated["a"], updated["b"], updated["d"]) == (1, 2, 3, 3)


def test_an_unknown_mode_and_column_are_refused(lake: Lake, case: Case) -> None:
    table = make_stock(lake, case)
    with pytest.raises(InvalidInput, match="unknown mode 'mor'"):
        table.delete("qty = 1", mode="mor", engine=case.engine)
    with pytest.raises(InvalidFilter, match="nothing"):
        table.delete("nothing = 1", mode=case.mode, engine=case.engine)
