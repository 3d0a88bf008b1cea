"""What a history may use: every reader of its tables knows other parts of the format."""

from dataclasses import dataclass

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
    UnknownType,
    UUIDType,
)

PLAIN_KINDS: tuple[PrimitiveType, ...] = (
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
    DecimalType(9, 2),
    DecimalType(18, 0),
    DecimalType(38, 10),
)
NEWER_KINDS: tuple[PrimitiveType, ...] = (TimestampNsType(), TimestamptzNsType(), UnknownType())
TRANSFORMS = ("identity", "bucket", "truncate", "year", "month", "day", "hour", "void")


@dataclass(frozen=True)
class Features:
    """What may occur; the default is everything."""

    kinds: tuple[PrimitiveType, ...] = PLAIN_KINDS
    newer_kinds: tuple[PrimitiveType, ...] = NEWER_KINDS  # from version 3 on
    versions: tuple[int, ...] = (1, 2, 3)
    transforms: tuple[str, ...] = TRANSFORMS
    not_partitioned_by: tuple[type[PrimitiveType], ...] = ()  # by identity
    defaults: bool = True
    struct_defaults: bool = True
    dates_become_timestamps: bool = True
    adopts_files: bool = True
    deletes_in_place: bool = True  # from version 2 on
    deletes_by_equality: bool = True  # from version 2 on

    def kinds_of(self, version: int) -> tuple[PrimitiveType, ...]:
        """Return the primitive types of a format version."""
        return self.kinds if version < 3 else (*self.kinds, *self.newer_kinds)


EVERYTHING = Features()
