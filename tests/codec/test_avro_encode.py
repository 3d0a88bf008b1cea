"""A few rows, which are encoded value by value, have the same bytes as in a program for many rows."""

from collections.abc import Mapping
from random import Random

import pyarrow as pa
import pytest
from tests.effort import seeds

from icefield.codec.avro.arrow import arrow_type
from icefield.codec.avro.encode import encode_rows
from icefield.codec.avro.program import Path
from icefield.codec.avro.schema import ROOT_ID, Array, Field, Record, StringMap, Value
from icefield.errors import InvalidInput

pytestmark = pytest.mark.every_case

LIMITS = ("icefield.codec.avro.encode._FEW_ROWS", "icefield.codec.avro.encode._FEW_ELEMENTS")
VALUES = (
    Value("boolean"),
    Value("int"),
    Value("long"),
    Value("float"),
    Value("double"),
    Value("bytes"),
    Value("string"),
    Value("fixed", 5),
    Value("int", logical="date"),
    Value("long", logical="time-micros"),
    Value("long", logical="timestamp-micros", adjust_to_utc=True),
    Value("long", logical="timestamp-nanos"),
    Value("fixed", 3, "decimal", 5, 2),
    Value("fixed", 16, "decimal", 38, 10),
    Value("fixed", 20, "decimal", 38, 0),
    Value("bytes", 0, "decimal", 9, 2),
)
PAIRS = (Value("long"), Value("bytes"), Value("int"), Value("string"))
BATCH = 300


def stored(value: Value, rng: Random) -> bytes:
    """Draw the bytes of a value in an Arrow array, of any bit pattern."""
    if value.logical == "decimal":
        largest = 10 ** min(value.precision, 6)
        return rng.choice((0, -1, 1, largest - 1, 1 - largest)).to_bytes(16, "little", signed=True)
    if value.logical == "time-micros":
        return rng.randrange(86_400_000_000).to_bytes(8, "little")
    width = {"int": 4, "float": 4, "fixed": value.size}.get(value.kind, 8)
    edges = (b"\0" * width, b"\xff" * width, b"\xff" * (width - 1) + b"\x7f", b"\0" * (width - 1) + b"\x80")
    return rng.choice((*edges, rng.randbytes(width), rng.choice((5, 63, 64, 200)).to_bytes(width, "little")))


def values(value: Value, count: int, nulls: bool, rng: Random) -> pa.Array:
    """Draw a column with an offset, which is in the middle of longer buffers."""
    kind, present = arrow_type(value), [not nulls or rng.random() < 0.6 for _ in range(count + 3)]
    if value.kind == "boolean":
        whole = pa.array([rng.random() < 0.5 if there else None for there in present])
    elif value.kind in ("bytes", "string") and not value.logical:
        strings = ["", "a", "ä" * 40, "x" * 200]
        whole = pa.array([rng.choice(strings).encode() if there else None for there in present], pa.binary()).cast(kind)
    else:
        data = pa.py_buffer(b"".join(stored(value, rng) for _ in present))
        valid = pa.array(present).buffers()[1] if nulls else None
        whole = pa.Array.from_buffers(kind, len(present), [valid, data])
    return whole.slice(2, count)


def lists(items: Record | Value, keyed: bool, count: int, nulls: bool, rng: Random) -> pa.Array:
    """Draw lists or maps; a null one may have elements."""
    sizes = [rng.choice((0, 1, 3, 40)) for _ in range(count + 1)]
    offsets = pa.array([sum(sizes[:at]) for at in range(len(sizes) + 1)], pa.int32())
    if isinstance(items, Value):
        child, kind = values(items, sum(sizes), False, rng), pa.list_(arrow_type(items))
    else:
        columns = [
            values(f.node, sum(sizes), f.null_branch >= 0, rng) for f in items.fields if isinstance(f.node, Value)
        ]
        names = [
            pa.field(f.name, c.type, not keyed or at > 0)
            for at, (f, c) in enumerate(zip(items.fields, columns, strict=False))
        ]
        child = pa.StructArray.from_arrays(columns, fields=names)
        kind = pa.map_(columns[0].type, columns[1].type) if keyed else pa.list_(child.type)
        if keyed:
            child = pa.StructArray.from_arrays(columns, fields=[kind.key_field, kind.item_field])
    present = [not nulls or rng.random() < 0.6 for _ in sizes]
    valid = pa.array(present).buffers()[1] if nulls else None
    return pa.Array.from_buffers(kind, len(sizes), [valid, offsets.buffers()[1]], children=[child]).slice(1, count)


def draw(rng: Random) -> tuple[Record, Mapping[Path, pa.Array], int]:
    """Draw a schema, rows and their columns."""
    rows, fields, columns = rng.randint(0, 6), list[Field](), dict[Path, pa.Array]()
    for field_id in range(rng.randint(1, 8)):
        null = rng.choice((-1, 0, 1))
        kind = rng.randrange(5)
        node: Value | Array | StringMap = rng.choice(VALUES)
        if kind == 0:
            pair = Record((Field("key", 1, Value("int")), Field("value", 2, rng.choice(PAIRS))))
            node, column = Array(Field("pair", None, pair), keyed=True), lists(pair, True, rows, null >= 0, rng)
        elif kind == 1:
            record = Record(tuple(Field(f"f{at}", at, rng.choice(VALUES), rng.choice((-1, 0))) for at in range(3)))
            node, column = Array(Field("element", 9, record)), lists(record, False, rows, null >= 0, rng)
        elif kind == 2:
            item = rng.choice(VALUES)
            node, column = Array(Field("element", 9, item)), lists(item, False, rows, null >= 0, rng)
        elif kind == 3 and rng.random() < 0.3:
            node, column = StringMap(Field("value", 9, Value("long"))), values(Value("bytes"), rows, null >= 0, rng)
        else:
            assert isinstance(node, Value)
            column = values(node, rows, null >= 0, rng)
        fields.append(Field(f"f{field_id}", field_id, node, null))
        if null < 0 or rng.random() < 0.8:
            columns[ROOT_ID, field_id] = column
    inner = Field("inner", 99, Record((Field("a", 1, Value("long"), 0),)))
    return Record((*fields, inner)), columns, rows


@pytest.mark.parametrize("batch", seeds(1, deep=50))
@pytest.mark.parametrize("most_elements", [2, 1000])
def test_few_rows_have_the_same_bytes(batch: int, most_elements: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        schema, columns, rows = draw(Random(seed))
        encoded = []
        for most_rows, most in ((0, 0), (10, most_elements)):
            monkeypatch.setattr(LIMITS[0], most_rows if rows else -1)
            monkeypatch.setattr(LIMITS[1], most)
            data, ends = encode_rows(schema, columns, rows)
            encoded.append((data, ends.tolist()))
        assert encoded[0] == encoded[1], f"seed {seed}"


@pytest.mark.parametrize("rows", [1, 10])
def test_a_null_in_a_required_field_is_refused(rows: int) -> None:
    wanted = Record((Field("a", 1, Value("long")), Field("b", 2, Value("string"), 0)))
    column = pa.array([None] * rows, pa.int64())
    for given in ({(ROOT_ID, 1): column}, {}):
        with pytest.raises(InvalidInput, match="the required field 'a': it is null"):
            encode_rows(wanted, given, rows)
    of_text = pa.array(["x"] * rows)
    with pytest.raises(InvalidInput, match="cannot write the field 'a' as int64"):
        encode_rows(wanted, {(ROOT_ID, 1): of_text}, rows)
