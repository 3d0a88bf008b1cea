"""Parquet files as parquet-mr writes them, type by type: physical types and lists that Arrow's writer does not have.

optional binary d (DECIMAL(9,2)) = 3;        decimals as int32, int64, fixed_len_byte_array or binary
optional int96 t = 4;                        timestamps as INT96, milliseconds, microseconds
optional group l (LIST) = 5 { repeated int32 array = 6; }      lists of two levels
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql import SparkSession
from tests.matrix.reading_files import ForeignFile
from tests.matrix.reading_values import unscaled

from icefield.types.calendar import MICROS_PER_DAY
from icefield.types.datatypes import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    ListType,
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

JULIAN_EPOCH = 2_440_588
INT96 = "int96"
Store = Callable[[Any], Any]


@dataclass(frozen=True)
class _Physical:
    """How values of a column are stored: physical type, annotation, and the class that holds one value."""

    word: str
    annotation: str
    holder: str
    store: Store

    def field(self, repetition: str, name: str, field_id: int | None) -> str:
        number = "" if field_id is None else f" = {field_id}"
        return f"{repetition} {self.word} {name} {self.annotation}{number};"


def write_by_parquet_mr(random: Random, path: Path, file: ForeignFile, spark: SparkSession) -> str:
    """Write a file; return its message type, which says how each column is stored."""
    columns = [_Column.draw(random, f, file) for f in file.fields]
    message = "message rows { " + " ".join(c.text for c in columns) + " }"
    jvm: Any = spark._jvm
    parquet = jvm.org.apache.parquet
    kind = parquet.schema.MessageTypeParser.parseMessageType(message)
    target = jvm.org.apache.hadoop.fs.Path(str(path))
    writer = (
        parquet.hadoop.example.ExampleParquetWriter.builder(target)
        .withType(kind)
        .withDictionaryEncoding(random.random() < 0.5)
        .withBloomFilterEnabled(random.random() < 0.3)
        .withRowGroupSize(random.choice([16, 1 << 20]))
        .withMinRowCountForPageSizeCheck(2)
        .build()
    )
    sink = _Sink(spark)
    for row in file.rows:
        group = parquet.example.data.simple.SimpleGroup(kind)
        for at, column in enumerate(columns):
            column.add(sink, group, at, row[column.field_id])
        writer.write(group)
    writer.close()
    return message


def can_be_written(field: NestedField) -> bool:
    """Return whether a column is one that is written here: a primitive one, or a list of such."""
    kind = field.type.element_type if isinstance(field.type, ListType) else field.type
    return type(kind) in _CHOICES


def needs_foreign_commit(message: str) -> bool:
    """Return whether `add_files` refuses the file, but other engines do not."""
    return f" {INT96} " in message


class _Sink:
    """Puts values into groups: the method that takes a value of any class is private."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        context: Any = spark.sparkContext
        self._gateway = context._gateway
        self._classes = jvm.org.apache.parquet.example.data.simple
        self._binary = jvm.org.apache.parquet.io.api.Binary
        group = jvm.java.lang.Class.forName("org.apache.parquet.example.data.simple.SimpleGroup")
        value = jvm.java.lang.Class.forName("org.apache.parquet.example.data.simple.Primitive")
        gateway = self._gateway
        kinds = gateway.new_array(jvm.java.lang.Class, 2)
        kinds[0], kinds[1] = jvm.java.lang.Integer.TYPE, value
        self._method = group.getDeclaredMethod("add", kinds)
        self._method.setAccessible(True)
        self._object = jvm.java.lang.Object

    def put(self, group: Any, at: int, holder: str, value: Any) -> None:
        if isinstance(value, bytes):
            value = self._binary.fromConstantByteArray(value)
        arguments = self._gateway.new_array(self._object, 2)
        arguments[0], arguments[1] = at, getattr(self._classes, holder)(value)
        self._method.invoke(group, arguments)


@dataclass(frozen=True)
class _Column:
    field_id: int
    text: str
    physical: _Physical
    levels: int  # of a list: two or three; none for other columns

    @classmethod
    def draw(cls, random: Random, field: NestedField, file: ForeignFile) -> "_Column":
        name = file.names.get(field.field_id, field.name)
        values = [row[field.field_id] for row in file.rows]
        if not isinstance(field.type, ListType):
            physical = _draw_physical(random, field.type, values)
            repetition = "required" if field.required else "optional"
            return cls(field.field_id, physical.field(repetition, name, field.field_id), physical, 0)
        items = [item for value in values for item in value or ()]
        physical = _draw_physical(random, field.type.element_type, items)
        levels = random.choice([2, 3]) if None not in items else 3
        if levels == 2:
            inner = physical.field("repeated", "array", field.type.element_id)
        else:
            outer, item = random.choice([("list", "element"), ("bag", "array_element")])
            inner = f"repeated group {outer} {{ {physical.field('optional', item, field.type.element_id)} }}"
        text = f"optional group {name} (LIST) = {field.field_id} {{ {inner} }}"
        return cls(field.field_id, text, physical, levels)

    def add(self, sink: _Sink, group: Any, at: int, value: Any) -> None:
        if value is None:
            return
        if not self.levels:
            sink.put(group, at, self.physical.holder, self.physical.store(value))
            return
        held = group.addGroup(at)
        for item in value:
            inner = held if self.levels == 2 else held.addGroup(0)
            if item is not None:
                sink.put(inner, 0, self.physical.holder, self.physical.store(item))


