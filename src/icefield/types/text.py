"""Types and schemas as text: `decimal(10, 2)`, and `id long not null, tags list<string>` as users write them.

A schema may use the format's type names and the common SQL ones (`bigint`, `varchar`, `array<…>`). `timestamp` differs
between the two: here it has no time zone and `timestamptz` has one, as in the format.
Raises InvalidInput with the position of the error.
"""

import re
from dataclasses import dataclass

from icefield.errors import InvalidInput
from icefield.types.datatypes import (
    DEFAULT_CRS,
    MAX_DIGITS,
    SIMPLE_TYPES,
    DecimalType,
    EdgeAlgorithm,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    Type,
    VariantType,
)
from icefield.types.schema import MAX_DEPTH, Schema, assign_fresh_ids

SQL_WORDS = {
    "bool": "boolean",
    "integer": "int",
    "bigint": "long",
    "real": "float",
    "varchar": "string",
    "text": "string",
    "bytes": "binary",
    "timestamp_ntz": "timestamp",
    "timestamp_ltz": "timestamptz",
}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)", re.ASCII)
_FIXED = re.compile(r"fixed\[\s*(\d+)\s*\]", re.ASCII)
# Blanks inside the parentheses are removed afterwards: a pattern for them would backtrack on long runs of blanks.
_GEOMETRY = re.compile(r"geometry\s*(?:\(([^)]*)\))?", re.IGNORECASE)
_GEOGRAPHY = re.compile(r"geography\s*(?:\(([^,)]*)(?:,([^)]*))?\))?", re.IGNORECASE)
_TOKEN = re.compile(
    r"\s*(?:(?P<shape>(?i:geometry|geography)\s*\([^)]*\))|(?P<word>[^\W\d]\w*)|`(?P<quoted>(?:[^`]|``)+)`"
    r"|(?P<number>\d+)|(?P<mark>[<>(),:\[\]]))"
)


def parse_stored_type(text: str) -> PrimitiveType | VariantType:
    """Parse a primitive type as written in metadata; like Iceberg Java, ignore case and extra blanks."""
    lower = text.lower()
    if lower in SIMPLE_TYPES:
        return SIMPLE_TYPES[lower]
    if lower == VariantType.word:
        return VariantType()
    if found := _GEOMETRY.fullmatch(text):
        return GeometryType(DEFAULT_CRS if found[1] is None else found[1].strip())
    if found := _GEOGRAPHY.fullmatch(text):
        return GeographyType(DEFAULT_CRS if found[1] is None else found[1].strip(), _parse_algorithm(found[2]))
    if found := _DECIMAL.fullmatch(lower):
        return DecimalType(_parse_number(found[1]), _parse_number(found[2]))
    if found := _FIXED.fullmatch(lower):
        return FixedType(_parse_number(found[1]))
    raise InvalidInput(f"unknown type {text[:80]!r}")


def parse_type(text: str) -> Type:
    """Parse a type as users write it; nested ids are placeholders."""
    parsed = parse_schema(f"c {text}").fields
    if len(parsed) != 1 or parsed[0].required:
        raise InvalidInput(f"{text!r} is not a valid type")
    return parsed[0].type


def parse_schema(text: str) -> Schema:
    """Parse `name type [not null], …` into a schema with fresh ids."""
    parser = _Parser(text)
    fields = parser.fields(end=None)
    if not fields:
        raise InvalidInput("the schema has no columns", hint="Write it as: id long not null, name string")
    return assign_fresh_ids(Schema(fields))


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


