"""Which version of the format types and defaults need."""

import pytest
from tests.schema_cases import PRIMITIVES, V3_TYPES

from icefield.errors import InvalidInput
from icefield.types.datatypes import EMPTY_STRUCT, IntegerType, ListType, MapType, NestedField, StructType, Type
from icefield.types.schema import Schema
from icefield.types.versions import check_schema_version, minimum_version


@pytest.mark.parametrize("kind", PRIMITIVES, ids=str)
def test_old_types_fit_every_version(kind: Type) -> None:
    assert minimum_version(kind) == 1
    check_schema_version(Schema((NestedField(1, "a", ListType(2, kind)),)), 1)


@pytest.mark.parametrize("kind", V3_TYPES, ids=str)
def test_new_types_need_version_3_at_any_depth(kind: Type) -> None:
    nested = MapType(3, IntegerType(), 4, StructType((NestedField(5, "x", kind),)))
    assert minimum_version(kind) == minimum_version(nested) == 3
    schema = Schema((NestedField(1, "i", IntegerType()), NestedField(2, "m", nested)))
    check_schema_version(schema, 3)
    with pytest.raises(InvalidInput) as caught:
        check_schema_version(schema, 2)
    for part in ("'m.value.x'", "format version 3", str(kind)):
        assert part in str(caught.value)


def test_an_initial_default_needs_version_3_but_a_write_default_does_not() -> None:
    written = NestedField(1, "a", IntegerType(), write_default=0)
    initial = NestedField(1, "s", StructType((NestedField(2, "a", IntegerType()),)), initial_default=EMPTY_STRUCT)
    check_schema_version(Schema((written,)), 2)
    check_schema_version(Schema((initial,)), 3)
    with pytest.raises(InvalidInput, match="'s' needs format version 3, but the table has 2: it has the"):
        check_schema_version(Schema((initial,)), 2)
