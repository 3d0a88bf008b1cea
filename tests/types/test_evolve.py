"""Steps of schema evolution that version 3 adds: defaults, and types that widen."""

import itertools
from collections.abc import Callable
from decimal import Decimal

import pytest
from tests.schema_cases import ALL_TYPES

from icefield.errors import InvalidInput
from icefield.types.datatypes import (
    EMPTY_STRUCT,
    DateType,
    Default,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    Type,
    UnknownType,
    VariantType,
)
from icefield.types.evolve import (
    NewColumn,
    add_column,
    can_widen,
    check_widening_of_source,
    set_default,
    union_by_name,
    update_column_type,
)
from icefield.types.schema import Schema
from icefield.types.text import parse_schema, parse_type
from icefield.types.transforms import Bucket, Day, Identity, Month, Transform, Unknown, Void, Year

SCHEMA = parse_schema("i int, d date, u unknown, s struct<x: int>, l list<date>")


def fresh_ids() -> Callable[[], int]:
    counter = itertools.count(100)
    return lambda: next(counter)


def added(column: NewColumn, path: str = "") -> NestedField:
    schema = add_column(SCHEMA, path, column, fresh_ids())
    return schema.find_field(f"{path}.{column.name}" if path else column.name)


def test_a_new_column_starts_with_its_default_both_ways() -> None:
    field = added(NewColumn("n", StringType(), default="x"), "s")
    assert (field.initial_default, field.write_default, field.required) == ("x", "x", False)
    none = added(NewColumn("n", StringType()))
    assert (none.initial_default, none.write_default) == (None, None)


def test_a_required_column_can_be_added_with_a_default_only() -> None:
    assert added(NewColumn("n", IntegerType(), required=True, default=0)).required
    with pytest.raises(InvalidInput, match="existing rows have no value"):
        added(NewColumn("n", IntegerType(), required=True))


def test_a_struct_may_default_to_a_struct_of_defaults() -> None:
    field = added(NewColumn("p", StructType((NestedField(1, "x", IntegerType()),)), default=EMPTY_STRUCT))
    assert field.initial_default == field.write_default == EMPTY_STRUCT
    assert [f.field_id for f in (field, *field.type.fields)] == [100, 101]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ("int", 1 << 31),
        ("int", "1"),
        ("decimal(3, 1)", Decimal("1.25")),
        ("unknown", 1),
        ("variant", b"x"),
        ("geometry", b"x"),
        ("geography", b"x"),
        ("list<int>", EMPTY_STRUCT),
        ("int", EMPTY_STRUCT),
    ],
)
def test_a_default_that_is_no_value_of_the_type_is_refused(kind: str, default: Default) -> None:
    with pytest.raises(InvalidInput, match="cannot have the default"):
        added(NewColumn("n", parse_type(kind), default=default))


def test_only_the_write_default_can_be_changed() -> None:
    schema = add_column(SCHEMA, "s", NewColumn("n", IntegerType(), required=True, default=1), fresh_ids())
    changed = set_default(schema, "s.n", 2).find_field("s.n")
    assert (changed.initial_default, changed.write_default) == (1, 2)
    with pytest.raises(InvalidInput, match="it is required"):
        set_default(schema, "s.n", None)
    assert set_default(set_default(SCHEMA, "i", 5), "i", None) == SCHEMA
    with pytest.raises(InvalidInput, match="cannot have the default"):
        set_default(SCHEMA, "i", "x")
    with pytest.raises(InvalidInput, match="no name of their own"):
        set_default(SCHEMA, "l.element", 3)


WIDENINGS = [
    (DateType(), TimestampType(), True),
    (DateType(), TimestampNsType(), True),
    (DateType(), TimestamptzType(), False),
    (DateType(), TimestamptzNsType(), False),
    (TimestampType(), TimestampNsType(), False),
    (TimestampType(), DateType(), False),
    (LongType(), UnknownType(), False),
]


@pytest.mark.parametrize(("old", "new", "allowed"), WIDENINGS, ids=str)
def test_types_widen_further_from_version_3_on(old: Type, new: Type, allowed: bool) -> None:
    assert can_widen(old, new, 3) is allowed
    assert not can_widen(old, new)
    assert not can_widen(old, new, 1)


@pytest.mark.parametrize("kind", [*ALL_TYPES, parse_type("list<int>"), StructType(())], ids=str)
def test_unknown_becomes_anything(kind: Type) -> None:
    assert can_widen(UnknownType(), kind, 3)
    assert not can_widen(UnknownType(), kind, 2)


