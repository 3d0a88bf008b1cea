"""Random expressions in SQL over columns of every type, and rows with the values that engines disagree about."""

import math
import re
from random import Random

import pyarrow as pa

from icefield.types.datatypes import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
)
from icefield.types.values.binary import scaled

INTS = [0, 1, -1, 2, 7, -10, 2**31 - 1, -(2**31), None]
LONGS = [0, 1, -1, 3, 10**6, 2**53 + 1, 2**63 - 1, -(2**63), None]
DOUBLES = [0.0, -0.0, 1.5, -2.5, 1e300, -1e-300, math.nan, math.inf, -math.inf, 2.0**63, 0.1, None]
STRINGS = ["", "a", "b", " a ", "A%", "a_b", "it's", "é", "\U0001f600x", "\t tab ", "zz\n", "10", None]
DAYS = [0, -1, 20484, 719528, -719528, 2932897, -719163, 1, None]
MICROS = [0, -1, 1, 86_400_000_000, -86_400_000_001, 1_769_817_600_000_000, 253402300799999999, None]


def rows(random: Random, count: int) -> pa.Table:
    """Return rows of every type; each value of every pool occurs."""

    def drawn(pool: list[object]) -> list[object]:
        return [*pool, *(random.choice(pool) for _ in range(count - len(pool)))]

    def shuffled(pool: list[object]) -> list[object]:
        values = drawn(pool)
        random.shuffle(values)
        return values

    def decimals(precision: int, scale: int) -> pa.Array:
        most = 10**precision - 1
        pool = [0, 1, -1, 5, 10**scale, 15 * 10**scale // 10, most, -most]
        values = [None if n is None else scaled(n, scale) for n in shuffled([*pool, None])]  # type: ignore[arg-type]
        return pa.array(values, pa.decimal128(precision, scale))

    floats = [None if d is None else d for d in shuffled(DOUBLES)]  # type: ignore[arg-type]
    return pa.table(
        {
            "at": pa.array(range(count), pa.int32()),
            "i": pa.array(shuffled(INTS), pa.int32()),  # type: ignore[arg-type]
            "j": pa.array(shuffled(INTS), pa.int32()),  # type: ignore[arg-type]
            "l": pa.array(shuffled(LONGS), pa.int64()),  # type: ignore[arg-type]
            "f": pa.array(floats, pa.float64()).cast(pa.float32(), safe=False),
            "d": pa.array(shuffled(DOUBLES), pa.float64()),  # type: ignore[arg-type]
            "p": decimals(9, 2),
            "q": decimals(20, 5),
            "w": decimals(38, 10),
            "s": pa.array(shuffled(STRINGS), pa.string()),  # type: ignore[arg-type]
            "t": pa.array(shuffled(STRINGS), pa.string()),  # type: ignore[arg-type]
            "b": pa.array(shuffled([True, False, None]), pa.bool_()),
            "c": pa.array(shuffled([True, False, None]), pa.bool_()),
            "day": pa.array(shuffled(DAYS), pa.int32()).view(pa.date32()),  # type: ignore[arg-type]
            "ts": pa.array(shuffled(MICROS), pa.int64()).view(pa.timestamp("us")),  # type: ignore[arg-type]
            "tz": pa.array(shuffled(MICROS), pa.int64()).view(pa.timestamp("us", "UTC")),  # type: ignore[arg-type]
            "raw": pa.array(shuffled([b"", b"a", b"\xff", b"\x00\x01", None]), pa.binary()),
        }
    )


NUMBERS = ("int", "bigint", "float", "double", "decimal(9, 2)")
MOMENTS = ("date", "timestamp_ntz", "timestamp")
TYPES: dict[str, PrimitiveType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "decimal(9, 2)": DecimalType(9, 2),
    "string": StringType(),
    "binary": BinaryType(),
    "date": DateType(),
    "timestamp_ntz": TimestampType(),
    "timestamp": TimestamptzType(),
}
# The types to which a value of a type can be assigned; Spark refuses the others.
ASSIGNABLE = {
    **{word: {word, "string"} for word in ("boolean", "string", "binary")},
    **{word: {*NUMBERS, "string"} for word in NUMBERS},
    **{word: {*MOMENTS, "string"} for word in MOMENTS},
}


LEAVES = {
    "number": [
        *("i", "j", "l", "f", "d", "p", "q", "w"),
        *("0", "1", "-1", "2", "7", "100", "2147483647", "-2147483648", "3000000000", "5L", "1.5", "0.05", "-2.50"),
        *("2.5D", "1e3", "0.1", "-0.0D", "1.5F", "12345678901234567890", "NULL"),
    ],
    "int": ["i", "j", "0", "1", "-1", "3", "-2147483648", "NULL", "length(s)", "at"],
    "string": ["s", "t", "''", "'a'", "' a '", "'é'", "'it''s'", "'\\n'", "NULL", "'10'"],
    "boolean": ["b", "c", "TRUE", "FALSE", "NULL"],
    "date": ["day", "DATE '2026-01-31'", "DATE '1969-12-31'", "NULL"],
    "timestamp": ["ts", "TIMESTAMP_NTZ '2026-01-31 10:30:00.5'", "TIMESTAMP_NTZ '1969-12-31 23:59:59.999999'"],
    "timestamptz": ["tz", "TIMESTAMP '2026-01-31 10:30:00+01:00'", "TIMESTAMP '1970-01-01 00:00:00Z'"],
    "binary": ["raw", "X'ff'", "X''"],
}
COMPARED = ["number", "number", "number", "string", "date", "timestamp", "timestamptz", "binary", "boolean"]
# Shapes of expressions by type; {} is a place for an expression of the same type, {number} for a number.
SHAPES = {
    "number": [
        *("{number} + {number}", "{number} - {number}", "{number} * {number}", "{number} / {number}"),
        *("{number} % {number}", "-({number})", "abs({number})", "+ {number}", "mod({int}, {int})"),
        *("({number} + {number}) * {number}", "{int} + {int}", "{int} - {int} * {int}", "{int} % {int}"),
        *("CAST({number} AS DOUBLE)", "CAST({number} AS DECIMAL(12, 3))", "CAST({number} AS BIGINT)"),
        *("CAST({number} AS INT)", "CAST({number} AS FLOAT)", "greatest({number}, {number}, {number})"),
        *("least({number}, {number})", "length({string})", "datediff({date}, {date})", "CAST({boolean} AS INT)"),
        *("year({date})", "month({date})", "day({date})"),
        "{number} / nullif({number}, 0)",
    ],
    "int": ["length({string})", "datediff({date}, {date})", "{int} + {int}", "-{int}", "abs({int})"],
    "string": [
        *("concat({string}, {string})", "{string} || {string}", "trim({string})", "ltrim({string})", "rtrim({string})"),
        *("substring({string}, 2)", "substr({string}, -2, 1)", "substring({string}, 0, 2)", "CAST({int} AS STRING)"),
        *("substring({string}, -3, 2)", "substring({string}, 1, -1)", "CAST({boolean} AS STRING)"),
        *("CAST({date} AS STRING)", "least({string}, {string})", "greatest({string}, {string})", "concat({string})"),
        *("upper({string})", "lower({string})", "replace({string}, 'a', 'bb')", "replace({string}, '', 'x')"),
        *("substring({string}, 2147483647, 2147483647)", "CAST(p AS STRING)", "CAST({number} AS STRING)"),
    ],
    "boolean": [
        *("NOT {boolean}", "{boolean} AND {boolean}", "{boolean} OR {boolean}", "! {boolean}", "isnan({number})"),
        *("({boolean} OR {boolean}) AND {boolean}", "{boolean} IS NULL", "{boolean} IS NOT TRUE"),
        *("{boolean} IS FALSE", "{boolean} IS UNKNOWN", "{string} LIKE 'a%'", "{string} LIKE '%_'", "{string} LIKE ''"),
        *("{string} NOT LIKE 'a\\\\_b'", "{string} LIKE '%!%' ESCAPE '!'", "{string} LIKE NULL", "isnotnull({string})"),
        *("{number} IN ({number}, {number})", "{int} IN (1, 2, 3, NULL)", "{string} NOT IN ('a', 'b')"),
        *("startswith({string}, 'a')", "endswith({string}, '')", "contains({string}, 'a')"),
        *("{int} IN (1, 2.5)", "day = '2026-01-31'", "{number} = '1'", "{int} < 2.5", "{int} >= -0.5"),
        *("{date} IN (DATE '2026-01-31', NULL)", "{number} IN (0, 1, 1.5)", "{string} IN ('a', {string})"),
    ],
    "date": [
        *("date_add({date}, {int})", "date_sub({date}, {int})", "{date} + {int}", "{date} - {int}"),
        *("CAST({timestamp} AS DATE)", "least({date}, {date})"),
    ],
    "timestamp": ["CAST({date} AS TIMESTAMP_NTZ)", "greatest({timestamp}, {timestamp})"],
    "timestamptz": ["least({timestamptz}, {timestamptz})"],
    "binary": ["CAST({string} AS BINARY)"],
}  # fmt: skip
ANY = [
    *("CASE WHEN {boolean} THEN {} WHEN {boolean} THEN {} ELSE {} END", "CASE WHEN {boolean} THEN {} END"),
    *("if({boolean}, {}, {})", "coalesce({}, {}, {})", "nvl({}, {})", "ifnull({}, {})", "nullif({}, {})"),
    *("nvl2({string}, {}, {})", "CASE {int} WHEN 1 THEN {} WHEN {int} THEN {} ELSE {} END", "({})"),
]


def expression(random: Random, kind: str, depth: int) -> str:
    """Return a random expression of a type."""
    if depth == 0 or random.random() < 0.15:
        return random.choice(LEAVES[kind])
    if kind == "boolean" and random.random() < 0.5:
        inner = random.choice(COMPARED)
        shape = random.choice(
            [
                *("{x} = {x}", "{x} <> {x}", "{x} < {x}", "{x} <= {x}", "{x} > {x}", "{x} >= {x}", "{x} <=> {x}"),
                *("{x} BETWEEN {x} AND {x}", "{x} IS NULL", "{x} IS DISTINCT FROM {x}", "{x} NOT BETWEEN {x} AND {x}"),
            ]
        ).replace("{x}", f"{{{inner}}}")
    else:
        shape = random.choice(SHAPES[kind] if random.random() < 0.7 else ANY)
    return filled(random, shape, kind, depth)


def chain(random: Random) -> str:
    """Return operators in a row without parentheses, so that their precedence decides."""

    def joined(operands: list[str], operators: list[str]) -> str:
        text = random.choice(operands)
        for _ in range(random.randint(0, 3)):
            text += f" {random.choice(operators)} {random.choice(operands)}"
        return text

    def number() -> str:
        return joined(["at", "- at", "-1", "- -2", "3", "f", "+ 2", "1.5"], ["+", "-", "*", "% 7 +", "+", "-"])

    def text() -> str:
        return joined(["s", "t", "'a'", "'b' 'c'"], ["||"])

    def test() -> str:
        side = random.choice([number, number, text])
        tail = random.choice(
            [
                *(f"{sign} {side()}" for sign in ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>")),
                *(f"BETWEEN {side()} AND {side()}", f"NOT BETWEEN {side()} AND {side()}", f"IN ({side()}, {side()})"),
                *("IS NULL", "IS NOT NULL", f"IS DISTINCT FROM {side()}", f"NOT IN ({side()}, {side()})"),
                *(f"= {side()} IS NULL", f"< {side()} = b", f"= {side()} IS NOT TRUE"),
            ]
        )
        return random.choice(["b", "NOT c", "! b", f"{side()} {tail}", f"NOT {side()} {tail}", f"{side()} {tail}"])

    kind = random.choice([number, text, test, test, test])
    return joined([test() for _ in range(4)], ["AND", "OR"]) if kind is test else kind()


def filled(random: Random, shape: str, kind: str, depth: int) -> str:
    """Replace the types in a shape by expressions."""

    def place(found: re.Match[str]) -> str:
        inner = expression(random, found[1] or kind, depth - 1)
        return inner if re.fullmatch(r"\w+", inner) else f"({inner})"

    return re.sub(r"\{(\w*)\}", place, shape)
