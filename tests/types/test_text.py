"""Types and schemas as text."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import effort
from tests.schema_cases import V3_TYPES

from icefield.errors import InvalidInput
from icefield.types.datatypes import (
    SIMPLE_TYPES,
    BinaryType,
    DecimalType,
    EdgeAlgorithm,
    FixedType,
    GeographyType,
    GeometryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    UnknownType,
    VariantType,
)
from icefield.types.text import parse_schema, parse_stored_type

PRIMITIVES = st.one_of(
    st.sampled_from(list(SIMPLE_TYPES.values())),
    st.integers(1, 38).flatmap(lambda p: st.builds(DecimalType, st.just(p), st.integers(0, p))),
    st.builds(FixedType, st.integers(1, 1000)),
    st.sampled_from(V3_TYPES),
)


@given(PRIMITIVES)
@effort()
def test_every_primitive_survives_as_text(kind: PrimitiveType) -> None:
    assert parse_stored_type(str(kind)) == kind
    assert parse_schema(f"a {kind}").fields[0].type == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("decimal(10,2)", DecimalType(10, 2)),
        ("decimal( 10 , 2 )", DecimalType(10, 2)),
        ("fixed[ 16 ]", FixedType(16)),
        ("fixed[0016]", FixedType(16)),
        ("INT", IntegerType()),
        ("Decimal(10, 2)", DecimalType(10, 2)),
        ("Variant", VariantType()),
        ("GEOMETRY", GeometryType()),
        ("geometry ( EPSG:4326 )", GeometryType("EPSG:4326")),
        ("geometry(projjson:my property)", GeometryType("projjson:my property")),
        ("geography", GeographyType()),
        ("geography(OGC:CRS84)", GeographyType()),
        ("Geography( srid:4326 ,KARNEY )", GeographyType("srid:4326", EdgeAlgorithm.KARNEY)),
    ],
)
def test_spellings_that_the_reference_reads(text: str, kind: PrimitiveType) -> None:
    assert parse_stored_type(text) == kind


@pytest.mark.parametrize(
    "text",
    [
        "", "integer", "decimal", "decimal(39, 0)", "decimal(2, 3)", "fixed[0]", "x", " int", "fixed [3]", "fixed(3)",
        f"fixed[{10**50}]", f"fixed[{1 << 31}]", f"decimal({'9' * 5000}, 1)", "fixed[٣]", "geometry()", "geometry( )",
        "geography()", "geography(, spherical)", "geography(a, )", "geography(a, b)", "geography(a, karney, x)",
        "geometry(a)b", "geometry(a(b))", "geometries", "timestamp_ns(9)", "variant(x)",
    ],
)  # fmt: skip
def test_what_metadata_may_not_spell(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_stored_type(text)


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("bigint", LongType()),
        ("INTEGER", IntegerType()),
        ("varchar", StringType()),
        ("timestamp", TimestampType()),
        ("timestamp_ltz", TimestamptzType()),
        ("bytes", BinaryType()),
        ("numeric(5)", DecimalType(5, 0)),
        ("fixed(4)", FixedType(4)),
        ("timestamptz_ns", TimestamptzNsType()),
        ("Unknown", UnknownType()),
        ("variant", VariantType()),
        ("geometry", GeometryType()),
        ("Geometry (EPSG:4326)", GeometryType("EPSG:4326")),
        ("geography(projjson:a.b-c, thomas)", GeographyType("projjson:a.b-c", EdgeAlgorithm.THOMAS)),
    ],
)
def test_words_of_sql(word: str, kind: PrimitiveType) -> None:
    assert parse_schema(f"a {word}").fields[0].type == kind


def test_shapes_stand_among_other_columns_and_inside_them() -> None:
    text = "geometry geometry(a:1) not null, l list<geography(b, karney) not null>, g geography, v variant"
    schema = parse_schema(text)
    assert [str(f.type) for f in schema.fields] == [
        "geometry(a:1)",
        "list<geography(b, karney)>",
        "geography(OGC:CRS84, spherical)",
        "variant",
    ]
    assert [f.required for f in schema.fields] == [True, False, False, False]


def test_reference_systems_are_the_same_in_any_case_and_keep_their_own() -> None:
    assert GeometryType("ogc:crs84") == GeometryType() != GeometryType("EPSG:4326")
    assert hash(GeometryType("ogc:crs84")) == hash(GeometryType())
    assert str(GeometryType("ogc:crs84")) == "geometry(ogc:crs84)"
    assert GeographyType("ogc:crs84") == GeographyType() != GeographyType(algorithm=EdgeAlgorithm.KARNEY)
    assert hash(GeographyType("ogc:crs84")) == hash(GeographyType())
    assert GeometryType() != GeographyType()
    assert GeographyType() != GeometryType()


def test_nested_types_are_numbered_level_by_level() -> None:
    schema = parse_schema("a struct<b: int not null, c list<long required>>, d map<string, int not null>, e int")
    assert [f.field_id for f in schema.fields] == [1, 2, 3]
    a, d, e = (f.type for f in schema.fields)
    assert isinstance(a, StructType)
    assert [(f.field_id, f.name, f.required) for f in a.fields] == [(4, "b", True), (5, "c", False)]
    assert a.fields[1].type == ListType(6, LongType(), element_required=True)
    assert d == MapType(7, StringType(), 8, IntegerType(), value_required=True)
    assert e == IntegerType()


def test_quoted_names() -> None:
    assert parse_schema("`a b` int, `c``d` int, `not` int").fields[1].name == "c`d"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "has no columns"),
        ("a", "unexpected end"),
        ("a int,", "unexpected end"),
        ("a int b int", "character 7"),
        ("a nothing", "unknown type 'nothing'"),
        ("a list<int", "unexpected end"),
        ("a int not", "unexpected end"),
        ("a decimal(x)", "expected a number"),
        (f"a fixed[{10**50}]", "too large"),
        ("a geography(x, y)", "unknown edge algorithm 'y'"),
        ("a unknown not null", "cannot be required"),
        ("a ?", "character 2"),
        ("a int, a long", "duplicate column"),
        ("a " + "list<" * 200 + "int" + ">" * 200, "deep"),
    ],
)
def test_faults_are_placed(text: str, place: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_schema(text)
    assert place in str(caught.value)


@given(st.text("ab int<>(),:`[]0 list struct map", max_size=30))
@effort()
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(InvalidInput):
        assert parse_schema(text).fields


@pytest.mark.parametrize("text", ["geometry(", "geography(", "geography(x, ", "geography(x,y "])
def test_any_number_of_blanks_in_a_stored_type_costs_no_more_than_reading_them(text: str) -> None:
    """Tried in every way that they could be shared out, so many would take years."""
    with pytest.raises(InvalidInput, match="unknown type"):
        parse_stored_type(text + " " * 100_000)


def test_blanks_around_what_a_shape_is_made_of_do_not_count() -> None:
    blanks = " " * 1000
    assert parse_stored_type(f"geometry{blanks}({blanks}srid:1{blanks})") == parse_stored_type("geometry(srid:1)")
    spaced = f"geography({blanks}srid:1{blanks},{blanks}KARNEY{blanks})"
    assert parse_stored_type(spaced) == parse_stored_type("geography(srid:1, karney)")
