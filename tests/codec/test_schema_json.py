"""Schemas, specs and orders to JSON and back, as Iceberg Java writes them, and nothing unfit gets through."""

import json
import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema as PyIcebergSchema
from tests.codec.metadata_cases import ORDERS, SPECS
from tests.effort import effort
from tests.expr.cases import constants_of
from tests.schema_cases import ALL_TYPES, schemas

from icefield.codec.json.schema import (
    decode_schema,
    decode_sort_order,
    decode_spec,
    encode_schema,
    encode_sort_order,
    encode_spec,
    encode_spec_fields,
)
from icefield.errors import InvalidInput
from icefield.model.partition import PartitionField, PartitionSpec, parse_partition_by
from icefield.model.sort_order import SortOrder, parse_order_by
from icefield.types.datatypes import (
    EMPTY_STRUCT,
    OPAQUE_TYPES,
    DecimalType,
    Default,
    IntegerType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
    children,
    with_children,
)
from icefield.types.schema import MAX_DEPTH, Schema
from icefield.types.text import parse_schema
from icefield.types.transforms import Bucket, Unknown

SCHEMA = parse_schema(
    "id long not null, price decimal(10, 2), code fixed[4], seen timestamptz, "
    "tags list<string not null>, props map<string, double not null>, place struct<city string not null>"
)
UNFIT = (ValueError, TypeError, KeyError, InvalidInput)


@effort(60)
@given(schemas(names=st.text(min_size=1, max_size=8)))
def test_a_schema_survives_json(schema: Schema) -> None:
    assert decode_schema(json.loads(json.dumps(encode_schema(schema)))) == schema


@effort(60)
@given(st.data(), schemas(kinds=ALL_TYPES))
def test_a_schema_of_version_3_survives_json_with_its_defaults(data: st.DataObject, schema: Schema) -> None:
    def defaulted(field: NestedField) -> NestedField:
        inner = tuple(defaulted(f) for f in children(field.type)) if isinstance(field.type, StructType) else ()
        kind = with_children(field.type, inner) if inner else field.type
        initial, write = (data.draw(st.none() | defaults_of(kind)) for _ in range(2))
        return replace(field, type=kind, initial_default=initial, write_default=write)

    full = Schema(tuple(defaulted(f) for f in schema.fields), schema.schema_id)
    assert decode_schema(json.loads(json.dumps(encode_schema(full)))) == full


def defaults_of(kind: Type) -> st.SearchStrategy[Default | None]:
    if isinstance(kind, StructType):
        return st.just(EMPTY_STRUCT)
    if not isinstance(kind, PrimitiveType) or isinstance(kind, OPAQUE_TYPES):
        return st.none()
    return constants_of(kind).filter(lambda v: not (isinstance(v, float) and math.isinf(v)))


def field_of(**keys: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"id": 1, "name": "a", "required": False} | keys]}


def test_defaults_are_spelled_as_the_specification_spells_them() -> None:
    field = NestedField(1, "a", DecimalType(4, 2), False, None, Decimal("14.20"), Decimal("-1.00"))
    (encoded,) = encode_schema(Schema((field,)))["fields"]
    assert (encoded["initial-default"], encoded["write-default"]) == ("14.20", "-1.00")
    version = field_of(type={"type": "struct", "fields": []}, **{"initial-default": {}, "write-default": None})
    assert decode_schema(version).fields[0].initial_default == EMPTY_STRUCT
    assert decode_schema(version).fields[0].write_default is None


@pytest.mark.parametrize("key", ["initial-default", "write-default"])
@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ("int", "1"),
        ("int", 1 << 31),
        ("unknown", 1),
        ("variant", {}),
        ("geometry", "POINT (1 2)"),
        ("geography", "POINT (1 2)"),
        ({"type": "struct", "fields": []}, {"1": 2}),
        ({"type": "list", "element-id": 2, "element": "int", "element-required": False}, [1]),
    ],
    ids=str,
)
def test_a_default_that_cannot_be_is_refused_by_name(key: str, kind: Any, default: Any) -> None:
    with pytest.raises(ValueError, match=f"{key} of column 'a'"):
        decode_schema(field_of(type=kind, **{key: default}))


