"""SQL values and conditions on Arrow data. The results are those of Spark 4 in ANSI mode."""

import datetime
import math
import pickle
import re
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from icefield.errors import InvalidInput, NeedsSpark
from icefield.expr.parse.builder import lit
from icefield.expr.values.bind import _FUNCTIONS, parse_condition, parse_value
from icefield.expr.values.scope import Moment, Scope, Side
from icefield.types.arrow import schema_from_arrow
from icefield.types.schema import Schema
from icefield.types.text import parse_schema

NAN = math.nan
TARGET = pa.record_batch(
    {
        "id": pa.array([1, 2, None], pa.int32()),
        "qty": pa.array([10, 2**62, None], pa.int64()),
        "price": pa.array([Decimal("1.50"), Decimal("-2.25"), None], pa.decimal128(9, 2)),
        "x": pa.array([1.5, NAN, None]),
        "f": pa.array([1.5, -0.0, None], pa.float32()),
        "name": pa.array([" a ", "bé", None]),
        "day": pa.array([datetime.date(2026, 1, 31), datetime.date(1969, 12, 31), None]),
        "at": pa.array([0, -1, None], pa.timestamp("us")),
        "atz": pa.array([0, -1, None], pa.timestamp("us", "UTC")),
        "flag": pa.array([True, False, None]),
        "raw": pa.array([b"a", b"\xff", None]),
        "code": pa.array([b"ab", b"cd", None], pa.binary(2)),
        "key": pa.array([uuid.UUID(int=1).bytes, uuid.UUID(int=2).bytes, None], pa.uuid()),
        "address": pa.array([{"city": "Rome", "zip": 1}, None, {"city": None, "zip": 2}]),
    }
)
SOURCE = pa.record_batch(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "op": pa.array(["del", "upd", None]),
        "Amount": pa.array([0, 5, 7], pa.int32()),
    }
)
SCOPE = Scope(
    (Side("target", schema_from_arrow(TARGET.schema)), Side("source", schema_from_arrow(SOURCE.schema))),
)


def run(text: object, scope: Scope = SCOPE) -> list[Any]:
    value = pickle.loads(pickle.dumps(parse_value(text, scope)))
    return value.evaluate({"target": TARGET, "source": SOURCE}, 3).to_pylist()  # type: ignore[no-any-return]


