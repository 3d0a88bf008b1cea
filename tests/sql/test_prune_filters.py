"""Conditions on units of time become ranges in the session's zone, and what is not known says nothing."""

import datetime
import zoneinfo
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icefield.expr.bind.bind import find_reference
from icefield.expr.bind.bound import TRUE, AllOf, AnyOf, Bound, Compare, Constant, InSet, IsNull, NotInSet, NotNull
from icefield.expr.parse.ast import Column as Name
from icefield.expr.parse.ast import Date, Operator
from icefield.expr.render.describe import describe
from icefield.sql.filters.expression import UNKNOWN, Call, Cast, Column, Expression, Local
from icefield.sql.filters.expression import Constant as Value
from icefield.sql.filters.filters import filter_of, without_nulls
from icefield.sql.filters.plan_json import read_condition
from icefield.sql.filters.zone import Zone, fixed_offset, unit_of
from icefield.types.calendar import MICROS_PER_DAY
from icefield.types.text import parse_schema

SCHEMA = parse_schema("id long, day date, ts timestamptz, name string, flag boolean, st struct<a: int>")
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
# Clocks change at midnight, a minute after it, by half an hour, and once by a whole day.
ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "America/Havana", "Australia/Lord_Howe", "+05:30")
COMPARISONS = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "!=": lambda a, b: a != b,
}


def zone(name: str) -> Zone:
    region = None if fixed_offset(name) is not None else zoneinfo.ZoneInfo(name)

    def offsets(seconds: Sequence[int]) -> list[int]:
        assert region is not None
        moments = [EPOCH + datetime.timedelta(seconds=each) for each in seconds]
        return [int(each.astimezone(region).utcoffset().total_seconds()) for each in moments]  # type: ignore[union-attr]

    return Zone(name, offsets)


def changes_of(name: str) -> list[int]:
    """Return when clocks change in a zone, in seconds since 1970, within an hour."""
    if fixed_offset(name) is not None:
        return []
    hours = range(int(datetime.datetime(2009, 1, 1, tzinfo=datetime.UTC).timestamp()), 1_950_000_000, 86_400)
    offsets = zone(name).offsets(hours)
    days = [day for day, before, after in zip(hours, offsets, offsets[1:], strict=False) if before != after]
    return [
        at
        for day in days
        for at in range(day, day + 86_400, 3_600)
        if len(set(zone(name).offsets([at, at + 3_600]))) > 1
    ]


CHANGES = [(name, change) for name in ZONES for change in changes_of(name)]


@st.composite
def zoned_moments(draw: st.DrawFn) -> tuple[str, int]:
    """Draw a zone and a moment in microseconds, mostly near a change of its clocks."""
    if draw(st.booleans()):
        name, change = draw(st.sampled_from(CHANGES))
        return name, (change + draw(st.integers(-36 * 60, 36 * 60)) * 60) * 1_000_000
    return draw(st.sampled_from(ZONES)), draw(st.integers(1_100_000_000, 1_900_000_000)) * 1_000_000


def column(name: str, *inner: str) -> Column:
    return Column(find_reference(Name((name, *inner)), SCHEMA))


def shown(condition: Expression, zone_name: str = "UTC") -> str:
    return describe(filter_of(condition, SCHEMA, zone(zone_name)))


def equal(left: Expression, value: object) -> Call:
    return Call("=", (left, Value(value)))  # type: ignore[arg-type]


def holds(where: Bound, micros: int) -> bool:
    match where:
        case Constant(value):
            return value
        case AllOf(parts):
            return all(holds(part, micros) for part in parts)
        case AnyOf(parts):
            return any(holds(part, micros) for part in parts)
        case Compare(_, operator, value):
            return bool(COMPARISONS[operator.value](micros, value))
        case InSet(_, values):
            return micros in values
        case NotInSet(_, values):
            return micros not in values
        case _:
            assert isinstance(where, IsNull | NotNull)
            return isinstance(where, NotNull)


