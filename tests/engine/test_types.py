"""Every verb on both engines moves values of every type unchanged, those too that Spark has no type for.

What is expected is kept in a plain dict. On Spark, nanoseconds and times are numbers, fixed is bytes, a uuid is text.
"""

import datetime as dt
import math
import uuid
from collections.abc import Sequence
from decimal import Decimal
from typing import Literal

import pyarrow as pa
import pytest
from tests.effort import DEEP

from icefield.lake import Lake
from icefield.table.table import Table

Engine = Literal["local", "spark"]
UUIDS = [uuid.UUID(int=7919 * n + 1).bytes for n in range(6)]
TIMES = [None if n == 2 else dt.datetime(1880 + 31 * n, 3, 10, 2, 30, n, 1000 * n + n) for n in range(6)]
UTC_TIMES = [None if time is None else time.replace(tzinfo=dt.UTC) for time in TIMES]
CLOCK = [dt.time(0), dt.time(23, 59, 59, 999999), None, dt.time(1, 2, 3), dt.time(4), dt.time(5, 6, 7, 8)]
INSIDE = pa.struct([("t", pa.time64("us")), ("u", pa.binary(16)), ("n", pa.struct([("ns", pa.timestamp("ns"))]))])
VALUES: dict[str, pa.Array] = {
    "boolean": pa.array([True, False, None, True, False, True]),
    "int": pa.array([1, -2, None, 2**31 - 1, -(2**31), 0], pa.int32()),
    "long": pa.array([1, -2, None, 2**63 - 1, -(2**63), 0], pa.int64()),
    "float": pa.array([1.5, -0.0, None, math.nan, math.inf, 0.0], pa.float32()),
    "double": pa.array([1.5, -0.0, None, math.nan, -math.inf, 0.0], pa.float64()),
    "decimal(9, 2)": pa.array([Decimal(n) / 100 for n in (1, -1, 0, 999999999, -999999999)] + [None]),
    "decimal(38, 10)": pa.array([Decimal(n) for n in (1, -1, 0, 10**27, -(10**27))] + [None], pa.decimal128(38, 10)),
    "date": pa.array([dt.date(1, 1, 1), dt.date(1582, 10, 10), None, dt.date(9999, 12, 31), dt.date(1970, 1, 1), None]),
    "time": pa.array(CLOCK, pa.time64("us")),
    "timestamp": pa.array(TIMES, pa.timestamp("us")),
    "timestamptz": pa.array(UTC_TIMES, pa.timestamp("us", "UTC")),
    "timestamp_ns": pa.array(TIMES, pa.timestamp("ns")),
    "timestamptz_ns": pa.array(UTC_TIMES, pa.timestamp("ns", "UTC")),
    "string": pa.array(["", "a", None, "ü\U0001f9ca", "x" * 5000, "null"]),
    "uuid": pa.array([*UUIDS[:2], None, *UUIDS[3:]], pa.binary(16)),
    "fixed[3]": pa.array([b"abc", b"\0\0\0", None, b"xyz", b"\xff\xff\xff", b"q\0r"], pa.binary(3)),
    "binary": pa.array([b"", b"\0", None, b"\xff" * 100, b"a", b"b"]),
    "struct<t: time, u: uuid, n: struct<ns: timestamp_ns>>": pa.array(
        [None if n == 2 else {"t": CLOCK[n], "u": UUIDS[n], "n": {"ns": TIMES[n]}} for n in range(6)], INSIDE
    ),
    "list<time>": pa.array([[CLOCK[0], None], [], None, [CLOCK[3]], [None], [CLOCK[5]]], pa.list_(pa.time64("us"))),
    "map<uuid, list<fixed[2]>>": pa.array(
        [None if n == 2 else [(UUIDS[n], [b"ab", None])] for n in range(6)],
        pa.map_(pa.binary(16), pa.list_(pa.binary(2))),
    ),
}
COLUMNS = {f"v{at}": values for at, values in enumerate(VALUES.values())}
SCHEMA = ", ".join(["id long", *(f"v{at} {kind}" for at, kind in enumerate(VALUES)), "nothing unknown", "s string"])
COUNT = 6
Model = dict[int, tuple[int, str]]  # of each id: the place of its values in VALUES, and `s`


def rows(ids: Sequence[int], shift: int = 0) -> pa.Table:
    places = pa.array([(at + shift) % COUNT for at in range(len(ids))], pa.int64())
    values = {name: column.take(places) for name, column in COLUMNS.items()}
    return pa.table({"id": pa.array(ids, pa.int64()), **values, "s": [f"s{n}" for n in ids]})


def expected(ids: Sequence[int], shift: int = 0) -> Model:
    return {n: ((at + shift) % COUNT, f"s{n}") for at, n in enumerate(ids)}


def read(table: Table) -> list[tuple[int, list[str], str]]:
    found = table.scan().to_arrow().read_all().sort_by("id").to_pylist()
    return [(row["id"], [repr(row[name]) for name in COLUMNS], row["s"]) for row in found]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_every_verb_moves_values_of_every_type(
    lake: Lake, engine: Engine, mode: str, request: pytest.FixtureRequest
) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    modes = {"write.delete.mode": mode, "write.merge.mode": mode}
    table = lake.create_table("a.t", SCHEMA, format_version=3, properties=modes)
    table.append(rows(range(COUNT)))
    stored = [values for _, values, _ in read(table)]
    table.append(rows(range(COUNT, 2 * COUNT), 1))
    model = expected(range(COUNT)) | expected(range(COUNT, 2 * COUNT), 1)

    def check(verb: str) -> None:
        wanted = [(n, stored[place], s) for n, (place, s) in sorted(model.items())]
        assert read(table) == wanted, verb

    check("append")
    table.delete("id = 3", engine=engine)
    del model[3]
    check("delete")
    table.upsert(rows([1, 7, 20], 3), on=["id"], engine=engine)
    model |= expected([1, 7, 20], 3)
    check("upsert")
    table.upsert(pa.table({"id": [2, 8], "s": ["new", "new"]}), on=["id"], engine=engine)
    model |= {n: (model[n][0], "new") for n in (2, 8)}
    check("upsert of some columns")
    table.overwrite(rows([4], 5), where="id = 4", engine=engine)
    model |= expected([4], 5)
    check("overwrite of a filter")
    if DEEP or engine == "local":
        scan = table.scan(where="s <> 'new'")
        for name in [name for name, column in COLUMNS.items() if not pa.types.is_nested(column.type)]:
            for find in (scan.min, scan.max):
                assert repr(find(name, engine=engine)) == repr(find(name, engine="local")), name
    table.compact(engine=engine)
    check("compact")
    table.overwrite(rows([1, 2, 3], 2), engine=engine)
    model = expected([1, 2, 3], 2)
    check("overwrite")


@pytest.mark.spark
def test_rows_of_every_type_that_spark_has_go_there_and_back(lake: Lake, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("spark")
    strange = ("time", "_ns", "fixed", "unknown")
    kinds = {kind: at for at, kind in enumerate(VALUES) if not any(word in kind for word in strange)}
    schema = ", ".join(["id long", *(f"v{at} {kind}" for kind, at in kinds.items())])
    table = lake.create_table("a.t", schema, format_version=3)
    given = rows(range(COUNT)).select(["id", *(f"v{at}" for at in kinds.values())])
    table.append(given)
    before = [repr(row) for row in table.scan().to_arrow().read_all().sort_by("id").to_pylist()]
    table.upsert(table.scan().to_spark(), on=["id"])
    assert [repr(row) for row in table.scan().to_arrow().read_all().sort_by("id").to_pylist()] == before
