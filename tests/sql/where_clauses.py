"""Random conditions in Spark's dialect, and a table whose files each hold few of the values of every column."""

import datetime
import math
import uuid
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from icefield.lake import Lake
from icefield.table.table import Table

SCHEMA = (
    "id long, i int, l long, f float, g double, dec decimal(10, 2), s string, b boolean, d date, ts timestamptz, "
    "tn timestamp, u uuid, tm time, st struct<a: int, t: timestamptz, s: string>"
)
FILES = 24
ROWS_OF_A_FILE = 12
# Days at which clocks change in one of the zones, and others.
ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "America/Havana", "Asia/Kolkata", "+05:45")
_DAYS = [
    datetime.date(2010, 10, 31),
    datetime.date(2010, 11, 6),
    datetime.date(2010, 11, 7),
    datetime.date(2011, 12, 29),
    datetime.date(2011, 12, 31),
    datetime.date(2026, 3, 8),
    datetime.date(2026, 3, 29),
    datetime.date(2026, 10, 25),
    datetime.date(2026, 11, 1),
    datetime.date(2025, 12, 31),
    datetime.date(2026, 1, 1),
    datetime.date(2026, 2, 28),
]
_TIMES = [datetime.timedelta(minutes=m) for m in (0, 1, 29, 61, 150, 210, 330, 720, 1380, 1439)]


def create_table(lake: Lake, name: str = "w.t") -> Table:
    """Create the table; rows of a file are near each other in every column, and some values are null."""
    table, random = lake.create_table(name, SCHEMA), Random(7)
    schema = table.scan().to_arrow().schema
    for file in range(FILES):
        rows = [_row(random, file, file * ROWS_OF_A_FILE + at) for at in range(ROWS_OF_A_FILE)]
        table.append(pa.Table.from_pylist(rows, schema))
    return table


def clauses(random: Random, count: int) -> Iterator[str]:
    """Yield random conditions."""
    for _ in range(count):
        yield _condition(random, 3)


def _row(random: Random, file: int, number: int) -> dict[str, Any]:
    day = _DAYS[file % len(_DAYS)] + datetime.timedelta(days=random.choice((0, 0, 0, 1)))
    time = datetime.datetime.combine(day, datetime.time()) + random.choice(_TIMES)
    zoned = time.replace(tzinfo=datetime.UTC)
    special = random.choice([math.nan, math.inf, -math.inf, -0.0, 0.0])
    row = {
        "i": file - 10,
        "l": (file - 12) * 10**17,
        "f": special if file % 5 == 0 else file / 10,
        "g": special if file % 7 == 0 else file / 10,
        "dec": Decimal(file * 25 - 200) / 100,
        "s": random.choice([f"k{file:02d}", f"K{file:02d}x", f"k{file:02d}_%", "", "é" * (file % 3 + 1)]),
        "b": file % 3 == 0,
        "d": day,
        "ts": zoned,
        "tn": time,
        "u": uuid.UUID(int=file).bytes,
        "tm": (datetime.datetime(2000, 1, 1) + random.choice(_TIMES)).time(),
        "st": {"a": file, "t": zoned, "s": f"k{file:02d}"},
    }
    nulls = {key: None if random.random() < 0.12 or (file == 3 and key != "b") else value for key, value in row.items()}
    return {"id": number, **nulls}


def _condition(random: Random, depth: int) -> str:
    if depth and random.random() < 0.6:
        kind = random.choice(("AND", "AND", "OR", "OR", "NOT"))
        if kind == "NOT":
            return f"NOT ({_condition(random, depth - 1)})"
        return f"({_condition(random, depth - 1)}) {kind} ({_condition(random, depth - 1)})"
    return random.choice(_TESTS)(random)


def _operator(random: Random) -> str:
    return random.choice(("=", "=", "<", "<=", ">", ">=", "<>", "<=>", "="))


def _compared(*columns: str, values: Callable[[Random], str]) -> Callable[[Random], str]:
    """Return what writes comparisons of columns with values: single, in lists, in ranges."""

    def write(random: Random) -> str:
        column = random.choice(columns)
        form = random.random()
        if form < 0.6:
            sides = [column, values(random)]
            if random.random() < 0.2:
                sides.reverse()
            return f"{sides[0]} {_operator(random)} {sides[1]}"
        word = random.choice(("", "NOT "))
        if form < 0.8:
            count = random.choice((1, 2, 3, 12))
            items = [values(random) for _ in range(count)] + (["NULL"] if random.random() < 0.15 else [])
            return f"{column} {word}IN ({', '.join(items)})"
        return f"{column} {word}BETWEEN {values(random)} AND {values(random)}"

    return write


def _whole(random: Random) -> str:
    return str(random.choice((random.randint(-14, 16), random.randint(-3, 3), 2**31 - 1, -(2**31))))


def _long(random: Random) -> str:
    return f"{random.randint(-14, 14) * 10**17 + random.choice((0, 0, 1, -1))}L"


def _decimal(random: Random) -> str:
    return random.choice((f"{random.randint(-250, 500) / 100:.2f}", f"{random.randint(-2500, 4000) / 1000:.3f}BD", "1"))