@given(
    zoned_moments(),
    st.sampled_from(("year", "quarter", "month", "week", "day", "hour", "minute")),
    st.sampled_from(sorted(COMPARISONS)),
    st.integers(-3, 3),
)
def test_a_truncated_time_is_in_the_range_of_its_comparison(
    at: tuple[str, int], unit: str, operator: str, apart: int
) -> None:
    name, micros = at
    used = zone(name)
    found = unit_of(used.local(micros), unit)
    assert found is not None
    start, end = found
    compared = start + apart * (end - start)
    is_true = COMPARISONS[operator](start, compared)
    condition = Call(operator, (Call("date_trunc", (Value(unit), column("ts"))), Value(Local(compared))))
    assert holds(filter_of(condition, SCHEMA, used), micros) or not is_true


@given(
    zoned_moments(),
    st.sampled_from(sorted(COMPARISONS)),
    st.integers(-2, 2),
)
def test_the_date_of_a_time_is_in_the_range_of_its_comparison(at: tuple[str, int], operator: str, apart: int) -> None:
    name, micros = at
    used = zone(name)
    day = used.local(micros) // MICROS_PER_DAY
    condition = Call(operator, (Cast(column("ts"), "date"), Value(Date(day + apart))))
    assert holds(filter_of(condition, SCHEMA, used), micros) or not COMPARISONS[operator](day, day + apart)


@given(
    zoned_moments(),
    st.sampled_from(("=", "<=", ">=")),
)
def test_a_local_time_that_is_there_twice_is_both(at: tuple[str, int], operator: str) -> None:
    name, micros = at
    used = zone(name)
    condition = Call(operator, (column("ts"), Value(Local(used.local(micros)))))
    assert holds(filter_of(condition, SCHEMA, used), micros)


def test_a_day_of_the_zone_begins_at_its_midnight() -> None:
    day = equal(Cast(column("ts"), "date"), Date(20_514))
    assert shown(day, "Europe/Berlin") == (
        "ts >= TIMESTAMP '2026-03-01 23:00:00+00:00' AND ts < TIMESTAMP '2026-03-02 23:00:00+00:00'"
    )
    assert shown(day, "+05:30") == (
        "ts >= TIMESTAMP '2026-03-01 18:30:00+00:00' AND ts < TIMESTAMP '2026-03-02 18:30:00+00:00'"
    )


def test_a_year_and_a_month_are_one_range() -> None:
    both = Call("and", (equal(Call("year", (column("day"),)), 2026), equal(Call("month", (column("day"),)), 2)))
    assert shown(both).endswith("day >= DATE '2026-02-01' AND day < DATE '2026-03-01'")
    assert filter_of(equal(Call("month", (column("day"),)), 2), SCHEMA, zone("UTC")) == TRUE


def test_what_is_not_known_is_left_out_of_a_conjunction_and_empties_a_disjunction() -> None:
    known, unknown = equal(column("id"), 3), UNKNOWN
    assert shown(Call("and", (unknown, known))) == "id = 3"
    assert shown(Call("or", (unknown, known))) == "TRUE"
    assert shown(Call("not", (Call("and", (unknown, known)),))) == "TRUE"
    assert shown(Call("not", (Call("or", (unknown, known)),))) == "id != 3"


def test_nulls_are_as_in_sql() -> None:
    assert shown(Call("=", (column("id"), Value(None)))) == "FALSE"
    assert shown(Call("<=>", (column("id"), Value(None)))) == "id IS NULL"
    assert shown(Call("not", (Call("in", (column("id"), Value(1), Value(None))),))) == "FALSE"
    assert shown(Call("in", (column("id"), Value(1), Value(None)))) == "id = 1"
    assert shown(Call("not", (column("flag"),))) == "flag = FALSE"


def test_a_value_that_grows_is_only_a_lower_limit() -> None:
    now = Value(Date(20_000), grows=True)
    assert shown(Call("=", (column("day"), now))) == "day >= DATE '2024-10-04'"
    assert shown(Call("<", (column("day"), now))) == "day IS NOT NULL"
    assert shown(Call("not", (Call("<", (column("day"), now)),))) == "day >= DATE '2024-10-04'"


