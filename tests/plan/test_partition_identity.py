"""Partitions are distinguished by their typed values: values that print alike are different partitions.

Random histories of writes, whose partition values print alike, are held against a plain list of rows.
"""

import math
import random
import struct
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from tests.commit.racing import race
from tests.effort import DEEP

import icefield
from icefield.errors import ConcurrentChange
from icefield.lake import Lake
from icefield.table.table import Table
from icefield.types.arrow_keys import encode_keys

IN_PLACE = {"write.delete.mode": "merge-on-read", "write.merge.mode": "merge-on-read"}
STEPS = 10
WINDOW = 4  # so many values a history draws from: those that are side by side print alike
LONG = "x" * 6000
STRINGS = (
    *(
        None,
        "null",
        "NULL",
        "None",
        "",
        " ",
        "x",
        "y",
        "z",
        "x/b=y",
        "y/b=z",
        "a=null",
        "x%2Fb%3Dy",
        "x%2fb%3dy",
        "%00",
    ),
    *("\N{LATIN SMALL LETTER E WITH ACUTE}", "e\N{COMBINING ACUTE ACCENT}", "__HIVE_DEFAULT_PARTITION__", "nan"),
    *(LONG + "1", LONG + "2", "0", "-0.0", "\\x00"),
)
FLOATS = (None, math.nan, -math.nan, 0.0, -0.0, 1.0, math.inf, -math.inf, 0.5, 5e-324, -5e-324)
Row = tuple[Any, ...]
Sure = Callable[[Any], Any]


@dataclass(frozen=True)
class Shape:
    """Partition columns: their types, how the table is partitioned by them, and values for each."""

    types: tuple[str, ...]
    partition_by: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    transforms: tuple[Sure, ...] = (lambda value: value,) * 2
    versions: tuple[int, ...] = (1, 2, 3)

    def key(self, row: Row) -> tuple[Hashable, ...]:
        """Return the partition of a row, so that equal ones compare as equal."""
        return tuple(_exactly(of(value)) for of, value in zip(self.transforms, row[1:], strict=False))


def _exactly(value: Any) -> Hashable:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack(">d", value)
    return (type(value).__name__, value)


def _cut(width: int) -> Sure:
    return lambda value: None if value is None else value[:width]


SHAPES = {
    "text": Shape(("string",), ("a",), (STRINGS,)),
    "two strings": Shape(("string", "string"), ("a", "b"), (STRINGS, STRINGS)),
    "truncated text": Shape(("string",), ("truncate(4, a)",), (STRINGS,), (_cut(4),)),
    "double": Shape(("double",), ("a",), (FLOATS,)),
    "float": Shape(("float",), ("a",), (FLOATS[:9],)),
    "binary": Shape(("binary",), ("a",), ((None, b"", b"null", b"bnVsbA==", b"\0", b"\0\0", b"x"),)),
    "decimal": Shape(("decimal(38,2)",), ("a",), ((None, *(Decimal(n).scaleb(-2) for n in (0, 1, 10, 10**37, -1))),)),
    "text and double": Shape(("string", "double"), ("a", "b"), (STRINGS[:6], FLOATS)),
}


