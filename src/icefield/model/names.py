"""Names of namespaces and tables, validated once and trusted afterwards.

A name is one or more parts joined by dots; the last part of a table's name is the table. Names become directory
names and SQL values, so the rules are strict: no empty part, no separator, no control character, no `.` or `..`.
Raises InvalidInput.
"""

import re
from dataclasses import dataclass

from icefield.errors import InvalidInput

Namespace = tuple[str, ...]

_MAX_PART_BYTES = 255
_SHOWN_CHARACTERS = 80
# Control characters and separators; lone surrogates, which file systems and databases cannot store; and characters that
# are invisible, or change the reading direction, so that one name looks like another.
_BAD_CHARACTERS = re.compile(
    r"[\x00-\x1f\x7f-\x9f/\\.\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]"
)


@dataclass(frozen=True, order=True)
class TableName:
    """A table's full name."""

    namespace: Namespace
    name: str

    def __str__(self) -> str:
        return ".".join((*self.namespace, self.name))


def parse_table_name(text: str) -> TableName:
    """Parse `shop.orders` or `a.b.orders`; a table is always in a namespace."""
    *namespace, name = _parse_parts(text, "table")
    if not namespace:
        raise InvalidInput(f"table name {text!r} has no namespace", hint=f"Write it as <namespace>.{text}")
    return TableName(tuple(namespace), name)


def parse_namespace(text: str) -> Namespace:
    """Parse `shop` or `a.b`."""
    return _parse_parts(text, "namespace")


def _parse_parts(text: str, kind: str) -> tuple[str, ...]:
    if not isinstance(text, str):
        raise InvalidInput(f"a {kind} name must be a string, not {type(text).__name__}")
    parts = tuple(text.split("."))
    for part in parts:
        _check_part(part, text, kind)
    return parts


def _check_part(part: str, text: str, kind: str) -> None:
    hint = "Use letters, digits, `_` and `-`, with dots between namespace and table, such as shop.orders"
    shown = repr(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "...")
    if not part or part != part.strip():
        raise InvalidInput(f"{kind} name {shown} has an empty part, or one with leading or trailing blanks", hint=hint)
    if found := _BAD_CHARACTERS.search(part):
        raise InvalidInput(f"{kind} name {shown} contains {found.group()!r}", hint=hint)
    if len(part.encode()) > _MAX_PART_BYTES:
        raise InvalidInput(f"{kind} name {shown} has a part over {_MAX_PART_BYTES} bytes", hint=hint)