def test_tests_that_nulls_pass_are_left_out_for_rows_that_may_be_missing() -> None:
    where = filter_of(Call("and", (Call("isnull", (column("name"),)), equal(column("id"), 3))), SCHEMA, zone("UTC"))
    assert describe(without_nulls(where)) == "id = 3"
    either = filter_of(Call("or", (Call("isnull", (column("name"),)), equal(column("id"), 3))), SCHEMA, zone("UTC"))
    assert without_nulls(either) == TRUE


def node(kind: str, children: int, **fields: object) -> dict[str, object]:
    return {"class": f"org.apache.spark.sql.catalyst.expressions.{kind}", "num-children": children, **fields}


def literal(value: str, kind: str) -> dict[str, object]:
    return node("Literal", 0, value=value, dataType=kind)


ID = node("AttributeReference", 0, name="ID", dataType="long")


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (
            [node("EqualTo", 2), node("AttributeReference", 0, name="ID", dataType="long"), literal("3", "long")],
            "id = 3",
        ),
        (
            [
                node("InSet", 1, hset=["1", "2"], type="long"),
                node("AttributeReference", 0, name="id", dataType="long"),
            ],
            "id IN (1, 2)",
        ),
        (
            [
                node("EqualTo", 2),
                node("GetStructField", 1, ordinal=0),
                node(
                    "AttributeReference",
                    0,
                    name="st",
                    dataType={"type": "struct", "fields": [{"name": "a", "type": "integer"}]},
                ),
                literal("3", "integer"),
            ],
            "st.a = 3",
        ),
        (
            [
                node("GreaterThan", 2),
                node("AttributeReference", 0, name="ts", dataType="timestamp"),
                literal("2026-07-01 00:00:00", "timestamp"),
            ],
            "ts > TIMESTAMP '2026-06-30 22:00:00+00:00'",
        ),
        ([node("InSet", 1, hset=None), node("AttributeReference", 0, name="id", dataType="long")], "TRUE"),
        ([node("EqualTo", 2), node("Rand", 0), literal("3", "long")], "TRUE"),
        ([node("EqualTo", 2), node("AttributeReference", 0, name="id", dataType="long")], "TRUE"),
        ([node("New", 0), node("New", 0)], "TRUE"),
    ],
)
def test_conditions_of_plans_are_read_as_far_as_they_are_known(nodes: list[dict[str, object]], expected: str) -> None:
    assert shown(read_condition(nodes, SCHEMA), "Europe/Berlin") == expected


def test_every_operator_has_its_comparison() -> None:
    assert {operator.value for operator in Operator} == COMPARISONS.keys()


ARRAY = {"type": "array", "elementType": "integer", "containsNull": False}
EXPRESSIONS_CLASS = "org.apache.spark.sql.catalyst.expressions"


@pytest.mark.parametrize("kind", [ARRAY, {"type": "map"}, {"type": "struct", "fields": []}, "interval day", None, 7])
def test_literals_of_other_types_say_nothing(kind: object) -> None:
    nodes = [
        {"class": f"{EXPRESSIONS_CLASS}.And", "num-children": 2},
        {"class": f"{EXPRESSIONS_CLASS}.ArrayContains", "num-children": 2},
        {"class": f"{EXPRESSIONS_CLASS}.Literal", "num-children": 0, "value": "[1,2]", "dataType": kind},
        {"class": f"{EXPRESSIONS_CLASS}.AttributeReference", "num-children": 0, "name": "id", "dataType": "long"},
        {"class": f"{EXPRESSIONS_CLASS}.EqualTo", "num-children": 2},
        {"class": f"{EXPRESSIONS_CLASS}.AttributeReference", "num-children": 0, "name": "id", "dataType": "long"},
        {"class": f"{EXPRESSIONS_CLASS}.Literal", "num-children": 0, "value": "[1,2]", "dataType": kind},
    ]
    assert filter_of(read_condition(nodes, SCHEMA), SCHEMA, zone("UTC")) == TRUE
