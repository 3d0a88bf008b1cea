"""Random but seeded writes: a table, the rows that it has, a frame, a verb, and the session that it runs in.

`make_case(seed)` is the whole case; the same seed makes the same case everywhere.
"""

import random
from dataclasses import dataclass, field, replace
from typing import Any

from tests.matrix.writing_values import any_value, edges

from icefield.types.datatypes import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UUIDType,
)
from icefield.types.schema import Schema, assign_fresh_ids
from icefield.types.transforms import Bucket, Day, Hour, Identity, Month, Transform, Truncate, Void, Year

# Spark has no type for these: a frame cannot name such a column.
NOT_FROM_SPARK = (TimeType, FixedType, TimestampNsType, TimestamptzNsType)
KINDS: tuple[PrimitiveType, ...] = (
    BooleanType(),
    IntegerType(),
    LongType(),
    FloatType(),
    DoubleType(),
    DateType(),
    TimestampType(),
    TimestamptzType(),
    StringType(),
    UUIDType(),
    BinaryType(),
    DecimalType(9, 2),
    DecimalType(18, 18),
    DecimalType(38, 10),
    TimeType(),
    FixedType(5),
)
OF_VERSION_3: tuple[PrimitiveType, ...] = (TimestampNsType(), TimestamptzNsType())
NAMES = ("a", "A", "p0", "s0", "c1", "r0", "icefield_key_0", "_row_id", "ünï", "two words", "${y}", "x=y/z", "B")
INNER = ("a", "A", "value", "_pos")
TRANSFORMS: tuple[Transform, ...] = (Year(), Month(), Day(), Hour(), Bucket(3), Bucket(16), Truncate(2), Truncate(10))
VERBS = ("append", "append", "overwrite", "overwrite", "overwrite_partitions", "source_append", "source_overwrite")
SETTINGS = {
    "spark.sql.ansi.enabled": ("true", "false"),
    "spark.sql.session.timeZone": ("UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"),
    "spark.sql.caseSensitive": ("false", "true"),
    "spark.sql.adaptive.enabled": ("true", "true", "false"),
    "spark.sql.execution.arrow.maxRecordsPerBatch": ("10000", "7"),
    "spark.sql.execution.arrow.useLargeVarTypes": ("false", "true"),
    "spark.sql.timestampType": ("TIMESTAMP_LTZ", "TIMESTAMP_NTZ"),
}
FIRST_NEW = 1000  # rows of the frame have ids from here on
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One write. Columns of `given` are those of the frame, some of them narrower than the table's."""

    seed: int
    version: int
    schema: Schema
    partition_by: tuple[tuple[Transform, str], ...]
    order_by: tuple[tuple[Transform, str, str], ...]
    verb: str
    mode: str
    settings: dict[str, str]
    given: tuple[NestedField, ...]
    collated: frozenset[str]
    before: list[Row] = field(repr=False)
    rows: list[Row] = field(repr=False)


def make_case(seed: int) -> Case:
    """Draw a case."""
    rng = random.Random(seed)
    version = rng.choice((1, 2, 3, 3))
    fields = _draw_fields(rng, version)
    sources = [source for f in fields for source in _sources(f)]
    partition_by = _draw_terms(rng, sources, rng.choice((0, 1, 1, 2)))
    ordered_by = _draw_terms(rng, sources, rng.choice((0, 1, 2)))
    order_by = tuple((*term, rng.choice(("asc", "desc", "asc nulls last", "desc nulls first"))) for term in ordered_by)
    truncated = {name for transform, name in (*partition_by, *ordered_by) if isinstance(transform, Truncate)}
    defaults = _draw_defaults(rng, fields) if version == 3 else {}
    schema = assign_fresh_ids(Schema(tuple(_with_defaults(f, defaults) for f in fields)))
    given = _draw_given(rng, schema.fields)
    return Case(
        seed=seed,
        version=version,
        schema=schema,
        partition_by=partition_by,
        order_by=order_by,
        verb=rng.choice(VERBS),
        mode=rng.choice(("none", "hash", "range")),
        settings={key: rng.choice(values) for key, values in SETTINGS.items()},
        given=given,
        collated=frozenset(f.name for f in given if isinstance(f.type, StringType) and rng.random() < 0.3),
        before=_draw_rows(rng, schema.fields, (5, 995, 1005), truncated),
        rows=_draw_rows(rng, given, (FIRST_NEW, 2000, 3000), truncated),
    )


def _draw_fields(rng: random.Random, version: int) -> list[NestedField]:
    kinds = (*KINDS, *OF_VERSION_3) if version == 3 else KINDS
    names = rng.sample(NAMES, rng.randrange(3, 9))
    fields = [NestedField(1, "id", LongType())]
    for at, name in enumerate(names):
        kind: Type = rng.choice(kinds)
        shape = rng.random()
        if shape < 0.2:
            inner = rng.sample(INNER, 2)
            parts = (NestedField(100 + at * 4 + i, n, rng.choice(kinds)) for i, n in enumerate(inner))
            kind = StructType(tuple(parts))
        elif shape < 0.27:
            kind = ListType(100 + at * 4, kind, False)
        elif shape < 0.34:
            kind = MapType(100 + at * 4, StringType(), 101 + at * 4, kind, False)
        fields.append(NestedField(2 + at, name, kind))
    return fields