def type_of(text: object) -> str:
    return str(parse_value(text, SCOPE).type)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("target.id", [1, 2, None]),
        ("SOURCE.ID", [1, 2, 3]),
        ("amount", [0, 5, 7]),
        ("address.city", ["Rome", None, None]),
        ("target.address.zip", [1, None, 2]),
        ("target.id + 1", [2, 3, None]),
        ("-target.id - -2", [1, 0, None]),
        ("1 + 2 * target.id", [3, 5, None]),
        ("(1 + 2) * target.id", [3, 6, None]),
        ("source.id / 2", [0.5, 1.0, 1.5]),
        ("-7 % source.id", [0, -1, -1]),
        ("price * 2", [Decimal("3.00"), Decimal("-4.50"), None]),
        ("price + target.id", [Decimal("2.50"), Decimal("-0.25"), None]),
        ("abs(price)", [Decimal("1.50"), Decimal("2.25"), None]),
        ("price < x", [False, True, None]),
        # Arrow's own cast is 6111780.0200000005.
        ("CAST(6111780.02 AS DOUBLE)", [6111780.02] * 3),
        ("x = x", [True, True, None]),
        ("x > 100", [False, True, None]),
        ("x <=> NULL", [False, False, True]),
        ("f = 0", [False, True, None]),
        ("target.id = source.id", [True, True, None]),
        ("target.id <=> source.id", [True, True, False]),
        ("target.id IS DISTINCT FROM source.id", [False, False, True]),
        ("op = 'del' AND target.qty < 100", [True, False, None]),
        ("op = 'del' OR target.qty < 100", [True, False, None]),
        ("NOT op = 'del'", [False, True, None]),
        ("!(op = 'del')", [False, True, None]),
        ("op IS NULL", [False, False, True]),
        ("op IS NOT NULL", [True, True, False]),
        ("flag IS NOT TRUE", [False, True, True]),
        ("op IN ('del', 'x')", [True, False, None]),
        ("op NOT IN ('del', NULL)", [False, None, None]),
        ("x IN (1, CAST(target.id AS DOUBLE))", [False, False, None]),
        ("source.id BETWEEN 2 AND target.id", [False, True, None]),
        ("source.id NOT BETWEEN 2 AND 3", [True, False, False]),
        ("name LIKE 'b_'", [False, True, None]),
        ("name LIKE '!%a' ESCAPE '!'", [False, False, None]),
        ("CASE WHEN amount > 5 THEN 'big' WHEN amount > 0 THEN 'some' END", [None, "some", "big"]),
        ("CASE op WHEN 'del' THEN 1 ELSE 2 END", [1, 2, 2]),
        ("if(flag, 1, 2.5)", [Decimal("1.0"), Decimal("2.5"), Decimal("2.5")]),
        ("coalesce(target.id, source.id)", [1, 2, 3]),
        ("nvl(op, 'none')", ["del", "upd", "none"]),
        ("nullif(op, 'del')", [None, "upd", None]),
        ("concat(trim(name), '-', op)", ["a-del", "bé-upd", None]),
        ("op || '!' || op", ["del!del", "upd!upd", None]),
        ("length(name)", [3, 2, None]),
        ("upper(op)", ["DEL", "UPD", None]),
        ("upper(name)", [" A ", "BÉ", None]),
        ("lower('ΑΣ Σß')", ["ας σß"] * 3),
        ("startswith(op, 'd')", [True, False, None]),
        ("endswith(name, 'é')", [False, True, None]),
        ("contains(op, 'p')", [False, True, None]),
        ("replace(op, 'd', 'dd')", ["ddel", "updd", None]),
        ("year(day) * 100 + month(day)", [202601, 196912, None]),
        ("day(day)", [31, 31, None]),
        ("CAST(price AS STRING)", ["1.50", "-2.25", None]),
        ("CAST(qty * 1.5 AS BIGINT)", [15, 6917529027641081856, None]),
        ("if(NULL, 1, 2)", [2, 2, 2]),
        ("substring(name, -2, 1)", ["a", "b", None]),
        ("substr(name, 2)", ["a ", "é", None]),
        ("greatest(x, amount, 2)", [2.0, NAN, 7.0]),
        ("least(target.id, amount)", [0, 2, 7]),
        ("day = '2026-01-31'", [True, False, None]),
        ("day > DATE '1970-01-01'", [True, False, None]),
        ("at < day", [True, False, None]),
        ("at = TIMESTAMP_NTZ '1970-01-01 00:00:00'", [True, False, None]),
        ("atz >= TIMESTAMP '1970-01-01 01:00:00+01:00'", [True, False, None]),
        ("date_add(day, 1)", [datetime.date(2026, 2, 1), datetime.date(1970, 1, 1), None]),
        ("day - 1", [datetime.date(2026, 1, 30), datetime.date(1969, 12, 30), None]),
        ("datediff(day, DATE '1970-01-01')", [20484, -1, None]),
        ("raw > X'7f'", [False, True, None]),
        ("key = key", [True, True, None]),
        ("code = code", [True, True, None]),
        ("code < X'6363'", [True, False, None]),
        ("key = '00000000-0000-0000-0000-000000000001'", [True, False, None]),
        ("price / 3", [Decimal("0.500000"), Decimal("-0.750000"), None]),
        ("price / target.id", [Decimal("1.5000000000000"), Decimal("-1.1250000000000"), None]),
        ("coalesce(price / nullif(amount, 5), 1)", InvalidInput),
        ("CAST(target.id AS STRING)", ["1", "2", None]),
        ("CAST(x AS INT)", InvalidInput),
        ("CAST(price AS DECIMAL(3,1))", [Decimal("1.5"), Decimal("-2.3"), None]),
        ("'it''s' ' so'", ["it's so"] * 3),
        ("r'a\\n'", ["a\\n"] * 3),
        ("NULL", [None] * 3),
        ("1e2", [100.0] * 3),
        ("-2147483648", [-(2**31)] * 3),
    ],
)  # fmt: skip
def test_values(text: str, expected: Any) -> None:
    if isinstance(expected, type):
        with pytest.raises(expected):
            run(text)
    else:
        found = run(text)
        assert found == expected or str(found) == str(expected)  # NaN


