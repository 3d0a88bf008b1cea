"""Nasty values of every type, and strategies that draw rows and bound expressions from them so that they collide."""

import itertools
import math
import struct
import uuid
from collections.abc import Callable, Sequence
from functools import cache, reduce

from hypothesis import strategies as st

from icefield.expr.bind.bound import (
    FALSE,
    TRUE,
    Bound,
    Compare,
    IsNaN,
    IsNull,
    Like,
    NotLike,
    NotNaN,
    NotNull,
    NotStartsWith,
    Reference,
    StartsWith,
    all_of,
    any_of,
    none_of,
    one_of,
)
from icefield.expr.parse.ast import Operator
from icefield.expr.parse.like import parse_like
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
    PrimitiveType,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    UUIDType,
    Value,
)
from icefield.types.values.binary import scaled

Row = dict[int, Value | None]

# The first and last of each length in UTF-8, the neighbours of the surrogates, and the last code point of all.
CHARACTERS = "\0 a%_b\x7f\x80é\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff"
MICROS_PER_DAY = 86_400_000_000
DECIMALS = (DecimalType(9, 2), DecimalType(38, 10), DecimalType(18, 0), DecimalType(3, 3), DecimalType(38, 0))
TYPES: tuple[PrimitiveType, ...] = (
    BooleanType(),
    IntegerType(),
    LongType(),
    FloatType(),
    DoubleType(),
    DateType(),
    TimeType(),
    TimestampType(),
    TimestamptzType(),
    StringType(),
    UUIDType(),
    BinaryType(),
    FixedType(2),
    *DECIMALS,
)
# The types of versions 1 and 2, and those of version 3 that can be compared.
ALL_TYPES = (*TYPES, TimestampNsType(), TimestamptzNsType())
ORDERED = (Operator.LT, Operator.LE, Operator.GT, Operator.GE)