def _sources(field: NestedField) -> list[tuple[str, PrimitiveType]]:
    if isinstance(field.type, StructType):
        return [(f"`{field.name}`.`{f.name}`", f.type) for f in field.type.fields if isinstance(f.type, PrimitiveType)]
    return [(f"`{field.name}`", field.type)] if isinstance(field.type, PrimitiveType) else []


def _draw_terms(
    rng: random.Random, sources: list[tuple[str, PrimitiveType]], count: int
) -> tuple[tuple[Transform, str], ...]:
    terms = []
    for name, kind in rng.sample(sources, min(count, len(sources))):
        fitting = [t for t in TRANSFORMS if t.fits(kind)]
        terms.append((rng.choice((Identity(), *fitting, *fitting)), name))
    return tuple(terms)


def spelled(transform: Transform, source: str) -> str:
    """Write a term as users do."""
    match transform:
        case Identity():
            return source
        case Bucket(number) | Truncate(number):
            word = "bucket" if isinstance(transform, Bucket) else "truncate"
            return f"{word}({number}, {source})"
        case _:
            assert not isinstance(transform, Void)
            return f"{transform}({source})"


def _draw_defaults(rng: random.Random, fields: list[NestedField]) -> dict[str, Any]:
    """Draw write defaults of columns, some of them inside structs; floats that JSON lacks cannot be one."""
    found = {}
    for name, kind in (source for f in fields[1:] for source in _sources(f)):
        values = [v for v in edges(kind) if not isinstance(v, float) or abs(v) < 1e30]
        if rng.random() < 0.4:
            found[name] = rng.choice(values)
    return found


def _with_defaults(field: NestedField, defaults: dict[str, Any], path: str = "") -> NestedField:
    own = f"{path}`{field.name}`"
    if isinstance(field.type, StructType):
        inner = (_with_defaults(f, defaults, f"{own}.") for f in field.type.fields)
        return replace(field, type=StructType(tuple(inner)))
    return replace(field, write_default=defaults.get(own))


def _draw_given(rng: random.Random, fields: tuple[NestedField, ...]) -> tuple[NestedField, ...]:
    kept = [fields[0]]
    for f in fields[1:]:
        if isinstance(f.type, StructType):
            inner = tuple(g for g in (_given(rng, part) for part in f.type.fields) if g is not None)
            if inner:
                kept.append(replace(f, type=StructType(tuple(rng.sample(inner, len(inner))))))
        elif (given := _given(rng, f)) is not None:
            kept.append(given)
    return tuple(rng.sample(kept, len(kept)))


def _given(rng: random.Random, field: NestedField) -> NestedField | None:
    inner = (field.type.element_type,) if isinstance(field.type, ListType) else ()
    inner = (field.type.value_type,) if isinstance(field.type, MapType) else inner
    if rng.random() < 0.25 or isinstance((inner or (field.type,))[0], NOT_FROM_SPARK):
        return None
    narrower: dict[Type, Type] = {
        LongType(): IntegerType(),
        DoubleType(): FloatType(),
        DecimalType(38, 10): DecimalType(20, 10),
    }
    if rng.random() < 0.3 and field.type in narrower:
        return replace(field, type=narrower[field.type])
    return field


def _draw_rows(
    rng: random.Random, fields: tuple[NestedField, ...], ids: tuple[int, ...], truncated: set[str]
) -> list[Row]:
    rows = []
    for start in ids:
        for at in range(rng.randrange(4, 12)):
            row = {f.name: draw_value(rng, f.type, f"`{f.name}`", truncated) for f in fields}
            rows.append(row | {"id": start + at})
    return rows


def draw_value(rng: random.Random, kind: Type, path: str, truncated: set[str]) -> Any:
    """Draw a value; that of a struct is a dict, of a map a list of pairs."""
    if rng.random() < 0.15:
        return None
    match kind:
        case StructType(fields):
            return {f.name: draw_value(rng, f.type, f"{path}.`{f.name}`", truncated) for f in fields}
        case ListType():
            return [draw_value(rng, kind.element_type, "", set()) for _ in range(rng.randrange(3))]
        case MapType():
            keys = rng.sample(("k", "é", ""), rng.randrange(3))
            return [(key, draw_value(rng, kind.value_type, "", set())) for key in keys]
        case DateType():
            value = any_value(kind, rng)
            return value if abs(value) < 4_000_000 else 0
        case DecimalType() if path in truncated:
            # Near the low end a truncated value may not fit its type: that is refused, see test_write_frames.
            return any_value(kind, rng).copy_abs()
        case _:
            assert isinstance(kind, PrimitiveType)
            return any_value(kind, rng)
