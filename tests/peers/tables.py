"""The tables that other engines are given to read, and the rows that they must find in them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from icefield import Lake, Table
from tests.peers.predicates import Predicate
from tests.peers.samples import SAMPLES

NAMESPACE = "peers"


@dataclass(frozen=True)
class Append:
    """Add rows."""

    rows: pa.Table


@dataclass(frozen=True)
class Overwrite:
    """Replace the rows that match, or all."""

    rows: pa.Table
    where: Predicate | None = None


@dataclass(frozen=True)
class TableCase:
    """A table, how it is written, and thereby what is in it."""

    name: str
    schema: pa.Schema
    steps: Sequence[Append | Overwrite]
    partition_by: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        return f"{NAMESPACE}.{self.name}"

    def rows(self) -> pa.Table:
        """Return what is in the table after all steps."""
        return self.versions()[-1]

    def versions(self) -> list[pa.Table]:
        """Return what is in the table after each step."""
        found = [self.schema.empty_table()]
        for step in self.steps:
            found.append(pa.concat_tables([_kept(found[-1], step), step.rows]))
        return found[1:]

    def build(self, lake: Lake) -> Table:
        """Write the table."""
        table = lake.create_table(
            self.full_name, self.schema, partition_by=self.partition_by, properties=dict(self.properties)
        )
        for step in self.steps:
            if isinstance(step, Append):
                table.append(step.rows)
            else:
                table.overwrite(step.rows, where=step.where and step.where.icefield())
        return table


def primitives() -> TableCase:
    """All types, unpartitioned, a few rows per file so that each file has bounds of its own."""
    return TableCase("primitives", sample_schema(SAMPLES), _in_parts(sample_rows(SAMPLES)))


def partitioned(name: str, transform: str) -> TableCase:
    """One type, partitioned by one transform of it; `{}` stands for the column."""
    rows = sample_rows([name])
    word = transform.partition("(")[0].replace("{}", "identity")
    return TableCase(f"{word}_{name}", rows.schema, _in_parts(rows, 6), [transform.format(column(name))])


PARTITIONED: tuple[tuple[str, str], ...] = (
    *((name, "{}") for name in SAMPLES),
    *((name, "bucket(5, {})") for name in SAMPLES if name not in ("boolean", "float", "double")),
    *((name, "truncate(10, {})") for name in ("int", "long", "decimal_20_3", "string", "binary")),
    *((name, f"{unit}({{}})") for name in ("date", "timestamp", "timestamptz") for unit in ("year", "month", "day")),
    *((name, "hour({})") for name in ("timestamp", "timestamptz")),
    ("string", "void({})"),
)


def partitioned_tables() -> list[TableCase]:
    """Each transform on each type that it takes."""
    return [partitioned(name, transform) for name, transform in PARTITIONED]


def several_fields() -> TableCase:
    """Four partition fields at once, one of them void, one of a nested column."""
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("region", pa.string()),
            ("at", pa.timestamp("us", "UTC")),
            ("who", pa.struct([("name", pa.string()), ("age", pa.int32())])),
        ]
    )
    moments = SAMPLES["timestamptz"].values
    rows = [
        {
            "id": i,
            "region": [None, "eu", "us", "a/b c=%ü"][i % 4],
            "at": [None, *moments][i % 9],
            "who": None if i % 7 == 0 else {"name": None if i % 5 == 0 else f"n{i % 3}", "age": i},
        }
        for i in range(36)
    ]
    fields = ["region", "day(at)", "bucket(3, id)", "void(who.age)", "truncate(1, who.name)"]
    return TableCase("several_fields", schema, _in_parts(pa.Table.from_pylist(rows, schema), 12), fields)


def odd_names() -> TableCase:
    """Columns whose names no path, no Avro schema and no query takes as they are."""
    names = ["a blank", "100%", "a/b", "a=b", "ünïcödé", "it's", 'a"b', "1st", "a-b", "\U0001f9ca"]
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), *((name, pa.string()) for name in names)])
    texts = [*SAMPLES["string"].values[:4], None, "日本語"]
    rows = [{"id": i, **{name: texts[(i + k) % 6] for k, name in enumerate(names)}} for i in range(6)]
    partition = [f"`{name}`" for name in names]
    return TableCase("odd_names", schema, _in_parts(pa.Table.from_pylist(rows, schema), 3), partition)


def nested() -> TableCase:
    """Structs, lists and maps: null, empty, with nulls inside, inside each other."""
    point = pa.struct([pa.field("x", pa.float64(), nullable=False), ("y", pa.int32())])
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            ("s", pa.struct([("a", pa.int32()), ("b", pa.string()), ("p", point)])),
            ("l", pa.list_(pa.string())),
            ("m", pa.map_(pa.string(), pa.int64())),
            ("ls", pa.list_(point)),
            ("ll", pa.list_(pa.list_(pa.date32()))),
            ("sl", pa.struct([("l", pa.list_(pa.decimal128(20, 3))), ("m", pa.map_(pa.int32(), pa.bool_()))])),
            ("ml", pa.map_(pa.string(), pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.binary()))])))),
        ]
    )
    return TableCase("nested", schema, _in_parts(pa.Table.from_pylist(_nested_rows(), schema), 2))


def beyond_the_calendar() -> TableCase:
    """Dates and times that Python's calendar does not reach."""
    schema = pa.schema(
        [("id", pa.int64()), ("d", pa.date32()), ("t", pa.timestamp("us")), ("z", pa.timestamp("us", "UTC"))]
    )
    days = pa.array([-1_000_000, 3_000_000, 0, None], pa.int32())
    micros = pa.array([-86_400_000_000 * 1_000_000, 86_400_000_000 * 3_000_000, 0, None], pa.int64())
    columns = [
        pa.array(range(4), pa.int64()),
        days.cast(pa.date32()),
        *(micros.cast(schema.field(i).type) for i in (2, 3)),
    ]
    return TableCase("beyond_the_calendar", schema, _in_parts(pa.Table.from_arrays(columns, schema=schema), 2))


