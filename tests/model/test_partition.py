"""Partition specs as users write them: every transform, both orders of arguments, and one clear sentence per fault."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort

from icefield.errors import InvalidInput
from icefield.model.partition import (
    UNPARTITIONED,
    PartitionField,
    PartitionSpec,
    check_spec,
    parse_partition_by,
    parse_transform_call,
)
from icefield.types.datatypes import DateType, IntegerType, LongType, NestedField, StringType, TimestampType
from icefield.types.schema import Schema
from icefield.types.text import parse_schema
from icefield.types.transforms import Bucket, Day, Hour, Identity, Month, Transform, Truncate, Unknown, Void, Year

pytestmark = pytest.mark.every_case

SCHEMA = parse_schema(
    "id long not null, name string, ts timestamp, day date, ok boolean, price double, blob binary, u uuid, "
    "amount decimal(9, 2), tags list<string>, place struct<city string, seen timestamp, at struct<zip int>>, "
    "props map<string, string>, `odd (one), two` string, `back``tick` string"
)
TRANSFORMS: dict[str, tuple[Transform, str]] = {
    "id": (Identity(), "id"),
    "  id  ": (Identity(), "id"),
    "ID": (Identity(), "ID"),
    "`id`": (Identity(), "id"),
    "identity(id)": (Identity(), "id"),
    "year(ts)": (Year(), "ts"),
    "years(ts)": (Year(), "ts"),
    "month(ts)": (Month(), "ts"),
    "MONTHS( ts )": (Month(), "ts"),
    "day(ts)": (Day(), "ts"),
    "days(ts)": (Day(), "ts"),
    " Day (ts)": (Day(), "ts"),
    "hour(ts)": (Hour(), "ts"),
    "hours(`ts`)": (Hour(), "ts"),
    "void(id)": (Void(), "id"),
    "bucket(16, id)": (Bucket(16), "id"),
    "bucket(id, 16)": (Bucket(16), "id"),
    "bucket(16,id)": (Bucket(16), "id"),
    "BUCKET ( 16 , `id` )": (Bucket(16), "id"),
    "truncate(4, name)": (Truncate(4), "name"),
    "truncate(name, 4)": (Truncate(4), "name"),
    "day(place.seen)": (Day(), "place.seen"),
    "`place`.`seen`": (Identity(), "place.seen"),
    "bucket(2, `place`.at.`zip`)": (Bucket(2), "place.at.zip"),
    "`odd (one), two`": (Identity(), "odd (one), two"),
    "bucket(16, `odd (one), two`)": (Bucket(16), "odd (one), two"),
    "truncate(`odd (one), two`, 2)": (Truncate(2), "odd (one), two"),
    "`back``tick`": (Identity(), "back`tick"),
    "bucket(16, 17)": (Bucket(16), "17"),
}


@pytest.mark.parametrize("text", TRANSFORMS)
def test_every_way_to_write_a_transform_is_read(text: str) -> None:
    assert parse_transform_call(text) == TRANSFORMS[text]


@pytest.mark.parametrize(
    "text",
    [
        "bucket(id)",
        "bucket(16, id, 3)",
        "bucket(-1, id)",
        "bucket(x, id)",
        "bucket(1.5, id)",
        "bucket()",
        "truncate(id)",
        "week(ts)",
        "day(ts, id)",
        "day()",
        "day(bucket(16, id))",
        "bucket(0, id)",
        "truncate(0, name)",
        "bucket(2147483648, id)",
        f"bucket({'9' * 5000}, id)",
        "day(ts",
        "day ts)",
        "",
        " ",
        "``",
        "`id",
        "id`",
        "year(id)",
        "hour(day)",
        "hour(id)",
        "bucket(4, ok)",
        "bucket(4, price)",
        "truncate(4, u)",
        "truncate(4, ts)",
        "missing",
        "bucket(4, missing)",
        "place",
        "tags",
        "props",
        "tags.element",
        "props.key",
        "props.value",
        "bucket(4, tags.element)",
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_partition_by([text], SCHEMA)
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 400
    assert caught.value.message[-1] not in ".!"


@pytest.mark.parametrize("strings", ["day(ts)", [None], [3], [("day", "ts")], [b"id"]])
def test_anything_but_a_list_of_strings_is_rejected(strings: list[str]) -> None:
    with pytest.raises(InvalidInput, match="string"):
        parse_partition_by(strings, SCHEMA)


@pytest.mark.parametrize("name", ["tags.element", "props.key", "props.value"])
def test_a_source_inside_a_list_or_map_is_refused_as_such(name: str) -> None:
    with pytest.raises(InvalidInput, match="inside a list or map"):
        parse_partition_by([name], SCHEMA)


def test_a_close_name_is_suggested() -> None:
    with pytest.raises(InvalidInput, match="Did you mean 'name'"):
        parse_partition_by(["nmae"], SCHEMA)


def test_names_and_ids_are_those_of_the_reference() -> None:
    strings = ["id", "day(ts)", "year(day)", "bucket(16, u)", "truncate(4, name)", "void(ok)", "hour(place.seen)"]
    spec = parse_partition_by(strings, SCHEMA)
    assert [f.field_id for f in spec.fields] == list(range(1000, 1007))
    assert [f.name for f in spec.fields] == [
        "id",
        "ts_day",
        "day_year",
        "u_bucket",
        "name_trunc",
        "ok_null",
        "place.seen_hour",
    ]
    assert [f.source_id for f in spec.fields] == [
        SCHEMA.find_field(n).field_id for n in ("id", "ts", "day", "u", "name", "ok", "place.seen")
    ]
    assert spec.spec_id == 0
    assert spec.highest_field_id == 1006


def test_names_are_taken_from_the_schema_not_from_the_text() -> None:
    assert parse_partition_by(["bucket(2, NAME)"], SCHEMA).fields[0].name == "name_bucket"


def test_nothing_means_unpartitioned() -> None:
    assert parse_partition_by([], SCHEMA) == UNPARTITIONED
    assert UNPARTITIONED.is_unpartitioned
    assert UNPARTITIONED.highest_field_id == 999


def test_a_spec_of_void_fields_is_unpartitioned_too() -> None:
    assert parse_partition_by(["void(id)"], SCHEMA).is_unpartitioned
    assert not parse_partition_by(["void(id)", "name"], SCHEMA).is_unpartitioned


@pytest.mark.parametrize(
    ("strings", "why"),
    [
        (["day(ts)", "day(ts)"], "two partition fields are named 'ts_day'"),
        (["bucket(4, id)", "bucket(8, id)"], "two partition fields are named 'id_bucket'"),
        (["id", "identity(id)"], "two partition fields are named 'id'"),
    ],
)
def test_no_two_partition_fields_share_a_name(strings: list[str], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        parse_partition_by(strings, SCHEMA)


def test_the_same_transform_twice_is_refused_under_other_names_too() -> None:
    spec = PartitionSpec((PartitionField(1, 1000, "a", Identity()), PartitionField(1, 1001, "b", Identity())))
    with pytest.raises(InvalidInput, match="same column twice"):
        check_spec(spec, SCHEMA)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ("ts timestamp, ts_day string", "day(ts)"),
        ("id long, id_bucket int", "bucket(4, id)"),
        ("place struct<seen timestamp, seen_day date>", "day(place.seen)"),
    ],
)
def test_a_partition_field_may_not_have_the_name_of_another_column(schema: str, text: str) -> None:
    with pytest.raises(InvalidInput, match="name of a column"):
        parse_partition_by([text], parse_schema(schema))


def test_only_identity_and_void_may_bear_the_name_of_their_own_source() -> None:
    for transform, fits in ((Identity(), True), (Void(), True), (Bucket(4), False)):
        spec = PartitionSpec((PartitionField(1, 1000, "id", transform),))
        if fits:
            check_spec(spec, SCHEMA)
        else:
            with pytest.raises(InvalidInput, match="name of a column"):
                check_spec(spec, SCHEMA)
    with pytest.raises(InvalidInput, match="name of a column"):
        check_spec(PartitionSpec((PartitionField(2, 1000, "id", Identity()),)), SCHEMA)


def test_columns_are_optional_and_have_the_result_types() -> None:
    spec = parse_partition_by(["bucket(4, name)", "day(ts)", "hour(ts)", "id", "truncate(2, name)"], SCHEMA)
    assert spec.columns(SCHEMA) == (
        NestedField(1000, "name_bucket", IntegerType()),
        NestedField(1001, "ts_day", DateType()),
        NestedField(1002, "ts_hour", IntegerType()),
        NestedField(1003, "id", LongType()),
        NestedField(1004, "name_trunc", StringType()),
    )


def test_a_source_that_was_dropped_is_said_to_be_gone() -> None:
    spec = parse_partition_by(["day(ts)"], SCHEMA)
    assert spec.source_type(spec.fields[0], SCHEMA) == TimestampType()
    with pytest.raises(InvalidInput, match="'ts_day' has no source column with id 3"):
        spec.columns(parse_schema("id long"))
    with pytest.raises(InvalidInput, match="no source column"):
        spec.columns(Schema((NestedField(3, "ts", SCHEMA.find_field("place").type),)))


def test_a_spec_reads_as_its_fields() -> None:
    assert str(parse_partition_by(["bucket(4, id)", "day(ts)"], SCHEMA)) == "[id_bucket: bucket[4](1), ts_day: day(3)]"


@effort(60)
@given(st.text("abcdehiknortuy01249.,`() \n", max_size=20))
def test_any_text_is_either_a_spec_or_refused(text: str) -> None:
    try:
        spec = parse_partition_by([text], SCHEMA)
    except InvalidInput:
        return
    assert len(spec.fields) == 1
    assert spec.fields[0].source_id in SCHEMA.by_id


def test_a_field_over_several_columns_knows_them_all_and_needs_none_of_them_to_be_read() -> None:
    field = PartitionField(1, 1000, "z", Unknown("zorder"), (2, 99))
    spec = PartitionSpec((field,))
    assert field.source_ids == (1, 2, 99)
    assert str(spec) == "[z: zorder(1, 2, 99)]"
    assert spec.columns(SCHEMA) == (NestedField(1000, "z", StringType()),)
    assert PartitionSpec((PartitionField(99, 1000, "z", Unknown("zorder")),)).columns(SCHEMA) == spec.columns(SCHEMA)


def test_the_same_transform_of_other_columns_is_another_field() -> None:
    first, second = (PartitionField(1, 1000 + i, f"z{i}", Unknown("zorder"), (2 + i,)) for i in range(2))
    check_spec(PartitionSpec((first, second)), SCHEMA)
    with pytest.raises(InvalidInput, match="same column twice"):
        check_spec(PartitionSpec((first, PartitionField(1, 1001, "z1", Unknown("zorder"), (2,)))), SCHEMA)


def test_timestamps_of_nanoseconds_are_partitioned_as_others_are() -> None:
    schema = parse_schema("ns timestamp_ns, tz timestamptz_ns")
    spec = parse_partition_by(["year(ns)", "hour(tz)", "bucket(4, ns)", "ns"], schema)
    assert [str(f.type) for f in spec.columns(schema)] == ["int", "int", "int", "timestamp_ns"]


@pytest.mark.parametrize("kind", ["variant", "geometry", "geography", "unknown"])
def test_types_without_an_order_cannot_be_partitioned_by(kind: str) -> None:
    schema = parse_schema(f"c {kind}, i int")
    for text in ("c", "bucket(4, c)", "truncate(4, c)", "day(c)"):
        with pytest.raises(InvalidInput, match="'c'"):
            parse_partition_by([text], schema)


def test_equal_specs_are_one_key_and_those_that_only_look_alike_are_two() -> None:
    by_day, by_hour = (parse_partition_by([text], SCHEMA) for text in ("day(ts)", "hour(ts)"))
    assert hash(by_day) == hash(parse_partition_by(["day(ts)"], SCHEMA))
    held = {by_day: "day", by_hour: "hour"}
    assert (held[parse_partition_by(["day(ts)"], SCHEMA)], held[by_hour]) == ("day", "hour")


def test_a_term_may_name_its_field_unless_a_column_has_such_a_name() -> None:
    schema = parse_schema("id long, `a as b` string, day date")
    spec = parse_partition_by(["bucket(4, id) as shard", "a as b", "day AS `on day`"], schema)
    assert [field.name for field in spec.fields] == ["shard", "a as b", "on day"]
    with pytest.raises(InvalidInput, match="two partition fields are named 'x'"):
        parse_partition_by(["day as x", "bucket(4, id) as x"], schema)
