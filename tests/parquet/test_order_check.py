"""A file claims an order exactly if a plain model finds its rows in that order."""

import random
from dataclasses import replace
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.matrix.writing_model import precedes, transformed
from tests.matrix.writing_values import any_value

from icefield.model.sort_order import SortOrder, parse_order_by
from icefield.parquet.write.order_check import OrderCheck, known_fields
from icefield.types.arrow import arrow_array, arrow_schema
from icefield.types.datatypes import PrimitiveType
from icefield.types.schema import Schema
from icefield.types.text import parse_schema
from icefield.types.transforms import Unknown

SCHEMA = parse_schema(
    "i int, l long, f float, d double, s string, u uuid, b binary, t timestamp, z timestamptz, y date, e decimal(38,9)"
)
TERMS = ("i", "truncate(10, l)", "f", "d", "s", "u", "b", "hour(t)", "bucket(3, z)", "month(y)", "truncate(3, s)", "e")
WAYS = ("", " desc", " nulls last", " desc nulls first")
Row = tuple[Any, ...]


def compare(order: SortOrder) -> Any:
    at = {f.field_id: i for i, f in enumerate(SCHEMA.fields)}

    def compared(one: Row, other: Row) -> int:
        for by in order.fields:
            kind = SCHEMA.by_id[by.source_id].type
            assert isinstance(kind, PrimitiveType)
            left, right = (transformed(row[at[by.source_id]], kind, by.transform) for row in (one, other))
            before = precedes(left, right, by.transform.result_type(kind), by)
            if before is not None:
                return -1 if before else 1
        return 0

    return compared


def batch_of(rows: list[Row]) -> pa.RecordBatch:
    columns = zip(SCHEMA.fields, zip(*rows, strict=True), strict=True)
    return pa.RecordBatch.from_arrays(
        [arrow_array(list(values), f.type) for f, values in columns],  # type: ignore[arg-type]
        schema=arrow_schema(SCHEMA),
    )


@pytest.mark.parametrize("seed", range(40))
def test_an_order_holds_if_the_model_finds_it(seed: int) -> None:
    rng = random.Random(seed)
    terms = [term + rng.choice(WAYS) for term in rng.sample(TERMS, rng.choice((1, 2, 3)))]
    order = parse_order_by(terms, SCHEMA)
    compared = compare(order)
    rows: list[Row] = [
        tuple(None if rng.random() < 0.2 else any_value(f.type, rng) for f in SCHEMA.fields)  # type: ignore[arg-type]
        for _ in range(rng.randrange(2, 30))
    ]
    rows.sort(key=cmp_to_key(compared))
    if seed % 2:
        one, other = rng.randrange(len(rows)), rng.randrange(len(rows))
        rows[one], rows[other] = rows[other], rows[one]
    check = OrderCheck(SCHEMA, order)
    cut = rng.randrange(1, len(rows) + 1)
    for part in (rows[:cut], rows[cut:]):
        if part:
            check.add(batch_of(part))
    assert check.holds is all(compared(a, b) <= 0 for a, b in pairwise(rows)), (terms, rows)


def test_a_nan_that_is_first_by_the_text_and_last_in_java_is_in_no_order() -> None:
    schema = parse_schema("d double")
    negative = np.array([np.copysign(np.nan, -1)])
    for values in (np.concatenate([negative, [1.0]]), np.concatenate([[1.0], negative])):
        check = OrderCheck(schema, parse_order_by(["d"], schema))
        check.add(pa.RecordBatch.from_arrays([pa.array(values)], schema=arrow_schema(schema)))
        assert not check.holds


def test_an_order_is_known_up_to_what_cannot_be_computed() -> None:
    schema = parse_schema("a int, b int, c list<int>")
    order = parse_order_by(["a", "b"], schema)
    a, b = order.fields
    assert list(known_fields(order, schema)) == [a, b]
    unknown = SortOrder((a, replace(b, transform=Unknown("zorder"))), 1)
    assert list(known_fields(unknown, schema)) == [a]
    assert list(known_fields(order, Schema(schema.fields[1:]))) == []
