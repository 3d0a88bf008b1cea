"""Convert Python values and strings of users to in-memory values."""

from __future__ import annotations

import uuid

from icefield.deferred import deferred_imports
from icefield.types.datatypes import (
    EMPTY_STRUCT,
    Default,
    DoubleType,
    FloatType,
    PrimitiveType,
    StructType,
    Type,
    UUIDType,
    Value,
)

with deferred_imports(__name__):
    import pyarrow as pa

    from icefield.types.arrow import arrow_type, python_values


def python_value(given: object, kind: PrimitiveType) -> Value | None:
    """Convert a Python value or a string to the in-memory value of a type. Raises ValueError."""
    if given is None:
        return None
    try:
        if isinstance(kind, UUIDType):
            return given if isinstance(given, uuid.UUID) else uuid.UUID(str(given))
        if isinstance(given, float) and not isinstance(kind, FloatType | DoubleType):
            raise TypeError(f"{given!r} is a float")
        wanted = arrow_type(kind)
        array = pa.array([given]).cast(wanted) if isinstance(given, str) else pa.array([given], wanted)
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise ValueError(str(error)) from error
    return python_values(array, kind)[0]


def python_default(given: object, kind: Type) -> Default | None:
    """Convert a Python value to the default of a column; `{}` is a struct of its fields' defaults."""
    if given is None:
        return None
    if isinstance(kind, StructType) and given in ({}, EMPTY_STRUCT):
        return EMPTY_STRUCT
    if not isinstance(kind, PrimitiveType):
        raise ValueError(f"a column of type {kind} cannot have a default")
    return python_value(given, kind)
