"""Values between Python and Iceberg Java's generic records.

`parse_record` and `make_record` take values in the single-value JSON of the format (dates and times as text, binary as
hexadecimal digits), but structs by names; `java_value` gives the form of `expected`.
"""

import json
import struct
from collections.abc import Callable
from typing import Any

from py4j.java_gateway import JavaObject
from tests.golden.expected import plain_value

_FRACTIONS = {"TIMESTAMP": 10**6, "TIMESTAMP_NANO": 10**9}


def parse_record(spark: Any, kind: Any, row: dict[str, Any]) -> Any:
    """Make a record as engines hold it; Java parses it, because a long that travels alone comes out as an int."""
    parsed = {name: value for name, value in row.items() if not isinstance(value, JavaObject)}
    text = json.dumps(_by_id(kind, parsed))
    return spark._jvm.org.apache.iceberg.SingleValueParser.fromJson(kind, text)


def make_record(spark: Any, kind: Any, row: dict[str, Any]) -> Any:
    """Make a generic record."""
    record = parse_record(spark, kind, row)
    _mend(spark._jvm, record, kind, row)
    return record


def java_value(spark: Any, kind: Any, value: Any) -> Any:
    """Bring a value of a generic record, or of a partition, to the form of `expected`."""
    if value is None:
        return None
    name = kind.typeId().toString()
    if name == "STRUCT":
        anything = spark._jvm.java.lang.Class.forName("java.lang.Object")
        return [java_value(spark, f.type(), value.get(at, anything)) for at, f in enumerate(kind.fields())]
    if name == "LIST":
        return [java_value(spark, kind.elementType(), item) for item in value]
    if name == "MAP":
        keys, values = kind.keyType(), kind.valueType()
        pairs = [[java_value(spark, keys, k), java_value(spark, values, value[k])] for k in value]
        return sorted(pairs, key=repr)
    return _LEAVES.get(name, _as_it_is)(spark._jvm, name, value)


def _by_id(kind: Any, row: dict[str, Any]) -> dict[str, Any]:
    fields = {f.name(): f for f in kind.fields()}
    named = ((fields[name], value) for name, value in row.items() if value is not None)
    return {str(f.fieldId()): _by_id(f.type(), v) if f.type().isStructType() else v for f, v in named}


def _mend(jvm: Any, record: Any, kind: Any, row: dict[str, Any]) -> None:
    """Set the values that Java's parser makes for engines, not for generic records."""
    fields = {f.name(): f.type() for f in kind.fields()}
    for name, value in row.items():
        if value is None:
            continue
        if fields[name].isStructType():
            _mend(jvm, record.getField(name), fields[name], value)
        elif (found := _generic_value(jvm, fields[name], value)) is not None:
            record.setField(name, found)


def _generic_value(jvm: Any, kind: Any, value: Any) -> Any:
    name = kind.typeId().toString()
    if name == "DATE":
        return jvm.java.time.LocalDate.parse(value)
    if name == "TIME":
        return jvm.java.time.LocalTime.parse(value)
    if name == "FIXED":
        return bytes.fromhex(value)
    if name in _FRACTIONS:
        if kind.shouldAdjustToUTC():
            return jvm.java.time.OffsetDateTime.parse(value)
        return jvm.java.time.LocalDateTime.parse(value)
    return value if isinstance(value, JavaObject) else None


def _as_it_is(_: Any, __: str, value: Any) -> Any:
    return plain_value(value)


def _float(_: Any, __: str, value: Any) -> str:
    (exact,) = struct.unpack("f", struct.pack("f", value))  # Java prints the shortest text of a float
    return repr(exact)


def _date(_: Any, __: str, value: Any) -> Any:
    return value if isinstance(value, int) else value.toEpochDay()


def _time(_: Any, __: str, value: Any) -> Any:
    return value if isinstance(value, int) else value.toNanoOfDay() // 1000


def _moment(jvm: Any, name: str, value: Any) -> Any:
    if isinstance(value, int):
        return value
    local = value.getClass().getSimpleName() == "LocalDateTime"
    instant = value.toInstant(jvm.java.time.ZoneOffset.UTC) if local else value.toInstant()
    fraction = _FRACTIONS[name]
    return instant.getEpochSecond() * fraction + instant.getNano() * fraction // 10**9


def _text(_: Any, __: str, value: Any) -> str:
    return value if isinstance(value, str) else str(value.toString())


def _bytes(jvm: Any, _: str, value: Any) -> str:
    raw = value if isinstance(value, bytes) else jvm.org.apache.iceberg.util.ByteBuffers.toByteArray(value)
    return bytes(raw).hex()


def _variant(jvm: Any, _: str, value: Any) -> list[str]:
    return [_written(jvm, part) for part in (value.metadata(), value.value())]


def _written(jvm: Any, part: Any) -> str:
    order = jvm.java.nio.ByteOrder.LITTLE_ENDIAN
    buffer = jvm.java.nio.ByteBuffer.allocate(part.sizeInBytes()).order(order)
    part.writeTo(buffer, 0)
    return _bytes(jvm, "", buffer)


_LEAVES: dict[str, Callable[[Any, str, Any], Any]] = {
    "FLOAT": _float,
    "DATE": _date,
    "TIME": _time,
    "TIMESTAMP": _moment,
    "TIMESTAMP_NANO": _moment,
    "STRING": _text,
    "UUID": _text,
    "FIXED": _bytes,
    "BINARY": _bytes,
    "VARIANT": _variant,
}