PARTITION = {"name": "p", "transform": "bucket[4]", "source-ids": [3, 1], "field-id": 1000}
SORT = {"transform": "zorder", "source-ids": [3, 1], "direction": "asc", "null-order": "nulls-first"}


def test_fields_over_several_columns_survive_and_are_unknown_whatever_their_name() -> None:
    spec = decode_spec({"spec-id": 1, "fields": [PARTITION]})
    assert spec.fields == (PartitionField(3, 1000, "p", Unknown("bucket[4]"), (1,)),)
    assert encode_spec(spec) == {"spec-id": 1, "fields": [PARTITION]}
    order = decode_sort_order({"order-id": 1, "fields": [SORT]})
    assert (order.fields[0].transform, order.fields[0].source_ids) == (Unknown("zorder"), (3, 1))
    assert encode_sort_order(order) == {"order-id": 1, "fields": [SORT]}


def test_one_column_in_a_list_is_one_column() -> None:
    spec = decode_spec({"spec-id": 1, "fields": [PARTITION | {"source-ids": [3]}]})
    assert spec.fields == (PartitionField(3, 1000, "p", Bucket(4)),)
    assert encode_spec_fields(spec) == [{"name": "p", "transform": "bucket[4]", "source-id": 3, "field-id": 1000}]


@pytest.mark.parametrize("sources", [[], None, 3, ["3"], [True], [1 << 31]])
def test_unfit_sources_are_refused(sources: Any) -> None:
    with pytest.raises(UNFIT):
        decode_spec({"spec-id": 1, "fields": [PARTITION | {"source-ids": sources}]})
    with pytest.raises(UNFIT):
        decode_sort_order({"order-id": 1, "fields": [SORT | {"source-ids": sources}]})


@effort(40)
@given(SPECS)
def test_a_spec_survives_json(spec: PartitionSpec) -> None:
    assert decode_spec(json.loads(json.dumps(encode_spec(spec)))) == spec


@effort(40)
@given(ORDERS)
def test_a_sort_order_survives_json(order: SortOrder) -> None:
    assert decode_sort_order(json.loads(json.dumps(encode_sort_order(order)))) == order


def test_identifier_fields_survive() -> None:
    schema = Schema(SCHEMA.fields, 3, (1,))
    encoded = encode_schema(schema)
    assert encoded["identifier-field-ids"] == [1]
    assert decode_schema(encoded) == schema
    assert "identifier-field-ids" not in encode_schema(SCHEMA)


@effort(40)
@given(schemas(names=st.text("abcé_", min_size=1, max_size=5)))
def test_pyiceberg_reads_the_same_schema(schema: Schema) -> None:
    encoded = encode_schema(schema)
    theirs = PyIcebergSchema.model_validate_json(json.dumps(encoded))
    assert theirs.schema_id == schema.schema_id
    assert {i: theirs.find_column_name(i) for i in schema.by_id} == {i: schema.name_of(i) for i in schema.by_id}
    assert decode_schema(json.loads(theirs.model_dump_json())) == schema


def test_json_is_spelled_as_the_reference_spells_it() -> None:
    assert encode_schema(
        parse_schema("id long not null, p decimal(9, 2), tags list<string>, m map<int, fixed[3]>")
    ) == {
        "type": "struct",
        "schema-id": 0,
        "fields": [
            {"id": 1, "name": "id", "required": True, "type": "long"},
            {"id": 2, "name": "p", "required": False, "type": "decimal(9, 2)"},
            {
                "id": 3,
                "name": "tags",
                "required": False,
                "type": {"type": "list", "element-id": 5, "element": "string", "element-required": False},
            },
            {
                "id": 4,
                "name": "m",
                "required": False,
                "type": {
                    "type": "map",
                    "key-id": 6,
                    "key": "int",
                    "value-id": 7,
                    "value": "fixed[3]",
                    "value-required": False,
                },
            },
        ],
    }
    spec = parse_partition_by(["bucket(16, id)"], SCHEMA)
    assert encode_spec_fields(spec) == [
        {"name": "id_bucket", "transform": "bucket[16]", "source-id": 1, "field-id": 1000}
    ]
    assert encode_spec(spec) == {"spec-id": 0, "fields": encode_spec_fields(spec)}
    assert encode_sort_order(parse_order_by(["id desc"], SCHEMA)) == {
        "order-id": 1,
        "fields": [{"transform": "identity", "source-id": 1, "direction": "desc", "null-order": "nulls-last"}],
    }