def many_row_groups() -> TableCase:
    """Files of several row groups, and more than one file from one append."""
    rows = pa.table(
        {"id": pa.array(range(20_000), pa.int64()), "text": [f"row {i:06d} {i * 7919}" for i in range(20_000)]}
    )
    steps = [Append(pa.Table.from_batches(rows.to_batches(max_chunksize=500)))]
    small = {"write.parquet.row-group-size-bytes": "50000", "write.target-file-size-bytes": "100000"}
    return TableCase("many_row_groups", rows.schema, steps, properties=small)


def overwritten() -> TableCase:
    """A partitioned table that was overwritten in part, in whole, and in part again."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("k", pa.string()), ("v", pa.int32())])

    def rows(start: int, stop: int) -> pa.Table:
        made = [{"id": i, "k": [None, "a", "b"][i % 3], "v": None if i % 5 == 0 else i} for i in range(start, stop)]
        return pa.Table.from_pylist(made, schema)

    steps = [
        Append(rows(0, 10)),
        Overwrite(rows(10, 20), Predicate("k", "=", ("a",))),  # whole files go
        Overwrite(rows(20, 25), Predicate("v", "<", (12,))),  # files that match in part are written again
        Append(rows(25, 30)),
        Overwrite(rows(30, 40)),
        Append(rows(40, 45)),
        Overwrite(rows(0, 0), Predicate("id", ">=", (42,))),  # a plain delete
        Overwrite(rows(50, 53), Predicate("k", "is null")),
    ]
    return TableCase("overwritten", schema, steps, ["k"])


def small_tables() -> list[TableCase]:
    """All that are not about one partition transform."""
    makers = (several_fields, odd_names, nested, beyond_the_calendar, many_row_groups, overwritten)
    return [primitives(), *(make() for make in makers)]


def all_tables() -> list[TableCase]:
    """Every table."""
    return [*small_tables(), *partitioned_tables()]


def column(sample: str) -> str:
    """Name the column that holds a sample."""
    return f"c_{sample}"


def sample_schema(names: Sequence[str] | Mapping[str, Any]) -> pa.Schema:
    return pa.schema([pa.field("id", pa.int64(), nullable=False), *((column(n), SAMPLES[n].type) for n in names)])


def sample_rows(names: Sequence[str] | Mapping[str, Any]) -> pa.Table:
    """Put the samples side by side: row i has the i-th value of each; the last rows are nulls, and NaN stands alone."""
    longest = max(len(SAMPLES[name].values) for name in names)
    columns = [pa.array(range(longest + 3), pa.int64())]
    for name in names:
        values = list(SAMPLES[name].values)
        cycled = [values[i % len(values)] for i in range(longest)]
        columns.append(_array([*cycled, None, None, None], SAMPLES[name].type))
    return pa.Table.from_arrays(columns, schema=sample_schema(names))


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if kind == pa.uuid():
        blobs = pa.array([None if v is None else v.bytes for v in values], pa.binary(16))
        return pa.ExtensionArray.from_storage(kind, blobs)
    return pa.array(values, kind)


def _in_parts(rows: pa.Table, size: int = 3) -> list[Append | Overwrite]:
    return [Append(rows.slice(start, size)) for start in range(0, rows.num_rows, size)]


def _kept(rows: pa.Table, step: Append | Overwrite) -> pa.Table:
    if isinstance(step, Append):
        return rows
    if step.where is None:
        return rows.slice(0, 0)
    return rows.filter(pa.array([not hit for hit in step.where.matches(rows)], pa.bool_()))


def _nested_rows() -> Iterator[dict[str, Any]] | list[dict[str, Any]]:
    point, days = {"x": 1.5, "y": None}, SAMPLES["date"].values
    deep = [("k", [{"m": [("kk", b"\0\xff"), ("nil", None)]}, None, {"m": None}, {"m": []}]), ("none", None), ("e", [])]
    return [
        {"id": 0},
        {
            "id": 1,
            "s": {"a": 1, "b": "one", "p": point},
            "l": ["a", None, ""],
            "m": [("x", 1), ("y", None)],
            "ls": [point, {"x": -0.0, "y": 3}],
            "ll": [[days[0], None], [], None, [days[-1]]],
            "sl": {"l": [], "m": [(1, True), (-1, None)]},
            "ml": deep,
        },
        {"id": 2, "s": {"a": None, "b": None, "p": None}, "l": [], "m": [], "ls": [], "ll": [], "sl": {}, "ml": []},
        {"id": 3, "s": {"a": 9, "b": None, "p": {"x": float("nan"), "y": 0}}, "ls": [None, point], "ll": [[]]},
        {"id": 4, "s": None, "l": None, "m": None, "ls": None, "ll": None, "sl": None, "ml": None},
        {
            "id": 5,
            "s": {"a": -5, "b": "five", "p": {"x": 5.0, "y": 5}},
            "l": ["z"],
            "m": [("z", -1)],
            "ml": [("q", [])],
        },
    ]