def float32(value: float) -> float:
    """Round to the nearest float."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def around(*numbers: int) -> list[int]:
    return sorted({n + d for n in numbers for d in (-1, 0, 1)})


def within(numbers: Sequence[int], bits: int) -> list[int]:
    return [n for n in numbers if -(1 << bits - 1) <= n < 1 << bits - 1]


_INTS = around(-(1 << 31), -(1 << 31) + 10, -100, -10, 0, 10, 16_777_216, (1 << 31) - 1)
_LONGS = around(-(1 << 63), -(1 << 63) + 10, -(1 << 31), -10, 0, 10, 1 << 53, 9_007_199_254_740_992, (1 << 63) - 1)
_DAYS = around(-(1 << 31), -719_528, -366, -31, -1, 0, 31, 59, 365, 19_782, 2_932_896, (1 << 31) - 1)
# Within what an hour partition can hold, but for the two ends of the type.
_MICROS = around(*(d * MICROS_PER_DAY for d in (-719_528, -365, -31, -1, 0, 1, 31, 365, 19_782)), 3_600_000_000)
_NANOS = around(*(d * 1000 * MICROS_PER_DAY for d in (-365, -1, 0, 19_782)), -1000, 1000, 3_600_000_000_000)
_DOUBLES = [math.nan, -math.inf, -1.5, -5e-324, -0.0, 0.0, 5e-324, 0.1, float32(0.1), 1.0, 1.5, 1e300, math.inf]
_UUIDS = [uuid.UUID(int=(a << 120) + (b << 56)) for a in (0, 127, 128, 255) for b in (1, 200)]

NASTY: dict[type[PrimitiveType], Sequence[Value]] = {
    BooleanType: [False, True],
    IntegerType: within(_INTS, 32),
    LongType: within(_LONGS, 64),
    FloatType: [float32(d) for d in _DOUBLES if abs(d) != 1e300] + [float32(3.4028235e38), 1.401298464324817e-45],
    DoubleType: _DOUBLES,
    DateType: within(_DAYS, 32),
    TimeType: [0, 1, 36_000_000_000, MICROS_PER_DAY - 1],
    TimestampType: _MICROS,
    TimestamptzType: _MICROS,
    TimestampNsType: _NANOS,
    TimestamptzNsType: _NANOS,
    UUIDType: _UUIDS,
}


def values_of(kind: PrimitiveType) -> st.SearchStrategy[Value]:
    """Values of a type, most of them from a small pool."""
    if isinstance(kind, StringType):
        return st.text(CHARACTERS, max_size=5)
    if isinstance(kind, BinaryType):
        return _bytes(0, 4)
    if isinstance(kind, FixedType):
        return _bytes(kind.length, kind.length)
    if isinstance(kind, DecimalType):
        top = 10**kind.precision - 1
        numbers = within(around(-top + 1, -10, 0, 10, 100, top - 1), 128)
        return st.sampled_from([scaled(n, kind.scale) for n in numbers if abs(n) <= top])
    pool: list[Value] = list(NASTY[type(kind)])
    if isinstance(kind, TimestampType | TimestamptzType | TimestampNsType | TimestamptzNsType):
        pool += [-(1 << 63), (1 << 63) - 1]
    return st.sampled_from(pool)


def _bytes(least: int, most: int) -> st.SearchStrategy[Value]:
    return st.lists(st.sampled_from([0, 1, 127, 128, 255]), min_size=least, max_size=most).map(bytes)


def constants_of(kind: PrimitiveType) -> st.SearchStrategy[Value]:
    """Values that may be in a leaf: never NaN, and zero without a sign."""
    plain = values_of(kind).filter(lambda v: not is_nan(v))
    return plain.map(lambda v: v + 0.0 if isinstance(v, float) else v)


def references(kinds: Sequence[PrimitiveType]) -> tuple[Reference, ...]:
    """One column of each type, ids from 1."""
    return tuple(Reference(i, kind, (f"c{i}",)) for i, kind in enumerate(kinds, 1))


def leaves(reference: Reference) -> st.SearchStrategy[Bound]:
    """Every kind of leaf that bind can make for the column."""
    kind, constant = reference.type, constants_of(reference.type)
    operators = [Operator.EQ] if isinstance(kind, BooleanType) else list(Operator)
    few = st.lists(constant, min_size=2, max_size=4)
    choices: list[st.SearchStrategy[Bound]] = [
        st.sampled_from([IsNull(reference), NotNull(reference)]),
        st.builds(Compare, st.just(reference), st.sampled_from(operators), constant),
    ]
    if not isinstance(kind, BooleanType):
        choices += [few.map(lambda vs: one_of(reference, vs)), few.map(lambda vs: none_of(reference, vs))]
    if isinstance(kind, FloatType | DoubleType):
        choices.append(st.sampled_from([IsNaN(reference), NotNaN(reference)]))
    if isinstance(kind, StringType):
        choices.append(_text_leaves(reference))
    return st.one_of(choices)


def _text_leaves(reference: Reference) -> st.SearchStrategy[Bound]:
    prefix = st.text(CHARACTERS, min_size=1, max_size=5)
    pattern = st.text(CHARACTERS, max_size=5).map(lambda p: parse_like(p, "!"))
    wild = pattern.filter(lambda p: not p.is_literal and not p.is_prefix)
    kinds: list[tuple[Callable[..., Bound], st.SearchStrategy[object]]] = [
        (StartsWith, prefix),
        (NotStartsWith, prefix),
        (Like, wild),
        (NotLike, wild),
    ]
    return st.one_of([st.builds(make, st.just(reference), argument) for make, argument in kinds])


@cache
def expressions(columns: tuple[Reference, ...]) -> st.SearchStrategy[Bound]:
    """Up to four leaves, joined one after the other by AND or OR."""
    leaf = st.one_of([*(leaves(c) for c in columns for _ in range(5)), st.sampled_from([TRUE, FALSE])])
    joined = st.lists(st.tuples(st.sampled_from([all_of, any_of]), leaf), max_size=3)
    return st.builds(lambda first, rest: reduce(lambda tree, part: part[0](tree, part[1]), rest, first), leaf, joined)


@cache
def rows_of(columns: tuple[Reference, ...]) -> st.SearchStrategy[Row]:
    """Rows with nulls among the values."""
    return st.fixed_dictionaries({c.field_id: st.none() | values_of(c.type) for c in columns})


# Every type alone, and every type beside another.
COLUMNS = [references([kind]) for kind in ALL_TYPES]
COLUMNS += [references(pair) for pair in zip(ALL_TYPES, ALL_TYPES[5:] + ALL_TYPES[:5], strict=True)]
typed_columns = st.sampled_from(COLUMNS)


def nasty_rows(columns: Sequence[Reference], pools: dict[PrimitiveType, Sequence[Value]]) -> list[Row]:
    """All columns side by side, each running through its pool and null, the shorter ones again and again."""
    cycles = {c.field_id: itertools.cycle([*pools[c.type], None]) for c in columns}
    count = max(len(pools[c.type]) for c in columns) + 1
    return [{field_id: next(cycle) for field_id, cycle in cycles.items()} for _ in range(count)]


STRINGS = ["", "a", "ab", "a%b", "a_b", "b", "\0", "it's", 'say "x"', "back\\slash", "${x}", "é", "\ud7ff", "\ue000"]
STRINGS += ["\uffff", "\U00010000", "\U0010ffff", "new\nline", "a\nb", "%", "\U0010ffff\U0010ffff"]


def pool_of(kind: PrimitiveType) -> list[Value]:
    """A fixed list of nasty values of a type."""
    if isinstance(kind, StringType):
        return list(STRINGS)
    if isinstance(kind, BinaryType):
        return [b"", b"\0", b"a", b"ab", b"\x7f", b"\x80", b"\xff", b"\xff\xff"]
    if isinstance(kind, FixedType):
        return [bytes([i] * kind.length) for i in (0, 1, 127, 128, 255)]
    if isinstance(kind, DecimalType):
        top = 10**kind.precision - 1
        return [scaled(n, kind.scale) for n in (-top, -10, -1, 0, 1, 10, top)]
    return list(NASTY[type(kind)])


PATTERNS = ("a%b", "a!%b_%", "_", "%\n%", "__", "%\U0010ffff", "a\\_", "%$%", "%'%")


def all_leaves(column: Reference) -> list[Bound]:
    """Every operator with every nasty value of the column's type, and the other leaves."""
    values = [v + 0.0 if isinstance(v, float) else v for v in pool_of(column.type) if is_ordinary(v)]
    operators = [Operator.EQ] if isinstance(column.type, BooleanType) else list(Operator)
    found: list[Bound] = [Compare(column, operator, value) for operator in operators for value in values]
    found += [IsNull(column), NotNull(column)]
    if not isinstance(column.type, BooleanType):
        found += [one_of(column, values[::2]), none_of(column, values[::2])]
    if isinstance(column.type, FloatType | DoubleType):
        found += [IsNaN(column), NotNaN(column)]
    if isinstance(column.type, StringType):
        strings = [str(v) for v in values if v]
        patterns = [parse_like(p, "!") for p in PATTERNS]
        found += [leaf(column, text) for text in strings for leaf in (StartsWith, NotStartsWith)]
        found += [leaf(column, pattern) for pattern in patterns for leaf in (Like, NotLike)]
    return found


def is_nan(value: Value | None) -> bool:
    return isinstance(value, float) and math.isnan(value)


def is_ordinary(value: Value | None) -> bool:
    """Neither null nor NaN."""
    return value is not None and not is_nan(value)


def sort_key(value: Value) -> tuple[bytes, object]:
    """Sort strings as their bytes and -0.0 before 0.0, as bounds are computed."""
    if isinstance(value, str):
        return value.encode(), 0
    if isinstance(value, float):
        return b"", (value, math.copysign(1, value))
    return b"", value