def test_a_division_of_decimals_is_exact_or_left_to_spark() -> None:
    with pytest.raises(NeedsSpark, match="decimal"):
        parse_value("CAST(qty AS DECIMAL(38, 18)) / CAST(qty AS DECIMAL(38, 18))", SCOPE)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1", "int"), ("1L", "long"), ("3000000000", "long"), ("1.50", "decimal(3, 2)"), ("0.05", "decimal(2, 2)"),
        ("99999999999999999999", "decimal(20, 0)"), ("1D", "double"), ("1e0", "double"), ("1.5F", "float"),
        ("target.id + qty", "long"), ("target.id + f", "double"), ("f + f", "float"), ("f / f", "double"),
        ("price + price", "decimal(10, 2)"), ("price * 2", "decimal(11, 2)"), ("price + target.id", "decimal(13, 2)"),
        ("price + +2", "decimal(13, 2)"), ("price + (1 + 1)", "decimal(13, 2)"),
        ("price * x", "double"), ("coalesce(target.id, 1.5)", "decimal(11, 1)"), ("coalesce(target.id, '1')", "long"),
        ("CASE WHEN flag THEN f ELSE 1 END", "double"), ("if(flag, NULL, day)", "date"), ("NULL + 1", "int"),
    ],
)  # fmt: skip
def test_types(text: str, kind: str) -> None:
    assert type_of(text) == kind