def test_a_schema_of_version_1_without_an_id_gets_0() -> None:
    encoded = encode_schema(SCHEMA)
    del encoded["schema-id"]
    assert decode_schema(encoded).schema_id == 0


def test_keys_of_later_versions_are_ignored() -> None:
    encoded = encode_schema(SCHEMA)
    encoded["fields"][0]["colour"] = 3
    encoded["comment"] = "x"
    assert decode_schema(encoded) == SCHEMA


def nested(levels: int) -> dict[str, Any]:
    kind: Any = "int"
    for level in range(levels):
        kind = {"type": "list", "element-id": 10 + level, "element": kind, "element-required": False}
    return {"type": "struct", "fields": [{"id": 1, "name": "a", "required": False, "type": kind}]}


def test_types_may_be_nested_as_deep_as_a_schema_may_and_no_deeper() -> None:
    assert len(decode_schema(nested(MAX_DEPTH - 2)).by_id) == MAX_DEPTH - 1
    for levels in (MAX_DEPTH - 1, MAX_DEPTH, 500):
        with pytest.raises(UNFIT, match="nested deeper"):
            decode_schema(nested(levels))


DEFAULTED = NestedField(1, "id", IntegerType(), True, None, 5, 6)
CASES = [
    (decode_schema, encode_schema(Schema((DEFAULTED, *SCHEMA.fields[1:]), 3, (1,)))),
    (decode_spec, encode_spec(parse_partition_by(["bucket(16, id)", "day(seen)"], SCHEMA))),
    (decode_sort_order, encode_sort_order(parse_order_by(["id desc"], SCHEMA))),
]
DEFAULTS = ("initial-default", "write-default")
OTHERS: list[Any] = [None, True, 1.5, "x", "", -1e300, 1 << 70, [], {}, ["x"], {"x": 1}, 7]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(inner for key, child in items for inner in places(child, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[path[0]] = replaced(value[path[0]], path[1:], new)
    return copied


@pytest.mark.parametrize(("decode", "good"), CASES)
def test_a_wrong_type_anywhere_is_refused_or_means_the_same_kind_of_thing(decode: Any, good: Any) -> None:
    """Whatever is put in whatever place: the decoder refuses, or what it made encodes to what it was given."""
    encode: Any = {decode_schema: encode_schema, decode_spec: encode_spec, decode_sort_order: encode_sort_order}[decode]
    for path in places(good):
        for other in OTHERS:
            bad = replaced(good, path, other)
            try:
                made = decode(bad)
            except UNFIT:
                continue
            written = encode(made)
            leniently = path and path[-1] in ("identifier-field-ids", "doc", *DEFAULTS) and not other
            assert leniently or json.dumps(written) == json.dumps(bad), (path, other)


@pytest.mark.parametrize(("decode", "good"), CASES)
def test_what_is_nearly_of_the_right_type_is_refused(decode: Any, good: Any) -> None:
    nearly: dict[type, list[Any]] = {int: [True, 1.0, "1", 1 << 31], bool: [0, 1, "true"], str: [1, True, ["x"]]}
    for path in places(good):
        old = good
        for step in path:
            old = old[step]
        for other in nearly.get(type(old), []):
            with pytest.raises(UNFIT):
                decode(replaced(good, path, other))


@pytest.mark.parametrize(("decode", "good"), CASES)
def test_a_missing_key_is_refused(decode: Any, good: Any) -> None:
    optional = ("schema-id", "identifier-field-ids", "doc", *DEFAULTS)
    for path in places(good):
        if path and isinstance(path[-1], str) and path[-1] not in optional:
            parent = good
            for step in path[:-1]:
                parent = parent[step]
            without = {k: v for k, v in parent.items() if k != path[-1]}
            with pytest.raises(UNFIT):
                decode(replaced(good, path[:-1], without))
