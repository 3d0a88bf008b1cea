"""The tables that other engines are given to read, and what they are asked about them."""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from tests.peers.case import KEY, Append, Overwrite, TableCase, in_parts
from tests.peers.predicates import Predicate, every_predicate, some_predicates
from tests.peers.samples import NAN, SAMPLES

ROWS_PER_APPEND = 3

# A transform and the samples that it is used on; `{}` stands for the column.
TRANSFORMS: tuple[tuple[str, Iterable[str]], ...] = (
    ("{}", SAMPLES),
    ("bucket(5, {})", [name for name in SAMPLES if name not in ("boolean", "float", "double")]),
    ("truncate(10, {})", ("int", "long", "decimal_20_3", "string", "binary")),
    ("year({})", ("date", "timestamp", "timestamptz")),
    ("month({})", ("date", "timestamp", "timestamptz")),
    ("day({})", ("date", "timestamp", "timestamptz")),
    ("hour({})", ("timestamp", "timestamptz")),
    ("void({})", ("string",)),
)


def all_tables() -> list[TableCase]:
    """Every table."""
    return [*assorted_tables(), *partitioned_tables()]


def assorted_tables() -> list[TableCase]:
    """All that are not about one partition transform."""
    return [
        primitives(),
        several_fields(),
        odd_names(),
        nested(),
        beyond_the_calendar(),
        many_row_groups(),
        overwritten(),
        empty(),
    ]


def partitioned_tables() -> list[TableCase]:
    """Each transform on each type that it takes."""
    return [_partitioned(transform, name) for transform, names in TRANSFORMS for name in names]


def primitives() -> TableCase:
    """All types, unpartitioned, a few rows per file so that each file has bounds of its own."""
    rows = _sample_rows({name: sample.values for name, sample in SAMPLES.items()})
    asks = [ask for name in SAMPLES for ask in every_predicate(column(name), SAMPLES[name].values)]
    return TableCase("primitives", rows.schema, in_parts(rows, ROWS_PER_APPEND), asks=asks)


def several_fields() -> TableCase:
    """Five partition fields at once, one of them void, two of them of nested columns."""
    who = pa.struct([("name", pa.string()), ("age", pa.int32())])
    schema = _schema(region=pa.string(), at=pa.timestamp("us", "UTC"), who=who)
    moments, regions = [None, *SAMPLES["timestamptz"].values], [None, "eu", "us", "a/b c=%ü"]
    rows = [
        {
            "id": i,
            "region": regions[i % 4],
            "at": moments[i % 9],
            "who": None if i % 7 == 0 else {"name": None if i % 5 == 0 else f"n{i % 3}", "age": i},
        }
        for i in range(24)
    ]
    asks = [
        *some_predicates("region", regions[1:]),
        *some_predicates("at", moments[2:8]),
        *some_predicates("who.name", ["n0", "n1", "n2"]),
        *some_predicates("who.age", [1, 11, 22]),
        *some_predicates("id", [0, 11, 23]),
    ]
    fields = ["region", "day(at)", "bucket(3, id)", "void(who.age)", "truncate(1, who.name)"]
    steps = in_parts(pa.Table.from_pylist(rows, schema), 12)
    return TableCase("several_fields", schema, steps, fields, asks=asks)


def odd_names() -> TableCase:
    """Columns whose names no path, no Avro schema and no query takes as they are, all of them partition fields."""
    names = ["a blank", "100%", "a/b", "a=b", "it's", 'a"b', "1st", "a-b", "\U0001f9ca"]
    strings = [*SAMPLES["string"].values[:4], None, "日本語"]
    schema = _schema(**dict.fromkeys(names, pa.string()), ünïcödé=pa.string())
    rows = [{"id": i, **{name: strings[(i + k) % 6] for k, name in enumerate(schema.names[1:])}} for i in range(6)]
    asks = [
        Predicate(name, op, given) for name in schema.names[1:] for op, given in (("=", (strings[3],)), ("is null", ()))
    ]
    steps = in_parts(pa.Table.from_pylist(rows, schema), ROWS_PER_APPEND)
    return TableCase("odd_names", schema, steps, [f"`{name}`" for name in names], asks=asks)


def nested() -> TableCase:
    """Structs, lists and maps: null, empty, with nulls inside, inside each other."""
    version = pa.struct([pa.field("x", pa.float64(), nullable=False), ("y", pa.int32())])
    schema = _schema(
        s=pa.struct([("a", pa.int32()), ("b", pa.string()), ("p", version)]),
        l=pa.list_(pa.string()),
        m=pa.map_(pa.string(), pa.int64()),
        ls=pa.list_(version),
        ll=pa.list_(pa.list_(pa.date32())),
        sl=pa.struct([("l", pa.list_(pa.decimal128(20, 3))), ("m", pa.map_(pa.int32(), pa.bool_()))]),
        ml=pa.map_(pa.string(), pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.binary()))]))),
    )
    asks = [
        *some_predicates("s.a", [-5, 1, 9]),
        *some_predicates("s.b", ["five", "one"]),
        *some_predicates("s.p.y", [0, 5]),
    ]
    return TableCase("nested", schema, in_parts(pa.Table.from_pylist(_nested_rows(), schema), 2), asks=asks)