def _draw_physical(random: Random, kind: Type, values: list[Any]) -> _Physical:
    assert isinstance(kind, PrimitiveType)
    present = [v for v in values if v is not None]
    return random.choice(_CHOICES[type(kind)](kind, present))


def _itself(value: Any) -> Any:
    return value


def _after(first: Store, then: Store) -> Store:
    return lambda value: then(first(value))


def _only(*choices: _Physical) -> Callable[[PrimitiveType, list[Any]], list[_Physical]]:
    return lambda _kind, _values: list(choices)


def _integers(_kind: PrimitiveType, values: list[Any]) -> list[_Physical]:
    words = ["", "(INTEGER(32,true))"]
    words += ["(INTEGER(16,false))"] if all(0 <= v < 1 << 16 for v in values) else []
    return [_Physical("int32", word, "IntegerValue", _itself) for word in words]


def _longs(_kind: PrimitiveType, values: list[Any]) -> list[_Physical]:
    found = [_Physical("int64", word, "LongValue", _itself) for word in ("", "(INTEGER(64,true))")]
    if all(-(1 << 31) <= v < 1 << 31 for v in values):
        found.append(_Physical("int32", "", "IntegerValue", _itself))
    return found


def _decimals(kind: PrimitiveType, _values: list[Any]) -> list[_Physical]:
    assert isinstance(kind, DecimalType)
    scale, annotation = kind.scale, f"(DECIMAL({kind.precision},{kind.scale}))"

    def whole(value: Any) -> int:
        return unscaled(value, scale)

    def shortest(value: Any) -> bytes:
        number = whole(value)
        return number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)

    least = ((10**kind.precision).bit_length() + 8) // 8
    found = [_Physical("binary", annotation, "BinaryValue", shortest)]
    for size in {least, 16}:
        fixed = partial(int.to_bytes, length=size, byteorder="big", signed=True)
        found += [_Physical(f"fixed_len_byte_array({size})", annotation, "BinaryValue", _after(whole, fixed))]
    if kind.precision <= 9:
        found.append(_Physical("int32", annotation, "IntegerValue", whole))
    if kind.precision <= 18:
        found.append(_Physical("int64", annotation, "LongValue", whole))
    return found


def _timestamps(kind: PrimitiveType, values: list[Any]) -> list[_Physical]:
    zoned = "true" if isinstance(kind, TimestamptzType) else "false"
    found = [_Physical("int64", f"(TIMESTAMP(MICROS,{zoned}))", "LongValue", _itself)]
    if all(v % 1000 == 0 for v in values):
        millis = _Physical("int64", f"(TIMESTAMP(MILLIS,{zoned}))", "LongValue", lambda v: v // 1000)
        found += [millis, millis]
    if isinstance(kind, TimestamptzType):
        found.append(_Physical(INT96, "", "Int96Value", _int96))
    return found


def _int96(micros: int) -> bytes:
    days, rest = divmod(micros, MICROS_PER_DAY)
    return (rest * 1000).to_bytes(8, "little") + (days + JULIAN_EPOCH).to_bytes(4, "little", signed=True)


def _nanos(kind: PrimitiveType, _values: list[Any]) -> list[_Physical]:
    zoned = "true" if isinstance(kind, TimestamptzNsType) else "false"
    return [_Physical("int64", f"(TIMESTAMP(NANOS,{zoned}))", "LongValue", _itself)]


def _fixed(kind: PrimitiveType, _values: list[Any]) -> list[_Physical]:
    assert isinstance(kind, FixedType)
    return [_Physical(f"fixed_len_byte_array({kind.length})", "", "BinaryValue", _itself)]


_CHOICES: dict[type[Type], Callable[[PrimitiveType, list[Any]], list[_Physical]]] = {
    BooleanType: _only(_Physical("boolean", "", "BooleanValue", _itself)),
    IntegerType: _integers,
    LongType: _longs,
    FloatType: _only(_Physical("float", "", "FloatValue", _itself)),
    DoubleType: _only(_Physical("double", "", "DoubleValue", _itself)),
    DecimalType: _decimals,
    DateType: _only(_Physical("int32", "(DATE)", "IntegerValue", _itself)),
    TimeType: _only(_Physical("int64", "(TIME(MICROS,false))", "LongValue", _itself)),
    TimestampType: _timestamps,
    TimestamptzType: _timestamps,
    TimestampNsType: _nanos,
    TimestamptzNsType: _nanos,
    StringType: _only(*(_Physical("binary", word, "BinaryValue", str.encode) for word in ("(UTF8)", "(STRING)"))),
    BinaryType: _only(_Physical("binary", "", "BinaryValue", _itself)),
    FixedType: _fixed,
    UUIDType: _only(_Physical("fixed_len_byte_array(16)", "(UUID)", "BinaryValue", lambda v: v.bytes)),
}
