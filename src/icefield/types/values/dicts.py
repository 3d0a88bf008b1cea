"""Rows that are given as dicts, as Arrow data of the table's types.

    column         value                        becomes
    long           3.0                          3
    long           1.5                          an error: Arrow would cut it off
    date           datetime(2026, 1, 5, 9)      an error: the time would be lost
    struct<a: int> {"a": 1, "b": 2}             an error: there is no field b

Raises InvalidInput.
"""

import datetime
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from icefield.errors import InvalidInput
from icefield.types.arrow import arrow_type
from icefield.types.schema import Schema

_MIDNIGHT = datetime.time()


def rows_of_dicts(rows: Sequence[Mapping[str, object]], schema: Schema | None) -> pa.Table:
    """Convert dicts to Arrow data. schema: the table's, whose columns give the types; a missing value is null."""
    known = {f.name: arrow_type(f.type) for f in schema.fields} if schema is not None else {}
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {}
    for name in names:
        try:
            columns[name] = _column([row.get(name) for row in rows], known.get(name))
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            wanted = f"values of type {known[name]}" if name in known else "values of one type"
            raise InvalidInput(
                f"column {str(name)!r} of the dicts does not have {wanted}: {message_of(error)}",
                hint="Convert the values, or give Arrow data",
            ) from error
    return pa.table(columns)


def message_of(error: Exception) -> str:
    """Return the message of an error; Arrow's errors about a pandas column have it in several arguments."""
    strings = [argument for argument in error.args if isinstance(argument, str)]
    return "; ".join(strings) if len(strings) == len(error.args) and strings else str(error) or type(error).__name__


def _column(values: list[Any], kind: pa.DataType | None) -> pa.Array:
    if kind == pa.uuid():
        storage = pa.array([getattr(value, "bytes", value) for value in values], pa.binary(16))
        return pa.ExtensionArray.from_storage(kind, storage)
    made = pa.array(values, kind)
    if kind is not None:
        _check_kept(values, kind)
    return made


def _check_kept(values: Iterable[Any], kind: pa.DataType) -> None:
    """Raise ValueError for a value that Arrow converts, but not to the same value."""
    check = next((check for is_kind, check in _CHECKS if is_kind(kind)), None)
    if check is None:
        return
    for value in values:
        if value is not None:
            check(value, kind)


def _check_integer(value: Any, kind: pa.DataType) -> None:
    if not isinstance(value, int) and value != int(value):
        raise ValueError(f"{value!r} is not a whole number")


def _check_float(value: Any, kind: pa.DataType) -> None:
    with np.errstate(over="ignore"):
        if math.isinf(np.float32(value)) and not math.isinf(value):
            raise ValueError(f"{value!r} is too large")


def _check_date(value: Any, kind: pa.DataType) -> None:
    if isinstance(value, datetime.datetime) and value.time() != _MIDNIGHT:
        raise ValueError(f"{value!r} has a time, which would be lost")


def _check_time(value: Any, kind: pa.DataType) -> None:
    has_zone = getattr(kind, "tz", None) is not None
    if not has_zone and getattr(value, "tzinfo", None) is not None:
        raise ValueError(f"{value!r} has a time zone, which would be lost")
    if getattr(value, "nanosecond", 0) and kind.unit != "ns":
        raise ValueError(f"{value!r} has nanoseconds, which would be lost")


def _check_struct(value: Any, kind: pa.StructType) -> None:
    if not isinstance(value, Mapping):
        return
    fields = {kind.field(at).name: kind.field(at).type for at in range(kind.num_fields)}
    if unknown := value.keys() - fields.keys():
        raise ValueError(f"{value!r} has no field {min(unknown)!r} in the table")
    for name, part in value.items():
        _check_kept([part], fields[name])


def _check_list(value: Any, kind: Any) -> None:
    _check_kept(value, kind.value_type)


def _check_map(value: Any, kind: pa.MapType) -> None:
    pairs = list(value.items() if isinstance(value, Mapping) else value)
    _check_kept((key for key, _ in pairs), kind.key_type)
    _check_kept((part for _, part in pairs), kind.item_type)


_CHECKS: Sequence[tuple[Callable[[pa.DataType], bool], Callable[[Any, Any], None]]] = (
    (pa.types.is_integer, _check_integer),
    (pa.types.is_float32, _check_float),
    (pa.types.is_date, _check_date),
    (lambda kind: pa.types.is_timestamp(kind) or pa.types.is_time(kind), _check_time),
    (pa.types.is_struct, _check_struct),
    (pa.types.is_map, _check_map),
    (lambda kind: pa.types.is_list(kind) or pa.types.is_large_list(kind), _check_list),
)
