"""Schemas: ids, names, selection."""

import dataclasses
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema as PeerSchema
from pyiceberg.schema import assign_fresh_schema_ids
from tests.effort import effort

from icefield.codec.json.schema import encode_schema
from icefield.errors import InvalidInput
from icefield.types.datatypes import (
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    Type,
    children,
    walk,
    with_children,
)
from icefield.types.schema import MAX_DEPTH, Schema, assign_fresh_ids
from icefield.types.text import parse_schema

SCHEMA = parse_schema(
    "id long not null, point struct<x: double, inner: struct<deep: string>>, tags list<string>, "
    "props map<string, struct<v: int>>, Mixed int"
)


def types(depth: int) -> st.SearchStrategy[Type]:
    """Types with all ids zero, to be numbered afterwards."""
    plain: st.SearchStrategy[Type] = st.sampled_from([IntegerType(), LongType(), StringType()])
    if depth == 0:
        return plain
    inner = types(depth - 1)
    fields = st.lists(inner, min_size=1, max_size=3).map(_struct)
    return st.one_of(plain, fields, st.builds(ListType, st.just(0), inner), st.builds(_map, inner, inner))


def _struct(kinds: list[Type]) -> Type:
    return StructType(tuple(NestedField(0, f"f{i}", kind) for i, kind in enumerate(kinds)))


def _map(key: Type, value: Type) -> Type:
    return MapType(0, key, 0, value)


def numbered(kind: Type, draw: st.DrawFn) -> Type:
    """Give every field an id of its own, in no order."""
    count = sum(1 for _ in walk(kind))
    ids = iter(draw(st.permutations(range(1, count + 1))))

    def number(inner: Type) -> Type:
        fields = tuple(NestedField(next(ids), f.name, number(f.type), f.required) for f in children(inner))
        return with_children(inner, fields)

    return number(kind)


KINDS = st.lists(types(2), min_size=1, max_size=3)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    struct = numbered(_struct(draw(KINDS)), draw)
    assert isinstance(struct, StructType)
    return Schema(struct.fields)


@given(schemas())
@effort(60)
def test_fresh_ids_are_those_of_pyiceberg(schema: Schema) -> None:
    ours = assign_fresh_ids(schema)
    theirs = assign_fresh_schema_ids(PeerSchema.model_validate(encode_schema(schema)))
    assert PeerSchema.model_validate(encode_schema(ours)).as_struct() == theirs.as_struct()
    assert sorted(ours.by_id) == list(range(1, len(ours.by_id) + 1))


@given(schemas())
@effort(50)
def test_every_field_is_found_by_id_path_and_name(schema: Schema) -> None:
    for path, field in walk(schema.struct):
        assert schema.by_id[field.field_id] == field
        assert schema.paths[field.field_id] == path
        assert schema.find_field(".".join(path)) == field
        assert schema.name_of(field.field_id) == ".".join(path)


@given(schemas())
@effort(50)
def test_leaves_are_the_primitive_fields_in_order(schema: Schema) -> None:
    primitive = [path for path, field in walk(schema.struct) if not children(field.type)]
    assert sorted(leaf.path for leaf in schema.leaves) == sorted(primitive)
    for leaf in schema.leaves:
        assert leaf.repeated is any(part in ("element", "key", "value") for part in leaf.path)


def test_names_are_found_exactly_first_and_then_without_case() -> None:
    assert SCHEMA.find_field("point.inner.deep").type == StringType()
    assert SCHEMA.find_field("MIXED").name == "Mixed"
    schema = Schema((NestedField(1, "a", IntegerType()), NestedField(2, "A", IntegerType())))
    assert schema.find_field("A").field_id == 2
    both = Schema((NestedField(1, "aB", IntegerType()), NestedField(2, "Ab", IntegerType())))
    with pytest.raises(InvalidInput, match="ambiguous: aB, Ab"):
        both.find_field("ab")


def test_a_wrong_name_gets_a_hint() -> None:
    with pytest.raises(InvalidInput) as caught:
        SCHEMA.find_field("tag")
    assert caught.value.hint == "Did you mean 'tags'?"


def test_selection_keeps_order_and_parents() -> None:
    chosen = SCHEMA.select(["tags", "point.inner.deep", "id"])
    assert [f.name for f in chosen.fields] == ["tags", "point", "id"]
    assert chosen.find_field("point.inner.deep") == SCHEMA.find_field("point.inner.deep")
    with pytest.raises(InvalidInput):
        chosen.find_field("point.x")


