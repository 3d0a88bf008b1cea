"""Types as Spark's SQL writes them.

    TIMESTAMP  timestamptz          TINYINT, SMALLINT  int          ARRAY<INT>         list<int>
    TIMESTAMP_NTZ  timestamp        CHAR(3), VARCHAR(5)  string     STRUCT<a: INT NOT NULL COMMENT 'x'>

Types that Iceberg has and Spark does not go by Iceberg's names: UUID, FIXED[16], TIMESTAMP_NS, TIMESTAMPTZ_NS. Ids of
fields are placeholders. Raises InvalidInput and Unsupported, at the token.
"""

from collections.abc import Mapping

from icefield.errors import InvalidInput, Unsupported
from icefield.expr.query.lexer import LexemeKind
from icefield.sql.syntax.cursor import Cursor
from icefield.sql.syntax.place import pointing_at
from icefield.types.datatypes import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeometryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNsType,
    TimestampType,
    TimestamptzNsType,
    TimestamptzType,
    TimeType,
    Type,
    UnknownType,
    UUIDType,
    VariantType,
)
from icefield.types.schema import MAX_DEPTH
from icefield.types.text import parse_stored_type

_SIMPLE: Mapping[str, Type] = {
    "boolean": BooleanType(),
    "tinyint": IntegerType(),
    "byte": IntegerType(),
    "smallint": IntegerType(),
    "short": IntegerType(),
    "int": IntegerType(),
    "integer": IntegerType(),
    "bigint": LongType(),
    "long": LongType(),
    "float": FloatType(),
    "real": FloatType(),
    "double": DoubleType(),
    "date": DateType(),
    "timestamp": TimestamptzType(),
    "timestamp_ltz": TimestamptzType(),
    "timestamptz": TimestamptzType(),
    "timestamp_ntz": TimestampType(),
    "timestamp_ns": TimestampNsType(),
    "timestamptz_ns": TimestamptzNsType(),
    "string": StringType(),
    "binary": BinaryType(),
    "uuid": UUIDType(),
    "variant": VariantType(),
    "void": UnknownType(),
    "unknown": UnknownType(),
}
_TEXTS = ("char", "character", "varchar")
_DECIMALS = ("decimal", "dec", "numeric")
_SHAPES = ("geometry", "geography")
_NESTED = ("array", "map", "struct")
# The coordinate reference systems that Spark's numbers stand for.
_SRIDS = {0: "SRID:0", 3857: "EPSG:3857", 4326: "OGC:CRS84"}
_DEFAULT_PRECISION, _TIME_PRECISION = 10, 6
_BINARY_COLLATION = "utf8_binary"
_INNER = 0  # the placeholder of a field id


def parse_type(cursor: Cursor) -> Type:
    """Read a type."""
    return _TypeReader(cursor).read(0)


