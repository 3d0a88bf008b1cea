"""Transforms and sort keys of whole columns agree with a plain model of one value at a time, at every edge."""

import random
from decimal import Decimal
from itertools import product

import pytest
from tests.effort import sample
from tests.matrix.writing_model import precedes, transformed
from tests.matrix.writing_values import any_value, edges

from icefield.errors import InvalidInput
from icefield.model.sort_order import Direction, NullOrder, SortField
from icefield.types.arrow import arrow_array, python_values
from icefield.types.datatypes import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from icefield.types.sort_keys import key_type, sort_keys
from icefield.types.transforms import Bucket, Day, Hour, Identity, Month, Transform, Truncate, Void, Year

pytestmark = pytest.mark.every_case

KINDS: tuple[PrimitiveType, ...] = (
    BooleanType(),
    IntegerType(),
    LongType(),
    FloatType(),
    DoubleType(),
    DateType(),
    TimeType(),
    TimestampType(),
    TimestamptzType(),
    TimestampNsType(),
    TimestamptzNsType(),
    DecimalType(4, 0),
    DecimalType(18, 18),
    DecimalType(38, 0),
    DecimalType(38, 30),
    DecimalType(38, 38),
    StringType(),
    UUIDType(),
    FixedType(3),
    BinaryType(),
)
TRANSFORMS: tuple[Transform, ...] = (
    Identity(),
    Void(),
    Year(),
    Month(),
    Day(),
    Hour(),
    *(Bucket(n) for n in (1, 7, 2147483647)),
    *(Truncate(n) for n in (1, 10, 1000, 2147483647)),
)
PAIRS = [(kind, transform) for kind, transform in product(KINDS, TRANSFORMS) if transform.fits(kind)]


@pytest.mark.parametrize(("kind", "transform"), sample(PAIRS, 3, lambda pair: str(pair[1])), ids=str)
def test_a_transform_is_what_the_model_says(kind: PrimitiveType, transform: Transform) -> None:
    rng = random.Random(f"{kind} {transform}")
    values = [None, *edges(kind), *(any_value(kind, rng) for _ in range(60))]
    result = transform.result_type(kind)
    for value in values:
        expected = transformed(value, kind, transform)
        if _is_beyond(expected, result):
            with pytest.raises(InvalidInput):
                transform.apply(arrow_array([value], kind), kind)
            continue
        (found,) = python_values(transform.apply(arrow_array([value], kind), kind), result)
        assert repr(found) == repr(expected), value
    fitting = [v for v in values if not _is_beyond(transformed(v, kind, transform), result)]
    found_all = python_values(transform.apply(arrow_array(fitting, kind), kind), result)
    assert repr(found_all) == repr([transformed(v, kind, transform) for v in fitting])


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_sort_keys_compare_as_the_model_says(kind: PrimitiveType) -> None:
    values = [None, *edges(kind)]
    keys = sort_keys(arrow_array(values, kind), kind)
    assert keys.type == key_type(kind)
    field = SortField(1, Identity(), Direction.ASC, NullOrder.FIRST)
    found = keys.to_pylist()
    for (one, a), (other, b) in product(zip(values, found, strict=True), repeat=2):
        before = precedes(one, other, kind, field)
        if a is None or b is None:
            assert before is (None if a is b else a is None)
        else:
            assert before is (None if a == b else a < b), (one, other)


def _is_beyond(value: object, kind: PrimitiveType) -> bool:
    match kind:
        case DecimalType(precision, _):
            return isinstance(value, Decimal) and len(value.as_tuple().digits) > precision
        case IntegerType():
            return isinstance(value, int) and not -(1 << 31) <= value < 1 << 31
        case _:
            return False