def test_selection_inside_a_map_keeps_the_key() -> None:
    chosen = SCHEMA.select(["props.value.v"])
    assert chosen.fields == (SCHEMA.find_field("props"),)


@pytest.mark.parametrize(
    "fields",
    [
        (NestedField(1, "a", IntegerType()), NestedField(1, "b", IntegerType())),
        (NestedField(1, "a", IntegerType()), NestedField(2, "a", IntegerType())),
        (NestedField(1, "", IntegerType()),),
        (NestedField(1, "a", ListType(1, IntegerType())),),
    ],
)
def test_broken_schemas_are_refused(fields: tuple[NestedField, ...]) -> None:
    with pytest.raises(InvalidInput):
        Schema(fields)


def test_schemas_nested_too_deeply_are_refused() -> None:
    kind: Type = IntegerType()
    for number in range(2, MAX_DEPTH + 3):
        kind = ListType(number, kind)
    with pytest.raises(InvalidInput, match="deeper"):
        Schema((NestedField(1, "a", kind),))


@pytest.mark.parametrize("text", ["a double not null", "a int", "a list<int> not null"])
def test_identifiers_are_required_and_primitive_and_no_floats(text: str) -> None:
    fields = parse_schema(text).fields
    with pytest.raises(InvalidInput, match="identifier"):
        Schema(fields, identifier_field_ids=(1,))
    with pytest.raises(InvalidInput, match="not in the schema"):
        Schema(fields, identifier_field_ids=(9,))


def test_fresh_ids_carry_the_identifiers_along() -> None:
    schema = Schema((NestedField(7, "a", IntegerType(), required=True),), identifier_field_ids=(7,))
    assert assign_fresh_ids(schema).identifier_field_ids == (1,)


@pytest.mark.slow
def test_a_duplicate_among_very_many_columns_is_named() -> None:
    """Each counted among all the others, so many would take a quarter of an hour."""
    fields = [NestedField(number, str(number), IntegerType()) for number in range(1, 100_000)]
    with pytest.raises(InvalidInput, match=r"duplicate field ids in the schema: \[7\]"):
        Schema((*fields, NestedField(7, "other", IntegerType())))
    with pytest.raises(InvalidInput, match="duplicate column names in the table: 7$"):
        Schema((*fields, NestedField(100_000, "7", IntegerType())))


def test_equal_schemas_are_one_key_and_those_that_only_look_alike_are_two() -> None:
    again = parse_schema("id long, name string")
    inside = parse_schema("id int, name string")
    held = {parse_schema("id long, name string"): "long", inside: "int"}
    assert hash(again) == hash(parse_schema("id long, name string"))
    assert (held[again], held[inside]) == ("long", "int")


def test_names_that_two_fields_share_are_written_with_backticks() -> None:
    """A dot may be part of a column's own name."""
    inner = StructType((NestedField(3, "b", LongType()), NestedField(4, "c", LongType())))
    schema = Schema((NestedField(1, "a.b", LongType()), NestedField(2, "a", inner)))
    assert [schema.name_of(i) for i in (1, 2, 3, 4)] == ["`a.b`", "a", "`a`.`b`", "a.c"]
    assert [schema.find_field(schema.name_of(i)).field_id for i in (1, 2, 3, 4)] == [1, 2, 3, 4]
    with pytest.raises(InvalidInput, match=r"column 'a\.b' is ambiguous: `a\.b`, `a`\.`b`"):
        schema.find_field("a.b")
    assert schema.select(schema.column_names).fields == schema.fields
    assert schema.select(["`a.b`"]).fields == schema.fields[:1]
    assert [f.field_id for f in schema.select(["`a`.`b`"]).fields] == [2]


def test_backticks_that_are_part_of_a_name_stay() -> None:
    schema = Schema(
        (NestedField(1, "`a`", LongType()), NestedField(2, "a", LongType()), NestedField(3, "x`y", LongType()))
    )
    assert schema.find_field("`a`").field_id == 1
    assert schema.find_field("a").field_id == 2
    assert schema.find_field("`x``y`").field_id == 3


def test_a_derived_schema_is_the_one_that_is_made_of_its_columns() -> None:
    derived = SCHEMA.select([SCHEMA.fields[0].name])
    made = Schema(derived.fields, SCHEMA.schema_id)
    assert (derived, hash(derived), repr(derived), derived.by_id) == (made, hash(made), repr(made), made.by_id)
    assert pickle.loads(pickle.dumps(derived)) == made
    assert dataclasses.replace(derived, schema_id=7) == dataclasses.replace(made, schema_id=7)