class _TypeReader:
    """Reads one type; `>>` and `>>>` are one token each, and close several types."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._closed = 0

    def read(self, depth: int) -> Type:
        cursor = self._cursor
        if depth > MAX_DEPTH:
            raise cursor.error("types are nested too deeply")
        place, word = cursor.place, cursor.identifier("a type").lower()
        if word in _NESTED:
            return {"array": self._array, "map": self._map, "struct": self._struct}[word](depth)
        with pointing_at(place):
            if word in _TEXTS:
                return self._text(word)
            if word in _DECIMALS:
                return self._decimal()
            if word in _SHAPES:
                return self._shape(word)
        if word == "interval":
            raise place.error("Iceberg tables have no intervals", hint="Store a number of a unit", kind=Unsupported)
        if word == "time":
            return self._time()
        if word == "fixed":
            return self._fixed()
        found = _SIMPLE.get(word)
        if found is None:
            known = ", ".join(name.upper() for name in (*_SIMPLE, "decimal", *_TEXTS, *_NESTED))
            raise place.error(f"unknown type {place.text!r}", hint=f"Known: {known}", kind=InvalidInput)
        return self._suffixed(word, found)

    def _array(self, depth: int) -> Type:
        self._open()
        element, required = self._inner(depth)
        self._close()
        return ListType(_INNER, element, required)

    def _map(self, depth: int) -> Type:
        self._open()
        key = self.read(depth + 1)
        self._cursor.expect(",")
        value, required = self._inner(depth)
        self._close()
        return MapType(_INNER, key, _INNER, value, required)

    def _inner(self, depth: int) -> tuple[Type, bool]:
        """Read an element or a value, which may be required. (Spark's grammar has no way to say so.)"""
        kind = self.read(depth + 1)
        return kind, self._closed == 0 and self._cursor.accept("not", "null")

    def _struct(self, depth: int) -> Type:
        cursor = self._cursor
        if cursor.is_at("<>") or cursor.is_at("<", ">"):
            raise cursor.error("a struct needs fields", kind=Unsupported)
        self._open()
        fields: list[NestedField] = []
        taken: set[str] = set()
        while not fields or (self._closed == 0 and cursor.accept(",")):
            place, name = cursor.place, cursor.identifier("the name of a field")
            if name.lower() in taken:
                raise place.error(f"the field {name!r} is there twice", kind=InvalidInput)
            taken.add(name.lower())
            cursor.accept(":")
            kind = self.read(depth + 1)
            required, doc = (False, None) if self._closed else (cursor.accept("not", "null"), parse_comment(cursor))
            fields.append(NestedField(_INNER, name, kind, required, doc))
        self._close()
        return StructType(tuple(fields))

    def _open(self) -> None:
        self._cursor.expect("<")

    def _close(self) -> None:
        if self._closed == 0:
            found = self._cursor.accept_any(">", ">>", ">>>")
            if found is None:
                raise self._cursor.expected(">")
            self._closed = len(found)
        self._closed -= 1

    def _text(self, word: str) -> Type:
        if not self._cursor.accept("("):
            raise self._cursor.error(f"{word.upper()} needs a length", hint=f"Write {word.upper()}(n), or STRING")
        self._length("a length")
        self._cursor.expect(")")
        return StringType()

    def _decimal(self) -> Type:
        precision, scale = _DEFAULT_PRECISION, 0
        if self._cursor.accept("("):
            precision = self._length("a precision")
            scale = self._length("a scale") if self._cursor.accept(",") else 0
            self._cursor.expect(")")
        return DecimalType(precision, scale)

    def _time(self) -> Type:
        if self._cursor.accept("("):
            place, precision = self._cursor.place, self._length("a precision")
            if precision > _TIME_PRECISION:
                raise place.error("times have microseconds, 6 digits", kind=Unsupported)
            self._cursor.expect(")")
        self._cursor.accept("without", "time", "zone")
        return TimeType()

    def _fixed(self) -> Type:
        closing = {"(": ")", "[": "]"}[self._cursor.expect_any("[", "(")]
        place, length = self._cursor.place, self._length("a length")
        self._cursor.expect(closing)
        with pointing_at(place):
            return FixedType(length)

    def _shape(self, word: str) -> Type:
        if not self._cursor.is_at("("):
            return parse_stored_type(word)
        place = self._cursor.parenthesized()
        if not place.text.isdecimal():
            return parse_stored_type(f"{word}({place.text})")
        crs = _SRIDS.get(int(place.text))
        if crs is None:
            raise place.error(f"unknown SRID {place.text}", hint="Write its name, such as EPSG:3857", kind=Unsupported)
        return GeometryType(crs) if word == "geometry" else parse_stored_type(f"geography({crs})")

    def _suffixed(self, word: str, kind: Type) -> Type:
        """Read what may follow the word: WITHOUT TIME ZONE, COLLATE."""
        if word == "timestamp" and self._cursor.accept("without", "time", "zone"):
            return TimestampType()
        if word == "timestamp" and self._cursor.accept("with", "time", "zone"):
            return kind
        if word == "string" and self._cursor.accept("collate"):
            name = self._cursor.name("a collation")
            if str(name).lower() != _BINARY_COLLATION:
                raise name.place.error("Iceberg tables have no collations", kind=Unsupported)
        return kind

    def _length(self, what: str) -> int:
        token = self._cursor.token()
        if self._cursor.is_at_parameter:
            place, value = self._cursor.place, self._cursor.parameter()
            if type(value) is not int:
                raise place.error(f"{what} is a whole number, not {value!r}", kind=InvalidInput)
            return value
        if token is None or token.kind is not LexemeKind.NUMBER:
            raise self._cursor.expected(what)
        return self._cursor.integer(what)


def parse_comment(cursor: Cursor) -> str | None:
    """Read COMMENT 'text', if it follows."""
    return parse_text(cursor, "a comment") if cursor.accept("comment") else None


def parse_text(cursor: Cursor, what: str) -> str:
    """Read a text: string literals, of which several in a row are one, or a parameter."""
    if cursor.is_at_parameter:
        place, value = cursor.place, cursor.parameter()
        if not isinstance(value, str):
            raise place.error(f"{what} is a text, not {value!r}", kind=InvalidInput)
        return value
    text = cursor.string(what)
    while (token := cursor.token()) is not None and token.kind in (LexemeKind.STRING, LexemeKind.RAW):
        text += cursor.string(what)
    return text