def test_a_column_is_widened_by_the_rules_of_its_version() -> None:
    assert update_column_type(SCHEMA, "d", TimestampType(), 3).find_field("d").type == TimestampType()
    assert (
        update_column_type(SCHEMA, "l.element", TimestampNsType(), 3).find_field("l.element").type == TimestampNsType()
    )
    assert update_column_type(SCHEMA, "u", VariantType(), 3).find_field("u").type == VariantType()
    with pytest.raises(InvalidInput, match="from date to timestamp") as caught:
        update_column_type(SCHEMA, "d", TimestampType())
    assert "from format version 3 on" in str(caught.value)


def test_a_nested_type_for_unknown_gets_ids_of_its_own() -> None:
    schema = update_column_type(SCHEMA, "u", parse_type("struct<a: int, b: list<int>>"), 3, fresh_ids())
    assert [schema.find_field(n).field_id for n in ("u", "u.a", "u.b", "u.b.element")] == [3, 100, 101, 102]
    with pytest.raises(InvalidInput, match="no ids"):
        update_column_type(SCHEMA, "u", parse_type("list<int>"), 3)


@pytest.mark.parametrize(
    ("kind", "per_day"), [(TimestampType(), 86_400_000_000), (TimestampNsType(), 86_400_000_000_000)]
)
def test_the_defaults_of_a_date_become_moments(kind: Type, per_day: int) -> None:
    schema = set_default(add_column(SCHEMA, "", NewColumn("n", DateType(), default=1), fresh_ids()), "n", -2)
    field = update_column_type(schema, "n", kind, 3).find_field("n")
    assert (field.initial_default, field.write_default) == (per_day, -2 * per_day)


def test_a_default_beyond_the_wider_type_is_refused() -> None:
    schema = set_default(SCHEMA, "d", 200_000)
    with pytest.raises(InvalidInput, match="cannot have the default"):
        update_column_type(schema, "d", TimestampNsType(), 3)


@pytest.mark.parametrize("transform", [Year(), Month(), Day(), Void()], ids=str)
def test_a_partitioned_date_may_widen_where_its_partitions_stay(transform: Transform) -> None:
    check_widening_of_source(DateType(), TimestampType(), transform, "d")
    if not isinstance(transform, Void):
        days, micros = 17_486, 17_486 * 86_400_000_000
        assert transform.apply_value(days, DateType()) == transform.apply_value(micros, TimestampType())


@pytest.mark.parametrize("transform", [Identity(), Bucket(16), Unknown("zorder")], ids=str)
def test_a_partitioned_date_may_not_widen_where_its_partitions_change(transform: Transform) -> None:
    with pytest.raises(InvalidInput, match="files are partitioned by"):
        check_widening_of_source(DateType(), TimestampNsType(), transform, "d")
    check_widening_of_source(IntegerType(), LongType(), transform, "i")
    check_widening_of_source(DateType(), DateType(), transform, "d")


def test_a_union_widens_by_the_rules_of_its_version() -> None:
    other = parse_schema("d timestamp, u struct<a: int>, i unknown")
    schema = union_by_name(SCHEMA, other, fresh_ids(), 3)
    assert [str(schema.find_field(n).type) for n in ("i", "d", "u.a")] == ["int", "timestamp", "int"]
    assert schema.find_field("u.a").field_id == 100
    with pytest.raises(InvalidInput, match="cannot merge"):
        union_by_name(SCHEMA, other, fresh_ids())


def test_a_union_keeps_ids_and_order() -> None:
    other = parse_schema("z int, i long, s struct<x: int, y: int>")
    schema = union_by_name(SCHEMA, other, fresh_ids())
    assert [(f.name, f.field_id) for f in schema.fields] == [*((f.name, f.field_id) for f in SCHEMA.fields), ("z", 100)]
    assert schema.find_field("i").type == LongType()
    assert schema.find_field("s.y").field_id == 101


def test_schemas_know_what_is_repeated() -> None:
    schema = Schema(parse_schema("a int, l list<struct<x: map<int, int>>>, s struct<y: int>").fields)
    inside = {"l.element", "l.element.x", "l.element.x.key", "l.element.x.value"}
    assert {schema.name_of(i) for i in schema.repeated_ids} == inside
