"""Random manifests: partition tuples of every type, statistics, statuses; as Arrow tables and as plain rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from random import Random
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from icefield.codec.manifest.header import ManifestHeader
from icefield.codec.manifest.schema import ADDED, entry_arrow_schema
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
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

LOCATION = "s3://lake/metadata/m0.avro"

Draw = Callable[[Random], Any]


def integers(bits: int) -> Draw:
    """Integers of all sizes, often at the edges."""
    edges = [0, 1, -1, 63, 64, -64, -65, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))]
    return lambda rng: rng.choice(edges) if rng.random() < 0.4 else rng.getrandbits(rng.randint(1, bits - 1))


def counts(rng: Random) -> int:
    """Integers from 0."""
    return rng.choice([0, 1, 127, 128, 2**63 - 1]) if rng.random() < 0.3 else rng.getrandbits(rng.randint(1, 62))


def strings(rng: Random) -> str:
    """Short strings of all sorts of characters."""
    return "".join(rng.choice("ab/ä€🧊\x00") for _ in range(rng.randint(0, 8)))


def blobs(size: int | None = None) -> Draw:
    """Bytes, of a size or of any small one."""
    return lambda rng: rng.randbytes(rng.randint(0, 12) if size is None else size)


def decimals(digits: int, scale: int) -> Draw:
    """Decimals of so many digits, of both signs."""
    return lambda rng: Decimal(rng.choice([-1, 1]) * rng.randrange(10 ** rng.randint(1, digits))).scaleb(-scale, WIDE)


def maybe(draw: Draw) -> Draw:
    """A value, or null."""
    return lambda rng: None if rng.random() < 0.3 else draw(rng)


def lists(draw: Draw) -> Draw:
    """Short lists."""
    return lambda rng: [draw(rng) for _ in range(rng.randint(0, 3))]


def maps(draw: Draw) -> Draw:
    """Maps by field id, in any order; also by the ids that are reserved for position deletes."""
    keys = [*range(1, 8), 40, 2147483545, 2147483546]
    return lambda rng: [(key, draw(rng)) for key in rng.sample(keys, rng.randint(0, 5))]


WIDE = Context(prec=60)
INTS, LONGS = integers(32), integers(64)

# Types with values as Arrow takes them from Python.
VALUES: list[tuple[PrimitiveType, Draw]] = [
    (BooleanType(), lambda rng: rng.random() < 0.5),
    (IntegerType(), INTS),
    (LongType(), LONGS),
    (FloatType(), lambda rng: rng.choice([0.0, -0.0, 1.5, -(2.0**100), float("inf")])),
    (DoubleType(), lambda rng: rng.choice([0.0, -0.0, rng.random(), -1e300, float("-inf")])),
    (DateType(), INTS),
    (TimeType(), lambda rng: rng.randrange(86_400_000_000)),
    (TimestampType(), LONGS),
    (TimestamptzType(), LONGS),
    (StringType(), strings),
    (UUIDType(), blobs(16)),
    (BinaryType(), blobs()),
    (FixedType(5), blobs(5)),
    (DecimalType(9, 2), decimals(9, 2)),
    (DecimalType(38, 0), decimals(38, 0)),
    (DecimalType(38, 38), decimals(38, 38)),
    (DecimalType(2, 1), decimals(2, 1)),
]


def header(version: int = 2, content: int = 0, partition: Sequence[NestedField] = ()) -> ManifestHeader:
    """A header whose spec has the partition fields by identity."""
    fields = ",".join(
        f'{{"name":"p{f.field_id}","transform":"identity","source-id":1,"field-id":{f.field_id}}}' for f in partition
    )
    schema = '{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"a","required":false,"type":"int"}]}'
    return ManifestHeader(schema, f"[{fields}]", 0, 0, version, content)


@dataclass(frozen=True)
class Manifest:
    """A table of entries as `encode_manifest` takes it, with its version and partition fields."""

    version: int
    partition: tuple[NestedField, ...]
    rows: list[dict[str, Any]]

    @property
    def table(self) -> pa.Table:
        return table(self.rows, self.partition)


def manifests(version: int | None = None, fields: Sequence[tuple[NestedField, Draw]] | None = None) -> Any:
    """A strategy for manifests; values come from rng, for they are many and hypothesis draws slowly."""
    return st.integers(0, 2**32).map(lambda seed: make_manifest(seed, version, fields))


def make_manifest(
    seed: int,
    version: int | None = None,
    fields: Sequence[tuple[NestedField, Draw]] | None = None,
    rows: int | None = None,
) -> Manifest:
    """A manifest from a seed."""
    rng = Random(seed)
    chosen = _partition(rng) if fields is None else fields
    drawn = rng.randint(1, 3) if version is None else version
    count = rng.choice([0, 1, 2, 3, 9]) if rows is None else rows
    entries = [_entry(rng, drawn, chosen) for _ in range(count)]
    return Manifest(drawn, tuple(field for field, _ in chosen), entries)


def manifest_row(rng: Random) -> dict[str, Any]:
    """One row of a v3 manifest list."""
    summary = {
        "contains_null": lambda d: d.random() < 0.5,
        "contains_nan": maybe(lambda d: d.random() < 0.5),
        "lower_bound": maybe(blobs()),
        "upper_bound": maybe(blobs()),
    }
    files = ("added_files_count", "existing_files_count", "deleted_files_count", "partition_spec_id")
    numbers = ("added_rows_count", "existing_rows_count", "deleted_rows_count", "manifest_length", "sequence_number")
    return (
        {name: rng.choice([0, 1, 2**31 - 1]) for name in files}
        | {name: counts(rng) for name in (*numbers, "min_sequence_number")}
        | {
            "manifest_path": strings(rng),
            "content": rng.randint(0, 1),
            "added_snapshot_id": LONGS(rng),
            "key_metadata": maybe(blobs())(rng),
            "first_row_id": maybe(counts)(rng),
            "partitions": maybe(lists(lambda d: {name: draw(d) for name, draw in summary.items()}))(rng),
        }
    )


def _partition(rng: Random) -> list[tuple[NestedField, Draw]]:
    chosen = rng.choices(VALUES, k=rng.randint(0, 4))
    return [
        (NestedField(1000 + i, rng.choice([f"p{i}", f"p.{i}", f"{i}ä"]), kind), draw)
        for i, (kind, draw) in enumerate(chosen)
    ]


def _entry(rng: Random, version: int, fields: Sequence[tuple[NestedField, Draw]]) -> dict[str, Any]:
    status = rng.randint(0, 2)
    entry = {
        "status": status,
        "snapshot_id": LONGS(rng) if version == 1 else maybe(LONGS)(rng),
        "content": rng.randint(0, 2) if version > 1 else 0,
        "file_path": strings(rng),
        "file_format": rng.choice(["PARQUET", "AVRO", "ORC", "PUFFIN"]),
        "record_count": counts(rng),
        "file_size_in_bytes": counts(rng),
    }
    number = maybe(counts) if status == ADDED else counts
    optional = _OPTIONAL[1] | (_OPTIONAL[2] | dict.fromkeys(_NUMBERS, number) if version > 1 else {})
    for name, draw in (optional | (_OPTIONAL[3] if version > 2 else {})).items():
        entry[name] = draw(rng) if name in _NUMBERS else maybe(draw)(rng)
    for field, draw in fields:
        entry[f"partition.{field.field_id}"] = maybe(draw)(rng)
    return entry


_NUMBERS = ("sequence_number", "file_sequence_number")
# Optional columns by the version that brought them.
_OPTIONAL: dict[int, dict[str, Draw]] = {
    1: {
        "column_sizes": maps(counts),
        "value_counts": maps(counts),
        "null_value_counts": maps(counts),
        "nan_value_counts": maps(counts),
        "lower_bounds": maps(blobs()),
        "upper_bounds": maps(blobs()),
        "key_metadata": blobs(),
        "split_offsets": lists(counts),
        "sort_order_id": INTS,
    },
    2: {"equality_ids": lists(lambda rng: rng.choice([1, 64, 2**31 - 1])), "referenced_data_file": strings},
    3: {"first_row_id": counts, "content_offset": counts, "content_size_in_bytes": counts},
}


def table(rows: Sequence[dict[str, Any]], partition: Sequence[NestedField] = ()) -> pa.Table:
    """Entries as an Arrow table."""
    schema = entry_arrow_schema(partition)
    return pa.table([array([row.get(f.name) for row in rows], f.type) for f in schema], schema=schema)


def array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An Arrow array; dates and times from integers, which Python's own types cannot all hold."""
    if pa.types.is_date32(kind):
        return pa.array(values, pa.int32()).view(kind)
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return pa.array(values, pa.int64()).view(kind)
    return pa.array(values, kind)


def plain(column: pa.ChunkedArray) -> list[Any]:
    """The values as Avro has them: dates and times as integers, maps as lists of pairs."""
    flat = column.combine_chunks()
    if pa.types.is_date32(flat.type):
        flat = flat.view(pa.int32())
    if pa.types.is_timestamp(flat.type) or pa.types.is_time64(flat.type):
        flat = flat.view(pa.int64())
    values: list[Any] = flat.to_pylist()
    return values


def entry(**changes: Any) -> dict[str, Any]:
    """One ordinary entry."""
    return {
        "status": 1,
        "content": 0,
        "file_path": "s3://lake/data/0.parquet",
        "file_format": "PARQUET",
        "record_count": 10,
        "file_size_in_bytes": 100,
    } | changes
