"""Store assignment: the value of an expression as a value of a column, by the rules of Spark's ANSI policy.

The rules hold whatever the session's settings say: numbers are assigned to numbers, anything atomic to text, dates and
times to each other, and a number that does not fit is an error, never null and never another number. Structs are
matched field by field, by name.
Raises SchemaMismatch for a type that cannot be assigned.
"""

import base64
import pickle

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name that every Spark user knows
from pyspark.sql import types as spark

from icefield.errors import SchemaMismatch

_DATETIMES = (spark.DateType, spark.TimestampType, spark.TimestampNTZType)
# The number of decimal digits of integers.
_DIGITS: dict[type[spark.DataType], int] = {
    spark.ByteType: 3,
    spark.ShortType: 5,
    spark.IntegerType: 10,
    spark.LongType: 19,
}
_INTEGERS = tuple(_DIGITS)


def store(value: Column, given: spark.DataType, wanted: spark.DataType, path: str) -> Column:
    """Return a value as one of a column. given, wanted: their types. path: the column, for errors."""
    if is_stored_as_it_is(given, wanted):
        return value
    match given, wanted:
        case spark.NullType(), _:
            return value.cast(wanted)
        case spark.StructType(), spark.StructType():
            return _store_struct(value, given, wanted, path)
        case spark.ArrayType(), spark.ArrayType():
            return F.transform(value, lambda item: store(item, given.elementType, wanted.elementType, path))
        case spark.MapType(), spark.MapType():
            keys = F.transform_keys(value, lambda key, _: store(key, given.keyType, wanted.keyType, path))
            return F.transform_values(keys, lambda _, item: store(item, given.valueType, wanted.valueType, path))
        case spark.NumericType(), spark.NumericType():
            return value.cast(wanted) if _always_fits(given, wanted) else _checked(value, wanted, path)
        case spark.AtomicType(), spark.StringType():
            return value.cast(spark.StringType())
        case _ if isinstance(given, _DATETIMES) and isinstance(wanted, _DATETIMES):
            return value.cast(wanted)
        case _:
            raise _not_assignable(given, wanted, path)


def store_time(value: Column, given: spark.DataType, path: str) -> Column:
    """Return the microseconds of a time, which are numbers to Spark: a long, such as those of another such column."""
    if not isinstance(given, spark.NullType | spark.LongType):
        raise SchemaMismatch(f"cannot assign a value of type {given.simpleString()} to column {path!r} of times")
    return value.cast("long")


def store_nanos(value: Column, given: spark.DataType, path: str, *, zoned: bool) -> Column:
    """Return a date or time as nanoseconds, which are numbers to Spark. zoned: for a column with a time zone."""
    if isinstance(given, spark.NullType | spark.LongType):
        return value.cast("long")  # of another such column
    if not isinstance(given, _DATETIMES):
        raise SchemaMismatch(
            f"cannot assign a value of type {given.simpleString()} to column {path!r} of nanoseconds",
            hint="Cast it in the expression",
        )
    if zoned:
        micros = F.unix_micros(value.cast(spark.TimestampType()))
    else:
        epoch = F.expr("TIMESTAMP_NTZ '1970-01-01 00:00:00'")
        micros = F.timestamp_diff("MICROSECOND", epoch, value.cast(spark.TimestampNTZType()))
    return _refused_if_null(value, F.try_multiply(micros, F.lit(1000).cast("long")), spark.LongType(), path)


def is_stored_as_it_is(given: spark.DataType, wanted: spark.DataType) -> bool:
    """Return whether values of two types are the same."""
    return _without_details(given) == _without_details(wanted)


def never_fails(given: spark.DataType, wanted: spark.DataType) -> bool:
    """Return whether every value of a type can be stored."""
    if isinstance(given, spark.NumericType) and isinstance(wanted, spark.NumericType) and given != wanted:
        return _always_fits(given, wanted)
    return isinstance(given, spark.NullType) or is_stored_as_it_is(given, wanted)


def _store_struct(value: Column, given: spark.StructType, wanted: spark.StructType, path: str) -> Column:
    if len(given.fields) != len(wanted.fields):
        raise _not_assignable(given, wanted, path)
    parts = []
    for field in wanted.fields:
        own = _find(given, field.name)
        if own is None:
            raise _not_assignable(given, wanted, path)
        inner = store(value.getField(own.name), own.dataType, field.dataType, f"{path}.{field.name}")
        parts.append(inner.alias(field.name))
    return F.when(value.isNotNull(), F.struct(*parts))


def _find(given: spark.StructType, name: str) -> spark.StructField | None:
    exact = [f for f in given.fields if f.name == name]
    found = exact or [f for f in given.fields if f.name.lower() == name.lower()]
    return found[0] if len(found) == 1 else None


def _checked(value: Column, wanted: spark.DataType, path: str) -> Column:
    """Cast a number; one that does not fit raises an error in the task, which the driver decodes."""
    return _refused_if_null(value, value.try_cast(wanted), wanted, path)


def _refused_if_null(value: Column, fitted: Column, wanted: spark.DataType, path: str) -> Column:
    fault = SchemaMismatch(
        f"column {path!r} cannot hold a value: it is out of range for {wanted.simpleString()}",
        hint="Change the expression, or widen the column",
    )
    packed = base64.b64encode(pickle.dumps(fault)).decode()
    refused = F.raise_error(F.lit(f"icefield-error:{packed}: {fault}")).cast(wanted)
    return F.when(value.isNotNull() & fitted.isNull(), refused).otherwise(fitted)


def _always_fits(given: spark.DataType, wanted: spark.DataType) -> bool:
    if isinstance(wanted, spark.DoubleType):
        return True  # every number has a nearest double
    if isinstance(wanted, spark.FloatType):
        return not isinstance(given, spark.DoubleType | spark.DecimalType)
    if isinstance(given, _INTEGERS) and isinstance(wanted, _INTEGERS):
        return _DIGITS[type(given)] <= _DIGITS[type(wanted)]
    if isinstance(wanted, spark.DecimalType) and isinstance(given, spark.DecimalType):
        return wanted.scale >= given.scale and wanted.precision - wanted.scale >= given.precision - given.scale
    if isinstance(wanted, spark.DecimalType) and isinstance(given, _INTEGERS):
        return wanted.precision - wanted.scale >= _DIGITS[type(given)]
    return False


def _without_details(kind: spark.DataType) -> object:
    """Return a type as it is compared: without nullability, collation and metadata."""
    match kind:
        case spark.StructType():
            return tuple((f.name, _without_details(f.dataType)) for f in kind.fields)
        case spark.ArrayType():
            return ("array", _without_details(kind.elementType))
        case spark.MapType():
            return ("map", _without_details(kind.keyType), _without_details(kind.valueType))
        case spark.StringType() | spark.VarcharType() | spark.CharType():
            return "string"
        case _:
            return kind.simpleString()


def _not_assignable(given: spark.DataType, wanted: spark.DataType, path: str) -> SchemaMismatch:
    return SchemaMismatch(
        f"cannot assign a value of type {given.simpleString()} to column {path!r} of type {wanted.simpleString()}",
        hint="Cast it in the expression",
    )
