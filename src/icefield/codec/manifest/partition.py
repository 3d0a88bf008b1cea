"""The partition tuple of a manifest as an Avro record. (spec: Appendix A, Avro; Data File Fields)

It is a record of optional fields with the field ids of the spec, and with the type and field names that Iceberg Java
writes. Raises InvalidInput for a field that is not allowed in a partition tuple.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from icefield.codec.avro.schema import Field, Record, Value
from icefield.errors import InvalidInput
from icefield.types.datatypes import (
    UUID_BYTES,
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UUIDType,
)

_VALUES: dict[PrimitiveType, Value] = {
    BooleanType(): Value("boolean"),
    IntegerType(): Value("int"),
    LongType(): Value("long"),
    FloatType(): Value("float"),
    DoubleType(): Value("double"),
    DateType(): Value("int", logical="date"),
    TimeType(): Value("long", logical="time-micros"),
    TimestampType(): Value("long", logical="timestamp-micros"),
    TimestamptzType(): Value("long", logical="timestamp-micros", adjust_to_utc=True),
    TimestampNsType(): Value("long", logical="timestamp-nanos"),
    TimestamptzNsType(): Value("long", logical="timestamp-nanos", adjust_to_utc=True),
    StringType(): Value("string"),
    UUIDType(): Value("fixed", UUID_BYTES, "uuid"),
    BinaryType(): Value("bytes"),
}


def partition_record(fields: Sequence[NestedField]) -> Record:
    """Return the Avro record of a partition tuple."""
    return Record(tuple(Field(f.name, f.field_id, _value(f.type), null_branch=0) for f in fields))


def partition_json(record: Record) -> dict[str, Any]:
    """Render the record as part of an Avro schema."""
    defined: set[str] = set()
    names = [avro_name(f.name) for f in record.fields]
    if len(set(names)) != len(names):
        raise InvalidInput(f"partition fields have the same name in Avro: {', '.join(names)}")
    return {
        "type": "record",
        "name": "r102",
        "fields": [_field_json(f, name, defined) for f, name in zip(record.fields, names, strict=True)],
    }


def avro_name(name: str) -> str:
    """Return a valid Avro field name, by the rule of Iceberg Java.

    That rule keeps non-ASCII letters, which Avro does not allow and DuckDB rejects. They are escaped here too, because
    readers match by field id.
    """
    return "".join(_avro_characters(name))


def decimal_bytes(precision: int) -> int:
    """Return the fewest bytes that can hold every decimal of the given precision."""
    return next(size for size in range(1, 17) if 10**precision <= 1 << (8 * size - 1))


def _avro_characters(name: str) -> Iterable[str]:
    # The rule is in terms of UTF-16 code units: a character beyond the basic plane is escaped as its two surrogates.
    units = name.encode("utf-16-be", "surrogatepass")
    for index in range(0, len(units), 2):
        code = int.from_bytes(units[index : index + 2], "big")
        character = chr(code)
        digit = character.isascii() and character.isdecimal()
        if (character.isascii() and character.isalpha()) or character == "_" or (index > 0 and digit):
            yield character
        elif digit:
            yield f"_{character}"
        else:
            yield f"_x{code:X}"


def _value(kind: Type) -> Value:
    match kind:
        case DecimalType(precision, scale):
            return Value("fixed", decimal_bytes(precision), "decimal", precision, scale)
        case FixedType(length):
            return Value("fixed", length)
        case PrimitiveType() if kind in _VALUES:
            return _VALUES[kind]
        case _:
            raise InvalidInput(f"cannot write a partition value of type {kind}")


def _field_json(field: Field, name: str, defined: set[str]) -> dict[str, Any]:
    assert isinstance(field.node, Value)
    rendered = {"name": name, "type": ["null", _value_json(field.node, defined)], "default": None}
    if name != field.name:
        rendered["iceberg-field-name"] = field.name
    return rendered | {"field-id": field.field_id}


def _value_json(value: Value, defined: set[str]) -> Any:
    """Render a type; a named type is defined once and then referenced by its name."""
    rendered: dict[str, Any] = {"type": value.kind}
    if value.kind == "fixed":
        name = _type_name(value)
        if name in defined:
            return name
        defined.add(name)
        rendered |= {"name": name, "size": value.size}
    if value.logical:
        rendered["logicalType"] = value.logical
    if value.logical == "decimal":
        rendered |= {"precision": value.precision, "scale": value.scale}
    if value.logical.startswith("timestamp-"):
        rendered["adjust-to-utc"] = value.adjust_to_utc
    return value.kind if rendered == {"type": value.kind} else rendered


def _type_name(value: Value) -> str:
    match value.logical:
        case "decimal":
            return f"decimal_{value.precision}_{value.scale}"
        case "uuid":
            return "uuid_fixed"
        case _:
            return f"fixed_{value.size}"
