"""What a condition says about one side alone."""

from random import Random

import pyarrow as pa
import pytest
from tests.effort import scaled
from tests.expr.value_cases import expression, filled, rows

from icefield.errors import InvalidInput, NeedsSpark
from icefield.expr.bind.bind import bind
from icefield.expr.bind.bound import TRUE
from icefield.expr.render.rows import matches
from icefield.expr.values.bind import parse_condition
from icefield.expr.values.conjuncts import find_equalities, side_filter
from icefield.expr.values.scope import Scope, Side
from icefield.types.arrow import python_values, schema_from_arrow
from icefield.types.datatypes import PrimitiveType, Value
from icefield.types.schema import Schema

COLUMNS = {
    "id": pa.int64(),
    "day": pa.date32(),
    "at": pa.timestamp("us"),
    "atz": pa.timestamp("us", "UTC"),
    "name": pa.string(),
    "x": pa.float64(),
    "address": pa.struct({"city": pa.string()}),
}
SCHEMA = schema_from_arrow(pa.schema(COLUMNS))
SCOPE = Scope((Side("target", SCHEMA), Side("source", SCHEMA)))


@pytest.mark.parametrize(
    ("condition", "target"),
    [
        ("target.id = source.id", "TRUE"),
        ("target.id = source.id AND target.day >= DATE '2026-01-01'", "day >= DATE '2026-01-01'"),
        ("target.id = source.id AND (target.name = 'a' OR target.id > 5)", "name = 'a' OR id > 5"),
        ("target.id > 1 OR source.id > 1", "TRUE"),
        ("source.id > 1 AND 3 > target.id", "id < 3"),
        ("upper(source.name) = 'A' AND target.id IN (1, 2)", "id IN (1, 2)"),
        ("target.address.city LIKE 'R%' AND NOT target.x IS NULL", "address.city LIKE 'R%' AND x IS NOT NULL"),
        ("target.id BETWEEN 1 AND 5 AND target.id + 1 = 3", "id BETWEEN 1 AND 5"),
        ("target.at >= TIMESTAMP_NTZ '2026-01-01 00:00:00'", "at >= TIMESTAMP_NTZ '2026-01-01 00:00:00'"),
        ("target.atz >= TIMESTAMP '2026-01-01 00:00:00Z'", "atz >= TIMESTAMP '2026-01-01 00:00:00Z'"),
        ("target.name <=> 'a' AND isnan(target.x)", "name = 'a' AND isnan(x)"),
        # These depend on the time zone of a session.
        ("target.atz >= TIMESTAMP '2026-01-01 00:00:00' AND target.id = 1", "id = 1"),
        ("target.atz >= DATE '2026-01-01'", "TRUE"),
        ("target.atz = '2026-01-01 00:00:00'", "TRUE"),
        ("target.atz = TIMESTAMP_NTZ '2026-01-01 00:00:00'", "TRUE"),
        ("target.day >= TIMESTAMP '2026-01-01 00:00:00Z'", "TRUE"),
        # Unknown syntax anywhere: nothing is known.
        ("target.id = 1 AND EXISTS (SELECT 1)", "TRUE"),
        ("target.id = 'abc'", "TRUE"),
        ("FALSE", "FALSE"),
        ("target.id = 1 AND NULL", "FALSE"),
    ],
)
def test_the_filter_of_one_side(condition: str, target: str) -> None:
    assert side_filter(condition, SCOPE, "target") == bind(target, SCHEMA)


@pytest.mark.parametrize("seed", range(2))
def test_the_filter_holds_for_every_row_for_which_the_condition_is_true(seed: int) -> None:
    random = Random(seed)
    batch = rows(random, 40).combine_chunks().to_batches()[0]
    schema = schema_from_arrow(batch.schema)
    scope = Scope((Side("target", schema),))
    values = [physical_row(batch.slice(row, 1), schema) for row in range(batch.num_rows)]
    used = 0
    for _ in range(scaled(150)):
        condition = " AND ".join(f"({random_condition(random)})" for _ in range(random.randint(1, 3)))
        filtered = side_filter(condition, scope, "target")
        used += filtered != TRUE
        for row in true_rows(condition, scope, batch):
            assert matches(filtered, values[row]), (condition, row)
    assert used > scaled(150) // 10


def random_condition(random: Random) -> str:
    simple = random.choice(
        [
            *(
                "{number} = 1",
                "{number} < 2.5",
                "0.1 >= {number}",
                "{string} LIKE 'a%'",
                "{string} = 'a'",
                "b",
                "NOT c",
            ),
            *("{date} >= DATE '1969-12-31'", "{string} IN ('a', 'b', NULL)", "{number} <=> 1", "{number} IS NULL"),
            *("isnan({number})", "{number} NOT IN (1, 2)", "tz < TIMESTAMP '1970-01-01 00:00:00Z'", "{int} <> 7"),
            *("{number} BETWEEN -1 AND 7", "ts > TIMESTAMP_NTZ '1969-12-31 00:00:00'", "day = '2026-01-31'"),
        ]
    )
    if random.random() < 0.3:
        return expression(random, "boolean", 2)
    return " OR ".join(filled(random, simple, "boolean", 1) for _ in range(random.randint(1, 2)))


def true_rows(condition: str, scope: Scope, batch: pa.RecordBatch) -> list[int]:
    """Return the rows for which a condition is true; none if it cannot be evaluated for all of them."""
    try:
        found = parse_condition(condition, scope).evaluate({"target": batch}, batch.num_rows).to_pylist()
    except (InvalidInput, NeedsSpark):
        return []
    return [row for row, value in enumerate(found) if value]


def physical_row(row: pa.RecordBatch, schema: Schema) -> dict[int, Value | None]:
    """Return the values of a row by field id."""
    return {
        field.field_id: python_values(array, field.type)[0]
        for field, array in zip(schema.fields, row.columns, strict=True)
        if isinstance(field.type, PrimitiveType)
    }


def test_the_other_side_has_its_own() -> None:
    condition = "target.id = source.id AND target.id > 1 AND source.name = 'a'"
    assert side_filter(condition, SCOPE, "source") == bind("name = 'a'", SCHEMA)


def test_equalities_are_in_the_order_of_the_sides() -> None:
    equalities, others = find_equalities(
        "source.id = target.id AND target.address.city = source.name AND target.id = 5 AND target.x = target.id", SCOPE
    )
    found = [((each.left.side, each.left.path), (each.right.side, each.right.path)) for each in equalities]
    assert found == [
        (("target", ("id",)), ("source", ("id",))),
        (("target", ("address", "city")), ("source", ("name",))),
    ]
    assert len(others) == 2
    assert find_equalities("target.id = source.id OR target.x = source.x", SCOPE)[0] == ()


def test_an_unknown_column_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="no column 'target.nope'"):
        side_filter("target.nope = 1", SCOPE, "target")
    with pytest.raises(InvalidInput, match="no column 'target.nope'"):
        find_equalities("target.nope = source.id", SCOPE)
