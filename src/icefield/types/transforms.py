"""Partition and sort transforms, applied to whole Arrow columns. (spec: Partition Transforms)

A transform maps a source value to a partition value; null always maps to null. `parse_transform` parses the form in
metadata (`bucket[16]`); an unknown transform is kept as Unknown, so that its table can still be read.
Raises InvalidInput for a transform that cannot be applied to its source type.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from icefield.deferred import deferred_imports
from icefield.errors import InvalidInput, Unsupported
from icefield.types.calendar import MICROS_PER_DAY, NANOS_PER_DAY, NANOS_PER_MICRO
from icefield.types.datatypes import (
    MAX_DIGITS,
    OPAQUE_TYPES,
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
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

with deferred_imports(__name__):
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from icefield.types.arrow import arrow_array, physical_array, python_values
    from icefield.types.murmur3 import hash_bytes, hash_longs
    from icefield.types.values.binary import encode_unscaled, scaled, unscaled

NANO_TIMESTAMPS = (TimestampNsType, TimestamptzNsType)
TIMESTAMPS = (TimestampType, TimestamptzType, *NANO_TIMESTAMPS)
DATES = (DateType, *TIMESTAMPS)


@dataclass(frozen=True)
class Transform:
    """The interface of transforms; the known ones are subclasses."""

    word: ClassVar[str] = ""
    sources: ClassVar[tuple[type[PrimitiveType], ...]] = ()

    def __str__(self) -> str:
        return self.word

    def fits(self, source: PrimitiveType) -> bool:
        """Return whether the transform may be applied to a column of this type."""
        return isinstance(source, self.sources)

    def result_type(self, source: PrimitiveType) -> PrimitiveType:
        """Return the type of the partition value."""
        return IntegerType()

    def apply(self, array: pa.Array, source: PrimitiveType) -> pa.Array:
        """Transform a column; the array has the Arrow type of `source`."""
        raise Unsupported(f"cannot apply the transform {self}")

    def apply_value(self, value: Value, source: PrimitiveType) -> Value | None:
        """Transform one value."""
        return python_values(self.apply(arrow_array([value], source), source), self.result_type(source))[0]

    def default_name(self, source_name: str) -> str:
        """Return the default name of a partition field, as in Iceberg Java."""
        return f"{source_name}_{self.word}"

    def to_human_string(self, value: Value | None, source: PrimitiveType) -> str:
        """Format a partition value as a human-readable string, for directory names and reports."""
        return "null" if value is None else _human_value(value, self.result_type(source))


@dataclass(frozen=True)
class Identity(Transform):
    word: ClassVar[str] = "identity"
    sources: ClassVar[tuple[type[PrimitiveType], ...]] = (PrimitiveType,)

    def fits(self, source: PrimitiveType) -> bool:
        # Geometries by the spec; the value of an unknown column is always null, so it selects no files.
        return not isinstance(source, OPAQUE_TYPES)

    def result_type(self, source: PrimitiveType) -> PrimitiveType:
        return source

    def apply(self, array: pa.Array, source: PrimitiveType) -> pa.Array:
        return array

    def default_name(self, source_name: str) -> str:
        return source_name


@dataclass(frozen=True)
class Void(Transform):
    word: ClassVar[str] = "void"
    sources: ClassVar[tuple[type[PrimitiveType], ...]] = (PrimitiveType,)

    def fits(self, source: PrimitiveType) -> bool:
        # It is always null, and manifests have no type for it.
        return not isinstance(source, OPAQUE_TYPES)

    def result_type(self, source: PrimitiveType) -> PrimitiveType:
        return source

    def apply(self, array: pa.Array, source: PrimitiveType) -> pa.Array:
        return pa.nulls(len(array), array.type)

    def default_name(self, source_name: str) -> str:
        return f"{source_name}_null"


@dataclass(frozen=True)
class Bucket(Transform):
    count: int
    word: ClassVar[str] = "bucket"
    sources: ClassVar[tuple[type[PrimitiveType], ...]] = (
        IntegerType,
        LongType,
        DecimalType,
        DateType,
        TimeType,
        *TIMESTAMPS,
        StringType,
        UUIDType,
        FixedType,
        BinaryType,
    )

    def __post_init__(self) -> None:
        if not 1 <= self.count <= 0x7FFFFFFF:
            raise InvalidInput(f"bucket needs a count of at least 1, got {self.count}")

    def __str__(self) -> str:
        return f"bucket[{self.count}]"

    def apply(self, array: pa.Array, source: PrimitiveType) -> pa.Array:
        buckets = (_hash(array, source) & np.uint32(0x7FFFFFFF)) % np.uint32(self.count)
        return pa.array(buckets.astype(np.int32), mask=_null_mask(array))


@dataclass(frozen=True)
class Truncate(Transform):
    width: int
    word: ClassVar[str] = "trunc"
    sources: ClassVar[tuple[type[PrimitiveType], ...]] = (IntegerType, LongType, DecimalType, StringType, BinaryType)

    def __post_init__(self) -> None:
        if not 1 <= self.width <= 0x7FFFFFFF:
            raise InvalidInput(f"truncate needs a width of at least 1, got {self.width}")

    def __str__(self) -> str:
        return f"truncate[{self.width}]"

    def result_type(self, source: PrimitiveType) -> PrimitiveType:
        return source

    def apply(self, array: pa.Array, source: PrimitiveType) -> pa.Array:
        if isinstance(source, StringType):
            return pc.utf8_slice_codeunits(array, 0, self.width)
        if isinstance(source, BinaryType):
            return pc.binary_slice(array, 0, self.width)
        if isinstance(source, DecimalType):
            return self._truncate_decimals(array, source)
        values = _integers(array)
        # Below the lowest multiple of the width, the result wraps around, as in Iceberg Java.
        with np.errstate(over="ignore"):
            cut = (values - values % self.width).astype(np.int32 if isinstance(source, IntegerType) else np.int64)
        return pa.array(cut, array.type, mask=_null_mask(array))

    def _truncate_decimals(self, array: pa.Array, source: DecimalType) -> pa.Array:
        numbers = (None if v is None else unscaled(v, source.scale) for v in array.to_pylist())
        cut = [None if n is None else scaled(n - n % self.width, source.scale) for n in numbers]
        try:
            return pa.array(cut, array.type)
        except pa.ArrowInvalid as error:
            raise InvalidInput(f"{self} of a value near the low end of {source} does not fit {source}") from error


@dataclass(frozen=True)
class Year(Transform):
    word: ClassVar[str] = "year"
    sources: ClassVar[tuple[type[PrimitiveType], ...]] = DATES

    def apply(self, array: pa.Array, source: PrimitiveType) -> pa.Array:
        return _calendar_units(array, source, "Y")

    def to_human_string(self, value: Value | None, source: PrimitiveType) -> str:
        return "null" if value is None else f"{1970 + int(value):04d}"


@dataclass(frozen=True)
class Month(Transform):
    word: ClassVar[str] = "month"
    sources: ClassVar[tuple[type[PrimitiveType], ...]] = DATES

    def apply(self, array: pa.Array, source: PrimitiveType) -> pa.Array:
        return _calendar_units(array, source, "M")

    def to_human_string(self, value: Value | None, source: PrimitiveType) -> str:
        if value is None:
            return "null"
        years, month = divmod(int(value), 12)
        return f"{1970 + years:04d}-{month + 1:02d}"


@dataclass(frozen=True)
class Day(Transform):
    word: ClassVar[str] = "day"
    sources: ClassVar[tuple[type[PrimitiveType], ...]] = DATES

    def result_type(self, source: PrimitiveType) -> PrimitiveType:
        # The spec says int; Iceberg Java writes the Avro logical type date, and int and date read the same.
        return DateType()

    def apply(self, array: pa.Array, source: PrimitiveType) -> pa.Array:
        return _calendar_units(array, source, "D").cast(pa.date32())


@dataclass(frozen=True)
class Hour(Transform):
    word: ClassVar[str] = "hour"
    sources: ClassVar[tuple[type[PrimitiveType], ...]] = TIMESTAMPS

    def apply(self, array: pa.Array, source: PrimitiveType) -> pa.Array:
        hours = _integers(array) // (units_per_day(source) // 24)
        if np.any(hours != hours.astype(np.int32)):
            raise InvalidInput("a timestamp beyond the year 246953 has no hour partition: it would overflow an int")
        return pa.array(hours.astype(np.int32), mask=_null_mask(array))

    def to_human_string(self, value: Value | None, source: PrimitiveType) -> str:
        if value is None:
            return "null"
        days, hour = divmod(int(value), 24)
        return f"{_human_value(days, DateType())}-{hour:02d}"


@dataclass(frozen=True)
class Unknown(Transform):
    """A transform of a later version or of several columns: its files can be read, but none can be written.

    (spec: Partitioning)
    """

    text: str

    def __str__(self) -> str:
        return self.text

    def fits(self, source: PrimitiveType) -> bool:
        return True

    def result_type(self, source: PrimitiveType) -> PrimitiveType:
        return StringType()

    def apply(self, array: pa.Array, source: PrimitiveType) -> pa.Array:
        raise Unsupported(f"cannot write rows partitioned or sorted by {self}: unknown transform")


SIMPLE_TRANSFORMS: dict[str, Transform] = {t.word: t for t in (Identity(), Void(), Year(), Month(), Day(), Hour())}
_WITH_NUMBER = re.compile(r"(bucket|truncate)\[(\d+)\]")
_NUMBERED: dict[str, Callable[[int], Transform]] = {"bucket": Bucket, "truncate": Truncate}


def parse_transform(text: str) -> Transform:
    """Parse a transform as written in metadata."""
    if text in SIMPLE_TRANSFORMS:
        return SIMPLE_TRANSFORMS[text]
    if found := _WITH_NUMBER.fullmatch(text):
        if len(found[2]) > MAX_DIGITS:
            raise InvalidInput(f"the parameter of the transform {text[:40]}… is too large")
        return _NUMBERED[found[1]](int(found[2]))
    return Unknown(text)


def units_per_day(source: PrimitiveType) -> int:
    """Return how many units of a date or timestamp type are in a day."""
    if isinstance(source, DateType):
        return 1
    return NANOS_PER_DAY if isinstance(source, NANO_TIMESTAMPS) else MICROS_PER_DAY


def _null_mask(array: pa.Array) -> Any:
    return array.is_null().to_numpy(zero_copy_only=False)


def _integers(array: pa.Array) -> Any:
    """Return dates as days, times and timestamps in the unit of their type, integers unchanged; nulls become 0."""
    plain = physical_array(array)
    return pc.fill_null(plain, 0).to_numpy(zero_copy_only=False).astype(np.int64)


def _calendar_units(array: pa.Array, source: PrimitiveType, unit: str) -> pa.Array:
    # Days first: in numpy the lowest 64-bit integer is "not a time".
    days = _integers(array) // units_per_day(source)
    units = days.astype("datetime64[D]").astype(f"datetime64[{unit}]").astype(np.int64)
    return pa.array(units.astype(np.int32), mask=_null_mask(array))


def _hash(array: pa.Array, source: PrimitiveType) -> Any:
    if isinstance(source, DecimalType):
        values = array.to_pylist()
        blobs = [b"" if v is None else encode_unscaled(unscaled(v, source.scale)) for v in values]
        return _hash_binary(pa.array(blobs, pa.binary()))
    if isinstance(source, StringType | BinaryType | FixedType | UUIDType):
        return _hash_binary(physical_array(array).cast(pa.binary()))
    numbers = _integers(array)
    # So that a timestamp hashes the same in either unit. (spec: Appendix B)
    return hash_longs(numbers // NANOS_PER_MICRO if isinstance(source, NANO_TIMESTAMPS) else numbers)


def _hash_binary(array: pa.Array) -> Any:
    _, offset_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.empty(0, np.uint8)
    return hash_bytes(data, offsets[:-1], np.diff(offsets))


def _human_value(value: Value, kind: PrimitiveType) -> str:
    match kind:
        case DateType():
            return str(np.datetime64(int(value), "D"))
        case TimestampType() | TimestamptzType() | TimestampNsType() | TimestamptzNsType():
            zone = "+00:00" if isinstance(kind, TimestamptzType | TimestamptzNsType) else ""
            return f"{np.datetime64(int(value), 'ns' if isinstance(kind, NANO_TIMESTAMPS) else 'us')}{zone}"
        case TimeType():
            return str(np.datetime64(int(value), "us")).partition("T")[2]
        case BinaryType() | FixedType():
            return bytes(value).hex()  # type: ignore[arg-type]
        case _:
            return str(value).lower() if isinstance(value, bool) else str(value)
