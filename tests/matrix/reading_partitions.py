"""Partitions of the matrix's tables: drawn terms, and rows of files that another writer puts into one partition."""

from collections.abc import Sequence
from copy import deepcopy
from random import Random
from typing import Any

from tests.histories.model import Model, Row
from tests.matrix.reading_filters import places
from tests.matrix.writing_model import transformed

from icefield.model.partition import PartitionSpec, parse_transform_call
from icefield.table.table import Table
from icefield.types.datatypes import DecimalType, NestedField, PrimitiveType, walk
from icefield.types.transforms import Identity, Void

TRANSFORMS = ("{}", "{}", "bucket(3, {})", "truncate(2, {})", "year({})", "month({})", "day({})", "hour({})")
ABSENT = 0.3


def draw_term(random: Random, fields: Sequence[NestedField]) -> str:
    """Draw a column to partition by, at any depth, and a transform that it can have."""
    place = random.choice([p for p in places(fields) if p.fields[0].name != "id" and _transforms_of(p.kind)])
    return random.choice(_transforms_of(place.kind)).format(place.quoted)


def put_into_one_partition(random: Random, rows: Sequence[Row], spec: PartitionSpec, model: Model) -> set[int]:
    """Give all rows the partition of the first; return columns whose values only the manifest has.

    A file need not hold a column that it is partitioned by as it is. (spec: Column Projection)
    """
    sources = {f.source_id: f.transform for f in spec.fields if not isinstance(f.transform, Void)}
    tops = {f.field_id for f in model.fields for i in sources if model.schema.paths[i][0] == f.name}
    for row in rows:
        row.update({i: deepcopy(rows[0][i]) for i in tops})  # a row of the model is changed apart from the others
    whole = {i for i, transform in sources.items() if isinstance(transform, Identity) and i in tops}
    return {i for i in sorted(whole) if random.random() < ABSENT}


def partition_of(row: Row, spec: PartitionSpec, model: Model) -> dict[str, Any]:
    """Return the partition of a row, by the names of the partition fields."""
    by_id = {p.fields[-1].field_id: p for p in places(model.fields)}
    found: dict[str, Any] = {}
    for each in spec.fields:
        place = by_id.get(each.source_id)
        found[each.name] = place and transformed(place.value(row), place.kind, each.transform)
    return found


def is_partition_source(table: Table, field: NestedField) -> bool:
    """Return whether a file of the table was ever partitioned by a column, or by one inside it."""
    inside = {field.field_id, *(f.field_id for _, f in walk(field.type))}
    return any(f.source_id in inside for spec in table.metadata.specs for f in spec.fields)


def _transforms_of(kind: PrimitiveType) -> list[str]:
    # The lowest decimals have no truncated value of their own type, and are refused.
    known = TRANSFORMS if not isinstance(kind, DecimalType) else [t for t in TRANSFORMS if "truncate" not in t]
    return [text for text in known if parse_transform_call(text.format("x"))[0].fits(kind)]
