"""Name mappings: their JSON, and how they follow a schema."""

import json

import pytest
from hypothesis import given
from tests.effort import effort
from tests.schema_cases import schemas

from icefield.codec.json.name_mapping import (
    PROPERTY,
    MappedField,
    NameMapping,
    decode_name_mapping,
    encode_name_mapping,
    find_name_mapping,
    map_schema,
    remap_schema,
)
from icefield.errors import InvalidInput
from icefield.types.evolve import rename_column
from icefield.types.schema import Schema
from icefield.types.text import parse_schema

EXAMPLE = """[ { "field-id": 1, "names": ["id", "record_id"] },
   { "field-id": 2, "names": ["data"] },
   { "field-id": 3, "names": ["location"], "fields": [
       { "field-id": 4, "names": ["latitude", "lat"] },
       { "field-id": 5, "names": ["longitude", "long"] }
     ] } ]"""


def test_the_example_of_the_spec_decodes() -> None:
    mapping = decode_name_mapping(EXAMPLE)
    assert mapping.find("record_id") == MappedField(("id", "record_id"), 1)
    location = mapping.find("location")
    assert location is not None
    assert location.fields.find("long") == MappedField(("longitude", "long"), 5)
    assert mapping.find("lat") is None


@effort(50)
@given(schemas())
def test_a_mapping_of_any_schema_survives_its_json(schema: Schema) -> None:
    mapping = map_schema(schema)
    assert decode_name_mapping(encode_name_mapping(mapping)) == mapping


def test_fields_without_id_or_names_are_allowed() -> None:
    mapping = decode_name_mapping('[{"names": ["junk"]}, {"field-id": 3, "names": []}]')
    assert mapping == NameMapping((MappedField(("junk",)), MappedField((), 3)))
    assert decode_name_mapping(encode_name_mapping(mapping)) == mapping


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        '[{"field-id": 1}]',
        '[{"field-id": "1", "names": ["a"]}]',
        '[{"field-id": 1, "names": "a"}]',
        '[{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["a"]}]',
        '[{"field-id": 1, "names": ["a"], "fields": {}}]'.replace("{}", "7"),
        '[{"names": [], "fields": ' * 100 + "[]" + "}]" * 100,
    ],
)
def test_what_is_no_mapping_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=PROPERTY):
        find_name_mapping({PROPERTY: text})


def test_a_table_without_the_property_has_no_mapping() -> None:
    assert find_name_mapping({"other": "[]"}) is None


def test_a_renamed_field_is_found_by_both_names() -> None:
    before = parse_schema("a long, s struct<x int>")
    after = rename_column(rename_column(before, "a", "b"), "s.x", "z")
    mapping = remap_schema(map_schema(before), after)
    assert mapping.find("a") == mapping.find("b") == MappedField(("a", "b"), 1)
    inner = mapping.find("s")
    assert inner is not None
    assert inner.fields.find("z") == MappedField(("x", "z"), 3)


def test_a_name_that_was_mapped_never_changes_its_field() -> None:
    before = parse_schema("a long, b long")
    swapped = Schema((before.fields[1], before.fields[0]))
    renamed = rename_column(rename_column(rename_column(swapped, "a", "t"), "b", "a"), "t", "b")
    assert remap_schema(map_schema(before), renamed) == map_schema(before)
    again = Schema((parse_schema("x long, a long").fields[1].__class__(9, "a", before.fields[0].type),))
    mapping = remap_schema(map_schema(before), again)
    assert mapping.find("a") == MappedField(("a",), 1)
    assert MappedField((), 9) in mapping.fields


def test_a_name_that_stands_twice_among_very_many_is_named() -> None:
    """Each counted among all the others, so many would take minutes."""
    names = [str(number) for number in range(100_000)]
    with pytest.raises(InvalidInput, match="duplicate names: 7$"):
        decode_name_mapping(json.dumps([{"names": names}, {"names": ["7"]}]))