def beyond_the_calendar() -> TableCase:
    """Dates and times that Python's calendar does not reach."""
    schema = _schema(d=pa.date32(), t=pa.timestamp("us"), z=pa.timestamp("us", "UTC"))
    days = pa.array([-1_000_000, 3_000_000, 0, None])
    micros = pa.array([-1_000_000 * 86_400_000_000, 3_000_000 * 86_400_000_000, 0, None])
    columns = [pa.array(range(4)), days.cast(pa.int32()), micros, micros]
    rows = pa.Table.from_arrays([c.cast(f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
    return TableCase("beyond_the_calendar", schema, in_parts(rows, 2))


def many_row_groups() -> TableCase:
    """Files of several row groups, and more than one file from one append; the greatest value is in no last group."""
    schema = _schema(text=pa.string())
    rows = pa.Table.from_pylist([{"id": i, "text": f"row {i:05d} {i * 7919}"} for i in range(10_000)], schema)
    batches = [rows.slice(500 * (at ^ 1), 500) for at in range(20)]
    steps = [Append(pa.concat_tables(batches))]
    small = {"write.parquet.row-group-size-bytes": "50000", "write.target-file-size-bytes": "50000"}
    asks = [*some_predicates("id", [3, 4_999, 9_998]), *some_predicates("text", ["row 00007", "row 05", "row 09998 "])]
    return TableCase("many_row_groups", schema, steps, properties=small, asks=asks)


def overwritten() -> TableCase:
    """A partitioned table that was overwritten in part, in whole, and in part again."""
    schema = _schema(k=pa.string(), v=pa.int32())

    def rows(start: int, stop: int) -> pa.Table:
        made = [{"id": i, "k": [None, "a", "b"][i % 3], "v": None if i % 5 == 0 else i} for i in range(start, stop)]
        return pa.Table.from_pylist(made, schema)

    steps: list[Append | Overwrite] = [
        Append(rows(0, 10)),
        Overwrite(rows(10, 20), Predicate("k", "=", ("a",))),  # whole files go
        Overwrite(rows(20, 25), Predicate("v", "<", (12,))),  # files that match in part are written again
        Append(rows(25, 30)),
        Overwrite(rows(30, 40)),
        Append(rows(40, 45)),
        Overwrite(rows(0, 0), Predicate("id", ">=", (42,))),  # rows only go
        Overwrite(rows(50, 53), Predicate("k", "is null")),
    ]
    asks = [*some_predicates("k", ["a", "b"]), *some_predicates("v", [31, 41, 52]), *some_predicates("id", [31, 50])]
    return TableCase("overwritten", schema, steps, ["k"], asks=asks)


def empty() -> TableCase:
    """A table that was never written to."""
    return TableCase("empty", _schema(text=pa.string()), [], ["text"])


def column(sample: str) -> str:
    """Name the column that holds a sample."""
    return f"c_{sample}"


def _partitioned(transform: str, name: str) -> TableCase:
    values = SAMPLES[name].values
    word = transform.partition("(")[0].replace("{}", "identity")
    if word == "truncate":
        values = values[1:]  # the lowest number has no multiple of the width below it
    rows = _sample_rows({name: values})
    asks = list(some_predicates(column(name), values))
    return TableCase(f"{word}_{name}", rows.schema, in_parts(rows, 6), [transform.format(column(name))], asks=asks)


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(KEY, pa.int64(), nullable=False), *columns.items()])


def _sample_rows(samples: dict[str, Sequence[Any]]) -> pa.Table:
    """Put samples side by side: row i has the i-th value of each; the last rows have nulls, and so has a whole file."""
    rows = max(len(values) for values in samples.values())
    columns = [pa.array(range(rows + 4), pa.int64())]
    for name, values in samples.items():
        cycled = [values[i % len(values)] for i in range(rows)]
        columns.append(_array([*cycled, None, None, None, None], SAMPLES[name].type))
    return pa.Table.from_arrays(columns, schema=_schema(**{column(name): SAMPLES[name].type for name in samples}))


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if kind == pa.uuid():
        blobs = pa.array([None if v is None else v.bytes for v in values], pa.binary(16))
        return pa.ExtensionArray.from_storage(kind, blobs)
    return pa.array(values, kind)


def _nested_rows() -> list[dict[str, Any]]:
    version, days = {"x": 1.5, "y": None}, SAMPLES["date"].values
    maps: list[Any] = [{"m": [("kk", b"\0\xff"), ("nil", None)]}, None, {"m": None}, {"m": []}]
    return [
        {"id": 0},
        {
            "id": 1,
            "s": {"a": 1, "b": "one", "p": version},
            "l": ["a", None, ""],
            "m": [("x", 1), ("y", None)],
            "ls": [version, {"x": -0.0, "y": 3}],
            "ll": [[days[0], None], [], None, [days[-1]]],
            "sl": {"l": [], "m": [(1, True), (-1, None)]},
            "ml": [("k", maps), ("none", None), ("e", [])],
        },
        {"id": 2, "s": {"a": None, "b": None, "p": None}, "l": [], "m": [], "ls": [], "ll": [], "sl": {}, "ml": []},
        {"id": 3, "s": {"a": 9, "b": None, "p": {"x": NAN, "y": 0}}, "ls": [None, version], "ll": [[]]},
        {"id": 4, "s": None, "l": None, "m": None, "ls": None, "ll": None, "sl": None, "ml": None},
        {
            "id": 5,
            "s": {"a": -5, "b": "five", "p": {"x": 5.0, "y": 5}},
            "l": ["z"],
            "m": [("z", -1)],
            "ml": [("q", [])],
        },
    ]