@dataclass
class History:
    """A table, and the rows that it must have."""

    lake: Lake
    table: Table
    shape: Shape
    rng: random.Random
    pools: list[tuple[Any, ...]]
    rows: list[Row] = field(default_factory=list)
    next_id: int = 0

    def draw_rows(self, most: int = 4, *, like: list[Row] | None = None) -> list[Row]:
        """Draw rows, in partitions that are there or in new ones."""
        drawn = []
        for _ in range(self.rng.randint(1, most)):
            fresh = tuple(self.rng.choice(values[:WINDOW]) for values in self.pools)
            of = self.rng.choice(like)[1:] if like and self.rng.random() < 0.5 else fresh
            drawn.append((self.next_id, *of))
            self.next_id += 1
        return drawn

    def draw_ids(self) -> list[int]:
        ids = [row[0] for row in self.rows]
        return self.rng.sample(ids, min(len(ids), self.rng.randint(1, 3)))

    def as_arrow(self, rows: list[Row]) -> pa.Table:
        schema = self.table.scan().to_arrow().schema
        columns = [pa.array(column, f.type) for column, f in zip(zip(*rows, strict=True), schema, strict=True)]
        return pa.Table.from_arrays(columns, schema=schema)

    def keys(self, rows: list[Row]) -> set[Hashable]:
        return {self.shape.key(row) for row in rows}

    def append(self) -> None:
        new = self.draw_rows(6, like=self.rows)
        snapshot = self.table.append(self.as_arrow(new))
        self.rows += new
        assert snapshot is not None
        assert snapshot.summary["changed-partition-count"] == str(len(self.keys(new)))

    def overwrite_partitions(self) -> None:
        new = self.draw_rows(2, like=self.rows)
        snapshot = self.table.overwrite_partitions(self.as_arrow(new))
        self.rows = [row for row in self.rows if self.shape.key(row) not in self.keys(new)] + new
        assert snapshot is not None
        assert snapshot.summary["changed-partition-count"] == str(len(self.keys(new)))

    def overwrite_partitions_in_a_race(self) -> None:
        """Rows that came to another partition do no harm; those of the same one would be lost without being seen."""
        new, theirs = self.draw_rows(1, like=self.rows), self.draw_rows(1, like=self.rows)
        is_same = self.keys(new) == self.keys(theirs)
        self._race(self._append_later(theirs), lambda: self.table.overwrite_partitions(self.as_arrow(new)), is_same)
        if not is_same:
            self.rows = [row for row in self.rows if self.shape.key(row) not in self.keys(new)] + new
        self.rows += theirs

    def delete(self) -> None:
        ids = self.draw_ids()
        touched = self.keys([row for row in self.rows if row[0] in ids])
        snapshot = self._delete(ids)
        self.rows = [row for row in self.rows if row[0] not in ids]
        assert snapshot is not None
        assert snapshot.summary["changed-partition-count"] == str(len(touched))

    def delete_nulls(self) -> None:
        self.table.delete("a IS NULL")
        self.rows = [row for row in self.rows if row[1] is not None]

    def compact_in_a_race(self) -> None:
        ids = self.draw_ids()
        with suppress(ConcurrentChange):  # a file may have lost all its rows, and then it is gone
            self._race(lambda: self._delete(ids), self.table.compact, fails=False)
        self.rows = [row for row in self.rows if row[0] not in ids]

    def rewrite_manifests(self) -> None:
        self.table.rewrite_manifests()

    def check(self) -> None:
        read = self.table.scan().to_arrow().read_all().to_pylist()
        found = Counter((row["id"], *map(_exactly, list(row.values())[1:])) for row in read)
        assert found == Counter((row[0], *map(_exactly, row[1:])) for row in self.rows)
        partitions = Counter(map(self.shape.key, self.rows))
        counts = self.table.scan().count_by_partition()
        assert sorted(counts["record_count"].to_pylist()) == sorted(partitions.values())
        inspected = self.table.inspect("partitions").to_arrow().read_all()
        struct = [tuple(map(_exactly, row.values())) for row in inspected["partition"].to_pylist()]
        assert len(set(struct)) == len(struct)
        assert set(struct) >= set(partitions)

    def _delete(self, ids: list[int]) -> Any:
        return self.lake.table("t.t").delete(f"id IN ({', '.join(map(str, ids))})").snapshot

    def _append_later(self, rows: list[Row]) -> Callable[[], object]:
        arrow = self.as_arrow(rows)
        return lambda: self.lake.table("t.t").append(arrow)

    def _race(self, rival: Callable[[], object], mine: Callable[[], object], fails: bool) -> None:
        gone_first = []

        def note() -> None:
            gone_first.append(rival())

        with _expected(ConcurrentChange if fails else None):
            race(self.lake, note, mine)
        if not gone_first:  # there was nothing to compact
            rival()


@contextmanager
def _expected(error: type[Exception] | None) -> Iterator[None]:
    if error is None:
        yield
        return
    with pytest.raises(error):
        yield


VERBS: tuple[Callable[[History], None], ...] = (
    History.append,
    History.append,
    History.overwrite_partitions,
    History.overwrite_partitions_in_a_race,
    History.delete,
    History.delete_nulls,
    History.rewrite_manifests,
)


ALL = list(product(SHAPES, (1, 2, 3), range(10)))
SAMPLE = [
    *(("text", 1, 3), ("text", 2, 0), ("text", 3, 4), ("two strings", 2, 1), ("two strings", 3, 4)),
    *(("truncated text", 1, 2), ("double", 3, 0), ("float", 2, 0)),
]


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "version", "seed"), ALL if DEEP else SAMPLE)
def test_partitions_that_print_alike_stay_apart(shape: str, version: int, seed: int) -> None:
    rng = random.Random(f"{shape} {version} {seed}")
    with icefield.connect("memory:") as lake:
        history = _begin(lake, SHAPES[shape], version, rng)
        # Only deletes by position can be moved to other files.
        verbs = VERBS if version == 1 else (*VERBS, History.compact_in_a_race, History.compact_in_a_race)
        for _ in range(STEPS):
            verb = rng.choice(verbs)
            if history.rows or verb is History.append:
                verb(history)
                history.check()


def _begin(lake: Lake, shape: Shape, version: int, rng: random.Random) -> History:
    columns = ", ".join(f"{name} {kind}" for name, kind in zip("ab", shape.types, strict=False))
    table = lake.create_table(
        "t.t",
        f"id long, {columns}",
        partition_by=list(shape.partition_by),
        properties=IN_PLACE if version > 1 else {},
        format_version=version,
    )
    starts = [rng.choice((0, rng.randrange(len(values)))) for values in shape.values]
    pools = [values[start:] + values[:start] for start, values in zip(starts, shape.values, strict=True)]
    history = History(lake, table, shape, rng, pools)
    for _ in range(2):
        history.append()
    history.check()
    return history


