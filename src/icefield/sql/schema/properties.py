"""Lists of properties: ('k' = 'v', a.b = 1, 'flag' true). Raises InvalidInput, at the key."""

from collections.abc import Mapping
from dataclasses import dataclass

from icefield.arguments import whole_number
from icefield.errors import InvalidInput
from icefield.expr.query.lexer import LexemeKind
from icefield.model.metadata import check_format_version
from icefield.properties.check import check_properties
from icefield.properties.table import FORMAT_VERSION_KEY
from icefield.sql.schema.types import parse_text
from icefield.sql.syntax.cursor import Cursor
from icefield.sql.syntax.place import Place, pointing_at

COMMENT = "comment"
SORT_ORDER, IDENTIFIER_FIELDS = "sort-order", "identifier-fields"
_OTHER_WAYS = {
    "location": "LOCATION",
    "provider": "USING iceberg",
    SORT_ORDER: "ALTER TABLE ... WRITE ORDERED BY",
    IDENTIFIER_FIELDS: "ALTER TABLE ... SET IDENTIFIER FIELDS",
}


@dataclass(frozen=True)
class Properties:
    """Properties, and where the key of each is."""

    values: Mapping[str, str]
    places: Mapping[str, Place]

    def merged(self, other: "Properties") -> "Properties":
        """Return these and others, which win."""
        return Properties({**self.values, **other.values}, {**self.places, **other.places})

    def without(self, *keys: str) -> "Properties":
        """Return these without some."""
        return Properties({key: value for key, value in self.values.items() if key not in keys}, self.places)

    @property
    def format_version(self) -> int | None:
        """The version of the table format, which Iceberg takes as a property."""
        text = self.values.get(FORMAT_VERSION_KEY)
        if text is None:
            return None
        with pointing_at(self.places[FORMAT_VERSION_KEY]):
            version = whole_number(text)
            if version is None:
                raise InvalidInput(f"{text!r} is not a format version")
            check_format_version(version, "the table")
            return version

    def for_table(self) -> dict[str, str]:
        """Return the properties that are stored in a table; refuse those that cannot be."""
        found = {key: value for key, value in self.values.items() if key != FORMAT_VERSION_KEY}
        for key, value in found.items():
            with pointing_at(self.places[key]):
                if key in _OTHER_WAYS:
                    raise InvalidInput(f"{key} is not set as a property", hint=f"Use {_OTHER_WAYS[key]}")
                check_properties({key: value})
        return found


NO_PROPERTIES = Properties({}, {})


def comment_property(text: str, place: Place) -> Properties:
    """Return the property that keeps a comment."""
    return Properties({COMMENT: text}, {COMMENT: place})


def parse_properties(cursor: Cursor) -> Properties:
    """Read a list of keys and values in parentheses."""
    values: dict[str, str] = {}
    places: dict[str, Place] = {}
    cursor.expect("(")
    while not values or cursor.accept(","):
        start, key = cursor.position, _key(cursor)
        place = cursor.since(start)
        if key in values:
            raise cursor.error(f"the property {key} is there twice", place)
        cursor.accept("=")
        values[key], places[key] = _value(cursor, key), place
    cursor.expect(")")
    return Properties(values, places)


def parse_keys(cursor: Cursor) -> tuple[str, ...]:
    """Read a list of keys in parentheses."""
    keys: list[str] = []
    cursor.expect("(")
    while not keys or cursor.accept(","):
        keys.append(_key(cursor))
    if cursor.is_at("="):
        raise cursor.error("a property to remove has no value")
    cursor.expect(")")
    return tuple(keys)


def _key(cursor: Cursor) -> str:
    token = cursor.token()
    if token is not None and token.is_name:
        return str(cursor.name("a property"))
    return parse_text(cursor, "a property")


def _value(cursor: Cursor, key: str) -> str:
    token = cursor.token()
    if cursor.is_at(",") or cursor.is_at(")"):
        raise cursor.error(f"the property {key} has no value")
    if cursor.is_at_parameter:
        value = cursor.parameter()
        return str(value).lower() if isinstance(value, bool) else str(value)
    if token is not None and token.word in ("true", "false"):
        return cursor.take().word
    sign = "-" if cursor.accept("-") else ""
    if (token := cursor.token()) is not None and token.kind is LexemeKind.NUMBER:
        return sign + cursor.take().text
    return parse_text(cursor, "a value")
