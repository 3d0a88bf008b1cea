"""Values of every primitive type that readers and statistics get wrong: ends of ranges, signs, zones, long strings."""

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

UTC = dt.UTC
INFINITY, NAN = float("inf"), float("nan")
LONG_TEXT = "longer than any bound is kept, " * 200  # over 4096 bytes, where some writers drop statistics

MOMENTS = (
    dt.datetime(1, 1, 1),
    dt.datetime(1582, 10, 4, 12),  # before calendars changed
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),  # one microsecond before the epoch
    dt.datetime(1970, 1, 1),
    dt.datetime(1970, 1, 1, 0, 0, 0, 1),
    dt.datetime(2024, 2, 29, 12, 34, 56, 789012),
    dt.datetime(2038, 1, 19, 3, 14, 8),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
)


@dataclass(frozen=True)
class Sample:
    """A type and values of it in ascending order."""

    type: pa.DataType
    values: Sequence[Any]


SAMPLES: Mapping[str, Sample] = {
    "boolean": Sample(pa.bool_(), (False, True)),
    "int": Sample(pa.int32(), (-(2**31), -1, 0, 7, 2**31 - 1)),
    "long": Sample(pa.int64(), (-(2**63), -(2**31) - 1, 0, 7, 2**63 - 1)),
    "float": Sample(pa.float32(), (-INFINITY, -3.4028234663852886e38, -1.5, -0.0, 0.0, 2.0**-149, 1.5, INFINITY, NAN)),
    "double": Sample(pa.float64(), (-INFINITY, -1.7976931348623157e308, -1.5, -0.0, 0.0, 5e-324, 1.5, INFINITY, NAN)),
    "decimal_4_2": Sample(pa.decimal128(4, 2), tuple(map(Decimal, ("-99.99", "-0.01", "0.00", "1.10", "99.99")))),
    "decimal_9_0": Sample(pa.decimal128(9, 0), tuple(map(Decimal, ("-999999999", "-128", "0", "128", "999999999")))),
    "decimal_18_4": Sample(
        pa.decimal128(18, 4),
        tuple(map(Decimal, ("-99999999999999.9999", "-0.0001", "0.0000", "3.2768", "99999999999999.9999"))),
    ),
    "decimal_20_3": Sample(
        pa.decimal128(20, 3), tuple(map(Decimal, ("-1234567890123456.789", "-0.001", "0.000", "0.012", "98765432.109")))
    ),
    "decimal_38_10": Sample(
        pa.decimal128(38, 10),
        tuple(
            map(Decimal, (f"-{'9' * 28}.{'9' * 10}", "-0.0000000001", "0.0000000000", "1.5", f"{'9' * 28}.{'9' * 10}"))
        ),
    ),
    "date": Sample(pa.date32(), tuple(dict.fromkeys(moment.date() for moment in MOMENTS))),
    "time": Sample(pa.time64("us"), (dt.time(0), dt.time(0, 0, 0, 1), dt.time(12, 34, 56, 789012), dt.time.max)),
    "timestamp": Sample(pa.timestamp("us"), MOMENTS),
    "timestamptz": Sample(pa.timestamp("us", "UTC"), tuple(moment.replace(tzinfo=UTC) for moment in MOMENTS)),
    "string": Sample(
        pa.string(),
        (
            "",
            " blank ",
            "100% a/b=c&d?#e+f;g",
            'It\'s "quoted" \\ `here`',
            LONG_TEXT,
            "null",
            "é, one letter",
            "日本語",
            "\ud7ff" * 17,  # the next character up is a surrogate, which is none
            "\U0001f9ca an ice cube",
            "\U0010ffff" * 17,  # no character is higher, so there is no short upper bound
        ),
    ),
    "uuid": Sample(pa.uuid(), tuple(uuid.UUID(int=n) for n in (0, 1, 2**64, 2**127 - 1, 2**127, 2**128 - 1))),
    "fixed": Sample(pa.binary(4), (b"\0\0\0\0", b"\0\0\0\1", b"abcd", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff" * 4)),
    "binary": Sample(pa.binary(), (b"", b"\0", b"a/b=%", b"abcd" * 2000, b"\x7f", b"\x80", b"\xff", b"\xff" * 20)),
}