PAIRS: list[tuple[str, Any, Any]] = [
    ("string", None, "null"),
    ("string", "", None),
    ("string", "\N{LATIN SMALL LETTER E WITH ACUTE}", "e\N{COMBINING ACUTE ACCENT}"),
    ("string", LONG + "1", LONG + "2"),
    ("double", 0.0, -0.0),
    ("double", math.nan, None),
    ("binary", b"", None),
]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize(("kind", "one", "other"), PAIRS, ids=lambda value: repr(value)[:12])
def test_overwriting_a_partition_leaves_the_one_that_prints_alike(
    memory_lake: Lake, version: int, kind: str, one: Any, other: Any
) -> None:
    table = memory_lake.create_table("t.t", f"id long, a {kind}", partition_by=["a"], format_version=version)
    schema = table.scan().to_arrow().schema
    table.append(pa.table({"id": [1, 2], "a": [one, other]}, schema=schema))
    table.overwrite_partitions(pa.table({"id": [3], "a": [one]}, schema=schema))
    assert sorted(table.scan().to_arrow().read_all()["id"].to_pylist()) == [2, 3]


def test_compaction_moves_a_delete_to_its_own_row(memory_lake: Lake) -> None:
    table = memory_lake.create_table("t.t", "id long, a string", partition_by=["a"], properties=IN_PLACE)
    for first in (1, 10):
        table.append(pa.table({"id": range(first, first + 4), "a": ["null", None, "null", None]}))
    race(memory_lake, lambda: memory_lake.table("t.t").delete("id = 11"), table.compact)
    assert sorted(table.scan().to_arrow().read_all()["id"].to_pylist()) == [1, 2, 3, 4, 10, 12, 13]


def test_compaction_keeps_the_order_of_rows_whose_partition_is_any_nan(memory_lake: Lake) -> None:
    """A NaN may have other bits than another one: both are the same partition value."""
    table = memory_lake.create_table("t.t", "id long, a double", partition_by=["a"], properties=IN_PLACE)
    nans = pa.array([0x7FF8 << 48, -(0x0008 << 48)] * 2, pa.int64()).view(pa.float64())
    for first in (1, 10):
        table.append(pa.table({"id": range(first, first + 4), "a": nans}))
    assert table.scan().files().num_rows == 2
    table.compact()
    table.append(pa.table({"id": [20], "a": [math.nan]}))
    race(memory_lake, lambda: memory_lake.table("t.t").delete("id = 1"), table.compact)
    assert sorted(table.scan().to_arrow().read_all()["id"].to_pylist()) == [2, 3, 4, 10, 11, 12, 13, 20]


def test_partitions_of_a_dropped_column_stay_apart(memory_lake: Lake) -> None:
    """A spec keeps the field of a column that was dropped, and with it the partitions."""
    table = memory_lake.create_table("t.t", "id long, a string, b string", partition_by=["a"], properties=IN_PLACE)
    table.append(pa.table({"id": [1, 2], "a": ["x", "y"], "b": ["p", "p"]}))
    table.append(pa.table({"id": [3, 4], "a": ["x", "y"], "b": ["p", "p"]}))
    with table.evolve() as change:
        change.drop_partition_field("a")
    with table.evolve() as change:
        change.drop_column("a")
    counts = table.scan().count_by_partition()
    assert counts["record_count"].to_pylist() == [2, 2]
    snapshot = table.delete("id IN (1, 4)").snapshot
    assert snapshot is not None
    assert snapshot.summary["changed-partition-count"] == "2"


def test_keys_are_equal_for_equal_values_alone() -> None:
    """Also across types to which a column may be widened, and whatever the bits of a NaN are."""
    values = [None, 0, 1, -1, 255, 256, 2**31 - 1]
    narrow, wide = (encode_keys([pa.array(values, kind)], len(values)) for kind in (pa.int32(), pa.int64()))
    assert narrow.equals(wide)
    assert len(set(narrow.to_pylist())) == len(values)
    floats = [0.5, -0.0, 0.0, None]
    short, double = (encode_keys([pa.array(floats, kind)], 4) for kind in (pa.float32(), pa.float64()))
    assert short.equals(double)
    nans = [
        struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF8 << 48, 0xFFF8 << 48, (0x7FF8 << 48) + 1)
    ]
    assert len(set(encode_keys([pa.array(nans)], 3).to_pylist())) == 1
    places = [pa.array(["x/b=y", "x", None, "null", ""]), pa.array(["z", "y/b=z", "null", None, ""])]
    assert len(set(encode_keys(places, 5).to_pylist())) == 5
    of_days = [encode_keys([pa.array([7, None], kind)], 2) for kind in (pa.date32(), pa.int32())]
    assert of_days[0].equals(of_days[1]), "writers differ in the type that they give to days"
    assert encode_keys([], 2).to_pylist() == [b"", b""]