@pytest.mark.parametrize(
    "text",
    [
        "qty * 2", "qty + qty", "CAST(qty AS INT)",
        "-(-9223372036854775808)", "1 / amount", "1 % amount", "1.5D % amount",
        "CAST(price * 1000 AS DECIMAL(3, 0))", "abs(-2147483648)",
    ],
)  # fmt: skip
def test_a_value_that_spark_refuses_is_an_error(text: str) -> None:
    with pytest.raises(InvalidInput, match="out of range|division by zero"):
        run(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CASE WHEN amount <> 0 THEN 10 / amount END", [None, 2.0, 10 / 7]),
        ("if(amount = 0, 0, 10 % amount)", [0, 0, 3]),
        ("amount <> 0 AND 10 / amount > 1.5", [False, True, False]),
        ("amount = 0 OR 10 / amount > 1.5", [True, True, False]),
        ("coalesce(nullif(amount, 0), qty * 2)", [20, 5, 7]),
        ("CASE WHEN amount = 0 THEN 0 WHEN 10 / amount > 1.5 THEN 1 ELSE 2 END", [0, 1, 2]),
        ("CASE WHEN amount >= 0 THEN 1 ELSE 1 / 0 END", [1.0, 1.0, 1.0]),
        # An operand is not evaluated beside a null; of a division the divisor comes first.
        ("nullif(target.id, 2) + qty * 2", [21, None, None]),
        ("nullif(target.id, 2) < qty * 2", [True, None, None]),
        ("qty * 2 / nullif(target.id, 2)", [20.0, None, None]),
        ("qty * 2 % nullif(target.id, 2)", [0, None, None]),
        # A literal decides before a row is read.
        ("1 / amount + NULL", [None, None, None]),
        ("1 / 0 + NULL", [None, None, None]),
        ("1 / amount > 0 AND FALSE", [False, False, False]),
        ("TRUE OR 1 / amount > 0", [True, True, True]),
        ("coalesce(NULL, 1D, 1 / amount)", [1.0, 1.0, 1.0]),
        ("CASE WHEN TRUE THEN 1D ELSE 1 / amount END", [1.0, 1.0, 1.0]),
    ],
)
def test_only_the_rows_that_need_a_value_can_fail(text: str, expected: list[Any]) -> None:
    assert run(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "initcap(op)", "rand()", "x[0]", "(SELECT 1)", "op RLIKE 'a'", "EXISTS (SELECT 1)", "current_date", "now()",
        "TIMESTAMP '2026-01-01 00:00:00 Europe/Rome'", "TIMESTAMP_NTZ '2026-01-31 10:30:00.123456789'", "current_user",
        "TIMESTAMP '2026-01-01 00:00:00'", "atz = at", "atz = '2026-01-01 00:00:00'", "CAST(op AS INT)", "op = 1",
        "id + ", "INTERVAL 1 DAY", "'a\\101'", "'${x}'", "address = address", "CAST(atz AS DATE)", "op::int",
        "-CAST(qty AS DECIMAL(38, 2))", "abs(CAST(qty AS DECIMAL(38, 2)))", "CAST(CAST(qty AS FLOAT) AS DOUBLE)",
        "x IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)", "CAST(x AS STRING)",
        "CAST(x AS DECIMAL(9, 2))", "CAST(price * 10000000 AS INT)", "CASE WHEN NULL THEN 1 END", "day + NULL",
        "target.id < 99999999999999999999", "element_at(x, 1)", "sum(qty)", "x -> x", "1S", "f(x).y", "x COLLATE y",
    ],
)  # fmt: skip
def test_what_could_differ_is_left_to_spark(text: str) -> None:
    with pytest.raises(NeedsSpark, match="only Spark can evaluate"):
        parse_value(text, SCOPE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id + 1", "'id' is ambiguous: target.id, source.id. Name the side"),
        ("amuont", "no column 'amuont' .*Did you mean 'Amount'"),
        ("target.amount", "no column 'target.amount'.*Did you mean 'target.at"),
        ("", "empty"),
        ("'a", "a quote or comment is not closed"),
        ("a; b", "cannot parse"),
        ("op LIKE 'a!' ESCAPE '!'", "ends with its escape character"),
        ("DEFAULT + 1", "no column 'DEFAULT'"),
        ("9" * 40, "more than 38 digits"),
        ("9999999999999999999L", "out of range"),
        ("CASE WHEN 1 THEN 2 END", "expected a condition"),
        ("(" * 100 + "1" + ")" * 100, "nested too deeply"),
    ],
)  # fmt: skip
def test_a_wrong_expression_is_one_clear_error(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        parse_value(text, SCOPE)


@pytest.mark.parametrize("text", ["1 / 0", "2147483647 + 1", "target.id + 1 % 0", "nullif(1, 1) + abs(-2147483648)"])
def test_a_constant_that_fails_needs_no_rows(text: str) -> None:
    with pytest.raises(InvalidInput, match="out of range|division by zero"):
        parse_value(text, SCOPE)


def test_a_side_that_is_not_there_is_named() -> None:
    scope = Scope((SCOPE.sides[1],), hidden=("target",))
    assert run("id", scope) == [1, 2, 3]
    with pytest.raises(InvalidInput, match="'target.qty' cannot be used here: there is only a row of 'source'"):
        parse_value("target.qty", scope)


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (5, "int", 5),
        (2**40, "long", 2**40),
        (True, "boolean", True),
        (1.5, "double", 1.5),
        (None, "unknown", None),
        (Decimal("1.50"), "decimal(3, 2)", Decimal("1.50")),
        (lit("target.id"), "string", "target.id"),
        (b"x", "binary", b"x"),
        (datetime.date(2026, 1, 31), "date", datetime.date(2026, 1, 31)),
        (datetime.datetime(2026, 1, 31), "timestamp", datetime.datetime(2026, 1, 31)),
        (uuid.UUID(int=7), "uuid", uuid.UUID(int=7)),
    ],
)
def test_python_values_are_literals(value: object, kind: str, expected: object) -> None:
    assert type_of(value) == kind
    assert run(value) == [expected] * 3


def test_other_python_values_are_refused() -> None:
    with pytest.raises(InvalidInput, match="cannot use a list as a value"):
        parse_value([1], SCOPE)


