"""Sort keys: values in a form that has the order of the format in both Arrow and Spark. (spec: Sorting)

    -0.0, 1.5, NaN                    int64     the bits, so that -0.0 < 0.0 and NaN is last
    'é', uuid, bytes                  binary    compared as unsigned bytes
    integers, dates, times            int64
    booleans, decimals                as they are

Their order does not depend on session settings such as time zone or collation.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icefield.types.arrow import physical_array
from icefield.types.datatypes import (
    BinaryType,
    BooleanType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    PrimitiveType,
    StringType,
    UUIDType,
)

BYTES = (StringType, BinaryType, FixedType, UUIDType)
FLOATS = (FloatType, DoubleType)
_ALL_BUT_SIGN = np.int64(0x7FFF_FFFF_FFFF_FFFF)


def key_type(kind: PrimitiveType) -> pa.DataType:
    """Return the Arrow type of the keys of a type."""
    match kind:
        case BooleanType():
            return pa.bool_()
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case _:
            return pa.binary() if isinstance(kind, BYTES) else pa.int64()


def sort_keys(array: pa.Array, kind: PrimitiveType) -> pa.Array:
    """Return a key for each value, null for null; the array has the Arrow type of `kind`."""
    if isinstance(kind, FLOATS):
        return _float_keys(array)
    return physical_array(array).cast(key_type(kind))


def has_negative_nan(array: pa.Array, kind: PrimitiveType) -> bool:
    """Return whether a NaN has its sign bit set.

    The spec sorts it first, but Java's comparison, which the spec refers to, sorts it last.
    """
    if not isinstance(kind, FLOATS):
        return False
    values = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
    return bool(np.any(np.isnan(values) & np.signbit(values)))


def _float_keys(array: pa.Array) -> pa.Array:
    values = pc.fill_null(array, 0).to_numpy(zero_copy_only=False).astype(np.float64)
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    return pa.array(bits ^ ((bits >> 63) & _ALL_BUT_SIGN), mask=array.is_null().to_numpy(zero_copy_only=False))