def _double(random: Random) -> str:
    return random.choice(
        (
            f"{random.randint(-10, 30) / 10}D",
            "double('NaN')",
            "double('Infinity')",
            "0.0D",
            "-0.0D",
            "CAST(0.7 AS FLOAT)",
        )
    )


def _day(random: Random) -> str:
    day = random.choice(_DAYS) + datetime.timedelta(days=random.choice((-1, 0, 0, 1, 2)))
    return random.choice((f"DATE '{day}'", f"DATE '{day}'", f"'{day}'", f"date_add(DATE '{day}', 1)"))


def _time(random: Random) -> str:
    time = datetime.datetime.combine(random.choice(_DAYS), datetime.time()) + random.choice(_TIMES)
    zone = random.choice(("", "", "", "+00:00", "-03:30"))
    return random.choice((f"TIMESTAMP '{time}{zone}'", f"TIMESTAMP '{time}{zone}'", f"'{time}{zone}'"))


def _naive(random: Random) -> str:
    time = datetime.datetime.combine(random.choice(_DAYS), datetime.time()) + random.choice(_TIMES)
    return random.choice((f"TIMESTAMP_NTZ '{time}'", f"'{time}'", f"TIMESTAMP '{time}'"))


def _start(random: Random) -> str:
    day = random.choice(_DAYS).replace(day=1)
    return random.choice((f"TIMESTAMP '{day} 00:00:00'", f"DATE '{day}'", f"'{day}'", _time(random)))


def _text(random: Random) -> str:
    number = random.randint(0, FILES)
    return random.choice((f"'k{number:02d}'", f"'K{number:02d}x'", "''", "'é'", "'k'", f"'k{number:02d}_%'"))


def _pattern(random: Random) -> str:
    number = random.randint(0, FILES)
    pattern = random.choice(
        ("'k%'", f"'k{number // 10}%'", f"'k{number:02d}'", "'%x'", f"'k{number:02d}!_!%' ESCAPE '!'")
    )
    return f"s {random.choice(('', 'NOT '))}LIKE {pattern}"


def _null_test(random: Random) -> str:
    column = random.choice(("i", "f", "g", "s", "b", "d", "ts", "tn", "u", "tm", "st.a", "st.t", "st"))
    return f"{column} IS {random.choice(('', 'NOT '))}NULL"


def _truncated(random: Random) -> str:
    unit = random.choice(("year", "quarter", "month", "week", "day", "hour", "minute", "MM", "yyyy"))
    column = random.choice(("ts", "ts", "st.t", "d", "tn"))
    return f"date_trunc('{unit}', {column}) {_operator(random)} {_start(random)}"


def _part(random: Random) -> str:
    column = random.choice(("d", "ts", "tn", "CAST(ts AS DATE)"))
    year = f"year({column}) {_operator(random)} {random.choice((2010, 2011, 2025, 2026, 2027))}"
    month = f"month({column}) {random.choice(('=', '=', '>'))} {random.randint(1, 12)}"
    return random.choice((year, f"{year} AND {month}", f"EXTRACT(YEAR FROM {column}) = 2026"))


def _odd(random: Random) -> str:
    return random.choice(
        (
            "b",
            "NOT b",
            "TRUE",
            "FALSE",
            "NULL",
            "i + 1 = 3",
            "length(s) = 3",
            "upper(s) = 'K01'",
            "coalesce(i, 0) = 0",
            "i = l",
            "rand(3) < 2",
            "CASE WHEN i > 3 THEN b ELSE NOT b END",
            "try_cast(s AS INT) IS NULL",
            f"trunc(d, 'MM') = DATE '{random.choice(_DAYS).replace(day=1)}'",
            f"u = '{uuid.UUID(int=random.randint(0, FILES))}'",
            f"u IN ('{uuid.UUID(int=random.randint(0, FILES))}', 'no')",
            f"tm < {random.randint(0, 86_400) * 10**6}",
            f"i IN (SELECT i FROM w.t WHERE d = {_day(random)})",
            f"(SELECT max(i) FROM w.t WHERE id < {random.randint(0, 99)}) > i",
        )
    )


_TESTS: Sequence[Callable[[Random], str]] = (
    _compared("i", "st.a", "CAST(i AS BIGINT)", "CAST(i AS DECIMAL(12, 1))", values=_whole),
    _compared("l", "CAST(l AS DOUBLE)", values=_long),
    _compared("i", "l", "dec", "CAST(dec AS DECIMAL(14, 3))", "CAST(dec AS DECIMAL(6, 1))", values=_decimal),
    _compared("f", "g", "i", "dec", "CAST(f AS DOUBLE)", values=_double),
    _compared("d", "CAST(ts AS DATE)", "CAST(tn AS DATE)", "to_date(ts)", "CAST(st.t AS DATE)", "d", values=_day),
    _compared("ts", "st.t", "CAST(d AS TIMESTAMP)", "d", "ts", values=_time),
    _compared("ts", "tn", values=_day),
    _compared("tn", "tn", "d", values=_naive),
    _compared("s", "st.s", "s", values=_text),
    _pattern,
    _null_test,
    _truncated,
    _truncated,
    _part,
    _odd,
)