class _Parser:
    """A recursive descent parser; ids are placeholders, unique within one parse."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._next = 0
        self._last_id = 0

    def fields(self, end: str | None, depth: int = 0) -> tuple[NestedField, ...]:
        fields: list[NestedField] = []
        while not self._at_end(end):
            if fields:
                self._expect(",")
            fields.append(self._field(depth))
        return tuple(fields)

    def _field(self, depth: int) -> NestedField:
        field_id, name = self._fresh_id(), self._name()
        if self._peek() == ":":
            self._take()
        kind = self._type(depth)
        return NestedField(field_id, name, kind, self._not_null())

    def _type(self, depth: int) -> Type:
        if depth > MAX_DEPTH:
            raise self._fault("types nested too deeply")
        if self._peek_kind() == "shape":
            return parse_stored_type(self._take().text)
        word = self._name().lower()
        match word:
            case "list" | "array":
                element_id = self._fresh_id()
                element, required = self._inner(depth, "<", ">")
                return ListType(element_id, element, required)
            case "map":
                return self._map(depth)
            case "struct" | "row":
                self._expect("<")
                fields = self.fields(">", depth + 1)
                self._expect(">")
                return StructType(fields)
            case "decimal" | "numeric":
                return self._decimal()
            case "fixed":
                return self._fixed()
        try:
            return parse_stored_type(SQL_WORDS.get(word, word))
        except InvalidInput as error:
            raise self._fault(error.message, back=1) from error

    def _inner(self, depth: int, start: str, end: str) -> tuple[Type, bool]:
        self._expect(start)
        kind = self._type(depth + 1)
        required = self._not_null()
        self._expect(end)
        return kind, required

    def _map(self, depth: int) -> MapType:
        key_id, value_id = self._fresh_id(), self._fresh_id()
        self._expect("<")
        key = self._type(depth + 1)
        value, required = self._inner(depth, ",", ">")
        return MapType(key_id, key, value_id, value, required)

    def _decimal(self) -> DecimalType:
        self._expect("(")
        precision = self._number()
        scale = 0
        if self._peek() == ",":
            self._take()
            scale = self._number()
        self._expect(")")
        return DecimalType(precision, scale)

    def _fixed(self) -> FixedType:
        start = self._take().text
        if start not in "([":
            raise self._fault("expected `[` after fixed", back=1)
        length = self._number()
        self._expect(")" if start == "(" else "]")
        return FixedType(length)

    def _not_null(self) -> bool:
        if self._peek().lower() == "required":
            self._take()
            return True
        if self._peek().lower() != "not":
            return False
        self._take()
        self._expect("null")
        return True

    def _name(self) -> str:
        token = self._take()
        if token.kind not in ("word", "quoted"):
            raise self._fault(f"expected a name, found {token.text!r}", back=1)
        return token.text

    def _number(self) -> int:
        token = self._take()
        if token.kind != "number":
            raise self._fault(f"expected a number, found {token.text!r}", back=1)
        return _parse_number(token.text)

    def _expect(self, text: str) -> None:
        token = self._take()
        if token.text.lower() != text:
            raise self._fault(f"expected {text!r}, found {token.text!r}", back=1)

    def _peek(self) -> str:
        return self._tokens[self._next].text if self._next < len(self._tokens) else ""

    def _peek_kind(self) -> str:
        return self._tokens[self._next].kind if self._next < len(self._tokens) else ""

    def _take(self) -> _Token:
        if self._next >= len(self._tokens):
            raise self._fault("unexpected end of text")
        self._next += 1
        return self._tokens[self._next - 1]

    def _at_end(self, end: str | None) -> bool:
        return self._next >= len(self._tokens) if end is None else self._peek() == end

    def _fresh_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _fault(self, why: str, back: int = 0) -> InvalidInput:
        place = self._next - back
        at = self._tokens[place].at if place < len(self._tokens) else len(self._text)
        return InvalidInput(f"cannot parse the schema at character {at + 1}: {why}: {self._text[at : at + 30]!r}")


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise InvalidInput(f"cannot parse the schema at character {at + 1}: {text[at : at + 30]!r}")
        word = found[found.lastgroup]
        tokens.append(_Token(found.lastgroup, word.replace("``", "`"), found.start(found.lastgroup)))
        at = found.end()
    return tokens


def _parse_number(text: str) -> int:
    digits = text.lstrip("0") or "0"
    if len(digits) > MAX_DIGITS:
        raise InvalidInput(f"the number {digits[:20]}… in a type is too large")
    return int(digits)


def _parse_algorithm(text: str | None) -> EdgeAlgorithm:
    if text is None:
        return EdgeAlgorithm.SPHERICAL
    text = text.strip()
    try:
        return EdgeAlgorithm(text.lower())
    except ValueError as error:
        known = ", ".join(EdgeAlgorithm)
        raise InvalidInput(f"unknown edge algorithm {text[:40]!r}", hint=f"Known: {known}") from error
