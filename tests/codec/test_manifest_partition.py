"""Partition tuples in Avro: the types of version 3."""

import pytest

from icefield.codec.manifest.partition import partition_json, partition_record
from icefield.errors import InvalidInput
from icefield.types.datatypes import (
    GeometryType,
    NestedField,
    TimestampNsType,
    TimestamptzNsType,
    Type,
    UnknownType,
    VariantType,
)


@pytest.mark.parametrize(("kind", "zoned"), [(TimestampNsType(), False), (TimestamptzNsType(), True)])
def test_nanoseconds_are_a_logical_type(kind: Type, zoned: bool) -> None:
    rendered = partition_json(partition_record([NestedField(1000, "p", kind)]))
    stored = {"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": zoned}
    assert rendered["fields"] == [{"name": "p", "type": ["null", stored], "default": None, "field-id": 1000}]


@pytest.mark.parametrize("kind", [UnknownType(), VariantType(), GeometryType()], ids=str)
def test_types_without_an_order_have_no_place(kind: Type) -> None:
    with pytest.raises(InvalidInput, match="cannot write a partition value"):
        partition_record([NestedField(1000, "p", kind)])