def test_conditions_are_boolean() -> None:
    assert parse_condition("NULL", SCOPE).evaluate({}, 2).to_pylist() == [None, None]
    with pytest.raises(InvalidInput, match="has the type int, not boolean"):
        parse_condition("target.id", SCOPE)


def test_the_time_of_the_statement() -> None:
    scope = Scope(SCOPE.sides, moment=Moment(1_000_000, 3))
    expected = [datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC)] * 3
    for text in ("current_timestamp()", "CURRENT_TIMESTAMP", "now()"):
        assert run(text, scope) == expected
        with pytest.raises(NeedsSpark, match="the function"):
            parse_value(text, SCOPE)
    for text in ("current_date()", "CURRENT_DATE", "curdate()"):
        assert run(text, scope) == [datetime.date(1970, 1, 4)] * 3
        with pytest.raises(NeedsSpark, match="the function"):
            parse_value(text, Scope(SCOPE.sides, moment=Moment(1_000_000, None)))


def test_letters_whose_case_is_not_settled_are_left_to_spark() -> None:
    batch = pa.record_batch({"s": ["a", "\u0264"], "n": [1, 2]})
    scope = Scope((Side("target", schema_from_arrow(batch.schema)),))
    with pytest.raises(NeedsSpark, match=r"upper of the character U\+0264"):
        parse_value("upper(s)", scope).evaluate({"target": batch}, 2)
    guarded = parse_value("CASE WHEN n = 1 THEN upper(s) ELSE s END", scope)
    assert guarded.evaluate({"target": batch}, 2).to_pylist() == ["A", "\u0264"]


def test_the_page_lists_every_function() -> None:
    page = (Path(__file__).parents[2] / "docs" / "expressions.md").read_text()
    words = {name.lower().replace("\\|", "|") for name in re.findall(r"`([^` ]+)`", page)}
    spelled = {"and", "or", "not", "in", "like", "||"}
    by_operator = {"negative", "positive"}
    assert _FUNCTIONS.keys() - by_operator <= words
    assert spelled <= words


def test_references_say_what_is_read() -> None:
    value = parse_value("coalesce(target.address.zip, source.amount) + target.id", SCOPE)
    assert {(each.side, each.path) for each in value.references} == {
        ("target", ("address", "zip")),
        ("source", ("Amount",)),
        ("target", ("id",)),
    }


def test_slices_and_empty_batches() -> None:
    value = parse_value("CASE WHEN amount > 0 THEN 10 / amount ELSE target.id END", SCOPE)
    assert value.evaluate({"target": TARGET.slice(1, 1), "source": SOURCE.slice(1, 1)}, 1).to_pylist() == [2.0]
    assert value.evaluate({"target": TARGET.slice(0, 0), "source": SOURCE.slice(0, 0)}, 0).to_pylist() == []


def test_columns_in_other_arrow_types_of_the_same_values() -> None:
    scope = Scope((Side("target", schema_from_arrow(pa.schema({"s": pa.string(), "n": pa.int32()}))),))
    batch = pa.record_batch(
        {"s": pa.array(["a", None, "a"]).dictionary_encode(), "n": pa.array([1, 2, None], pa.int16())}
    )
    value = parse_value("concat(s, CAST(n + 1 AS STRING))", scope)
    assert value.evaluate({"target": batch}, 3).to_pylist() == ["a2", None, None]
    large = pa.record_batch({"s": pa.array(["b"], pa.large_string()), "n": pa.array([1], pa.int32())})
    assert value.evaluate({"target": large}, 1).to_pylist() == ["b2"]


def test_errors_speak_of_the_expression() -> None:
    scope = Scope((Side("target", parse_schema("id long")), Side("source", Schema(()))))
    with pytest.raises(InvalidInput, match="must be a single SELECT or expression, but contains a ;"):
        parse_condition("id = 1; DROP TABLE t", scope)
    with pytest.raises(InvalidInput, match=re.escape("no column 'ix' (target: id)")):
        parse_condition("ix = 1", scope)
